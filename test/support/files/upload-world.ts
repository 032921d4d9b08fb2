/**
 * The world of v1 uploads for tests of their actors: parts, files and messages in memory, each call with a fault that the
 * test may set, and a check that nothing is left over or missing.
 */
import CRC32 from 'crc-32';
import { type ChunkPosition, upload } from '../../../src/actors/files/v1/upload.ts';
import type { StoredChunk } from '../../../src/actors/files/v1/upload-messages.ts';
import { UPLOAD_SLOTS_ID, type UploadSlot, uploadSlots } from '../../../src/actors/files/v1/upload-slots.ts';
import type { ChatFilePort, FilePort, PortResult, Ports } from '../../../src/actors/runtime/ports.ts';
import type { ErrorName } from '../../../src/domain/errors.ts';
import { combineCrc32 } from '../../../src/domain/files/crc32-combine.ts';
import { CHUNK_BYTES, chunkCount, chunkSizeBytes, type FileKey } from '../../../src/domain/files/files.ts';
import type { Network } from '../../../src/domain/limits/networks.ts';
import { createTestActors, type TestActors, type TestActorsOptions } from '../actors/actors.ts';

export type UploadCall = 'reserve' | 'create' | 'createPart' | 'publish' | 'complete' | 'remove' | 'cancel';

interface Message {
  readonly fileId: string;
  readonly userId: string;
  complete: boolean;
}

const OK: PortResult<null> = { ok: true, value: null };
const nameOf = ({ owner, fileId }: FileKey): string => `${owner}/${fileId}`;

export class UploadWorld {
  /** Chunk to checksum, by file. */
  readonly parts = new Map<string, Map<number, number>>();
  /** Chunk to checksum as the tables of the parts have it. */
  readonly tables = new Map<string, Map<number, number>>();
  readonly published = new Map<string, number>();
  /** Chunk to checksum, by published file. A late writer of a part that was published itself has the same map. */
  readonly bytes = new Map<string, Map<number, number>>();
  /** Facts of the chat module about a complete file. */
  readonly completed = new Map<string, { readonly crc32: number; readonly sizeBytes: number }>();
  readonly messages = new Map<string, Message>();
  readonly reserved = new Map<string, number>();
  readonly cancelledKeys = new Set<string>();
  readonly calls: UploadCall[] = [];
  /** Fails a call. With `happens` its work is done all the same, as when an answer is lost. */
  fault: (call: UploadCall) => { error: ErrorName; happens?: boolean } | undefined = () => undefined;
  /** Called before every call; while what it returns is pending, the call has not begun. */
  hold: (call: UploadCall) => Promise<void> | undefined = () => undefined;
  /** The work is done, its answer never comes: as a crash leaves it. */
  swallow: (call: UploadCall) => boolean = () => false;
  #files = 1000;

  readonly files: FilePort = {
    isShared: false,
    isDurable: false,
    hashSegment: async () => ({ ok: false as const, error: 'FileStorageFailed' as const }),
    publishSegments: async () => ({ ok: false, error: 'FileStorageFailed' }),
    removeSegments: async () => ({ ok: false, error: 'FileStorageFailed' }),
    reserve: (holder, sizeBytes) => this.#call('reserve', () => this.reserved.set(holder, sizeBytes)),
    release: (holder) => {
      this.reserved.delete(holder);
    },
    create: (key) =>
      this.#call('createPart', () => {
        this.parts.set(nameOf(key), new Map());
        this.tables.set(nameOf(key), new Map());
      }),
    publish: (key, sizeBytes) =>
      this.#call('publish', () => {
        const part = this.parts.get(nameOf(key));
        if (part === undefined) return this.#isPublished(key, sizeBytes);
        this.#publish(key, sizeBytes, part);
        return undefined;
      }),
    publishCopy: async (key, chunks) => {
      let wrong: number[] = [];
      const result = await this.#call('publish', () => {
        const part = this.parts.get(nameOf(key));
        const sizeBytes = chunks.reduce((sum, chunk) => sum + chunk.sizeBytes, 0);
        if (part === undefined) return this.#isPublished(key, sizeBytes);
        wrong = chunks.flatMap(({ crc32 }, at) => (part.get(at) === crc32 ? [] : [at]));
        if (wrong.length === 0) this.#publish(key, sizeBytes, new Map(part));
        return undefined;
      });
      return result.ok ? { ok: true, value: wrong } : result;
    },
    remove: (key) =>
      this.#call('remove', () => {
        this.parts.delete(nameOf(key));
        this.tables.delete(nameOf(key));
        this.published.delete(nameOf(key));
      }),
    readTable: async (key, sizeBytes) => {
      const table = this.tables.get(nameOf(key));
      const value = Array.from({ length: chunkCount(sizeBytes) }, (_, at) => table?.get(at) ?? null);
      return { ok: true, value };
    },
    hashRanges: async (key, ranges) => {
      const part = this.parts.get(nameOf(key));
      return {
        ok: true,
        value: ranges.map(({ positionBytes }) => part?.get(positionBytes / CHUNK_BYTES)),
      };
    },
  };

  readonly chatFiles: ChatFilePort = {
    create: async ({ uploadKey, userId }) => {
      const result = await this.#call('create', () => {
        if (this.cancelledKeys.has(uploadKey)) return 'ChartApiFileError';
        if (this.messages.has(uploadKey)) return undefined;
        this.#files += 1;
        this.messages.set(uploadKey, { fileId: String(this.#files), userId, complete: false });
        return undefined;
      });
      const fileId = this.messages.get(uploadKey)?.fileId ?? '';
      return result.ok ? { ok: true, value: { fileId } } : result;
    },
    complete: ({ fileId, userId, sizeBytes, crc32 }) =>
      this.#call('complete', () => {
        const message = [...this.messages.values()].find((one) => one.fileId === fileId);
        if (message === undefined) return 'ChartApiFileError';
        message.complete = true;
        this.completed.set(nameOf({ owner: userId, fileId }), { sizeBytes, crc32 });
        return undefined;
      }),
    cancel: (uploadKey) =>
      this.#call('cancel', () => {
        this.messages.delete(uploadKey);
        this.cancelledKeys.add(uploadKey);
      }),
  };

  readonly ports: Ports = {
    workers: { run: async () => ({ ok: false, error: 'InternalError' }) },
    files: this.files,
    chatFiles: this.chatFiles,
  };

  #publish(key: FileKey, sizeBytes: number, bytes: Map<number, number>): void {
    const name = nameOf(key);
    this.parts.delete(name);
    this.tables.delete(name);
    this.published.set(name, sizeBytes);
    this.bytes.set(name, bytes);
  }

  #isPublished(key: FileKey, sizeBytes: number): ErrorName | undefined {
    return this.published.get(nameOf(key)) === sizeBytes ? undefined : 'FileStorageFailed';
  }

  async #call(call: UploadCall, work: () => unknown): Promise<PortResult<null>> {
    await this.hold(call);
    this.calls.push(call);
    const fault = this.fault(call);
    if (fault !== undefined && fault.happens !== true) return { ok: false, error: fault.error };
    const refused = work();
    if (this.swallow(call)) return await new Promise<never>(() => {});
    if (fault !== undefined) return { ok: false, error: fault.error };
    return typeof refused === 'string' ? { ok: false, error: refused as ErrorName } : OK;
  }

  /** Writes a chunk like a thread, into the part and its table. */
  write(userId: string, fileId: string, chunkNumber: number, crc32: number): void {
    const name = nameOf({ owner: userId, fileId });
    for (const written of [this.parts, this.tables]) written.get(name)?.set(chunkNumber, crc32);
  }

  /** Returns everything that is there besides complete files with their messages; nothing when all is well. */
  faults(): string[] {
    const faults: string[] = [];
    for (const name of this.parts.keys()) faults.push(`part ${name}`);
    for (const holder of this.reserved.keys()) faults.push(`room for ${holder}`);
    const visible = new Set<string>();
    for (const { fileId, userId, complete } of this.messages.values()) {
      if (!complete) faults.push(`pending message ${fileId}`);
      else if (!this.published.has(`${userId}/${fileId}`)) faults.push(`message ${fileId} without a file`);
      visible.add(`${userId}/${fileId}`);
    }
    for (const [name, { crc32, sizeBytes }] of this.completed) {
      const crc32s = this.bytes.get(name) ?? new Map<number, number>();
      const sizes = Array.from(
        { length: chunkCount(sizeBytes) },
        (_, at) => chunkSizeBytes(at, sizeBytes) ?? 0,
      );
      const whole = sizes.reduce((crc, size, at) => combineCrc32(crc, crc32s.get(at) ?? 0, size), 0);
      if (whole !== crc32) faults.push(`file ${name} with other bytes`);
    }
    for (const name of this.published.keys())
      if (!visible.has(name)) faults.push(`file ${name} without a message`);
    return faults;
  }
}

/** A file of so many chunks, the last one short, different for every seed. */
export class SampleFile {
  readonly chunks: readonly Buffer[];
  readonly sizeBytes: number;
  readonly uploadId: number;

  constructor(seed: number, chunkCount: number, lastBytes = 1000) {
    this.chunks = Array.from({ length: chunkCount }, (_, at) =>
      Buffer.alloc(at === chunkCount - 1 ? lastBytes : CHUNK_BYTES, `${seed}.${at};`),
    );
    this.sizeBytes = (chunkCount - 1) * CHUNK_BYTES + lastBytes;
    this.uploadId = this.chunks.reduce((crc, chunk) => CRC32.buf(chunk, crc), 0) >>> 0;
  }

  crcOf(chunkNumber: number): number {
    return CRC32.buf(this.chunks[chunkNumber] ?? Buffer.alloc(0)) >>> 0;
  }
}

export interface UploadActors {
  readonly actors: TestActors;
  readonly world: UploadWorld;
  init(userId: string, file: SampleFile, name?: string, networks?: readonly Network[]): Promise<unknown>;
  /** Looks for the place of the chunk, and announces it if it replaces other bytes. */
  announce(userId: string, file: SampleFile, chunkNumber: number, crc32?: number): Promise<ChunkPosition>;
  /** The same, and writes it into the part and its table. */
  write(userId: string, file: SampleFile, chunkNumber: number, crc32?: number): Promise<ChunkPosition>;
  /** Reports a chunk as written, perhaps late. */
  store(
    userId: string,
    uploadKey: string,
    file: SampleFile,
    chunkNumber: number,
    crc32?: number,
  ): Promise<StoredChunk>;
  part(userId: string, file: SampleFile, chunkNumber: number, crc32?: number): Promise<StoredChunk>;
  cancel(userId: string, uploadId: number): Promise<unknown>;
  missing(userId: string, file: SampleFile): Promise<readonly number[]>;
  slots(): Promise<readonly UploadSlot[]>;
  /** Sweeps like a start: parts that belong to nothing are removed. */
  sweep(): Promise<void>;
  /** Checks like a start every upload that is open, after an unclean stop. */
  check(userId: string, uploadKey: string): Promise<unknown>;
}

export function createUploadActors(options: Partial<TestActorsOptions> = {}): UploadActors {
  const world = new UploadWorld();
  const actors = createTestActors({ kinds: [upload, uploadSlots], ports: world.ports, ...options });
  const announce: UploadActors['announce'] = async (
    userId,
    file,
    chunkNumber,
    crc32 = file.crcOf(chunkNumber),
  ) => {
    const chunk = { uploadId: file.uploadId, chunkNumber, crc32 };
    const position = actors.system.now(upload, userId, { type: 'findPosition', ...chunk });
    const { uploadKey, replaces } = position;
    if (replaces) await actors.system.ask(upload, userId, { type: 'replaceChunk', uploadKey, ...chunk });
    return position;
  };
  const write: UploadActors['write'] = async (userId, file, chunkNumber, crc32 = file.crcOf(chunkNumber)) => {
    const position = await announce(userId, file, chunkNumber, crc32);
    if (!position.known) world.write(userId, position.fileId, chunkNumber, crc32);
    return position;
  };
  const store: UploadActors['store'] = (userId, uploadKey, file, chunkNumber, crc32) =>
    actors.system.ask(upload, userId, {
      type: 'storeChunk',
      uploadKey,
      uploadId: file.uploadId,
      chunkNumber,
      crc32: crc32 ?? file.crcOf(chunkNumber),
    });
  return {
    actors,
    world,
    init: (userId, file, name = 'a.bin', networks = []) =>
      actors.system.ask(uploadSlots, UPLOAD_SLOTS_ID, {
        type: 'grantUpload',
        userId,
        networks,
        uploadId: file.uploadId,
        name,
        sizeBytes: file.sizeBytes,
        chatId: null,
        message: null,
        linkedMessageId: null,
      }),
    announce,
    write,
    store,
    async part(userId, file, chunkNumber, crc32 = file.crcOf(chunkNumber)) {
      const { uploadKey } = await write(userId, file, chunkNumber, crc32);
      return await store(userId, uploadKey, file, chunkNumber, crc32);
    },
    cancel: (userId, uploadId) => actors.system.ask(upload, userId, { type: 'cancelUpload', uploadId }),
    async missing(userId, { uploadId }) {
      return (await actors.system.query(upload, userId, { type: 'status', uploadId })).missing;
    },
    async sweep() {
      for (const name of world.parts.keys()) {
        const [userId = '', fileId = ''] = name.split('/');
        const wanted = await actors.system.query(upload, userId, {
          type: 'fileIds',
        });
        if (!wanted.includes(fileId)) world.parts.delete(name);
      }
    },
    check: (userId, uploadKey) =>
      actors.system.ask(upload, userId, { type: 'checkUpload', uploadKey, rehash: true }),
    slots: async () =>
      await actors.system.query(uploadSlots, UPLOAD_SLOTS_ID, {
        type: 'slots',
      }),
  };
}
