/**
 * tools/call of `wallet_get_balance`: through the gateway with authentication, limits and audit on, through a bare uWS +
 * undici proxy, and through the official SDK's server, all to the same backend; and a tool of an MCP server behind the gateway.
 */
import { expectOk, request } from '../../kit/agent.ts';
import { connectHost } from '../../kit/consent.ts';
import { startServer } from '../measure/children.ts';
import type { Subject } from '../measure/measure.ts';
import { type Bench, rawRequest, type Scenario } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import { gatewayUnderLoad, makeAgents, sessionOf } from '../subjects/gateway.ts';
import { listWith, startUpstreams } from '../subjects/upstreams.ts';
import { startFastifyProxy } from './fastify.ts';

const callOf = (name: string, more: object = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {}, ...more } });
const CALL = callOf('wallet_get_balance');
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
};
const ACCEPT = 'application/json, text/event-stream';
/** In every good answer, raw or escaped into a text; in no error. */
const EXPECT = '1000.00000000';
/** Any key of the length that the configuration asks for: this backend looks at none. */
const MODULE_KEY = 'bench-module-key-0001';
const CONNECTED = 'gatehouse at /connect/mcp';
const STATELESS = 'gatehouse, MCP 2026-07-28';
const UPSTREAM = 'gatehouse, upstream tool';
/** The same call in the revision without sessions. */
const STATELESS_CALL = callOf('wallet_get_balance', {
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  },
});
const STATELESS_HEADERS = {
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': 'tools/call',
  'Mcp-Name': 'wallet_get_balance',
};
/** Accounts that share the connections, each with a key and a session of its own. */
const USERS = 64;

export const mcpCall: Scenario = {
  name: 'mcp-call',
  summary: 'tools/call to a local backend against a bare uWS + undici proxy and the official SDK server',
  baseline: true,
  targets: [
    { against: 'bare uWS + undici proxy', by: 'rate', atLeast: 0.65, row: 'tools/call against a bare proxy' },
    { of: CONNECTED, against: 'gatehouse', by: 'rate', reaches: 0.97, row: 'tools/call at /connect/mcp' },
    { of: STATELESS, against: 'gatehouse', by: 'rate', reaches: 0.95, row: 'tools/call of MCP 2026-07-28' },
    { against: UPSTREAM, by: 'processor time', atMost: 1.15, row: 'tools/call of an upstream tool' },
    {
      against: '@fastify/http-proxy',
      by: 'rate',
      reaches: 1.6,
      row: 'tools/call against @fastify/http-proxy',
    },
  ],
  async run(bench) {
    const backend = await startServer('wallet');
    bench.onTeardown(() => backend.stop());
    const subjects: Subject[] = [];
    for (const build of bench.builds) subjects.push(...(await gateway(bench, backend.url, build)));
    if (bench.optionalPeer('bare-proxy')) subjects.push(await bareProxy(bench, backend.url));
    if (bench.optionalPeer('fastify')) subjects.push(await fastify(bench, backend.url));
    if (bench.optionalPeer('sdk')) subjects.push(await sdk(bench, backend.url));
    return {
      comparison: await bench.compare(subjects),
      notes: bench.options.target === undefined ? [] : ['The target answers from its own wallet module.'],
    };
  },
};

/**
 * Without a baseline four subjects of one process with the same accounts: both addresses, both forms of MCP, and a tool of
 * another server. With one a subject of each build.
 */
async function gateway(bench: Bench, backendUrl: string, build: Build): Promise<Subject[]> {
  const modules = { wallet: { url: backendUrl, key: MODULE_KEY } };
  const isOurs = bench.options.target === undefined;
  // Beside another build the process serves `/mcp` alone, as the other does: more kinds of calls in it cost each of them.
  const isWhole = isOurs && bench.builds.length === 1;
  const upstreams = isWhole ? await startUpstreams(bench, 1) : undefined;
  const configuration = upstreams === undefined ? {} : { McpServers: upstreams.servers };
  const { name, url, pids } = await gatewayUnderLoad(bench, modules, { build, configuration });
  const people = await makeAgents(bench, url, bench.options.users || USERS);
  const expect = isOurs ? EXPECT : '"result"';
  const subject = async (
    title: string,
    path: string,
    login: typeof sessionOf,
    { call = CALL, fields = {} }: { readonly call?: string; readonly fields?: Record<string, string> } = {},
  ) => {
    const requests: string[] = [];
    for (const person of people) {
      const headers = { Authorization: `Bearer ${await login(url, person)}`, Accept: ACCEPT, ...fields };
      requests.push(rawRequest('POST', `${url}${path}`, headers, call));
    }
    return bench.subject(title, pids, () => ({ url, requests, expect }));
  };
  const direct = await subject(name, '/mcp', sessionOf);
  const [person] = people;
  if (upstreams === undefined || person === undefined) return [direct];
  const { names } = upstreams;
  await listWith(url, await sessionOf(url, person), names);
  const stateless = { call: STATELESS_CALL, fields: STATELESS_HEADERS };
  return [
    direct,
    await subject(CONNECTED, '/connect/mcp', connectHost),
    await subject(STATELESS, '/mcp', sessionOf, stateless),
    await subject(UPSTREAM, '/mcp', sessionOf, { call: callOf(names[0] ?? '') }),
  ];
}

async function bareProxy(bench: Bench, backendUrl: string): Promise<Subject> {
  const proxy = await startServer('bare-proxy', [backendUrl]);
  bench.onTeardown(() => proxy.stop());
  const headers = { Authorization: `Bearer ${'x'.repeat(46)}`, Accept: ACCEPT };
  const requests = [rawRequest('POST', `${proxy.url}/mcp`, headers, CALL)];
  return bench.subject('bare uWS + undici proxy', [proxy.pid], () => ({
    url: proxy.url,
    requests,
    expect: EXPECT,
  }));
}

/** It passes the backend's path on: the same call as the gateway's own to the module. */
async function fastify(bench: Bench, backendUrl: string): Promise<Subject> {
  const { url, pid } = await startFastifyProxy(bench, backendUrl);
  const headers = { Authorization: `Bearer ${'x'.repeat(46)}` };
  const requests = [rawRequest('GET', `${url}/wallet/v1/balance/get`, headers)];
  return bench.subject('@fastify/http-proxy', [pid], () => ({ url, requests, expect: EXPECT }));
}

async function sdk(bench: Bench, backendUrl: string): Promise<Subject> {
  const server = await startServer('sdk', [backendUrl]);
  bench.onTeardown(() => server.stop());
  const endpoint = `${server.url}/mcp`;
  const requests: string[] = [];
  for (let count = 0; count < USERS; count += 1) {
    const options = { headers: { Accept: ACCEPT }, body: INITIALIZE };
    const answer = expectOk('initialize', await request(endpoint, options));
    const sessionId = answer.headers.get('mcp-session-id') ?? '';
    requests.push(rawRequest('POST', endpoint, { 'Mcp-Session-Id': sessionId, Accept: ACCEPT }, CALL));
  }
  return bench.subject('official SDK server', [server.pid], () => ({
    url: server.url,
    requests,
    expect: EXPECT,
  }));
}
