/**
 * The kill -9 loop for buffered uploads: people upload small files through HTTP while the real program is killed, mostly
 * around completions. While it is dead the disk tells how far each upload had come; after the restart the client resumes
 * as a client would, and then every file is whole with its message, or neither is there. Loopback only.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Answer, type Person, request, signUp } from './agent.ts';
import { type KillOptions, type KillReport, killLoop, numbersOf, untilCut, type Work } from './kills.ts';
import { HIGH_LIMITS, type RunningGateway } from './launch.ts';
import { chunksOf, crc32, initUpload, type PartAnswer, sendPart, uploadStatus } from './upload-client.ts';

export interface ChunkKillLoopReport extends KillReport {
  completed: number;
  /** Uploads under way at a kill, by what the disk held of them. */
  caught: { opening: number; part: number; published: number; messageComplete: number };
  /** Chunks that were answered, and those of them that a kill met while their upload was open. */
  acknowledged: number;
  atKills: number;
  /** Chunks that were answered with other bytes first, and those of them that a kill met before the file's were. */
  replaced: number;
  replacing: number;
}

interface ChunkKillOptions extends KillOptions {
  /** Chunks of the largest file, about: the number of one file is drawn. */
  readonly chunksMax?: number;
}

interface Uploader {
  readonly person: Person;
  url: string;
  readonly cookie: string;
  readonly random: () => number;
  /** File id to bytes, completed and acknowledged. */
  readonly files: Map<string, Buffer>;
  /** Ids of those whose bytes on the disk were compared. */
  readonly compared: Set<string>;
  readonly chunksMax: number;
  /** The upload under way. */
  bytes: Buffer | undefined;
  /** Its chunks that were answered. */
  readonly acknowledged: Set<number>;
  /** It was sent with other bytes, and is not answered with the file's yet. */
  replacing: number | undefined;
  opened: boolean;
  lastSent: number;
}

const CHUNK_BYTES = 256 * 1024;
const CHUNKS_MAX = 2.5;
const MANY_CHUNKS_MAX = 40;
/** Share of the chunks that come with other bytes first. */
const REPLACED_SHARE = 0.3;
const SETTINGS = {
  ...HIGH_LIMITS,
  FileUploadBytesPerSecond: 0,
};
/** A kill comes so long after a last chunk was sent, or after the beginning of a round. Milliseconds. */
const AFTER_LAST_MS = 25;
const AFTER_START_MS = 120;
/** A start that has not cleaned up by durable messages after this hangs, on a busy machine too. */
const CLEANING_MS = 180_000;

export async function runChunkKillLoop(options: ChunkKillOptions): Promise<ChunkKillLoopReport> {
  const { dataPath, seed, chunksMax = CHUNKS_MAX } = options;
  const caught = { opening: 0, part: 0, published: 0, messageComplete: 0 };
  const report: ChunkKillLoopReport = {
    seed,
    kills: 0,
    completed: 0,
    caught,
    acknowledged: 0,
    atKills: 0,
    replaced: 0,
    replacing: 0,
    faults: [],
  };
  const launching = { args: ['--sandbox'], configuration: { Settings: SETTINGS } };
  await killLoop(options, launching, report, async ({ url }) => {
    const uploaders: Uploader[] = [];
    for (let at = 0; at < options.clients; at += 1)
      uploaders.push(newUploader(await signUp(url), numbersOf(seed, at), chunksMax));
    return {
      async work(gateway, kill) {
        for (const uploader of uploaders) uploader.url = gateway.url;
        return workOf(uploaders, kill % 4 !== 3, report);
      },
      observe() {
        for (const uploader of uploaders) classify(dataPath, uploader, report);
      },
      async check(gateway) {
        for (const uploader of uploaders) {
          uploader.url = gateway.url;
          await goOn(uploader, report);
        }
        if (report.faults.length === 0) await checkAll(gateway, dataPath, uploaders, report);
      },
      end() {
        for (const uploader of uploaders) {
          uploader.compared.clear();
          compareFiles(dataPath, uploader, report);
        }
        report.completed = uploaders.reduce((sum, { files }) => sum + files.size, 0);
      },
    };
  });
  return report;
}

/** The same with larger files, so that a kill meets uploads with many acknowledged chunks. */
export async function runManyChunksLoop(options: KillOptions): Promise<ChunkKillLoopReport> {
  return await runChunkKillLoop({ ...options, chunksMax: MANY_CHUNKS_MAX });
}

function newUploader(person: Person, random: () => number, chunksMax: number): Uploader {
  const { cookie } = person;
  const none = { url: '', bytes: undefined, opened: false, lastSent: 0, replacing: undefined };
  return {
    person,
    cookie,
    random,
    chunksMax,
    files: new Map(),
    compared: new Set(),
    acknowledged: new Set(),
    ...none,
  };
}

function workOf(uploaders: readonly Uploader[], nearTheEnd: boolean, report: ChunkKillLoopReport): Work {
  let onLast: () => void = () => undefined;
  const lastSent = new Promise<void>((resolve) => {
    onLast = resolve;
  });
  const uploading = uploaders.map((uploader) =>
    untilCut(report, () => uploadFiles(uploader, onLast, report)),
  );
  return {
    ripe: nearTheEnd ? lastSent : Promise.resolve(),
    cut: Promise.all(uploading),
    delayMs: [0, nearTheEnd ? AFTER_LAST_MS : AFTER_START_MS],
  };
}

async function uploadFiles(
  uploader: Uploader,
  onLast: () => void,
  report: ChunkKillLoopReport,
): Promise<void> {
  for (;;) {
    uploader.bytes = randomBytes(1 + Math.floor(uploader.random() * uploader.chunksMax * CHUNK_BYTES));
    uploader.opened = false;
    uploader.acknowledged.clear();
    uploader.replacing = undefined;
    await upload(uploader, uploader.bytes, onLast, report);
  }
}

async function upload(
  uploader: Uploader,
  bytes: Buffer,
  onLast: () => void,
  report: ChunkKillLoopReport,
): Promise<void> {
  const answer = await initUpload(uploader, bytes);
  if (answer.status !== 200) throw new Error(`init_upload: ${answer.status} ${answer.text}`);
  uploader.opened = true;
  const chunks = [...chunksOf(bytes).keys()];
  for (const at of chunks) {
    uploader.lastSent = at;
    if (at === chunks.length - 1) onLast();
    else if (uploader.random() < REPLACED_SHARE) await sendOther(uploader, bytes, at, report);
    await send(uploader, bytes, at, report);
  }
  if (uploader.bytes !== undefined) throw new Error('the last chunk did not complete the upload');
}

async function sendOther(
  uploader: Uploader,
  bytes: Buffer,
  at: number,
  report: ChunkKillLoopReport,
): Promise<void> {
  uploader.replacing = at;
  const other = randomBytes(chunksOf(bytes)[at]?.length ?? 0);
  const query = { uploadId: uploadIdOf(bytes), chunkNumber: at, chunkCrc32: crc32(other) };
  const answer = await sendPart(uploader, query, other);
  if (answer.status !== 200) throw new Error(`upload_part with other bytes: ${answer.status} ${answer.text}`);
  report.replaced += 1;
}

async function send(
  uploader: Uploader,
  bytes: Buffer,
  at: number,
  report: ChunkKillLoopReport,
): Promise<void> {
  const answer = await sendChunk(uploader, bytes, at);
  if (answer.status !== 200) throw new Error(`upload_part: ${answer.status} ${answer.text}`);
  report.acknowledged += 1;
  uploader.acknowledged.add(at);
  if (uploader.replacing === at) uploader.replacing = undefined;
  const { fileId } = answer.json['result'] as unknown as PartAnswer;
  if (fileId === null) return;
  uploader.files.set(fileId, bytes);
  uploader.bytes = undefined;
}

/** The checksum of a file of many chunks takes longer than sending one of them. */
const uploadIds = new WeakMap<Buffer, number>();

function uploadIdOf(bytes: Buffer): number {
  const uploadId = uploadIds.get(bytes) ?? crc32(bytes);
  uploadIds.set(bytes, uploadId);
  return uploadId;
}

async function sendChunk(uploader: Uploader, bytes: Buffer, at: number): Promise<Answer> {
  const chunk = chunksOf(bytes)[at] ?? new Uint8Array(0);
  const query = { uploadId: uploadIdOf(bytes), chunkNumber: at, chunkCrc32: crc32(chunk) };
  return await sendPart(uploader, query, chunk);
}

/** Counts the state that the upload under way had reached, as the disk of the dead process shows. */
function classify(
  dataPath: string,
  { person, bytes, files }: Uploader,
  { caught }: ChunkKillLoopReport,
): void {
  if (bytes === undefined) return;
  const names = storedOf(dataPath, person.userId);
  const { complete } = messagesOf(dataPath);
  const published = names.find((name) => !name.endsWith('.part') && !files.has(name));
  if (published !== undefined) caught[complete.has(published) ? 'messageComplete' : 'published'] += 1;
  else if (names.some((name) => name.endsWith('.part'))) caught.part += 1;
  else caught.opening += 1;
}

/** Continues like a client after a broken connection: asks what is missing, sends it, or sends its last part again. */
async function goOn(uploader: Uploader, report: ChunkKillLoopReport): Promise<void> {
  const { bytes, opened, person, lastSent } = uploader;
  if (bytes === undefined) return;
  const who = `${person.userId} after kill ${report.kills}`;
  const status = await uploadStatus(uploader, uploadIdOf(bytes));
  if (status.status === 200) {
    report.atKills += uploader.acknowledged.size;
    const missing = missingOf(status);
    const lost = missing.filter((at) => uploader.acknowledged.has(at));
    if (lost.length > 0)
      report.faults.push(`${who}: chunks ${lost.join(' ')} were acknowledged and are missing`);
    const { replacing } = uploader;
    if (replacing !== undefined) {
      report.replacing += 1;
      await send(uploader, bytes, replacing, report);
    }
    for (const at of missing) if (at !== replacing) await send(uploader, bytes, at, report);
    if (uploader.bytes !== undefined) await send(uploader, bytes, lastSent, report);
  } else if (opened) {
    // Completed by a message that the restart delivered, or before the kill: the memory of its last part answers.
    const answer = await sendChunk(uploader, bytes, lastSent);
    if (answer.status === 200) await send(uploader, bytes, lastSent, report);
    else report.faults.push(`${who}: an acknowledged upload is gone: ${answer.text}`);
  } else await upload(uploader, bytes, () => undefined, report);
  if (uploader.bytes !== undefined) report.faults.push(`${who}: the upload cannot be completed`);
  uploader.bytes = undefined;
}

function missingOf({ json }: Answer): readonly number[] {
  return (json['result']?.['missing'] as unknown as number[] | undefined) ?? [];
}

async function checkAll(
  gateway: RunningGateway,
  dataPath: string,
  uploaders: readonly Uploader[],
  report: ChunkKillLoopReport,
): Promise<void> {
  const endMs = Date.now() + CLEANING_MS;
  while (messagesOf(dataPath).pending.size > 0 && Date.now() < endMs) await request(`${gateway.url}/health`);
  const at = `after kill ${report.kills}`;
  for (const fileId of messagesOf(dataPath).pending) report.faults.push(`${at}: ${fileId} stays pending`);
  for (const uploader of uploaders) {
    const { person, files } = uploader;
    const names = storedOf(dataPath, person.userId);
    const unknown = names.filter((name) => !files.has(name));
    if (unknown.length > 0) report.faults.push(`${at}: ${person.userId} has ${unknown.join(' ')} besides`);
    compareFiles(dataPath, uploader, report);
    const shown = await filesInChat(gateway, person.userId, [...files.keys()].at(-1));
    if (shown !== undefined && shown !== files.size)
      report.faults.push(`${at}: ${person.userId} sees ${shown} files, sent were ${files.size}`);
  }
}

/** Compares files that were not compared yet: all of them once more at the end, because each comparison reads all bytes. */
function compareFiles(
  dataPath: string,
  { person, files, compared }: Uploader,
  report: ChunkKillLoopReport,
): void {
  for (const [fileId, bytes] of files) {
    if (compared.has(fileId)) continue;
    compared.add(fileId);
    const path = join(dataPath, 'files', person.userId, fileId);
    if (!existsSync(path) || !readFileSync(path).equals(bytes))
      report.faults.push(`after kill ${report.kills}: ${fileId} is not the file that was sent`);
  }
}

/** Files that the user sees in the chat of this file: the personal one, where all went. */
async function filesInChat(
  { sandbox }: RunningGateway,
  userId: string,
  fileId: string | undefined,
): Promise<number | undefined> {
  if (fileId === undefined) return undefined;
  const headers = { 'X-Crm': userId };
  const info = await request(`${sandbox}/chat/v1/files/info?fileId=${fileId}`, { headers });
  const chatId = String(info.json['result']?.['chatId']);
  const list = await request(`${sandbox}/chat/v1/files/list?chatId=${chatId}&limit=200`, { headers });
  return (list.json['result']?.['files'] as unknown as unknown[] | undefined)?.length ?? 0;
}

function storedOf(dataPath: string, userId: string): string[] {
  const folder = join(dataPath, 'files', userId);
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Files by the log of the chat module. A last line may be cut off while the process is dead. */
function messagesOf(dataPath: string): { pending: Set<string>; complete: Set<string> } {
  const pending = new Set<string>();
  const complete = new Set<string>();
  const text = readFileSync(join(dataPath, 'sandbox', 'log.jsonl'), 'utf8');
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).match(/.+/g) ?? []) {
    const record = JSON.parse(line) as { type: string; fileId: string; complete?: boolean };
    if (record.type === 'fileCreated') pending.add(record.fileId);
    if (record.type !== 'fileEnded') continue;
    pending.delete(record.fileId);
    if (record.complete === true) complete.add(record.fileId);
  }
  return { pending, complete };
}
