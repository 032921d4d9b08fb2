/** The subjects of the file benches: the gateway with raised limits, nginx, @tus/server and node:http, each over a folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../../src/io/http/listen/free-port.ts';
import { startChild, startPeer, stopChild } from '../measure/children.ts';
import type { Sample, Subject } from '../measure/measure.ts';
import { costOfAll } from '../measure/process-cost.ts';
import type { Bench } from '../scenario.ts';
import type { TransferPlan } from '../scenarios/transfers/kinds.ts';
import type { TransferReport } from '../scenarios/transfers/process.ts';

const SECOND_MS = 1_000;
const MEBIBYTE = 1024 * 1024;
const SILENCE_MS = 180_000;

export interface TransferClient {
  run(plan: TransferPlan): Promise<TransferReport>;
}

export async function startTransferClient(bench: Bench): Promise<TransferClient> {
  const { child } = await startChild('../../scenarios/transfers/process', []);
  bench.onTeardown(() => stopChild(child));
  return {
    run: (plan) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error('the client is silent')), SILENCE_MS);
        child.once('message', (message: { report: TransferReport } | { fault: string }) => {
          clearTimeout(timer);
          if ('report' in message) resolve(message.report);
          else reject(new Error(message.fault));
        });
        child.send(plan);
      }),
  };
}

/** A folder for stored files: `--folder`, or one of the system's temporary files. Gone after the run. */
export function storedFiles(bench: Bench): string {
  const folder = mkdtempSync(join(bench.options.folder ?? tmpdir(), 'gatehouse-files-'));
  bench.onTeardown(async () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Rounds of whole files, each over new connections. With `cleanUp` a stream sends one file after another, and each is
 * removed outside of the measured time. Without it, new page-cache memory would be measured as well.
 */
export function transferSubject(
  bench: Bench,
  client: TransferClient,
  subject: {
    name: string;
    pids: readonly number[];
    group?: string;
    plan: Omit<TransferPlan, 'durationMs'>;
    cleanUp?: () => void;
    /** It has no code that is compiled while it runs: one file is warm-up enough. */
    native?: boolean;
  },
): Subject {
  const { name, pids, group, plan, cleanUp, native = false } = subject;
  const runFor = async (durationMs: number): Promise<Sample> => {
    if (cleanUp === undefined) return sampleOf([await transferred(client, pids, { ...plan, durationMs })]);
    const parts: Transferred[] = [];
    for (let elapsedMs = 0; elapsedMs < durationMs; elapsedMs += parts.at(-1)?.elapsedMs ?? durationMs) {
      parts.push(await transferred(client, pids, { ...plan, durationMs, files: 1 }));
      cleanUp();
    }
    return sampleOf(parts);
  };
  return {
    name,
    pids,
    ...(group === undefined ? {} : { group }),
    // At least one file, whatever the time; several at once are the same code as one.
    warmUp: () => runFor(plan.streams === 1 && !native ? Math.max(1, bench.options.warmupMs) : 1),
    round: () => runFor(bench.options.durationMs),
  };
}

interface Transferred extends TransferReport {
  /** Processor time of the server; NaN when unknown. */
  readonly cpuMs: number;
}

async function transferred(
  client: TransferClient,
  pids: readonly number[],
  plan: TransferPlan,
): Promise<Transferred> {
  const before = costOfAll(pids)?.cpuMs ?? Number.NaN;
  const report = await client.run(plan);
  return { ...report, cpuMs: (costOfAll(pids)?.cpuMs ?? Number.NaN) - before };
}

/** In MiB: one answer of the table is a mebibyte. */
function sampleOf(parts: readonly Transferred[]): Sample {
  const sum = (pick: (part: Transferred) => number) => parts.reduce((total, part) => total + pick(part), 0);
  const mebibytes = sum(({ bytes }) => bytes) / MEBIBYTE;
  const elapsedMs = sum((part) => part.elapsedMs);
  const cpuMs = sum((part) => part.cpuMs);
  return {
    ratePerSecond: (mebibytes / elapsedMs) * SECOND_MS,
    details: {
      answers: mebibytes,
      answersInAll: mebibytes,
      files: sum(({ files }) => files),
      elapsedMs,
      generatorBusy: sum((part) => part.clientBusy * part.elapsedMs) / elapsedMs,
      ...(Number.isNaN(cpuMs) ? {} : { cpuMs }),
    },
  };
}

export interface Peer {
  readonly url: string;
  readonly pid: number;
  readonly root: string;
}

/** Parts of nginx's configuration: lines of its `http` and of its `server` block. */
export interface NginxPart {
  readonly http: string;
  readonly server: string;
}

const FILES: NginxPart = { http: '', server: 'location / { dav_methods PUT DELETE; }' };

/** nginx with one worker process: files by GET with sendfile, PUT through its DAV module. */
export async function startNginx(bench: Bench, what = FILES): Promise<Peer> {
  const folder = storedFiles(bench);
  for (const name of ['root', 'root/up', 'temp']) mkdirSync(join(folder, name), { mode: 0o777 });
  const port = await findFreePort('127.0.0.1', 0);
  writeFileSync(join(folder, 'nginx.conf'), nginxConfiguration(folder, port, what));
  const child = spawn('nginx', [
    '-p',
    folder,
    '-e',
    join(folder, 'error.log'),
    '-c',
    join(folder, 'nginx.conf'),
  ]);
  await once(child, 'spawn');
  bench.onTeardown(() => stopChild(child));
  const url = `http://127.0.0.1:${port}`;
  await answering(child, url);
  return { url, pid: child.pid ?? 0, root: join(folder, 'root') };
}

/** One process, as the gateway's main thread is one: what a core does, not what the machine does. */
function nginxConfiguration(folder: string, port: number, what: NginxPart): string {
  return `
daemon off;
master_process off;
pid ${folder}/pid;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  open_file_cache max=1000;
  client_body_temp_path ${folder}/temp;
  client_body_buffer_size 512k;
  ${what.http}
  server {
    listen 127.0.0.1:${port};
    root ${folder}/root;
    client_max_body_size 0;
    ${what.server}
  }
}
`;
}

/** `mode`: 'sync' where each finished file is to be on disk before its answer. */
export async function startTus(bench: Bench, ...mode: readonly 'sync'[]): Promise<Peer> {
  const root = storedFiles(bench);
  const { url, pid, stop } = await startPeer('tus-server', [root, ...mode]);
  bench.onTeardown(stop);
  return { url, pid, root };
}

/** One that sends what it gets to another server, and keeps nothing. */
export async function startPeerAt(bench: Bench, name: string, address: string) {
  const { url, pid, stop } = await startPeer(name, [address]);
  bench.onTeardown(stop);
  return { url, pids: [pid], cookies: [] };
}

/** node:http with streams, the usual way. */
export async function startPlainFiles(bench: Bench): Promise<Peer> {
  const root = storedFiles(bench);
  mkdirSync(join(root, 'up'));
  const { child, url } = await startChild('plain-files', [root]);
  bench.onTeardown(() => stopChild(child));
  return { url, pid: child.pid ?? 0, root };
}

async function answering(child: ChildProcess, url: string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    try {
      await fetch(url);
      return;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
