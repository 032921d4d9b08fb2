/**
 * The kill -9 loop for v2 uploads: clients upload whole files and files in pieces while the process is killed. What was
 * answered 200 must be there, byte for byte, with its message. What was not is complete or continues, and of what the
 * process had received it lost at most one checkpoint.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { UNSAVED_MAX_BYTES } from '../src/io/files/upload/upload-progress.ts';
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
  /** Kills that met a resumable body between its first and its last byte. */
  midBody: number;
  /**
   * Most bytes of such a body that its part held behind the offset of the restart. The part holds what the process had
   * received and written; bytes in buffers of the kernel are the client's, which sends them again.
   */
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

/** A complete upload, without its bytes: many of them would fill the memory. */
interface StoredFile {
  readonly fileId: string;
  readonly sizeBytes: number;
  readonly crc32: number;
  readonly sha256: string;
}

interface Writer {
  readonly person: Person;
  readonly random: () => number;
  readonly acknowledged: StoredFile[];
  /** Ids of those whose bytes on the disk were compared. */
  readonly compared: Set<string>;
  pending: Upload | undefined;
}

/** Shortest and longest time of uploading before a kill. */
const UPLOADING_MS = [0, 300] as const;
const MEGABYTE = 1024 * 1024;
/** A resumable one has several checkpoints of 8 MiB. */
const SIZE_MAX_BYTES: Readonly<Record<Way, number>> = {
  whole: 3 * MEGABYTE,
  pieces: 3 * MEGABYTE,
  resumable: 32 * MEGABYTE,
};
/** Most kills are to meet a resumable one. */
const WAYS: readonly Way[] = ['whole', 'pieces', 'resumable', 'resumable', 'resumable'];
const PIECE_BYTES = 512 * 1024;
/** A restarted gateway that publishes a file for longer than this hangs, on a busy machine too. */
const HANG_MS = 180_000;

export async function runDraftKillLoop(options: KillOptions): Promise<DraftKillReport> {
  const { seed, dataPath } = options;
  const none = {
    kills: 0,
    acknowledged: 0,
    recovered: 0,
    continued: 0,
    resumed: 0,
    midBody: 0,
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
      const none = { acknowledged: [], compared: new Set<string>(), pending: undefined };
      writers.push({ person, random: numbersOf(seed, at), ...none });
    }
    return {
      async work(gateway) {
        let onRipe: () => void = () => undefined;
        const ripe = new Promise<void>((resolve) => {
          onRipe = resolve;
        });
        // One upload has come through: from then on any moment is good for a kill.
        const onAcknowledged = () => {
          report.acknowledged += 1;
          onRipe();
        };
        const uploading = writers.map((writer) =>
          untilCut(report, () => uploadDrafts(gateway, writer, report, onAcknowledged)),
        );
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

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

async function uploadDrafts(
  gateway: RunningGateway,
  writer: Writer,
  report: DraftKillReport,
  onAcknowledged: () => void,
): Promise<void> {
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
      if (!(await send(gateway, writer.person, upload, 0))) throw new Error(`${fileId} is no draft`);
      writer.acknowledged.push(storedFile(upload));
      writer.pending = undefined;
      onAcknowledged();
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

function storedFile({ fileId, bytes }: Upload): StoredFile {
  return { fileId, sizeBytes: bytes.length, crc32: crc32(bytes), sha256: sha256(bytes) };
}

function streamUrl(gateway: RunningGateway, { fileId }: Upload): string {
  return `${gateway.url}/auth/v2/file/stream_upload/${fileId}`;
}

/** The rest of a file from an offset on, at least its last byte. Returns false when the file is being published, or was just now. */
async function send(
  gateway: RunningGateway,
  person: Person,
  upload: Upload,
  offset: number,
): Promise<boolean> {
  const { bytes, way } = upload;
  const step = way === 'pieces' ? PIECE_BYTES : bytes.length;
  for (let at = Math.min(offset, bytes.length - 1); at < bytes.length; at += step) {
    const piece = bytes.subarray(at, at + step);
    const range = { Range: `bytes=${at}-${at + piece.length - 1}` };
    const headers = { Cookie: person.cookie, ...(way === 'whole' ? {} : range) };
    const answer = await fetch(streamUrl(gateway, upload), { method: 'POST', headers, body: piece });
    const text = await answer.text();
    // A conflict with an offset says that kept bytes are other than they were.
    const isPublished = [404, 409].includes(answer.status) && !answer.headers.has('Upload-Offset');
    if (isPublished) return false;
    if (answer.status !== 200) throw new Error(`stream_upload at ${at}: ${answer.status} ${text}`);
  }
  return true;
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
    writer.acknowledged.push(storedFile(pending));
    writer.pending = undefined;
  }
  for (const file of writer.acknowledged) {
    const fault =
      (await faultOfMessage(gateway, person, file)) ?? faultOfBytes(gateway.dataPath, writer, file);
    if (fault !== undefined) report.faults.push(`${who}: ${file.fileId}: ${fault}`);
  }
}

/** Ends with the complete file. Throws when a kill has cost more than it may. */
async function finish(
  gateway: RunningGateway,
  person: Person,
  upload: Upload,
  report: DraftKillReport,
): Promise<void> {
  const endMs = performance.now() + HANG_MS;
  for (;;) {
    const headers = { Cookie: person.cookie };
    const told = await fetch(streamUrl(gateway, upload), { method: 'HEAD', headers });
    if (told.status !== 204) throw new Error(`neither complete nor a draft: ${told.status}`);
    if (told.headers.get('Upload-Complete') === '?1') {
      report.recovered += 1;
      return;
    }
    const offset = Number(told.headers.get('Upload-Offset'));
    const lostBytes = partBytes(gateway, person, upload) - offset;
    if (await send(gateway, person, upload, offset)) {
      count(report, upload, offset, lostBytes);
      return;
    }
    if (performance.now() > endMs) throw new Error(`being published for ${HANG_MS} ms`);
    await pause(20);
  }
}

function count(report: DraftKillReport, { way }: Upload, offset: number, lostBytes: number): void {
  report.continued += 1;
  if (offset > 0) report.resumed += 1;
  if (way !== 'resumable') return;
  if (offset + lostBytes > 0) report.midBody += 1;
  report.lostBytes = Math.max(report.lostBytes, lostBytes);
  if (lostBytes > UNSAVED_MAX_BYTES) throw new Error(`a kill has cost ${lostBytes} bytes`);
}

function partBytes(gateway: RunningGateway, person: Person, { fileId }: Upload): number {
  const part = join(gateway.dataPath, 'files', person.userId, `${fileId}.part`);
  return existsSync(part) ? statSync(part).size : 0;
}

/** Says what is wrong with the message of a complete file. */
async function faultOfMessage(
  gateway: RunningGateway,
  person: Person,
  file: StoredFile,
): Promise<string | undefined> {
  const path = `${gateway.url}/chat/v1/files/info?fileId=${file.fileId}`;
  const answer = await fetch(path, { headers: { Cookie: person.cookie } });
  const { result } = (await answer.json()) as { result?: { sizeBytes: number; crc32: number } };
  if (result === undefined) return `no message: ${answer.status}`;
  const isRight = result.sizeBytes === file.sizeBytes && result.crc32 === file.crc32;
  return isRight ? undefined : 'the message says otherwise';
}

/** Likewise of its bytes. Those that were compared before have to have their size: all are compared once more at the end. */
function faultOfBytes(
  dataPath: string,
  { person, compared }: Writer,
  { fileId, sizeBytes, sha256: expected }: StoredFile,
): string | undefined {
  const path = join(dataPath, 'files', person.userId, fileId);
  if (!existsSync(path)) return 'the message has no bytes';
  if (compared.has(fileId)) return statSync(path).size === sizeBytes ? undefined : 'the size is another';
  compared.add(fileId);
  return sha256(readFileSync(path)) === expected ? undefined : 'the bytes are others';
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** All bytes once more; parts and pending messages that will never be completed. */
function checkRest(dataPath: string, writers: readonly Writer[], report: DraftKillReport): void {
  for (const writer of writers) {
    const { person, compared, acknowledged } = writer;
    compared.clear();
    for (const file of acknowledged) {
      const fault = faultOfBytes(dataPath, writer, file);
      if (fault !== undefined) report.faults.push(`at the end: ${file.fileId}: ${fault}`);
    }
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
