/** Whole files into the gateway, by v1 chunks and by v2 streams, against nginx with its DAV module and @tus/server. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Subject } from '../measure.ts';
import type { Bench, Scenario, ScenarioResult } from '../scenario.ts';
import type { TransferKind, TransferPlan } from '../transfers/kinds.ts';
import {
  type Peer,
  startNginx,
  startPlainFiles,
  startTransferClient,
  startTus,
  type TransferClient,
  transferSubject,
} from '../transfers.ts';
import {
  CROWD_FILE_BYTES,
  type FileGateway,
  LARGE_FILE_BYTES,
  MEMORY_NOTE,
  MIB,
  NO_TARGET,
  startFileGateway,
} from './file-gateway.ts';

const LANES = 8;
/** One of the largest files after the other: the hard cap of a file is 100 MiB. */
const GIGABYTE_FILES = 10;
/** What runs a few dozen times a second is compiled late. */
const DEFAULTS = { warmupMs: 2_500 };
/** The most that v1 takes (spec 2.7); the streams of v2 are given the same. */
const SESSIONS = 60;
/** Of one file. Chunks are a request and a commit each: a file of them takes as long as a stream six times as large. */
const SINGLE_FILE_BYTES = { v1: 8 * MIB, v2: 50 * MIB };
const DELAY_FIGURE = 'event-loop delay p99 (10 ms of it is the sampling)';
const RSS_FIGURE = 'RSS of one upload';

export const uploadV1: Scenario = {
  name: 'upload-v1',
  summary: 'files of 8 MiB in chunks of 256 KB against PUT to nginx DAV and @tus/server; MiB/s',
  unit: 'MiB',
  noTarget: NO_TARGET,
  baseline: true,
  targets: [
    { against: 'nginx DAV', by: 'rate', atLeast: 0.7, row: 'v1 upload, 256 KB parts, against nginx DAV' },
  ],
  defaults: DEFAULTS,
  run: (bench) => runUploads(bench, 'v1'),
};

export const uploadV2: Scenario = {
  name: 'upload-v2',
  summary: 'streams of 50 MiB against PUT to nginx DAV, @tus/server and node:http; MiB/s; 1 GB and its cost',
  unit: 'MiB',
  noTarget: NO_TARGET,
  baseline: true,
  targets: [
    { against: 'nginx DAV', by: 'rate', atLeast: 0.9, row: 'v2 upload against nginx DAV' },
    { figure: DELAY_FIGURE, atMost: 20, row: 'upload of 1 GB: event-loop delay p99' },
    { figure: RSS_FIGURE, atMost: 8, row: 'upload of 1 GB: memory' },
  ],
  defaults: DEFAULTS,
  run: (bench) => runUploads(bench, 'v2'),
};

async function runUploads(bench: Bench, kind: 'v1' | 'v2'): Promise<ScenarioResult> {
  const client = await startTransferClient(bench);
  const gateways: FileGateway[] = [];
  for (const build of bench.builds) gateways.push(await startFileGateway(bench, SESSIONS, {}, build));
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('no gateway');
  const comparison = await bench.compare([
    ...gateways.flatMap((each) => ownSubjects(bench, client, each, kind)),
    ...(await peersOf(bench, client, SINGLE_FILE_BYTES[kind])),
  ]);
  const plan = { kind, url: gateway.url, cookies: gateway.cookies, connectionsPerFile: 1, files: 1 };
  bench.announce('1,000 MiB, one file after the other');
  const large = { ...plan, fileBytes: LARGE_FILE_BYTES, lanes: 1 };
  const one = await costOfUploads(client, gateway, large, GIGABYTE_FILES);
  bench.announce(`${SESSIONS} files at once`);
  const crowd = { ...plan, fileBytes: CROWD_FILE_BYTES, lanes: SESSIONS };
  const many = await costOfUploads(client, gateway, crowd, 1);
  const figures = [
    { name: DELAY_FIGURE, unit: 'ms', value: one.delayMs },
    { name: RSS_FIGURE, unit: 'MiB', value: one.rssMebibytes },
    { name: `${DELAY_FIGURE}, ${SESSIONS} files at once`, unit: 'ms', value: many.delayMs },
    { name: `RSS of ${SESSIONS} uploads at once`, unit: 'MiB', value: many.rssMebibytes },
  ];
  return {
    comparison,
    notes: [
      MEMORY_NOTE,
      `Processor time is for one MiB. Files at once have ${CROWD_FILE_BYTES / MIB} MiB each.`,
      'The gateway syncs each chunk of v1, each file and each commit to where --folder is, the others sync nothing.',
      one.note,
      many.note,
    ],
    figures,
  };
}

/** Ratios compare as many files at once. */
function groupOf(lanes = 1): string {
  return `${lanes} at once`;
}

interface UploadCost {
  readonly delayMs: number;
  /** Above what the process had. */
  readonly rssMebibytes: number;
  readonly note: string;
}

function ownSubjects(
  bench: Bench,
  client: TransferClient,
  gateway: FileGateway,
  kind: 'v1' | 'v2',
): Subject[] {
  const { url, pids, cookies, suffix } = gateway;
  const cleanUp = () => gateway.empty();
  const plan = { kind, url, fileBytes: SINGLE_FILE_BYTES[kind], cookies, lanes: 1, connectionsPerFile: 1 };
  const own = (name: string, more: Partial<typeof plan>) =>
    transferSubject(bench, client, {
      name: name + suffix,
      pids,
      group: groupOf(more.lanes),
      plan: { ...plan, ...more },
      cleanUp,
    });
  const ways =
    kind === 'v1'
      ? [own('gatehouse, 1 connection', {}), own('gatehouse, 4 connections', { connectionsPerFile: 4 })]
      : [own('gatehouse, 1 stream', {})];
  return [...ways, own(`gatehouse, ${LANES} files at once`, { lanes: LANES, fileBytes: CROWD_FILE_BYTES })];
}

async function peersOf(bench: Bench, client: TransferClient, fileBytes: number): Promise<Subject[]> {
  const peers: [string, Peer, TransferKind, string][] = [];
  if (bench.invite('nginx-dav')) peers.push(['nginx DAV', await startNginx(bench), 'put', 'up']);
  if (bench.invite('tus')) peers.push(['@tus/server', await startTus(bench), 'tus', '.']);
  if (bench.invite('node-http')) peers.push(['node:http', await startPlainFiles(bench), 'put', 'up']);
  return peers.flatMap(([name, peer, how, folder]) =>
    peerSubjects(bench, client, { name, peer, how, folder, fileBytes }),
  );
}

function peerSubjects(
  bench: Bench,
  client: TransferClient,
  {
    name,
    peer,
    how,
    folder,
    fileBytes,
  }: { name: string; peer: Peer; how: TransferKind; folder: string; fileBytes: number },
): Subject[] {
  const { url, pid, root } = peer;
  const cleanUp = () => {
    for (const file of readdirSync(join(root, folder)))
      if (file !== 'up') rmSync(join(root, folder, file), { recursive: true, force: true });
  };
  const plan = { kind: how, url, fileBytes, cookies: [], connectionsPerFile: 1 };
  const lanes = name === 'nginx DAV' ? [1, LANES] : [1];
  return lanes.map((count) =>
    transferSubject(bench, client, {
      name: count === 1 ? name : `${name}, ${count} files at once`,
      pids: [pid],
      group: groupOf(count),
      plan: { ...plan, lanes: count, ...(count === 1 ? {} : { fileBytes: CROWD_FILE_BYTES }) },
      cleanUp,
      native: name === 'nginx DAV',
    }),
  );
}

/** Memory above what the process had, and how long its event loop was held. What was stored goes after each time. */
async function costOfUploads(
  client: TransferClient,
  gateway: FileGateway,
  plan: Omit<TransferPlan, 'durationMs'>,
  times: number,
): Promise<UploadCost> {
  const before = gateway.rssBytes();
  let peak = before;
  const sampler = setInterval(() => {
    peak = Math.max(peak, gateway.rssBytes());
  }, 20);
  await gateway.eventLoopP99Ms();
  let [files, bytes, elapsedMs] = [0, 0, 0];
  for (let time = 0; time < times; time += 1) {
    const part = await client.run({ ...plan, durationMs: 0 });
    gateway.empty();
    files += part.files;
    bytes += part.bytes;
    elapsedMs += part.elapsedMs;
  }
  const delayMs = await gateway.eventLoopP99Ms();
  clearInterval(sampler);
  const rate = ((bytes / MIB / elapsedMs) * 1_000).toFixed(0);
  const what = `${files} files of ${plan.fileBytes / MIB} MiB, ${plan.lanes} at once`;
  return {
    delayMs,
    rssMebibytes: (peak - before) / MIB,
    note: `${what}: ${rate} MiB/s, RSS ${(before / MIB).toFixed(0)} MiB before.`,
  };
}
