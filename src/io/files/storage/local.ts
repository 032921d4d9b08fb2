/**
 * Files in a local folder: `{root}/{owner}/{fileId}`, the part beside it, so that publishing is one rename within a
 * directory (spec 4.8). For the order of syncs see workers/part-files.ts.
 */
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import type { ChunkBytes, FileKey } from '../../../domain/files/files.ts';
import type { FileSegment } from '../../../domain/files/segments.ts';
import { keepNewest } from '../../../domain/limits/newest.ts';
import type { PublishPartTask } from '../../../workers/part-files.ts';
import { type FullListener, StorageFaults } from './faults.ts';
import { FileCalls, type OnLate } from './file-calls.ts';
import { type FileTasks, runFileTask } from './file-tasks.ts';
import { FreeSpace, type FreeSpaceProbe } from './free-space.ts';
import { OpenFiles } from './open-files.ts';
import {
  fileName,
  type OwnerFolder,
  OwnerFolders,
  ownerName,
  partName,
  type Readers,
} from './owner-folders.ts';
import { Parts } from './parts.ts';
import type {
  FilePreview,
  FileStorage,
  PartLease,
  StorageCounters,
  StorageFaultListener,
  StoredFile,
  SweepScope,
  WantedFiles,
} from './port.ts';
import { SegmentJoins } from './segment-joins.ts';

interface LocalStorageOptions {
  /** Exists and is writable. */
  readonly root: string;
  /** Run the file system calls of parts. */
  readonly workers: WorkerPort;
  /** Bound the calls of this and any other storage together; its own unless given. */
  readonly calls?: FileCalls;
  readonly onFault: StorageFaultListener;
  /** Called, once a minute at most, when the disk has no space for uploads. */
  readonly full?: FullListener;
  /** Free space of the root's disk unless given. */
  readonly freeSpace?: FreeSpaceProbe;
  /** Descriptors kept for reading. */
  readonly keptMax?: number;
  /** Accounts that may read new files: the gateway's, or those of its group too. */
  readonly readers?: Readers;
  /** Other nodes write into the same folder. */
  readonly isShared?: boolean;
}

export class LocalStorage implements FileStorage {
  readonly #tasks: FileTasks;
  readonly #calls: FileCalls;
  readonly #faults: StorageFaults;
  readonly #folders: OwnerFolders;
  readonly #parts: Parts;
  readonly #joins: SegmentJoins;
  readonly #files: OpenFiles;
  readonly #space: FreeSpace;
  readonly #previews = new Previews();
  readonly isShared: boolean;
  #published = 0;
  #removed = 0;

  constructor(options: LocalStorageOptions) {
    const { root, workers, calls, onFault, full, freeSpace, keptMax, readers, isShared = false } = options;
    this.isShared = isShared;
    this.#calls = calls ?? new FileCalls();
    this.#tasks = { workers, calls: this.#calls };
    this.#faults = new StorageFaults(onFault, full);
    this.#folders = new OwnerFolders(root, this.#calls, readers);
    this.#parts = new Parts(this.#folders, this.#tasks, this.#faults, isShared);
    this.#files = new OpenFiles(this.#folders, this.#calls, this.#faults, keptMax);
    this.#space = new FreeSpace(root, this.#calls, this.#faults, freeSpace);
    this.#joins = new SegmentJoins(this.#folders, this.#parts, this.#space);
  }

  open(key: FileKey): Promise<StoredFile | undefined> {
    return this.#guard('opening', key, () => this.#files.get(key));
  }

  takePreview(key: FileKey): FilePreview | undefined {
    return this.#previews.take(key);
  }

  openKept(key: FileKey): StoredFile | undefined {
    return this.#files.getKept(key);
  }

  pathBelowRoot(key: FileKey): string {
    return `${ownerName(key)}/${fileName(key)}`;
  }

  create(key: FileKey): Promise<void> {
    return this.#guard('making a part of', key, () => this.#parts.make(key));
  }

  lease(key: FileKey): Promise<PartLease> {
    return this.#guard('opening the part of', key, () => this.#parts.lease(key));
  }

  publish(key: FileKey, sizeBytes: number, partBytesMax = sizeBytes): Promise<void> {
    const part = partName(key);
    return this.#guard('publishing', key, () =>
      this.#parts.exclusively(key, (late) => this.#publish(key, { part, sizeBytes, partBytesMax }, late)),
    );
  }

  publishCopy(key: FileKey, chunks: readonly ChunkBytes[]): Promise<readonly number[]> {
    const original = partName(key);
    return this.#guard('publishing a copy of', key, () =>
      this.#joins.publishCopy(key, chunks, ({ name, ...bounds }, late) =>
        this.#publish(key, { part: name, original, ...bounds }, late),
      ),
    );
  }

  publishSegments(key: FileKey, segments: readonly FileSegment[]): Promise<boolean> {
    return this.#guard('publishing', key, () =>
      this.#joins.publish(key, segments, ({ name, ...bounds }, late) =>
        this.#publish(key, { part: name, ...bounds }, late),
      ),
    );
  }

  removeSegments(key: FileKey, numbers: readonly number[]): Promise<void> {
    return this.#guard('removing parts of', key, () => this.#joins.remove(key, numbers));
  }

  async #publish(
    key: FileKey,
    source: Pick<PublishPartTask, 'part' | 'original' | 'sizeBytes' | 'partBytesMax'>,
    late: OnLate,
  ): Promise<void> {
    const task = { root: this.#folders.root, owner: ownerName(key), file: fileName(key), ...source };
    const { published, preview } = await runFileTask(this.#tasks, 'publishPart', task, late);
    if (!published) throw new Error('there is neither a part nor a file');
    if (preview !== undefined) this.#previews.put(key, preview);
    this.#parts.ended(key);
    this.#published += 1;
  }

  remove(key: FileKey): Promise<void> {
    return this.#guard('removing', key, async () => {
      await this.#forget(key);
      const unlink = async (folder: OwnerFolder) => {
        const part = await this.#parts.removeFrom(folder, key);
        return (await folder.unlink(fileName(key))) || part;
      };
      const gone = await this.#parts.exclusively(key, (late) => this.#folders.use(key.owner, unlink, late));
      if (gone === true) this.#removed += 1;
    });
  }

  removeFinished(key: FileKey): Promise<boolean> {
    return this.#guard('removing', key, async () => {
      const unlink = async (folder: OwnerFolder) => {
        if (await folder.has(partName(key))) return false;
        const file = await folder.unlink(fileName(key));
        if (file) await folder.sync();
        return file;
      };
      const gone = await this.#calls.answer((late) => this.#folders.use(key.owner, unlink, late));
      // The metadata are forgotten after the unlink: a reader that opened it meanwhile would leave it in the cache.
      await this.#forget(key);
      if (gone === true) this.#removed += 1;
      return gone === true;
    });
  }

  #forget(key: FileKey): Promise<void> {
    return this.#calls.answer((late) => this.#files.forget(key, late));
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

  sweep(wanted: WantedFiles, scope?: SweepScope): Promise<number> {
    return this.#faults.guard(`sweeping ${this.#folders.root}`, () =>
      this.#calls.answer((late) => this.#parts.sweep(wanted, scope, late)),
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
      open: this.#files.open,
      calls: this.#calls.counters(),
    };
  }

  async close(): Promise<void> {
    await this.#parts.close();
    await this.#files.close();
    this.#calls.close();
  }

  #guard<T>(doing: string, key: FileKey, work: () => Promise<T>): Promise<T> {
    return this.#faults.guard(`${doing} ${key.owner}/${key.fileId} in ${this.#folders.root}`, work);
  }
}

/**
 * Previews that are kept, of at most 96 KiB each. One is taken some turns after its publish; the oldest leaves first.
 */
const PREVIEWS_MAX = 32;

class Previews {
  readonly #known = new Map<string, FilePreview>();

  put({ fileId }: FileKey, preview: FilePreview): void {
    keepNewest(this.#known, PREVIEWS_MAX, fileId, preview);
  }

  take({ fileId }: FileKey): FilePreview | undefined {
    const preview = this.#known.get(fileId);
    this.#known.delete(fileId);
    return preview;
  }
}
