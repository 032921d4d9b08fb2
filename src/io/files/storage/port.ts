/**
 * Port of the file storage, implemented by a local folder (local.ts) and by HTTP servers (remote.ts). One contract suite
 * tests both (test/io/files/storage/storage.test.ts).
 */
import type { GatewayError } from '../../../domain/errors.ts';
import type { ChunkBytes, FileKey } from '../../../domain/files/files.ts';
import type { FileSegment, SegmentRange } from '../../../domain/files/segments.ts';
import type { FileCallCounters } from './file-calls.ts';
import type { LinkForm, Swept } from './file-server.ts';

/** Beginning of a finished file; `text` is undefined for files that are no text. */
export interface FilePreview {
  readonly text: string | undefined;
}

/** A finished file. Its bytes never change. */
export interface StoredFile {
  readonly sizeBytes: number;
  /**
   * Fills `target` from `position` on; resolves with the bytes read, fewer than asked only at the end of the file.
   * `target` must not be touched before, also after `late`: then the caller has waited long enough. Rejects with
   * `FileStorageFailed`; with `TaskTimedOut` or `Overloaded` where a read did not begin.
   */
  read(target: Uint8Array, position: number, late?: () => void): Promise<number>;
  /**
   * The same within the call, for small bodies; absent where the bytes are not local, or their disk does not answer.
   * Throws as `read` rejects.
   */
  readonly readNow?: ((target: Uint8Array, position: number) => number) | undefined;
  /** Call once, after every `read` has settled. */
  close(): void;
}

/** Use of the open descriptor of a part. Leases of one part share it. */
export interface PartLease {
  /** Open for reading and writing; worker threads may use it at explicit positions. */
  readonly fd: number;
  /** Cuts the part off, or fills it with zeros up to there. Rejects with `FileStorageFailed`, `TaskTimedOut`. */
  truncate(sizeBytes: number): Promise<void>;
  /** Puts earlier writes on the disk, where other nodes see them. Rejects with `FileStorageFailed`, `TaskTimedOut`. */
  sync(): Promise<void>;
  /** One read into `target`; resolves with the bytes read. Rejects with `FileStorageFailed`, `TaskTimedOut`. */
  read(target: Uint8Array, position: number): Promise<number>;
  /** Writes all of `source`. Rejects with `FileStorageFailed`, `StorageFull`, `TaskTimedOut`. */
  write(source: Uint8Array, position: number): Promise<void>;
  /**
   * The descriptor may be closed from now on. Call it only after every task that uses `fd` has settled: the system reuses
   * closed numbers, and a late write would go into another file.
   */
  release(): Promise<void>;
  /** A task that uses `fd` is not done in time: descriptor and part stay taken until it settles, also after `release`. */
  keepFor(task: Promise<unknown>): void;
  /** Logs a system error of `fd` and maps it to an error of the table. */
  failure(fault: unknown): GatewayError;
}

/**
 * Writes the bytes of uploads into a bucket as they arrive. Each call rejects as the storage does, and once it resolves
 * the bucket has the bytes. A position is one in the file.
 */
export interface DirectUploads {
  /** Bytes of each piece of a file but the last one. */
  readonly pieceBytes: number;
  /** A chunk of v1, whose `crc32` its bytes have; they stay as they are meanwhile. */
  putChunk(key: FileKey, chunkNumber: number, crc32: number, bytes: Uint8Array): Promise<void>;
  /** A piece, from the part of its stream. `crc32`: of these bytes alone. */
  putPiece(key: FileKey, piece: SegmentRange, crc32: number, lease: PartLease): Promise<void>;
  /** Writes what a piece has of the file into the part of another stream. False when it is gone. */
  fetch(key: FileKey, piece: SegmentRange, lease: PartLease): Promise<boolean>;
  /** CRC-32 of a piece up to this position; undefined when it is gone. */
  hashPiece(key: FileKey, piece: SegmentRange, endBytes: number): Promise<number | undefined>;
  /** SHA-256 of pieces that are the file, base64url. */
  sha256Of(key: FileKey, pieces: readonly FileSegment[]): Promise<string>;
  /** Removes the objects of this stream and of earlier ones that the draft does not list: no stream begins from them. */
  removeUnlisted(key: FileKey, stream: number, listed: readonly FileSegment[]): Promise<void>;
  /** Removes the part of a stream from this machine, once no lease is left. */
  discard(key: FileKey): Promise<void>;
}

/** File ids whose parts a sweep keeps. */
export type WantedFiles = Pick<ReadonlySet<string>, 'has'>;

/** Scope of a sweep where other nodes write into the same folder. */
export interface SweepScope {
  /** Owners whose parts it may remove. */
  readonly includes: (owner: string) => boolean;
  /** Parts written at or after this moment stay. Unix milliseconds. */
  readonly keepSinceMs: number;
}

/**
 * An upload is written into a part, which cannot be read, and becomes a file in one step, `publish`: after a crash there
 * is the whole file or none. A part is always a local file; a remote storage sends it at publish.
 *
 * Every method rejects with `StorageFull` when there is no space and with `FileStorageFailed` for any other failure of
 * the storage; the details go to the log. The other errors are `InvalidID` of `lease`, `TaskTimedOut` while a task of the
 * part is not done in time or the disk does not answer, and `Overloaded`, `Stopping` and `InternalError` of the worker
 * threads.
 */
export interface FileStorage {
  /** Several nodes write into it: parts are never emptied, and their bytes are synced before they are acknowledged. */
  readonly isShared: boolean;
  /** Bytes of uploads go into a bucket as they arrive: then parts are of one stream of this node, and nothing of v1. */
  readonly direct?: DirectUploads | undefined;
  /** A finished file for reading; undefined when there is none. */
  open(key: FileKey): Promise<StoredFile | undefined>;
  /** The same within the call, for a file that is open already; otherwise undefined. Absent without a cache. */
  openKept?(key: FileKey): StoredFile | undefined;
  /** Path of a finished file below the folder of the bytes; absent where they are not local. */
  pathBelowRoot?(key: FileKey): string;

  /** The preview that publishing read, once; undefined when it is not known, or not any more. */
  takePreview?(key: FileKey): FilePreview | undefined;

  /** Creates an empty part, or empties the existing one. */
  create(key: FileKey): Promise<void>;
  /**
   * Opens the part of `key`. Rejects with `InvalidID` when it does not exist (any more), so that a late request creates
   * nothing.
   *
   * A write through a lease takes effect at once: its bytes are verified, or its position is not acknowledged yet. Two
   * requests must not write the same position.
   */
  lease(key: FileKey): Promise<PartLease>;
  /**
   * Turns the part into the file, durably: waits until no lease is left, checks that there are exactly `sizeBytes` bytes,
   * syncs and renames. An existing file of that size is kept, so that a repeat after a crash succeeds. The part may have
   * up to `partBytesMax` bytes, `sizeBytes` unless given: what is behind the file's bytes is cut off first.
   */
  publish(key: FileKey, sizeBytes: number, partBytesMax?: number): Promise<void>;
  /**
   * Publishes a copy of the part, hashed as it is written: of `chunks` one after the other, which are the file. Then no
   * writer has the file open. Resolves with the numbers of chunks that have other bytes; without any, the part is gone.
   */
  publishCopy(key: FileKey, chunks: readonly ChunkBytes[]): Promise<readonly number[]>;
  /**
   * Publishes the segments of a file. The part of a single one that gets no more bytes becomes the file; others are joined
   * in a new file, where their late writers write nothing. False when their bytes are not those that were listed.
   */
  publishSegments(key: FileKey, segments: readonly FileSegment[]): Promise<boolean>;
  /** Removes file and part once no lease is left. Succeeds when neither exists. */
  remove(key: FileKey): Promise<void>;
  /** Removes parts of a file, after the leases of this process. Succeeds when none exists. */
  removeSegments(key: FileKey, numbers: readonly number[]): Promise<void>;

  /**
   * Removes the finished file, durably and without waiting: a key that has a part is an upload under way and is kept.
   * Readers of the file may finish. Resolves with false when there was no file.
   */
  removeFinished(key: FileKey): Promise<boolean>;

  /**
   * Reserves `sizeBytes` until `release(holder)`, or rejects with `StorageFull` when free space less all reservations does
   * not suffice. A holder's second call replaces its first. `holder` is any name, so that space can be reserved before a
   * file id exists.
   */
  reserve(holder: string, sizeBytes: number): Promise<void>;
  release(holder: string): void;
  /** Bytes that could be reserved now. */
  freeBytes(): Promise<number>;

  /** At start: removes parts that are not `wanted`, except those of this run. Resolves with their number. */
  sweep(wanted: WantedFiles, scope?: SweepScope): Promise<number>;
  /** At start: rejects with `FileServerUnusable` when a server lacks what the gateway needs. Absent where all is local. */
  probe?(): Promise<void>;
  /**
   * Ends transfers to servers that were begun before `beforeMs`, a day ago unless given, and never finished, and removes what
   * uploads sent before that are not `wanted`.
   */
  sweepServers?(wanted: WantedFiles, beforeMs?: number): Promise<Swept>;
  /** An address at which a client gets a finished file itself for a minute; undefined where clients must not. */
  linkTo?(key: FileKey, form: LinkForm): string | undefined;
  counters(): StorageCounters;
  /** Closes cached descriptors. Holders release their leases. */
  close(): Promise<void>;
}

export interface StorageCounters {
  /** Leases that are open. */
  readonly leases: number;
  readonly reservedBytes: number;
  readonly published: number;
  readonly removed: number;
  /** Calls that ended with `FileStorageFailed`. */
  readonly failed: number;
  /** Calls that ended with `StorageFull`. */
  readonly full: number;
  /** Files that are open for reading, kept descriptors included. */
  readonly open: number;
  /** Calls of the local file system. */
  readonly calls: FileCallCounters;
}

/** Called for every failure, with the file and the server or folder. */
export type StorageFaultListener = (message: string) => void;
