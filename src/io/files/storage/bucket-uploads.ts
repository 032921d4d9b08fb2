/**
 * Bytes of uploads that go into a bucket as they arrive, so that every node may continue: pieces of v2 streams and chunks of
 * v1 are objects (s3/upload-objects.ts), which the end joins. Parts on this machine belong to one stream of this node.
 */
import { createHash } from 'node:crypto';
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { combineCrc32 } from '../../../domain/files/crc32-combine.ts';
import type { ChunkBytes, FileKey } from '../../../domain/files/files.ts';
import {
  crc32Before,
  type FileSegment,
  type SegmentRange,
  segmentRanges,
} from '../../../domain/files/segments.ts';
import { KeyedQueue } from '../upload/keyed-queue.ts';
import type { StorageFaults } from './faults.ts';
import type { SentFile, Swept } from './file-server.ts';
import type { DirectUploads, PartLease, WantedFiles } from './port.ts';
import type { Bucket } from './s3/bucket.ts';
import { BucketRefusal } from './s3/client.ts';
import type { UploadObjects } from './s3/upload-objects.ts';
import { StorageServerFault } from './storage-server.ts';

/** Bytes of one read of an object. */
const STEP_BYTES = 512 * 1024;
/** Pieces that are hashed at once. Shared memory is freed late, so their buffers are kept: 4 MiB. */
const HASHED_AT_ONCE = 8;
/** Objects that are read at once for a body. */
const READ_AT_ONCE = 2;

interface BucketUploadsOptions {
  /** The objects of an upload carry it: another log may share the bucket. */
  readonly logId: string;
  /** Bytes of a piece, which is a part of a transfer. */
  readonly pieceBytes: number;
  readonly workers: WorkerPort;
  readonly faults: StorageFaults;
  readonly bucketOf: (key: FileKey) => Bucket;
  readonly pathOf: (key: FileKey) => string;
  /** Removes the part of a stream from this machine. */
  readonly discard: (key: FileKey) => Promise<void>;
}

/** An object that holds bytes of a file, up to `endBytes` of it. */
interface NamedRange extends SegmentRange {
  readonly name: string;
}

/** The object of a chunk or piece is not there. */
class ObjectGone extends Error {}

export class BucketUploads implements DirectUploads {
  readonly #options: BucketUploadsOptions;
  readonly #objects = new Map<Bucket, UploadObjects>();
  readonly #hashes = new KeyedQueue(HASHED_AT_ONCE);
  readonly #idleBuffers: SharedArrayBuffer[] = [];

  constructor(options: BucketUploadsOptions) {
    this.#options = options;
  }

  get pieceBytes(): number {
    return this.#options.pieceBytes;
  }

  putChunk(key: FileKey, chunkNumber: number, crc32: number, bytes: Uint8Array): Promise<void> {
    const body = {
      sizeBytes: bytes.length,
      async read(target: Buffer, position: number) {
        const piece = bytes.subarray(position, position + target.length);
        target.set(piece);
        return { bytesRead: piece.length };
      },
    };
    return this.#guard('sending a chunk of', key, () =>
      this.#objectsOf(key).put(key, chunkName(chunkNumber, crc32), body, crc32),
    );
  }

  putPiece(key: FileKey, piece: SegmentRange, crc32: number, lease: PartLease): Promise<void> {
    const { beginBytes, endBytes } = piece;
    const body = {
      sizeBytes: endBytes - beginBytes,
      read: async (target: Buffer, position: number) => ({
        bytesRead: await lease.read(target, beginBytes + position),
      }),
    };
    return this.#guard('sending a piece of', key, () =>
      this.#objectsOf(key).put(key, this.#pieceName(piece), body, crc32),
    );
  }

  fetch(key: FileKey, piece: SegmentRange, lease: PartLease): Promise<boolean> {
    const write = async (bytes: Uint8Array, position: number) => lease.write(bytes, position);
    return this.#guard('reading a piece of', key, async () => {
      const found = await unlessGone(async () => {
        await this.#read(key, [piece], write);
        return true;
      });
      return found === true;
    });
  }

  hashPiece(key: FileKey, piece: SegmentRange, endBytes: number): Promise<number | undefined> {
    return this.#guard('reading a piece of', key, () =>
      this.#hashes.run('', () => unlessGone(() => this.#crc32Of(key, { ...piece, endBytes }))),
    );
  }

  sha256Of(key: FileKey, pieces: readonly FileSegment[]): Promise<string> {
    const hash = createHash('sha256');
    return this.#guard('reading the pieces of', key, async () => {
      await this.#read(key, segmentRanges(pieces), async (bytes) => void hash.update(bytes));
      return hash.digest('base64url');
    });
  }

  /** The file is there afterwards, made of its pieces. */
  publishPieces(key: FileKey, pieces: readonly FileSegment[]): Promise<boolean> {
    return this.#joining('joining pieces of', key, async () => {
      await this.#joinPieces(key, pieces);
      await this.#checkJoined(key, pieces.at(-1)?.endBytes ?? 0);
      return true;
    });
  }

  async #joinPieces(key: FileKey, pieces: readonly FileSegment[]): Promise<void> {
    const ranges = segmentRanges(pieces).map((range) => ({ ...range, name: this.#pieceName(range) }));
    // A part of a copy is a whole object, and has the size of a piece unless it is the last one.
    const areWhole = ranges.every(
      ({ isCut, beginBytes, endBytes }, at) =>
        isCut !== true && (at === ranges.length - 1 || endBytes - beginBytes === this.pieceBytes),
    );
    const sources = areWhole ? ranges.map(({ name }) => this.#objectsOf(key).sourceOf(key, name)) : [];
    await this.#join(key, ranges, sources);
  }

  /** The same of chunks. Resolves with the numbers of those that are not there; without any, the file is. */
  publishChunks(key: FileKey, chunks: readonly ChunkBytes[]): Promise<readonly number[]> {
    return this.#joining('joining chunks of', key, async () => {
      const ranges = chunkRanges(chunks);
      const lost = await this.#joinChunks(key, ranges);
      if (lost.length > 0) return lost;
      await this.#checkJoined(key, ranges.at(-1)?.endBytes ?? 0);
      // The file is there whatever becomes of its chunks: a sweep finds those that stay.
      await this.remove(key).catch(() => undefined);
      return [];
    });
  }

  async #joinChunks(key: FileKey, ranges: readonly NamedRange[]): Promise<readonly number[]> {
    try {
      await this.#join(key, ranges, []);
      return [];
    } catch (error) {
      const lost = await this.#missing(key, ranges);
      if (lost.length === 0) throw error;
      // They go once the file is there, which another node may have made of them.
      const { bucketOf, pathOf } = this.#options;
      return (await bucketOf(key).sizeOf(pathOf(key))) === ranges.at(-1)?.endBytes ? [] : lost;
    }
  }

  /** All objects of an upload. */
  remove(key: FileKey): Promise<void> {
    return this.#objectsOf(key).remove(key, () => true);
  }

  removeUnlisted(key: FileKey, stream: number, listed: readonly FileSegment[]): Promise<void> {
    const kept = new Set(segmentRanges(listed).map((range) => this.#pieceName(range)));
    const isUnlisted = (name: string) => !kept.has(name) && streamOf(name) <= stream;
    return this.#guard('removing pieces of', key, () => this.#objectsOf(key).remove(key, isUnlisted));
  }

  discard(key: FileKey): Promise<void> {
    return this.#options.discard(key);
  }

  sweep(bucket: Bucket, beforeMs: number, wanted: WantedFiles): Promise<Swept> {
    return this.#uploadsOf(bucket).sweep(beforeMs, wanted);
  }

  async #checkJoined(key: FileKey, sizeBytes: number): Promise<void> {
    const { bucketOf, pathOf } = this.#options;
    const stored = await bucketOf(key).sizeOf(pathOf(key));
    if (stored !== sizeBytes)
      throw new Error(`the bucket has ${String(stored)} bytes of it, expected were ${sizeBytes}`);
  }

  async #crc32Of(key: FileKey, piece: SegmentRange): Promise<number> {
    const buffer = this.#idleBuffers.pop() ?? new SharedArrayBuffer(STEP_BYTES);
    let crc32 = 0;
    let isInUse = false;
    try {
      await this.#read(key, [piece], async (bytes) => {
        Buffer.from(buffer).set(bytes);
        const task = { sharedBuffer: buffer, length: bytes.length, fd: null, position: 0 };
        const hashed = await this.#options.workers.run('writeBuffer', task);
        // The thread that is late may read it still.
        isInUse = !hashed.ok && hashed.error === 'TaskTimedOut';
        if (!hashed.ok) throw new GatewayError(hashed.error);
        if (typeof hashed.value !== 'number') throw new Error(hashed.value.message);
        crc32 = combineCrc32(crc32, hashed.value, bytes.length);
      });
      return crc32;
    } finally {
      if (!isInUse) this.#idleBuffers.push(buffer);
    }
  }

  #join(key: FileKey, ranges: readonly NamedRange[], sources: readonly string[]): Promise<void> {
    const { bucketOf, pathOf } = this.#options;
    return bucketOf(key).join(pathOf(key), this.#fileOf(key, ranges), sources);
  }

  #fileOf(key: FileKey, ranges: readonly NamedRange[]): SentFile {
    const sizeBytes = ranges.at(-1)?.endBytes ?? 0;
    return {
      sizeBytes,
      read: (target, position) => this.#readRanges(key, ranges, target, position),
      crc32Of: async (position, lengthBytes) => crc32Between(ranges, position, position + lengthBytes),
    };
  }

  /** Reads objects that follow each other, two at once: two chunks fill the buffer of a body. */
  async #readRanges(
    key: FileKey,
    ranges: readonly NamedRange[],
    target: Buffer,
    position: number,
  ): Promise<{ readonly bytesRead: number }> {
    const first = ranges.findIndex(({ endBytes }) => position < endBytes);
    const reads: Promise<void>[] = [];
    let bytesRead = 0;
    for (const { name, beginBytes, endBytes } of ranges.slice(first, first + READ_AT_ONCE)) {
      const from = position + bytesRead;
      const bytes = target.subarray(bytesRead, bytesRead + endBytes - from);
      if (bytes.length > 0) reads.push(this.#readObject(key, name, bytes, from - beginBytes));
      bytesRead += bytes.length;
    }
    // The memory is in use until all have settled.
    for (const read of await Promise.allSettled(reads)) if (read.status === 'rejected') throw read.reason;
    return { bytesRead };
  }

  /** Reads the bytes of a piece that the file has. */
  async #read(
    key: FileKey,
    pieces: readonly SegmentRange[],
    take: (bytes: Uint8Array, position: number) => Promise<void>,
  ): Promise<void> {
    for (const piece of pieces) {
      const { beginBytes, endBytes } = piece;
      for (let position = beginBytes; position < endBytes; position += STEP_BYTES) {
        const bytes = Buffer.alloc(Math.min(STEP_BYTES, endBytes - position));
        await this.#readObject(key, this.#pieceName(piece), bytes, position - beginBytes);
        await take(bytes, position);
      }
    }
  }

  async #readObject(key: FileKey, name: string, target: Uint8Array, position: number): Promise<void> {
    if (!(await this.#objectsOf(key).read(key, name, target, position)))
      throw new ObjectGone(`the object ${name} is gone`);
  }

  async #missing(key: FileKey, ranges: readonly NamedRange[]): Promise<number[]> {
    const lost: number[] = [];
    for (const { name, number, beginBytes, endBytes } of ranges)
      if ((await this.#objectsOf(key).sizeOf(key, name)) !== endBytes - beginBytes) lost.push(number);
    return lost;
  }

  /** By the number of its stream, and of the piece of the file that it belongs to. A stream has one tail. */
  #pieceName({ number, beginBytes, isTail }: SegmentRange): string {
    return isTail === true ? `tail.${number}` : `piece.${number}.${beginBytes / this.pieceBytes}`;
  }

  #objectsOf(key: FileKey): UploadObjects {
    return this.#uploadsOf(this.#options.bucketOf(key));
  }

  #uploadsOf(bucket: Bucket): UploadObjects {
    const known = this.#objects.get(bucket) ?? bucket.uploadsOf(this.#options.logId);
    this.#objects.set(bucket, known);
    return known;
  }

  /** Where a bucket does not answer nothing is decided: what it has stays, and joining is tried again. */
  #joining<T>(doing: string, key: FileKey, work: () => Promise<T>): Promise<T> {
    return this.#guard(doing, key, async () => {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof StorageServerFault) || error instanceof BucketRefusal) throw error;
        this.#options.faults.failure(`${doing} ${key.owner}/${key.fileId}`, error);
        throw new GatewayError('TaskTimedOut');
      }
    });
  }

  #guard<T>(doing: string, { owner, fileId }: FileKey, work: () => Promise<T>): Promise<T> {
    return this.#options.faults.guard(`${doing} ${owner}/${fileId}`, work);
  }
}

/** Undefined where an object is not there. */
async function unlessGone<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ObjectGone) return undefined;
    throw error;
  }
}

/** Number of the stream that sent the object; of one that no stream sent, infinite. */
function streamOf(name: string): number {
  const [, number] = /^(?:tail|piece)\.([0-9]+)/.exec(name) ?? [];
  return number === undefined ? Infinity : Number(number);
}

function chunkName(chunkNumber: number, crc32: number): string {
  return `chunk.${chunkNumber}.${crc32}`;
}

function chunkRanges(chunks: readonly ChunkBytes[]): NamedRange[] {
  let [beginBytes, crc32] = [0, 0];
  return chunks.map((chunk, number) => {
    const endBytes = beginBytes + chunk.sizeBytes;
    crc32 = combineCrc32(crc32, chunk.crc32, chunk.sizeBytes);
    const range = { number, beginBytes, endBytes, crc32, name: chunkName(number, chunk.crc32) };
    beginBytes = endBytes;
    return range;
  });
}

/** CRC-32 of bytes that begin and end where ranges do: what leads from the checksum of the file to the next. */
function crc32Between(ranges: readonly SegmentRange[], beginBytes: number, endBytes: number): number {
  const range = ranges.find((each) => each.beginBytes === beginBytes);
  const last = ranges.find((each) => each.endBytes === endBytes);
  if (range === undefined || last === undefined) throw new Error('no piece begins or ends there');
  return combineCrc32(crc32Before(ranges, range), last.crc32, endBytes - beginBytes);
}
