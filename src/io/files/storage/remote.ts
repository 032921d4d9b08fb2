/**
 * Files on other machines (spec 4.8, `FileServers`): the first server whose threshold is lower than the file id has it, at
 * `/{owner}/{fileId}`. Uploads are staged in a folder and sent at publish (docs/decisions/0041); nodes whose servers are all
 * buckets send them as they arrive (bucket-uploads.ts).
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import type { FileServerConfiguration } from '../../../domain/config/file-servers.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { ChunkBytes, FileKey } from '../../../domain/files/files.ts';
import { type PartBounds, partFault } from '../../../domain/files/part-bounds.ts';
import { type FileSegment, PIECE_BYTES } from '../../../domain/files/segments.ts';
import { type Clock, DAY_MS } from '../../../domain/time.ts';
import type { TaskInput } from '../../../workers/tasks.ts';
import { BucketUploads } from './bucket-uploads.ts';
import { type FullListener, StorageFaults } from './faults.ts';
import { FileCalls, type OnLate } from './file-calls.ts';
import type { FileServer, LinkForm, Swept } from './file-server.ts';
import { FreeSpace, type FreeSpaceProbe } from './free-space.ts';
import { fileName, type OwnerFolder, OwnerFolders, ownerName, partName } from './owner-folders.ts';
import { Parts } from './parts.ts';
import type {
  FileStorage,
  PartLease,
  StorageCounters,
  StorageFaultListener,
  StoredFile,
  SweepScope,
  WantedFiles,
} from './port.ts';
import { Bucket } from './s3/bucket.ts';
import { PartSlots } from './s3/multipart.ts';
import { SegmentJoins } from './segment-joins.ts';
import { StorageServer } from './storage-server.ts';

/** A transfer of parts that was begun before is none of this gateway, which sends a file in minutes. */
const TRANSFER_MAX_MS = DAY_MS;
const NONE_WANTED: WantedFiles = { has: () => false };

interface RemoteStorageOptions {
  /** Threshold in decimal → server; at least one. */
  readonly servers: Readonly<Record<string, FileServerConfiguration>>;
  /** Folder of uploads under way. Exists and is writable. */
  readonly staging: string;
  /** Make the parts. */
  readonly workers: WorkerPort;
  /** Bound the calls of the staging folder; its own unless given. */
  readonly calls?: FileCalls;
  readonly onFault: StorageFaultListener;
  /** Called, once a minute at most, when the disk has no space for uploads. */
  readonly full?: FullListener;
  /** Free space of the staging folder's disk unless given. */
  readonly freeSpace?: FreeSpaceProbe;
  /** Other nodes stage into the same folder. */
  readonly isShared?: boolean;
  /** Id of the log of a cluster whose servers are all buckets: bytes of uploads go there as they arrive. */
  readonly directLogId?: string | undefined;
  /** A request without progress for this time is aborted. */
  readonly stalledMs?: number;
  /** Before a request to a bucket is repeated for the first time. */
  readonly retryMs?: number;
  /** Dates signatures; the system's unless given. */
  readonly clock?: Clock;
}

interface Threshold {
  readonly above: bigint;
  readonly server: FileServer;
}

export class RemoteStorage implements FileStorage {
  readonly #clock: Clock;
  readonly #workers: WorkerPort;
  readonly #faults: StorageFaults;
  readonly #calls: FileCalls;
  readonly #folders: OwnerFolders;
  readonly #parts: Parts;
  readonly #space: FreeSpace;
  readonly #joins: SegmentJoins;
  readonly isShared: boolean;
  readonly direct: BucketUploads | undefined;
  readonly #thresholds: readonly Threshold[];
  #published = 0;
  #removed = 0;
  #open = 0;

  constructor(options: RemoteStorageOptions) {
    const { servers, staging, workers, calls, onFault, full, freeSpace, isShared = false } = options;
    this.isShared = isShared;
    this.#clock = options.clock ?? Date.now;
    this.#workers = workers;
    this.#faults = new StorageFaults(onFault, full);
    this.#calls = calls ?? new FileCalls();
    this.#folders = new OwnerFolders(staging, this.#calls);
    this.#parts = new Parts(this.#folders, { workers, calls: this.#calls }, this.#faults, isShared);
    this.#space = new FreeSpace(staging, this.#calls, this.#faults, freeSpace);
    this.#joins = new SegmentJoins(this.#folders, this.#parts, this.#space);
    const open = openerOf(options);
    this.#thresholds = Object.entries(servers)
      .map(([above, server]) => ({ above: BigInt(above), server: open(server) }))
      .sort((a, b) => (a.above < b.above ? 1 : -1));
    this.direct = this.#openDirect(options);
  }

  #openDirect({ directLogId: logId, workers }: RemoteStorageOptions): BucketUploads | undefined {
    if (logId === undefined) return undefined;
    return new BucketUploads({
      logId,
      pieceBytes: PIECE_BYTES,
      workers,
      faults: this.#faults,
      bucketOf: (key) => bucketOf(this.#serverOf(key)),
      pathOf,
      discard: (key) =>
        this.#guard('removing a part of', key, () => this.#joins.remove(key, [key.segment ?? 0])),
    });
  }

  open(key: FileKey): Promise<StoredFile | undefined> {
    return this.#guard('opening', key, async () => {
      const server = this.#serverOf(key);
      const sizeBytes = await server.sizeOf(pathOf(key));
      if (sizeBytes === undefined) return undefined;
      this.#open += 1;
      return this.#stored(key, server, sizeBytes);
    });
  }

  async create(key: FileKey): Promise<void> {
    // Chunks that go into a bucket need no part.
    if (this.direct !== undefined && key.segment === undefined) return;
    await this.#guard('making a part of', key, () => this.#parts.make(key));
  }

  lease(key: FileKey): Promise<PartLease> {
    return this.#guard('opening the part of', key, () => this.#parts.lease(key));
  }

  publish(key: FileKey, sizeBytes: number, partBytesMax = sizeBytes): Promise<void> {
    return this.#guard('publishing', key, () =>
      this.#parts.exclusively(key, (late) =>
        this.#publish(key, partName(key), { sizeBytes, partBytesMax }, late),
      ),
    );
  }

  publishCopy(key: FileKey, chunks: readonly ChunkBytes[]): Promise<readonly number[]> {
    const { direct } = this;
    if (direct !== undefined)
      return this.#counted(direct.publishChunks(key, chunks), (lost) => lost.length === 0);
    return this.#guard('publishing a copy of', key, () =>
      this.#joins.publishCopy(key, chunks, ({ name, ...bounds }, late) =>
        this.#publish(key, name, bounds, late),
      ),
    );
  }

  publishSegments(key: FileKey, segments: readonly FileSegment[]): Promise<boolean> {
    const { direct } = this;
    if (direct !== undefined) return this.#counted(direct.publishPieces(key, segments), Boolean);
    return this.#guard('publishing', key, () =>
      this.#joins.publish(key, segments, ({ name, ...bounds }, late) =>
        this.#publish(key, name, bounds, late),
      ),
    );
  }

  removeSegments(key: FileKey, numbers: readonly number[]): Promise<void> {
    return this.#guard('removing parts of', key, async () =>
      this.direct === undefined ? await this.#joins.remove(key, numbers) : await this.direct.remove(key),
    );
  }

  /** `name` is of the part, or of a copy of it. */
  async #publish(key: FileKey, name: string, bounds: PartBounds, late: OnLate): Promise<void> {
    const { sizeBytes } = bounds;
    const sent = await this.#send(key, name, bounds, late);
    await this.#checkSent(key, sizeBytes);
    if (sent) await this.#folders.use(key.owner, (folder) => this.#parts.removeFrom(folder, key), late);
  }

  async #counted<T>(publishing: Promise<T>, isPublished: (result: T) => boolean): Promise<T> {
    const result = await publishing;
    if (isPublished(result)) this.#published += 1;
    return result;
  }

  async #checkSent(key: FileKey, sizeBytes: number): Promise<void> {
    const stored = await this.#serverOf(key).sizeOf(pathOf(key));
    if (stored !== sizeBytes)
      throw new Error(`the server has ${String(stored)} bytes of it, expected were ${sizeBytes}`);
    this.#published += 1;
  }

  remove(key: FileKey): Promise<void> {
    return this.#guard('removing', key, async () => {
      const gone = await this.#parts.exclusively(key, async (late) => {
        const unlink = (folder: OwnerFolder) => this.#parts.removeFrom(folder, key);
        const part = await this.#folders.use(key.owner, unlink, late);
        const file = await this.#serverOf(key).remove(pathOf(key));
        return part === true || file;
      });
      await this.direct?.remove(key);
      if (gone) this.#removed += 1;
    });
  }

  removeFinished(key: FileKey): Promise<boolean> {
    return this.#guard('removing', key, async () => {
      const look = (folder: OwnerFolder) => folder.has(partName(key));
      const part = await this.#calls.answer((late) => this.#folders.use(key.owner, look, late));
      // An id below every threshold has no server, and so no file.
      const gone = part !== true && (await this.#findServer(key)?.remove(pathOf(key))) === true;
      if (gone) this.#removed += 1;
      return gone;
    });
  }

  reserve(holder: string, sizeBytes: number): Promise<void> {
    return this.#space.reserve(holder, sizeBytes);
  }

  release(holder: string): void {
    this.#space.release(holder);
  }

  freeBytes(): Promise<number> {
    return this.#space.freeBytes();
  }

  /** Rejects with `FileServerUnusable`, whose message names the server. */
  async probe(): Promise<void> {
    for (const { server } of this.#thresholds) await server.probe?.();
  }

  /** One that cannot be swept keeps none of the others from it. */
  sweepServers(wanted: WantedFiles, beforeMs = this.#clock() - TRANSFER_MAX_MS): Promise<Swept> {
    return this.#faults.guard('sweeping the file servers', async () => {
      const { direct } = this;
      const sweeps = this.#thresholds.flatMap(({ server }) => [
        () => server.sweep?.(beforeMs),
        () => direct?.sweep(bucketOf(server), beforeMs, wanted),
      ]);
      const failures: unknown[] = [];
      let [ended, hasMore] = [0, false];
      for (const sweep of sweeps) {
        try {
          const swept = await sweep();
          ended += swept?.ended ?? 0;
          hasMore ||= swept?.hasMore === true;
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
      return { ended, hasMore };
    });
  }

  linkTo(key: FileKey, form: LinkForm): string | undefined {
    return this.#findServer(key)?.linkTo?.(pathOf(key), form);
  }

  /** Parts of former streams of this node are wanted by none: the bucket has what was acknowledged. */
  sweep(wanted: WantedFiles, scope?: SweepScope): Promise<number> {
    const args = this.direct === undefined ? ([wanted, scope] as const) : ([NONE_WANTED, undefined] as const);
    return this.#faults.guard(`sweeping ${this.#folders.root}`, () =>
      this.#calls.answer((late) => this.#parts.sweep(...args, late)),
    );
  }

  counters(): StorageCounters {
    return {
      leases: this.#parts.leases,
      reservedBytes: this.#space.heldBytes,
      published: this.#published,
      removed: this.#removed,
      failed: this.#faults.failed,
      full: this.#faults.full,
      open: this.#open,
      calls: this.#calls.counters(),
    };
  }

  async close(): Promise<void> {
    await this.#parts.close();
    await Promise.all(this.#thresholds.map(({ server }) => server.close()));
    this.#calls.close();
  }

  /** False when there is no part: an earlier run may have sent it, which the server knows. */
  async #send(key: FileKey, name: string, bounds: PartBounds, late: OnLate): Promise<boolean> {
    const calls = this.#calls;
    const open = (folder: OwnerFolder) => folder.open(name, constants.O_RDWR | constants.O_NOFOLLOW);
    const handle = await this.#folders.use(key.owner, open, late);
    if (handle === undefined) return false;
    const read = (target: Buffer, position: number) =>
      calls.run(() => handle.read(target, 0, target.length, position), late);
    const crc32Of = (position: number, length: number) =>
      this.#crc32Of({ fd: handle.fd, position, length }, late);
    try {
      await this.#cut(handle, bounds, late);
      await this.#serverOf(key).put(pathOf(key), { sizeBytes: bounds.sizeBytes, read, crc32Of });
      return true;
    } finally {
      // Waits for a read that has not settled.
      await calls.free(() => handle.close(), late);
    }
  }

  async #crc32Of(range: TaskInput<'hashRange'>, late: OnLate): Promise<number> {
    const hashed = await this.#workers.run('hashRange', range, late);
    if (!hashed.ok) throw new GatewayError(hashed.error);
    if (hashed.value === undefined) throw new Error('the part is shorter than the file');
    return hashed.value;
  }

  /** Leaves the bytes of the file alone. Throws when the part is shorter, or longer than any table makes it. */
  async #cut(handle: FileHandle, bounds: PartBounds, late: OnLate): Promise<void> {
    const stats = await this.#calls.run(() => handle.stat(), late);
    const fault = partFault(stats, bounds);
    if (fault !== undefined) throw new Error(fault);
    const { sizeBytes } = bounds;
    if (stats.size > sizeBytes) await this.#calls.run(() => handle.truncate(sizeBytes), late);
  }

  #stored(key: FileKey, server: FileServer, sizeBytes: number): StoredFile {
    let closed = false;
    return {
      sizeBytes,
      read: (target, position) =>
        this.#guard('reading', key, async () => {
          const length = Math.min(target.length, Math.max(0, sizeBytes - position));
          if (length > 0) await server.read(pathOf(key), target.subarray(0, length), position);
          return length;
        }),
      close: () => {
        if (!closed) this.#open -= 1;
        closed = true;
      },
    };
  }

  #serverOf(key: FileKey): FileServer {
    const found = this.#findServer(key);
    if (found === undefined) throw new Error('no threshold of FileServers is lower than the file id');
    return found;
  }

  #findServer({ fileId }: FileKey): FileServer | undefined {
    const id = BigInt(fileId);
    return this.#thresholds.find(({ above }) => above < id)?.server;
  }

  #guard<T>(doing: string, key: FileKey, work: () => Promise<T>): Promise<T> {
    return this.#faults.guard(`${doing} ${key.owner}/${key.fileId}`, work);
  }
}

/** The schema lets through what has neither; the check of the configuration does not. */
function openerOf({
  staging,
  clock = Date.now,
  stalledMs,
  retryMs,
}: RemoteStorageOptions): (server: FileServerConfiguration) => FileServer {
  const slots = new PartSlots();
  const node = createHash('sha256').update(`${hostname()}\0${staging}`).digest('hex');
  const probeName = node.slice(0, 16);
  return ({ Host: host, S3: bucket }) => {
    if (bucket !== undefined) return new Bucket(bucket, { slots, probeName, clock, stalledMs, retryMs });
    if (host === undefined) throw new RangeError('a file server without an address');
    return new StorageServer({ host, stalledMs });
  };
}

/** The configuration lets uploads go into buckets only where there is nothing else. */
function bucketOf(server: FileServer): Bucket {
  if (!(server instanceof Bucket)) throw new TypeError('a file server that is no bucket');
  return server;
}

function pathOf(key: FileKey): string {
  return `/${ownerName(key)}/${fileName(key)}`;
}
