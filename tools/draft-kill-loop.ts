/**
 * The kill -9 loop for v2 uploads: clients upload whole files and files in pieces while the process is killed. What was
 * answered 200 must be there, byte for byte, with its message; what was not must be complete or go on from where it
 * says; and no message may stay pending but of drafts whose id the kill swallowed. Loopback only, bounded by the kills.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Person, signUp } from './agent.ts';
import { type KillOptions, type KillReport, killLoop, numbersOf, untilCut } from './kills.ts';
import type { RunningGateway } from './launch.ts';
import { NO_FILE_LIMITS } from './launch.ts';

export interface DraftKillReport extends KillReport {
  acknowledged: number;
  /** Uploads whose answer the kill swallowed and that were found complete. */
  recovered: number;
  /** Uploads that went on after a kill, and those of them that did not have to begin anew. */
  continued: number;
  resumed: number;
  /** Most bytes of a resumable body that were in its part and had to be sent again. */
  lostBytes: number;
  /** Drafts whose create_draft was not answered: their messages are left to expire. */
  unknownDrafts: number;
}

type Way = 'whole' | 'pieces' | 'resumable';

interface Upload {
  readonly fileId: string;
  readonly bytes: Buffer;
  /** `resumable`: in one request whose bytes are kept when it breaks off. */
  readonly way: Way;
}

interface Writer {
  readonly person: Person;
  readonly random: () => number;
  readonly acknowledged: Upload[];
  pending: Upload | undefined;
}

/** Shortest and longest time of uploading before a kill. */
const UPLOADING_MS = [0, 300] as const;
const MEGABYTE = 1024 * 1024;
/** A resumable one has several checkpoints of 8 MiB. */
const SIZE_MAX_BYTES: Readonly<Record<Way, number>> = {
  whole: 3 * MEGABYTE,
  pieces: 3 * MEGABYTE,
  resumable: 60 * MEGABYTE,
};
/** What a kill may cost of it: a checkpoint, the pieces that are being written, and the commit of the checkpoint. */
const LOST_MAX_BYTES = 24 * MEGABYTE;
const WAYS = Object.keys(SIZE_MAX_BYTES) as Way[];
const PIECE_BYTES = 512 * 1024;
/** How long a restarted gateway may take to end what it was about. */
const SETTLE_MS = 10_000;

export async function runDraftKillLoop(options: KillOptions): Promise<DraftKillReport> {
  const { seed, dataPath } = options;
  const none = {
    kills: 0,
    acknowledged: 0,
    recovered: 0,
    continued: 0,
    resumed: 0,
    lostBytes: 0,
    unknownDrafts: 0,
  };
  const report: DraftKillReport = { seed, ...none, faults: [] };
  const launching = {
    args: ['--sandbox'],
    configuration: { Settings: { ...NO_FILE_LIMITS, FileMaxSizeBytes: 100 * MEGABYTE } },
  };
  await killLoop(options, launching, report, async ({ url }) => {
    const writers: Writer[] = [];
    for (let at = 0; at < options.clients; at += 1) {
      const person = await signUp(url);
      writers.push({ person, random: numbersOf(seed, at), acknowledged: [], pending: undefined });
    }
    return {
      async work(gateway) {
        const uploading = writers.map((writer) =>
          untilCut(report, () => uploadDrafts(gateway, writer, report)),
        );
        const ripe = untilAcknowledged(report, report.acknowledged + options.clients);
        return { ripe, cut: Promise.all(uploading), delayMs: UPLOADING_MS };
      },
      async check(gateway) {
        await Promise.all(writers.map((writer) => checkAfterRestart(gateway, writer, report)));
      },
      end: () => checkRest(dataPath, writers, report),
    };
  });
  return report;
}

/** Some uploads have come through: from then on any moment is good for a kill. */
async function untilAcknowledged(report: DraftKillReport, count: number): Promise<void> {
  const endMs = performance.now() + SETTLE_MS;
  while (report.acknowledged < count && performance.now() < endMs) await pause(10);
}

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

async function uploadDrafts(gateway: RunningGateway, writer: Writer, report: DraftKillReport): Promise<void> {
  const { random } = writer;
  let asked = false;
  try {
    for (;;) {
      const way = WAYS[Math.floor(random() * WAYS.length)] ?? 'whole';
      const bytes = randomBytes(1 + Math.floor(random() * SIZE_MAX_BYTES[way]));
      asked = true;
      const fileId = await createDraft(gateway, writer.person, bytes.length);
      asked = false;
      const upload: Upload = { fileId, bytes, way };
      writer.pending = upload;
      await send(gateway, writer.person, upload, 0);
      writer.acknowledged.push(upload);
      writer.pending = undefined;
      report.acknowledged += 1;
    }
  } catch (error) {
    if (asked) report.unknownDrafts += 1;
    throw error;
  }
}

async function createDraft(gateway: RunningGateway, person: Person, sizeBytes: number): Promise<string> {
  const path = `${gateway.url}/auth/v2/file/create_draft?fileName=a.bin&fileSize=${sizeBytes}`;
  const answer = await fetch(path, { method: 'POST', headers: { Cookie: person.cookie } });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`create_draft: ${answer.status} ${text}`);
  return (JSON.parse(text) as { result: string }).result.replace(/:.*/, '');
}

function streamUrl(gateway: RunningGateway, { fileId }: Upload): string {
  return `${gateway.url}/auth/v2/file/stream_upload/${fileId}`;
}

/** The rest of a file from an offset on. */
async function send(gateway: RunningGateway, person: Person, upload: Upload, offset: number): Promise<void> {
  const { bytes, way } = upload;
  const step = way === 'pieces' ? PIECE_BYTES : bytes.length;
  for (let at = offset; at < bytes.length; at += step) {
    const piece = bytes.subarray(at, at + step);
    const range = { Range: `bytes=${at}-${at + piece.length - 1}` };
    const headers = { Cookie: person.cookie, ...(way === 'whole' ? {} : range) };
    const answer = await fetch(streamUrl(gateway, upload), { method: 'POST', headers, body: piece });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`stream_upload at ${at}: ${answer.status} ${text}`);
  }
}

async function checkAfterRestart(
  gateway: RunningGateway,
  writer: Writer,
  report: DraftKillReport,
): Promise<void> {
  const who = `user ${writer.person.userId} after kill ${report.kills}`;
  const { pending, person } = writer;
  if (pending !== undefined) {
    try {
      await finish(gateway, person, pending, report);
    } catch (error) {
      report.faults.push(`${who}: ${pending.way}: ${String(error)}`);
    }
    writer.acknowledged.push(pending);
    writer.pending = undefined;
  }
  for (const upload of writer.acknowledged) {
    const fault = await faultOf(gateway, person, upload);
    if (fault !== undefined) report.faults.push(`${who}: ${upload.fileId}: ${fault}`);
  }
}

/** After a kill between the parts: the file is complete, or still a draft that accepts the rest. */
async function finish(
  gateway: RunningGateway,
  person: Person,
  upload: Upload,
  report: DraftKillReport,
): Promise<void> {
  const endMs = performance.now() + SETTLE_MS;
  for (;;) {
    if ((await faultOf(gateway, person, upload)) === undefined) {
      report.recovered += 1;
      return;
    }
    const headers = { Cookie: person.cookie };
    const told = await fetch(streamUrl(gateway, upload), { method: 'HEAD', headers });
    if (told.status === 204) {
      const offset = Number(told.headers.get('Upload-Offset'));
      report.continued += 1;
      if (offset > 0) report.resumed += 1;
      if (upload.way === 'resumable') {
        const lostBytes = partBytes(gateway, person, upload) - offset;
        report.lostBytes = Math.max(report.lostBytes, lostBytes);
        if (lostBytes > LOST_MAX_BYTES) throw new Error(`${lostBytes} bytes were lost`);
      }
      await send(gateway, person, upload, offset);
      return;
    }
    if (performance.now() > endMs) throw new Error(`neither complete nor a draft: ${told.status}`);
    await pause(20);
  }
}

function partBytes(gateway: RunningGateway, person: Person, { fileId }: Upload): number {
  const part = join(gateway.dataPath, 'files', person.userId, `${fileId}.part`);
  return existsSync(part) ? statSync(part).size : 0;
}

/** What is wrong with a complete file: its message at the chat module, its bytes on the disk. */
async function faultOf(
  gateway: RunningGateway,
  person: Person,
  { fileId, bytes }: Upload,
): Promise<string | undefined> {
  const path = `${gateway.url}/chat/v1/files/info?fileId=${fileId}`;
  const answer = await fetch(path, { headers: { Cookie: person.cookie } });
  const { result } = (await answer.json()) as { result?: { sizeBytes: number; crc32: number } };
  if (result === undefined) return `no message: ${answer.status}`;
  if (result.sizeBytes !== bytes.length || result.crc32 !== crc32(bytes)) return 'the message says otherwise';
  const file = join(gateway.dataPath, 'files', person.userId, fileId);
  if (!existsSync(file)) return 'the message has no bytes';
  return sha256(readFileSync(file)) === sha256(bytes) ? undefined : 'the bytes are others';
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Parts and pending messages that will never be completed. */
function checkRest(dataPath: string, writers: readonly Writer[], report: DraftKillReport): void {
  for (const { person } of writers) {
    const folder = join(dataPath, 'files', person.userId);
    const parts = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.part')) : [];
    if (parts.length > 0) report.faults.push(`parts are left: ${parts.join(' ')}`);
  }
  const open = new Set<string>();
  for (const line of readFileSync(join(dataPath, 'sandbox', 'log.jsonl'), 'utf8').split('\n')) {
    if (!line.includes('"file')) continue;
    const { type, fileId } = JSON.parse(line) as { type: string; fileId: string };
    if (type === 'fileCreated') open.add(fileId);
    else if (type === 'fileEnded') open.delete(fileId);
  }
  if (open.size > report.unknownDrafts) {
    report.faults.push(`${open.size} messages are pending, ${report.unknownDrafts} drafts were not answered`);
  }
}
