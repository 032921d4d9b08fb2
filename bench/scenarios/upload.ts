/** Whole files into the gateway, by v1 chunks and by v2 streams, against other servers and a bare handler. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { startServer } from '../measure/children.ts';
import type { Subject } from '../measure/measure.ts';
import type { Bench, Scenario, ScenarioResult } from '../scenario.ts';
import {
  type Peer,
  startNginx,
  startPlainFiles,
  startTransferClient,
  startTus,
  storedFiles,
  type TransferClient,
  transferSubject,
} from '../subjects/transfers.ts';
import {
  CONCURRENT_FILE_BYTES,
  type FileGateway,
  LARGE_FILE_BYTES,
  MEMORY_NOTE,
  MIB,
  NO_TARGET,
  startFileGateway,
} from './file-gateway.ts';
import type { TransferKind, TransferPlan } from './transfers/kinds.ts';

const SMALL = '8 files of 64 KB at once';
const SMALL_FILES = { streams: 8, fileBytes: 64 * 1024 } as const;
const OWN_CHUNKS = 'gatehouse, chunks alone';
const BARE_CHUNKS = 'bare uWS handler, chunks alone';
const SYNCED_TUS = '@tus/server, synced';
const TUS_CHUNKS = '@tus/server, PATCHes of 256 KB';
/** One of the largest files after the other: the hard cap of a file is 100 MiB. */
const GIGABYTE_FILES = 10;
/** The engine compiles code late that runs a few dozen times a second. */
const DEFAULTS = { warmupMs: 2_500 };
/** The most that v1 takes (spec 2.7); the streams of v2 are given the same. */
const SESSIONS = 60;
/**
 * Bytes of one file. Chunks are a request and a commit each: a file of them takes as long as a stream six times as
 * large.
 */
const SINGLE_FILE_BYTES = { v1: 8 * MIB, v2: 50 * MIB };
const DELAY_FIGURE = 'event-loop delay p99 (10 ms of it is the sampling)';
const RSS_FIGURE = 'RSS of one upload';

export const uploadV1: Scenario = {
  name: 'upload-v1',
  summary: 'files of 8 MiB in chunks of 256 KB against @tus/server and a bare handler of chunks; MiB/s',
  unit: 'MiB',
  noTarget: NO_TARGET,
  baseline: true,
  targets: [
    { against: TUS_CHUNKS, by: 'rate', atLeast: 2.4, row: 'v1 upload against @tus/server, 256 KB a PATCH' },
    {
      of: OWN_CHUNKS,
      against: BARE_CHUNKS,
      by: 'rate',
      atLeast: 0.65,
      row: 'v1 chunks alone against a bare handler that writes blocks in a worker',
    },
  ],
  defaults: DEFAULTS,
  run: (bench) => runUploads(bench, 'v1'),
};

export const uploadV2: Scenario = {
  name: 'upload-v2',
  summary:
    'streams of 50 MiB against nginx DAV, @tus/server and node:http; small files; 1 GB and its cost; MiB/s',
  unit: 'MiB',
  noTarget: NO_TARGET,
  baseline: true,
  targets: [
    { against: 'nginx DAV', by: 'rate', atLeast: 0.65, row: 'v2 upload, one stream, against nginx DAV' },
    { against: '@tus/server', by: 'rate', atLeast: 2.1, row: 'v2 upload, one stream, against @tus/server' },
    {
      of: `gatehouse, ${SMALL}`,
      against: `@tus/server, ${SMALL}`,
      by: 'rate',
      atLeast: 0.5,
      row: 'files of 64 KB, eight at once, against @tus/server',
    },
    {
      of: `gatehouse, ${SMALL}`,
      against: `${SYNCED_TUS}, ${SMALL}`,
      by: 'rate',
      atLeast: 0.5,
      row: 'files of 64 KB, eight at once, against @tus/server that syncs each file',
    },
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
  const own = gateways.flatMap((each) => ownSubjects(bench, client, each, kind));
  const comparison = await bench.compare([...own, ...(await PEERS[kind](bench, client))]);
  const notes = [
    MEMORY_NOTE,
    'Processor time is for one MiB. The gateway syncs each file and each commit, and one peer each finished file; the others sync nothing.',
  ];
  if (kind === 'v1') return { comparison, notes };
  const plan = { kind, url: gateway.url, cookies: gateway.cookies, connectionsPerFile: 1, files: 1 };
  bench.announce('1,000 MiB, one file after the other');
  const large = { ...plan, fileBytes: LARGE_FILE_BYTES, streams: 1 };
  const one = await costOfUploads(client, gateway, large, GIGABYTE_FILES);
  bench.announce(`${SESSIONS} files at once`);
  const concurrent = { ...plan, fileBytes: CONCURRENT_FILE_BYTES, streams: SESSIONS };
  const many = await costOfUploads(client, gateway, concurrent, 1);
  const figures = [
    { name: DELAY_FIGURE, unit: 'ms', value: one.delayMs },
    { name: RSS_FIGURE, unit: 'MiB', value: one.rssMebibytes },
    { name: `${DELAY_FIGURE}, ${SESSIONS} files at once`, unit: 'ms', value: many.delayMs },
    { name: `RSS of ${SESSIONS} uploads at once`, unit: 'MiB', value: many.rssMebibytes },
  ];
  return { comparison, notes: [...notes, one.note, many.note], figures };
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
  const plan = { kind, url, fileBytes: SINGLE_FILE_BYTES[kind], cookies, streams: 1, connectionsPerFile: 1 };
  const own = (name: string, group: string, more: Partial<FilePlan>) =>
    transferSubject(bench, client, {
      name: name + suffix,
      pids,
      group,
      plan: { ...plan, ...more },
      cleanUp: () => gateway.empty(),
    });
  if (kind === 'v2')
    return [own('gatehouse, 1 stream', 'one', {}), own(`gatehouse, ${SMALL}`, SMALL, SMALL_FILES)];
  return [
    own('gatehouse, 1 connection', 'one', {}),
    own('gatehouse, 4 connections', 'four', { connectionsPerFile: 4 }),
    own(OWN_CHUNKS, 'chunks', { kind: 'v1-chunks' }),
  ];
}

const PEERS: Record<'v1' | 'v2', (bench: Bench, client: TransferClient) => Promise<Subject[]>> = {
  async v1(bench, client) {
    const peer = { fileBytes: SINGLE_FILE_BYTES.v1, folder: '.' };
    const subjects: Subject[] = [];
    if (bench.optionalPeer('tus'))
      subjects.push(
        peerSubject(bench, client, TUS_CHUNKS, await startTus(bench), { ...peer, kind: 'tus-chunks' }),
      );
    if (bench.optionalPeer('bare-chunks')) {
      const root = storedFiles(bench);
      const server = await startServer('bare-chunks', [root]);
      bench.onTeardown(() => server.stop());
      const more = { ...peer, kind: 'chunks', group: 'chunks' } as const;
      subjects.push(peerSubject(bench, client, BARE_CHUNKS, { ...server, root }, more));
    }
    return subjects;
  },
  async v2(bench, client) {
    const put = { kind: 'put', fileBytes: SINGLE_FILE_BYTES.v2, folder: 'up' } as const;
    const tus = { ...put, kind: 'tus', folder: '.' } as const;
    const subjects: Subject[] = [];
    if (bench.optionalPeer('nginx-dav'))
      subjects.push(
        peerSubject(bench, client, 'nginx DAV', await startNginx(bench), { ...put, native: true }),
      );
    if (bench.optionalPeer('tus')) {
      const peer = await startTus(bench);
      subjects.push(peerSubject(bench, client, '@tus/server', peer, tus));
      const small = { ...tus, ...SMALL_FILES, group: SMALL };
      subjects.push(peerSubject(bench, client, `@tus/server, ${SMALL}`, peer, small));
      const synced = await startTus(bench, 'sync');
      subjects.push(peerSubject(bench, client, `${SYNCED_TUS}, ${SMALL}`, synced, small));
    }
    if (bench.optionalPeer('node-http'))
      subjects.push(peerSubject(bench, client, 'node:http', await startPlainFiles(bench), put));
    return subjects;
  },
};

type FilePlan = Omit<TransferPlan, 'durationMs'>;

interface PeerPlan {
  readonly kind: TransferKind;
  readonly fileBytes: number;
  /** Where its files go, below its root. */
  readonly folder: string;
  readonly group?: string;
  readonly streams?: number;
  readonly native?: boolean;
}

function peerSubject(
  bench: Bench,
  client: TransferClient,
  name: string,
  { url, pid, root }: Peer,
  { kind, fileBytes, folder, group = 'one', streams = 1, native = false }: PeerPlan,
): Subject {
  return transferSubject(bench, client, {
    name,
    pids: [pid],
    group,
    plan: { kind, url, fileBytes, streams, cookies: [], connectionsPerFile: 1 },
    native,
    cleanUp() {
      for (const file of readdirSync(join(root, folder)))
        if (file !== 'up') rmSync(join(root, folder, file), { recursive: true, force: true });
    },
  });
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
  const what = `${files} files of ${plan.fileBytes / MIB} MiB, ${plan.streams} at once`;
  return {
    delayMs,
    rssMebibytes: (peak - before) / MIB,
    note: `${what}: ${rate} MiB/s, RSS ${(before / MIB).toFixed(0)} MiB before.`,
  };
}
