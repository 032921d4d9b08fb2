/** v1 uploads over a journal and a file storage on disk, with nothing around them: what is written, and what a cut leaves. */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { upload } from '../../../src/actors/files/v1/upload.ts';
import type { StoredChunk } from '../../../src/actors/files/v1/upload-messages.ts';
import { UPLOAD_SLOTS_ID, uploadSlots } from '../../../src/actors/files/v1/upload-slots.ts';
import { makeFolders } from '../../../src/actors/runtime/journal/file.ts';
import { openJournal } from '../../../src/actors/runtime/journal/lmdb.ts';
import type { ChatFilePort } from '../../../src/actors/runtime/ports.ts';
import { nodeSchedule } from '../../../src/actors/runtime/runtime-context.ts';
import { createActorSystem, type RunningSystem } from '../../../src/actors/runtime/system.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { CHUNK_BYTES } from '../../../src/domain/files/files.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { filePort } from '../../../src/io/files/storage/actor-port.ts';
import { LocalStorage } from '../../../src/io/files/storage/local.ts';
import { Throttle } from '../../../src/io/files/throttle.ts';
import { BodyReceiver } from '../../../src/io/files/upload/receiver.ts';
import { recoverUploads } from '../../../src/io/files/upload/recovery.ts';
import { PartUploads } from '../../../src/io/files/upload/v1-parts.ts';
import { inlineWorkers } from '../account.ts';
import { wholeBody } from '../files/incoming-body.ts';
import { SampleFile } from '../files/upload-world.ts';

/** Bytes by which the journal grows: so few that the file grows while uploads are written. */
const STEP_BYTES = 128 * 1024;
/** One user for each; the last chunks are short. */
export const UPLOADS: readonly (readonly [userId: string, file: SampleFile])[] = [3, 1, 4, 2, 3, 2].map(
  (chunks, at) => [String(1001 + at), new SampleFile(at, chunks, 700 + 3_000 * at)] as const,
);

/** The message of a file has the id of its upload; a module that keeps none answers the same after a cut. */
const CHAT: ChatFilePort = {
  create: async ({ uploadKey }) => ({ ok: true, value: { fileId: uploadKey } }),
  complete: async () => ({ ok: true, value: null }),
  cancel: async () => ({ ok: true, value: null }),
};

export interface OpenUploads {
  readonly folder: string;
  readonly system: RunningSystem;
  init(userId: string, file: SampleFile): Promise<unknown>;
  part(userId: string, file: SampleFile, chunkNumber: number): Promise<StoredChunk>;
  /** Chunks that are missing; undefined where there is no such upload. */
  missing(userId: string, file: SampleFile): Promise<readonly number[] | undefined>;
  close(): Promise<void>;
}

/** Recovers what an earlier run has left. */
export async function openUploads(folder: string): Promise<OpenUploads> {
  const root = join(folder, 'files');
  makeFolders(root);
  const journal = await openJournal({ directory: join(folder, 'journal'), stepBytes: STEP_BYTES });
  const settings = new LiveSettings({ FileUploadBytesPerSecond: 0 });
  const { workers } = inlineWorkers();
  const throwFault = (fault: unknown) => {
    throw fault;
  };
  // A cut leaves completions whose part is gone: the storage reports it, and the chunks are missing again.
  const storage = new LocalStorage({ root, workers, onFault: () => undefined });
  const system = createActorSystem({
    kinds: [upload, uploadSlots],
    journal,
    ports: { workers, files: filePort(storage, workers), chatFiles: CHAT },
    settings,
    clock: Date.now,
    randomBytes,
    schedule: nodeSchedule,
    onFatal: throwFault,
    onBug: ({ error }) => throwFault(error),
  });
  await recoverUploads({ actors: system, administration: system.administration, storage });
  const throttle = new Throttle({ settings, elapsed: () => performance.now(), timer: nodeSchedule.timer });
  const parts = new PartUploads({ storage, receiver: new BodyReceiver(workers, { folder: root }), throttle });
  return {
    folder,
    system,
    init: (userId, { uploadId, sizeBytes }) =>
      system.ask(uploadSlots, UPLOAD_SLOTS_ID, {
        type: 'grantUpload',
        userId,
        uploadId,
        name: 'a.bin',
        sizeBytes,
        chatId: null,
        message: null,
        linkedMessageId: null,
      }),
    part: (userId, file, chunkNumber) =>
      parts.store({
        actors: system,
        userId,
        address: '127.0.0.1',
        uploadId: file.uploadId,
        chunkNumber,
        crc32: file.crcOf(chunkNumber),
        body: wholeBody(file.chunks[chunkNumber] ?? Buffer.alloc(0)),
      }),
    async missing(userId, { uploadId }) {
      const query = { type: 'status' as const, uploadId };
      return (await orUnknown(async () => system.query(upload, userId, query)))?.missing;
    },
    async close() {
      throttle.close();
      await system.close();
      await storage.close();
    },
  };
}

/** Answers of the program before the cut. */
export interface Promised {
  readonly opened: ReadonlySet<string>;
  /** User and chunk number. */
  readonly chunks: ReadonlySet<string>;
  readonly files: ReadonlySet<string>;
}

/**
 * Returns the faults after a cut or a kill, once every upload is continued as its client would. `keepsChunks`: a kill,
 * which takes no chunk that was answered.
 */
export async function faultsOf(folder: string, promised: Promised, keepsChunks: boolean): Promise<string[]> {
  const faults: string[] = [];
  const uploads = await openUploads(folder);
  while (!uploads.system.idle) await new Promise((resolve) => setImmediate(resolve));
  for (const [userId, file] of UPLOADS) {
    if (!promised.opened.has(userId)) continue;
    const missing = await uploads.missing(userId, file);
    if (missing !== undefined && promised.files.has(userId))
      faults.push(`${userId}: a file is an upload again`);
    const lost = missing?.filter((at) => promised.chunks.has(`${userId} ${at}`)) ?? [];
    if (keepsChunks && lost.length > 0) faults.push(`${userId}: chunks ${lost.join(' ')} are missing`);
    if (missing !== undefined) faults.push(...falseChunks(folder, userId, file, missing));
    const fileId = await finish(uploads, userId, file, missing);
    const path = join(folder, 'files', userId, fileId ?? '');
    if (fileId === undefined) faults.push(`${userId}: cannot be completed`);
    else if (!existsSync(path) || !readFileSync(path).equals(Buffer.concat(file.chunks)))
      faults.push(`${userId}: not the file that was sent`);
  }
  await uploads.close();
  return faults;
}

/** Chunks that count as stored and whose bytes the part does not have. */
function falseChunks(folder: string, userId: string, file: SampleFile, missing: readonly number[]): string[] {
  const path = join(folder, 'files', userId);
  const parts = readdirSync(path).map((name) => readFileSync(join(path, name)));
  return [...file.chunks].flatMap((chunk, at) => {
    const start = at * CHUNK_BYTES;
    const isThere = parts.some((part) => part.subarray(start, start + chunk.length).equals(chunk));
    return missing.includes(at) || isThere ? [] : [`${userId}: chunk ${at} counts as stored and is not`];
  });
}

/** Finishes like a client that knows which chunks are missing; where none is, any chunk again gives the file. */
async function finish(
  { part }: OpenUploads,
  userId: string,
  file: SampleFile,
  missing: readonly number[] = [],
): Promise<string | undefined> {
  for (const at of [...missing, ...file.chunks.keys()]) {
    const stored = await orUnknown(() => part(userId, file, at));
    if (stored !== undefined && stored.fileId !== null) return stored.fileId;
  }
  return undefined;
}

async function orUnknown<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof GatewayError && error.row === 'InvalidID') return undefined;
    throw error;
  }
}
