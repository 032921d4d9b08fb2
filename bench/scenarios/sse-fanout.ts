/**
 * One event to thousands of browsers: messages per second of the server's processor, memory per connection, and how
 * long a small request takes meanwhile; against better-sse and nchan (nginx) with the same messages.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPeer } from '../measure/children.ts';
import type { Subject } from '../measure/measure.ts';
import { median } from '../measure/statistics.ts';
import type { Figure } from '../report/targets.ts';
import { type Bench, rawRequest, type Scenario } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import { gatewayUnderLoad } from '../subjects/gateway.ts';
import { NCHAN_MODULE } from '../subjects/participants.ts';
import { FanoutReaders, type FanoutServer } from './fan-out/fanout.ts';
import type { FanoutPlan } from './fan-out/fanout-load.ts';
import { post, publisherOf, STREAM_SETTINGS, streamRequests } from './fan-out/gatehouse.ts';

const MODULE_KEY = 'bench-module-key-0001';
const MESSAGE_BYTES = 200;
/**
 * Messages that are due to a client together leave in one write: shown by batches of four. More would make rounds long.
 */
const BATCH = 4;
const START_TIMEOUT_MS = 15_000;
const RSS_FIGURE = 'RSS a connection';
const ROW = 'SSE fan-out to 10,000';

export const sseFanout: Scenario = {
  name: 'sse-fanout',
  summary: 'one event to thousands of event streams against better-sse and nchan',
  unit: 'messages',
  baseline: true,
  noTarget: 'it publishes with a module key of its own gateway',
  defaults: { connections: 10_000 },
  targets: [
    ...[
      { against: 'nchan', atLeast: 1.05 },
      { against: 'better-sse', atLeast: 1.65 },
    ].map((each) => ({ ...each, by: 'processor time' as const, row: `${ROW} against ${each.against}` })),
    ...['nchan', 'better-sse'].map((peer) => ({
      of: `gatehouse, ${BATCH} at a time`,
      against: `${peer}, ${BATCH} at a time`,
      by: 'processor time' as const,
      atLeast: 3.2,
      row: `${ROW}, four at a time, against ${peer}`,
    })),
    { figure: RSS_FIGURE, atMost: 4, row: `${ROW}: memory` },
  ],
  async run(bench) {
    const { connections, warmupMs, durationMs } = bench.options;
    const servers = await connectReaders(bench, connections);
    const common = { durationMs, sizeBytes: MESSAGE_BYTES };
    const subjects = [1, BATCH].flatMap((batch) =>
      servers.map(
        (loaded): Subject => ({
          name:
            (batch === 1 ? loaded.server.name : `${loaded.server.name}, ${batch} at a time`) +
            loaded.server.suffix,
          pids: loaded.server.pids,
          group: `${batch} at a time`,
          // The same server in both groups: once warm is enough.
          ...loaded.rounds({ ...common, batch, warmupMs: batch === 1 ? warmupMs : 0 }),
        }),
      ),
    );
    const comparison = await bench.compare(subjects);
    const notes = comparison.subjects.map(({ name, rounds: measured }) => {
      const of = (pick: (details: Details) => number) =>
        median(measured.map(({ details }) => pick(details as unknown as Details)));
      const perSecond = Math.round(of(({ messagesPerCpuSecond }) => messagesPerCpuSecond)).toLocaleString(
        'en',
      );
      const p99 = of(({ probeUs }) => probeUs.p99 / 1_000).toFixed(1);
      return `${name}: ${perSecond} messages a processor second; a small request meanwhile: p99 ${p99} ms`;
    });
    notes.push('A round is at least one batch to all readers, however long that takes.');
    for (const { server, rssBytesPerConnection } of servers) {
      if (rssBytesPerConnection !== undefined)
        notes.push(
          `${server.name}${server.suffix}: ${(rssBytesPerConnection / 1_024).toFixed(1)} KiB of RSS a connection`,
        );
    }
    return { comparison, notes, figures: memoryOf(servers[0]) };
  },
};

function memoryOf(gateway: FanoutReaders | undefined): Figure[] {
  const bytes = gateway?.rssBytesPerConnection;
  return bytes === undefined ? [] : [{ name: RSS_FIGURE, unit: 'KiB', value: bytes / 1_024 }];
}

/** The gateway and whatever peers are installed, each with its readers connected. */
async function connectReaders(bench: Bench, readers: number): Promise<FanoutReaders[]> {
  const servers: FanoutReaders[] = [];
  const opens = bench.builds.map(
    (build) => (bench: Bench, clients: number) => openGatehouse(bench, clients, build),
  );
  if (bench.optionalPeer('better-sse')) opens.push(betterSse);
  if (bench.optionalPeer('nchan')) opens.push(nchan);
  for (const open of opens) {
    const server = await open(bench, readers);
    const loaded = new FanoutReaders(server);
    bench.onTeardown(() => loaded.leave());
    bench.announce(`${readers} readers come to ${server.name}${server.suffix}`);
    await loaded.gather();
    servers.push(loaded);
  }
  return servers;
}

interface Details {
  readonly messagesPerCpuSecond: number;
  readonly probeUs: { readonly p99: number };
}

async function openGatehouse(bench: Bench, clients: number, build: Build): Promise<FanoutServer> {
  const { url, internal, pids } = await gatewayUnderLoad(
    bench,
    { core: { url: 'http://127.0.0.1:9', key: MODULE_KEY } },
    { settings: STREAM_SETTINGS, build },
  );
  const requests = await streamRequests(bench, url, clients);
  return {
    name: 'gatehouse',
    suffix: build.suffix,
    pids,
    plans: [
      {
        port: Number(new URL(url).port),
        requests,
        clients,
        probe: rawRequest('GET', `${url}/health?plain=1`),
      },
    ],
    publish: publisherOf(`${internal}`, { module: 'core', key: MODULE_KEY }),
  };
}

async function betterSse(bench: Bench, clients: number): Promise<FanoutServer> {
  const { url, pid, stop } = await startPeer('better-sse-server');
  bench.onTeardown(stop);
  return {
    name: 'better-sse',
    suffix: '',
    pids: [pid],
    plans: [planOf(url, clients)],
    publish: (messages) => post(`${url}/publish`, `[${messages.join(',')}]`),
  };
}

async function nchan(bench: Bench, clients: number): Promise<FanoutServer> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-nchan-'));
  bench.onTeardown(async () => rmSync(folder, { recursive: true, force: true }));
  const port = 20_000 + (process.pid % 10_000);
  writeFileSync(join(folder, 'nginx.conf'), nchanConfiguration(folder, port, clients));
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf'), '-g', 'daemon off;'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  bench.onTeardown(() => ended(child));
  const url = `http://127.0.0.1:${port}`;
  for (const deadlineMs = Date.now() + START_TIMEOUT_MS; ; ) {
    const answer = await fetch(`${url}/health`).catch((error: unknown) => error);
    if (answer instanceof Response && answer.status === 200) break;
    if (Date.now() > deadlineMs) throw new Error(`nginx did not start: ${answer}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const workers = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'latin1')
    .trim()
    .split(' ')
    .map(Number);
  return {
    name: 'nchan',
    suffix: '',
    pids: workers,
    plans: [planOf(url, clients)],
    // One message a request: nchan knows no other way.
    async publish(messages) {
      for (const message of messages) await post(`${url}/publish`, message);
    },
  };
}

function nchanConfiguration(folder: string, port: number, clients: number): string {
  return `
load_module ${NCHAN_MODULE};
user root;
worker_processes 1;
worker_rlimit_nofile ${clients + 2_000};
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections ${clients + 1_000}; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  nchan_max_reserved_memory 64M;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    keepalive_requests 1000000;
    location = /events { nchan_subscriber eventsource; nchan_channel_id bench; nchan_subscriber_first_message newest; }
    location = /publish { nchan_publisher; nchan_channel_id bench; nchan_message_buffer_length 20; }
    location = /health { return 200 ok; }
  }
}
`;
}

function planOf(url: string, clients: number): FanoutPlan {
  return {
    port: Number(new URL(url).port),
    requests: [rawRequest('GET', `${url}/events`, { Accept: 'text/event-stream' })],
    clients,
    probe: rawRequest('GET', `${url}/health`),
  };
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });
}
