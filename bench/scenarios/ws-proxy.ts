/**
 * WebSockets to a module: echoes and openings through the gateway with session, limits and audit on, and through nginx,
 * which passes bytes on, both to the same module. Then many sockets, opened and closed three times.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { metricValue } from '../../kit/metric-value.ts';
import { SECOND_MS } from '../../src/domain/time.ts';
import { startServer, startWorker, type Worker } from '../measure/children.ts';
import type { Sample, Subject } from '../measure/measure.ts';
import { costOf } from '../measure/process-cost.ts';
import type { Bench, Scenario } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import { type GatewayUnderLoad, gatewayUnderLoad, makeAgents, sessionOf } from '../subjects/gateway.ts';
import { startNginx } from '../subjects/transfers.ts';
import { handshakeOf } from './sockets/echo-socket.ts';
import type { SocketOrder, SocketReport, SocketServer } from './sockets/process.ts';

const PATH = '/core/v1/echo';
/** Any key of the length that the configuration asks for: this module looks at none. */
const MODULE_KEY = 'bench-module-key-0001';
const SIZES_BYTES = [64, 16 * 1024];
const SOCKETS = [1, 64];
const OPENINGS = 'openings';
/** Times that all sockets are opened and closed. The first one brings the heap to its size. */
const TIMES = 3;
/** A module's side may end after its client's. */
const ENDS_WITHIN_MS = 10_000;
const POLL_MS = 10;

export const wsProxy: Scenario = {
  name: 'ws-proxy',
  summary: 'echoes and openings of WebSockets to a module against nginx; memory of a socket',
  unit: 'echoes',
  baseline: true,
  noTarget: 'it needs a module that echoes',
  notInAll: 'its groups take longer than is left there',
  /** Those that are opened three times. Echoes have 1 and 64. */
  defaults: { connections: 2_000 },
  async run(bench) {
    const module = await startServer('echo');
    bench.onTeardown(() => module.stop());
    const client = await startClient(bench);
    const gateways: Proxy[] = [];
    for (const build of bench.builds) gateways.push(await gateway(bench, module.url, build));
    const proxies = [...gateways];
    if (bench.optionalPeer('nginx')) proxies.push(await nginx(bench, module.url));
    const comparison = await bench.compare(await subjectsOf(bench, client, proxies));
    const notes = [
      `An echo is two messages, to the module and back. Rows of ${OPENINGS} count sockets that were opened and closed.`,
    ];
    for (const each of gateways) notes.push(...(await openedAndClosed(bench, client, each)));
    return { comparison, notes };
  },
};

interface Proxy {
  readonly name: string;
  readonly pids: readonly number[];
  readonly server: SocketServer;
  readonly internal?: string;
}

type Client = (order: SocketOrder) => Promise<SocketReport>;

async function startClient(bench: Bench): Promise<Client> {
  const worker: Worker = await startWorker('server', '../../scenarios/sockets/process');
  bench.onTeardown(() => worker.stop());
  return async (order) => {
    const answer = await worker.ask<{ report: SocketReport } | { fault: string }>(order);
    if ('fault' in answer) throw new Error(`${order.do}: ${answer.fault}`);
    return answer.report;
  };
}

async function gateway(bench: Bench, moduleUrl: string, build: Build): Promise<Proxy> {
  const settings = { ConnectionsMax: 50_000, WebSocketsMax: 1_000_000, WebSocketsPerSession: 10_000 };
  const started: GatewayUnderLoad = await gatewayUnderLoad(
    bench,
    { core: { url: moduleUrl, key: MODULE_KEY } },
    { settings, build },
  );
  const { name, url, internal, pids } = started;
  const [person] = await makeAgents(bench, url, 1);
  if (person === undefined) throw new Error('no account');
  const bearer = await sessionOf(url, person);
  return {
    name,
    pids,
    server: serverOf(url, `Authorization: Bearer ${bearer}\r\n`),
    ...(internal === undefined ? {} : { internal }),
  };
}

/** One worker process, as the gateway's main thread is one. */
async function nginx(bench: Bench, moduleUrl: string): Promise<Proxy> {
  const { url, pid } = await startNginx(bench, {
    http: '',
    server: `location / {
      proxy_pass ${moduleUrl};
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
      proxy_read_timeout 1h;
    }`,
  });
  return { name: 'nginx', pids: [pid], server: serverOf(url) };
}

function serverOf(url: string, fields = ''): SocketServer {
  return { port: Number(new URL(url).port), handshake: handshakeOf(url + PATH, fields) };
}

async function subjectsOf(bench: Bench, client: Client, proxies: readonly Proxy[]): Promise<Subject[]> {
  const subjects: Subject[] = [];
  for (const sockets of SOCKETS) {
    for (const { name, server } of proxies)
      await client({ do: 'open', name: `${name} ${sockets}`, server, sockets });
    for (const sizeBytes of SIZES_BYTES) {
      const group = `${sizeBytes} bytes, ${sockets} ${sockets === 1 ? 'socket' : 'sockets'}`;
      for (const proxy of proxies)
        subjects.push(
          subjectOf(bench, proxy, group, (durationMs) =>
            client({ do: 'echo', name: `${proxy.name} ${sockets}`, sizeBytes, durationMs }),
          ),
        );
    }
  }
  for (const proxy of proxies)
    subjects.push(
      subjectOf(bench, proxy, OPENINGS, (durationMs) =>
        client({ do: 'openings', server: proxy.server, durationMs }),
      ),
    );
  return subjects;
}

function subjectOf(
  bench: Bench,
  { name, pids }: Proxy,
  group: string,
  run: (durationMs: number) => Promise<SocketReport>,
): Subject {
  const { warmupMs, durationMs } = bench.options;
  return {
    name: `${name}, ${group}`,
    pids,
    group,
    warmUp: () => run(warmupMs),
    round: async () => sampleOf(await run(durationMs)),
  };
}

function sampleOf({ count, elapsedMs, latencyUs, generatorBusy }: SocketReport): Sample {
  return {
    ratePerSecond: (count / elapsedMs) * SECOND_MS,
    details: {
      answers: count,
      answersInAll: count,
      latencyUs,
      generatorBusy,
      errors: {},
      perSecond: [],
      sample: undefined,
    },
  };
}

/** Opens and closes all sockets again and again. Throws unless the gateway counts each, and then none. */
async function openedAndClosed(
  bench: Bench,
  client: Client,
  { name, pids: [pid = 0], server, internal }: Proxy,
): Promise<string[]> {
  for (const sockets of SOCKETS) await client({ do: 'close', name: `${name} ${sockets}` });
  if (internal === undefined) return [];
  await untilNone(name, internal);
  const { connections: sockets } = bench.options;
  const notes: string[] = [];
  for (let time = 1; time <= TIMES; time += 1) {
    bench.announce(`${sockets} sockets to ${name}, time ${time} of ${TIMES}`);
    const before = costOf(pid)?.rssBytes ?? Number.NaN;
    const opened = await client({ do: 'open', name: 'many', server, sockets });
    const held = await openSockets(internal);
    const bytes = ((costOf(pid)?.rssBytes ?? Number.NaN) - before) / sockets;
    await client({ do: 'close', name: 'many' });
    if (held !== sockets) throw new Error(`${name} counts ${held} sockets, not ${sockets}`);
    await untilNone(name, internal);
    const perSecond = Math.round((sockets / opened.elapsedMs) * SECOND_MS).toLocaleString('en');
    notes.push(
      `${name}, time ${time}: ${sockets.toLocaleString('en')} sockets at ${perSecond} a second, ${(bytes / 1_024).toFixed(1)} KiB of RSS each; closed, it counts 0.`,
    );
  }
  return notes;
}

async function untilNone(name: string, internal: string): Promise<void> {
  for (const endMs = performance.now() + ENDS_WITHIN_MS; ; ) {
    const left = await openSockets(internal);
    if (left === 0) return;
    if (performance.now() > endMs) throw new Error(`${name} counts ${left} sockets after all have closed`);
    await wait(POLL_MS);
  }
}

async function openSockets(internal: string): Promise<number> {
  const answer = await fetch(`${internal}/metrics`);
  return metricValue(await answer.text(), 'gatehouse_websockets_open', {});
}
