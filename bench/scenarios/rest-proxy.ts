/**
 * A REST call to a module: through the gateway with session, limits and audit on, through nginx and through
 * @fastify/http-proxy, which only pass it on, all to the same backend.
 */

import { startServer } from '../measure/children.ts';
import type { Subject } from '../measure/measure.ts';
import { type Bench, rawRequest, type Scenario } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import { gatewayUnderLoad, makeAgents, sessionOf } from '../subjects/gateway.ts';
import { startNginx } from '../subjects/transfers.ts';
import { startFastifyProxy } from './fastify.ts';

const PATH = '/wallet/v1/balance/get';
/** In every good answer of the backend. */
const EXPECT = '1000.00000000';
/** Any key of the length that the configuration asks for: this backend looks at none. */
const MODULE_KEY = 'bench-module-key-0001';
/** Accounts that share the connections, each with a key and a session of its own. */
const USERS = 64;
/** Connections that the gateway keeps to one module, at most. */
const CONNECTIONS = 128;

export const restProxy: Scenario = {
  name: 'rest-proxy',
  summary: 'a REST call to a module against nginx and @fastify/http-proxy',
  baseline: true,
  targets: [
    {
      against: '@fastify/http-proxy',
      by: 'rate',
      atLeast: 1.6,
      row: 'REST call against @fastify/http-proxy',
    },
    { against: 'nginx', by: 'rate', atLeast: 0.3, row: 'REST call against nginx' },
  ],
  async run(bench) {
    const backend = await startServer('wallet');
    bench.onTeardown(() => backend.stop());
    const subjects = await startSubjects(bench, backend.url);
    return { comparison: await bench.compare(subjects), notes: [] };
  },
};

async function startSubjects(bench: Bench, backendUrl: string): Promise<Subject[]> {
  const subjects: Subject[] = [];
  for (const build of bench.builds) subjects.push(await gateway(bench, backendUrl, build));
  if (bench.optionalPeer('nginx')) subjects.push(await nginx(bench, backendUrl));
  if (bench.optionalPeer('fastify')) {
    const { url, pid } = await startFastifyProxy(bench, backendUrl);
    subjects.push(passingOn(bench, '@fastify/http-proxy', url, pid));
  }
  return subjects;
}

async function gateway(bench: Bench, backendUrl: string, build: Build): Promise<Subject> {
  const modules = { wallet: { url: backendUrl, key: MODULE_KEY } };
  const { name, url, pids } = await gatewayUnderLoad(bench, modules, { build });
  const people = await makeAgents(bench, url, bench.options.users || USERS);
  const requests: string[] = [];
  for (const person of people) {
    const headers = { Authorization: `Bearer ${await sessionOf(url, person)}` };
    requests.push(rawRequest('GET', `${url}${PATH}`, headers));
  }
  const expect = bench.options.target === undefined ? EXPECT : '"result"';
  return bench.subject(name, pids, () => ({ url, requests, expect }));
}

function passingOn(bench: Bench, name: string, url: string, pid: number): Subject {
  const requests = [rawRequest('GET', `${url}${PATH}`, { Authorization: `Bearer ${'x'.repeat(46)}` })];
  return bench.subject(name, [pid], () => ({ url, requests, expect: EXPECT }));
}

/** One worker process, as the gateway's main thread is one. */
async function nginx(bench: Bench, backendUrl: string): Promise<Subject> {
  const peer = await startNginx(bench, {
    http: `upstream backend { server ${new URL(backendUrl).host}; keepalive ${CONNECTIONS}; keepalive_requests 1000000; }`,
    server:
      'location / { proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; }',
  });
  return passingOn(bench, 'nginx', peer.url, peer.pid);
}
