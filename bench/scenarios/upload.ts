/** Whole files into the gateway, by v1 chunks and by v2 streams, against nginx with its DAV module and @tus/server. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { compare, type Subject } from '../measure.ts';
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
import { type FileGateway, LARGE_FILE_BYTES, MIB, startFileGateway } from './file-gateway.ts';

const V1_FILE_BYTES = 20 * MIB;
const LANES = 8;
/** Ten of the largest files in sequence on one connection: the hard cap of a file is 100 MiB. */
const GIGABYTE_FILES = 10;
/** The most that v1 takes (spec 2.7); the streams of v2 are given the same. */
const SESSIONS = 60;

export const uploadV1: Scenario = {
  name: 'upload-v1',
  summary: 'files of 20 MiB in chunks of 256 KB against PUT to nginx DAV and @tus/server; MiB/s',
  run: (bench) => runUploads(bench, 'v1', V1_FILE_BYTES),
};

export const uploadV2: Scenario = {
  name: 'upload-v2',
  summary: 'streams of 100 MiB against PUT to nginx DAV, @tus/server and node:http; MiB/s; 1 GB and its cost',
  run: (bench) => runUploads(bench, 'v2', LARGE_FILE_BYTES),
};

async function runUploads(bench: Bench, kind: 'v1' | 'v2', fileBytes: number): Promise<ScenarioResult> {
  const client = await startTransferClient(bench);
  const gateway = await startFileGateway(bench, SESSIONS);
  const notes: string[] = [];
  const subjects = await subjectsOf(bench, client, gateway, kind, fileBytes, notes);
  const comparison = await compare(subjects, bench.options.rounds, bench.announce);
  const plan = { kind, url: gateway.url, fileBytes, cookies: gateway.cookies, connectionsPerFile: 1 };
  const files = (GIGABYTE_FILES * LARGE_FILE_BYTES) / fileBytes;
  bench.announce('1,000 MiB on one connection');
  notes.push(await costOfUploads(client, gateway, { ...plan, lanes: 1, files }));
  bench.announce(`${SESSIONS} files at once`);
  notes.push(
    await costOfUploads(client, gateway, { ...plan, fileBytes: V1_FILE_BYTES, lanes: SESSIONS, files: 1 }),
  );
  return { comparison, notes: ['Rates are MiB/s; processor time is for one MiB.', ...notes] };
}

async function subjectsOf(
  bench: Bench,
  client: TransferClient,
  gateway: FileGateway,
  kind: 'v1' | 'v2',
  fileBytes: number,
  notes: string[],
): Promise<Subject[]> {
  const { url, pids, cookies } = gateway;
  const cleanUp = () => gateway.empty();
  const plan = { kind, url, fileBytes, cookies, lanes: 1, connectionsPerFile: 1 };
  const own = (name: string, more: Partial<typeof plan>) =>
    transferSubject(bench, client, { name, pids, plan: { ...plan, ...more }, cleanUp });
  const ways =
    kind === 'v1'
      ? [own('gatehouse, 1 connection', {}), own('gatehouse, 4 connections', { connectionsPerFile: 4 })]
      : [own('gatehouse, 1 stream', {})];
  ways.push(own(`gatehouse, ${LANES} files at once`, { lanes: LANES }));
  const peers: [string, Peer | undefined, TransferKind, string][] = [
    ['nginx DAV', await startNginx(bench), 'put', 'up'],
    ['@tus/server', await startTus(bench), 'tus', '.'],
    ['node:http', await startPlainFiles(bench), 'put', 'up'],
  ];
  for (const [name, peer, how, folder] of peers) {
    if (peer === undefined) notes.push(`${name} is not installed: not compared.`);
    else ways.push(...peerSubjects(bench, client, { name, peer, how, folder, fileBytes }));
  }
  return ways;
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
      plan: { ...plan, lanes: count },
      cleanUp,
    }),
  );
}

/** Memory above what the process had, and how long its event loop was held. */
async function costOfUploads(
  client: TransferClient,
  gateway: FileGateway,
  plan: Omit<TransferPlan, 'durationMs'>,
): Promise<string> {
  const before = gateway.rssBytes();
  let peak = before;
  const sampler = setInterval(() => {
    peak = Math.max(peak, gateway.rssBytes());
  }, 20);
  await gateway.eventLoopP99Ms();
  const { files, bytes, elapsedMs } = await client.run({ ...plan, durationMs: 0 });
  const delayMs = await gateway.eventLoopP99Ms();
  clearInterval(sampler);
  gateway.empty();
  const rate = ((bytes / MIB / elapsedMs) * 1_000).toFixed(0);
  const rss = `RSS ${(before / MIB).toFixed(0)} MiB before, at most ${(peak / MIB).toFixed(0)} during`;
  const what = `${files} files of ${plan.fileBytes / MIB} MiB, ${plan.lanes} at once`;
  return `${what}: ${rate} MiB/s, ${rss}, event-loop delay p99 ${delayMs.toFixed(1)} ms (10 ms of it is the sampling).`;
}
