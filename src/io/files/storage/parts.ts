/**
 * Files that are being uploaded: `{root}/{owner}/{fileId}.part`. Publish and remove wait for the last lease of a part, and
 * no lease is given while they wait.
 */
import { close, constants, fdatasync, ftruncate, read, write } from 'node:fs';
import { promisify } from 'node:util';
import { GatewayError } from '../../../domain/errors.ts';
import type { ChunkBytes, FileKey } from '../../../domain/files/files.ts';
import type { SegmentRange } from '../../../domain/files/segments.ts';
import type { StorageFaults } from './faults.ts';
import type { FileCalls, OnLate } from './file-calls.ts';
import { callOnLease, type FileTasks, runFileTask } from './file-tasks.ts';
import { type OwnerFolder, type OwnerFolders, ownerName, partName } from './owner-folders.ts';
import { PartCopies } from './part-copies.ts';
import { sweepParts } from './part-sweep.ts';
import type { PartLease, SweepScope, WantedFiles } from './port.ts';

const closeDescriptor = promisify(close);
const truncate = promisify(ftruncate);
const syncData = promisify(fdatasync);
const readAt = promisify(read);
const writeAt = promisify(write);
const LEASE_FLAGS = constants.O_RDWR | constants.O_NOFOLLOW;

/** A part stays open for its next chunk; opening costs more than writing 256 KB. */
const KEEP_OPEN_MS = 2_000;
const KEPT_MAX = 256;

/** A `FileHandle`, or a descriptor that a worker thread opened. */
interface OpenPart {
  readonly fd: number;
  close(): Promise<void>;
}

/** The users of one part. Removed with the last of them. */
interface PartUse {
  leases: number;
  /** One descriptor for all leases; undefined when there is no such file. */
  opening: Promise<OpenPart | undefined> | undefined;
  /** Part that `opening` has resolved with. */
  open: OpenPart | undefined;
  kept: NodeJS.Timeout | undefined;
  /** Publish and remove calls that wait or run, one after the other. */
  endings: number;
  lastEnding: Promise<unknown>;
  onIdle: (() => void) | undefined;
  /** Calls and tasks of leases that are not done in time: until they are, nothing else is done with the part. */
  late: number;
  /** Answers the callers of `exclusively`. */
  readonly onLate: Set<() => void>;
}

export class Parts {
  readonly #copies: PartCopies;
  readonly #folders: OwnerFolders;
  readonly #tasks: FileTasks;
  readonly #calls: FileCalls;
  readonly #faults: StorageFaults;
  readonly #uses = new Map<string, PartUse>();
  /** Created since the start: a sweep beside new uploads keeps them. */
  readonly #made = new Set<string>();
  readonly #isShared: boolean;
  #leases = 0;
  #kept = 0;

  /** `isShared`: other nodes write the same parts. None is emptied then, and none stays open: what it cached would be old. */
  constructor(folders: OwnerFolders, tasks: FileTasks, faults: StorageFaults, isShared = false) {
    this.#isShared = isShared;
    this.#folders = folders;
    this.#tasks = tasks;
    this.#calls = tasks.calls;
    this.#faults = faults;
    this.#copies = new PartCopies(folders, tasks);
  }

  get leases(): number {
    return this.#leases;
  }

  /** Creates an empty part; bytes of an earlier attempt are discarded. Its descriptor is kept for the first lease. */
  async make(key: FileKey): Promise<void> {
    this.#made.add(key.fileId);
    const part = await this.exclusively(key, async (late) => {
      let isLate = false;
      const made = await this.#makePart(key, () => {
        isLate = true;
        late();
      });
      // Its caller has been answered, and a repeat makes the part anew.
      if (isLate) this.#close(made).catch((error: unknown) => this.#closingFailed(key, error));
      return made;
    });
    const use = this.#useOf(key);
    if (use.opening !== undefined || use.endings > 0) {
      await this.#close(part);
      return;
    }
    use.opening = Promise.resolve(part);
    use.open = part;
    this.#keepOpen(key, use);
  }

  async #makePart(key: FileKey, late: OnLate): Promise<OpenPart> {
    const { root, modes } = this.#folders;
    const task = { root, owner: ownerName(key), part: partName(key), modes, keepsBytes: this.#isShared };
    const fd = await runFileTask(this.#tasks, 'makePart', task, late);
    return { fd, close: () => closeDescriptor(fd) };
  }

  /** Throws `InvalidID` when the part does not exist, or is being ended. */
  async lease(key: FileKey): Promise<PartLease> {
    const use = this.#useOf(key);
    if (use.late > 0) throw new GatewayError('TaskTimedOut');
    if (use.endings > 0) throw new GatewayError('InvalidID');
    use.leases += 1;
    this.#leases += 1;
    this.#endKeepOpen(use);
    use.opening ??= this.#open(key, use);
    try {
      const part = use.open ?? (await this.#unlessLate(use, use.opening));
      if (part === undefined) throw new GatewayError('InvalidID');
      return this.#leaseOf(key, use, part);
    } catch (error) {
      this.#giveBack(key, use);
      throw error;
    }
  }

  /** Not kept where there is no such file, or it cannot be opened. */
  #open(key: FileKey, use: PartUse): Promise<OpenPart | undefined> {
    let settled: (() => void) | undefined;
    const late = () => {
      settled ??= this.#late(key, use);
    };
    const opening = this.#folders
      .use(key.owner, (folder) => folder.open(partName(key), LEASE_FLAGS), late)
      .finally(() => settled?.());
    const opened = (part: OpenPart | undefined) => {
      if (use.opening !== opening) return;
      use.open = part;
      if (part === undefined) use.opening = undefined;
    };
    opening.then(opened, () => opened(undefined));
    return opening;
  }

  /** Rejects with `TaskTimedOut` when what uses the part is late. */
  #unlessLate<T>(use: PartUse, work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const answer = () => reject(new GatewayError('TaskTimedOut'));
      use.onLate.add(answer);
      work.finally(() => use.onLate.delete(answer)).then(resolve, reject);
    });
  }

  #leaseOf(key: FileKey, use: PartUse, handle: OpenPart): PartLease {
    let released = false;
    const lease: PartLease = {
      fd: handle.fd,
      truncate: (sizeBytes) => callOnLease(this.#calls, lease, () => truncate(handle.fd, sizeBytes)),
      read: async (target, position) => {
        const call = () => readAt(handle.fd, target, 0, target.length, position);
        return (await callOnLease(this.#calls, lease, call)).bytesRead;
      },
      write: async (source, position) => {
        for (let done = 0; done < source.length; ) {
          const rest = source.subarray(done);
          const call = () => writeAt(handle.fd, rest, 0, rest.length, position + done);
          done += (await callOnLease(this.#calls, lease, call)).bytesWritten;
        }
      },
      sync: () => callOnLease(this.#calls, lease, () => syncData(handle.fd)),
      release: async () => {
        if (released) return;
        released = true;
        this.#giveBack(key, use);
      },
      keepFor: (task) => {
        use.leases += 1;
        this.#leases += 1;
        const settled = this.#late(key, use);
        void task.finally(() => {
          this.#giveBack(key, use);
          settled();
        });
      },
      failure: (fault) => this.#faults.failure(`writing the part of ${useName(key)}`, fault),
    };
    return lease;
  }

  /**
   * Runs `work` when no lease is left, after earlier calls; no lease is given until it is done. Rejects with
   * `TaskTimedOut` when `work` says that it is late, and for a part of which another call is late.
   */
  exclusively<T>(key: FileKey, work: (late: OnLate) => Promise<T>): Promise<T> {
    const use = this.#useOf(key);
    if (use.late > 0) return Promise.reject(new GatewayError('TaskTimedOut'));
    return new Promise((resolve, reject) => {
      let phase: 'waiting' | 'running' | 'cancelled' = 'waiting';
      let settled: (() => void) | undefined;
      const answer = () => {
        // Later it might undo what a repeat has done.
        if (phase === 'waiting') phase = 'cancelled';
        reject(new GatewayError('TaskTimedOut'));
      };
      const late = () => {
        settled ??= this.#late(key, use);
      };
      use.onLate.add(answer);
      const run = async () => {
        if (phase === 'cancelled') throw new GatewayError('TaskTimedOut');
        phase = 'running';
        return await work(late);
      };
      this.#exclusively(key, use, run, late)
        .finally(() => {
          use.onLate.delete(answer);
          settled?.();
        })
        .then(resolve, reject);
    });
  }

  /**
   * Answers the callers that wait, because the work that uses the part is not done in time. Call the result when it is
   * done.
   */
  #late(key: FileKey, use: PartUse): () => void {
    use.late += 1;
    for (const answer of use.onLate) answer();
    return () => {
      use.late -= 1;
      this.#forget(key, use);
    };
  }

  async #exclusively<T>(key: FileKey, use: PartUse, work: () => Promise<T>, late: OnLate): Promise<T> {
    use.endings += 1;
    const mine = use.lastEnding.then(async () => {
      if (use.leases > 0)
        await new Promise<void>((resolve) => {
          use.onIdle = resolve;
        });
      await this.#closeHandle(use, late);
      return work();
    });
    // The next call waits for the end of this one, also after a failure.
    use.lastEnding = mine.then(
      () => undefined,
      () => undefined,
    );
    try {
      return await mine;
    } finally {
      use.endings -= 1;
      this.#forget(key, use);
    }
  }

  /**
   * Runs `publish` with the name of a copy of the part if every chunk is as expected; with the part's when there is none.
   * Resolves with the numbers of chunks that are not.
   */
  publishCopy(
    key: FileKey,
    chunks: readonly ChunkBytes[],
    publish: (name: string, late: OnLate) => Promise<void>,
  ): Promise<readonly number[]> {
    const part = partName(key);
    return this.exclusively(key, async (late) => {
      const wrong = await this.#copies.publish(key, part, chunks, (copy) => publish(copy, late), late);
      if (wrong === undefined) await publish(part, late);
      return wrong ?? [];
    });
  }

  /**
   * Runs `publish` with the name of a file that has the bytes of the ranges; see `PartCopies`. False: they are not there,
   * and no earlier run has published them.
   */
  publishSegments(
    key: FileKey,
    ranges: readonly SegmentRange[],
    publish: (name: string, late: OnLate) => Promise<void>,
  ): Promise<boolean> {
    return this.exclusively(key, (late) =>
      this.#copies.publishSegments(key, ranges, (copy) => publish(copy, late), late),
    );
  }

  /** Closes unused descriptors. */
  async close(): Promise<void> {
    const idle = [...this.#uses.values()].filter(({ leases }) => leases === 0);
    await Promise.all(idle.map((use) => this.#closeHandle(use)));
  }

  /** The part became a file. */
  ended(key: FileKey): void {
    this.#made.delete(key.fileId);
  }

  /** Call it within `exclusively`. False when the part did not exist. */
  async removeFrom(folder: OwnerFolder, key: FileKey): Promise<boolean> {
    this.#made.delete(key.fileId);
    return folder.unlink(partName(key));
  }

  /** Removes parts and copies that nothing uses; see `sweepParts`. */
  sweep(wanted: WantedFiles, scope: SweepScope | undefined, late: OnLate): Promise<number> {
    return sweepParts(
      {
        folders: this.#folders,
        calls: this.#calls,
        isWanted: (fileId) => wanted.has(fileId) || this.#made.has(fileId),
        isLeftOverCopy: (name) => this.#copies.isLeftOver(name),
        remove: async (key) =>
          (await this.exclusively(key, (onLate) =>
            this.#folders.use(key.owner, (folder) => this.removeFrom(folder, key), onLate),
          )) === true,
      },
      scope,
      late,
    );
  }

  #useOf(key: FileKey): PartUse {
    const name = useName(key);
    const use = this.#uses.get(name) ?? {
      leases: 0,
      opening: undefined,
      open: undefined,
      kept: undefined,
      endings: 0,
      lastEnding: Promise.resolve(),
      onIdle: undefined,
      late: 0,
      onLate: new Set(),
    };
    this.#uses.set(name, use);
    return use;
  }

  #giveBack(key: FileKey, use: PartUse): void {
    use.leases -= 1;
    this.#leases -= 1;
    if (use.leases > 0) return;
    use.onIdle?.();
    use.onIdle = undefined;
    if (use.opening !== undefined && use.endings === 0) this.#keepOpen(key, use);
    this.#forget(key, use);
  }

  #keepOpen(key: FileKey, use: PartUse): void {
    this.#kept += 1;
    const end = () => {
      this.#closeHandle(use)
        .catch((error: unknown) => this.#closingFailed(key, error))
        .finally(() => this.#forget(key, use));
    };
    const isKept = !this.#isShared && this.#kept <= KEPT_MAX;
    use.kept = setTimeout(end, isKept ? KEEP_OPEN_MS : 0).unref();
  }

  #closingFailed(key: FileKey, error: unknown): void {
    this.#faults.failure(`closing the part of ${useName(key)}`, error);
  }

  #endKeepOpen(use: PartUse): void {
    if (use.kept === undefined) return;
    clearTimeout(use.kept);
    use.kept = undefined;
    this.#kept -= 1;
  }

  async #closeHandle(use: PartUse, late?: OnLate): Promise<void> {
    const { opening } = use;
    use.opening = undefined;
    use.open = undefined;
    this.#endKeepOpen(use);
    const part = await opening;
    if (part !== undefined) await this.#close(part, late);
  }

  #close(part: OpenPart, late?: OnLate): Promise<void> {
    return this.#calls.free(() => part.close(), late);
  }

  #forget(key: FileKey, use: PartUse): void {
    const unused = use.late === 0 && use.leases === 0 && use.endings === 0 && use.opening === undefined;
    if (unused && this.#uses.get(useName(key)) === use) this.#uses.delete(useName(key));
  }
}

function useName(key: FileKey): string {
  return `${key.owner}/${partName(key)}`;
}
