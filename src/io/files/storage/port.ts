/**
 * The port behind which the bytes of files lie: one folder of this machine (local.ts) or HTTP servers (remote.ts).
 * Both pass the same contract suite (test/io/files/storage/storage.test.ts).
 *
 * An upload is written into a part, which nobody can read, and becomes a file in one step, `publish`: after a crash
 * there is the whole file or none. A part is always a file of this machine; a remote storage sends it away at publish.
 *
 * Every method rejects with `StorageFull` when there is no room and with `FileStorageFailed` for anything else that the
 * storage does wrong; what exactly is told to the operator alone. No other error of the table comes from here, but the
 * `InvalidID` of `lease`.
 */
import type { GatewayError } from '../../../domain/errors.ts';
import type { FileKey } from '../../../domain/files/files.ts';

/** A finished file. Its bytes never change. */
export interface StoredFile {
  readonly sizeBytes: number;
  /**
   * Fills `target` from `position` on; resolves with the bytes read, fewer than asked only at the end of the file.
   * `target` must not be touched before.
   */
  read(target: Uint8Array, position: number): Promise<number>;
  /** The same within the call; absent where the bytes are not on this machine. For small bodies. Throws as above. */
  readonly readNow?: (target: Uint8Array, position: number) => number;
  /** Once, after every `read` has settled. */
  close(): void;
}

/** Leave to use the open descriptor of a part. Leases of one part share it. */
export interface PartLease {
  /** Open for reading and writing; worker threads may use it at explicit positions. */
  readonly fd: number;
  /**
   * Gives it back: it may be closed from now on. Only after every task and call that was given `fd` has settled: the
   * system hands a closed number out again, and what still writes to it writes into another file.
   */
  release(): Promise<void>;
  /** What the system said about `fd` as a row of the table; the operator is told what exactly. */
  failure(fault: unknown): GatewayError;
}

/** File ids whose parts a sweep leaves alone: a set, or whatever knows. */
export type WantedFiles = Pick<ReadonlySet<string>, 'has'>;

export interface FileStorage {
  /** A finished file for reading; undefined when there is none. */
  open(key: FileKey): Promise<StoredFile | undefined>;
  /** The same within the call, where the file is open already; otherwise undefined. Absent where nothing is kept. */
  openKept?(key: FileKey): StoredFile | undefined;

  /** Makes an empty part. One that is there is emptied. */
  create(key: FileKey): Promise<void>;
  /**
   * Opens the part of `key`. Rejects with `InvalidID` when there is none (any more), so that a request that comes late
   * brings nothing back.
   *
   * What is written through a lease is there at once: it has to be right already, or belong to a place that nobody has
   * answered for yet. Two requests must not write the same place.
   */
  lease(key: FileKey): Promise<PartLease>;
  /**
   * Makes the part the file, durably: it waits until no lease is left, checks that there are exactly `sizeBytes` bytes,
   * syncs them, and gives them their name. A file that is there already and has that size is left as it is, so a repeat
   * after a crash succeeds.
   */
  publish(key: FileKey, sizeBytes: number): Promise<void>;
  /** Removes the file and the part, whichever there is, once no lease is left. Nothing there is a success. */
  remove(key: FileKey): Promise<void>;

  /**
   * Removes the finished file, durably, and waits for nobody: a key that has a part is an upload under way and stays as it
   * is. Who reads the file may finish. Resolves with whether there was one.
   */
  removeFinished(key: FileKey): Promise<boolean>;

  /**
   * Counts `sizeBytes` as taken until `release(holder)`, or rejects with `StorageFull` when what is free, less all that
   * is held, does not suffice. The same holder again replaces its figure. `holder` is any name of the caller's, so that
   * room can be held before there is a file id.
   */
  reserve(holder: string, sizeBytes: number): Promise<void>;
  release(holder: string): void;
  /** Bytes that could be reserved now. */
  freeBytes(): Promise<number>;

  /** At start: removes the parts whose file ids are not `wanted`. Resolves with how many. Parts of this run stay. */
  sweep(wanted: WantedFiles): Promise<number>;
  counters(): StorageCounters;
  /** Closes descriptors that are kept for the next use. Leases are their holders' business. */
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
}

/** Told of every failure, with the file and the server or folder in words. */
export type StorageFaultListener = (message: string) => void;
