/**
 * Cache of descriptors of finished files: a small range of a cached file costs one read. This is safe because a published
 * file never changes and only the storage removes it.
 */
import { constants, read, readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { GatewayError } from '../../../domain/errors.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import type { StorageFaults } from './faults.ts';
import type { FileCalls, OnLate } from './file-calls.ts';
import { fileName, type OwnerFolders } from './owner-folders.ts';
import type { StoredFile } from './port.ts';

/** Unused descriptors that are kept; the least recently used one is closed first. */
const KEPT_MAX = 256;
/** O_NONBLOCK: a pipe under that name must not block a thread of libuv. */
const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

interface OpenFile {
  readonly handle: FileHandle;
  readonly sizeBytes: number;
  readonly name: string;
  users: number;
}

export class OpenFiles {
  readonly #folders: OwnerFolders;
  readonly #calls: FileCalls;
  readonly #faults: StorageFaults;
  readonly #keptMax: number;
  /** Open files by last use, oldest first. A promise, so that concurrent requests share one descriptor. */
  readonly #kept = new Map<string, Promise<OpenFile | undefined>>();
  /** The last entry, which repeated use need not move. */
  #latest: Promise<OpenFile | undefined> | undefined;
  /** The files of those promises: a cached file is returned within the call. */
  readonly #ready = new WeakMap<Promise<OpenFile | undefined>, OpenFile>();
  #openCount = 0;

  constructor(folders: OwnerFolders, calls: FileCalls, faults: StorageFaults, keptMax = KEPT_MAX) {
    this.#folders = folders;
    this.#calls = calls;
    this.#faults = faults;
    this.#keptMax = keptMax;
  }

  get open(): number {
    return this.#openCount;
  }

  /** Rejects with `TaskTimedOut` while all calls stand still, also for a cached file: its bytes could not be read. */
  async get(key: FileKey): Promise<StoredFile | undefined> {
    if (this.#calls.standStill) throw this.#calls.refusal('TaskTimedOut');
    const name = `${key.owner}/${key.fileId}`;
    const opening = this.#kept.get(name) ?? this.#openNew(key, name);
    this.#moveLast(name, opening);
    let file: OpenFile | undefined;
    try {
      file = await opening;
    } catch (error) {
      this.#drop(name, opening);
      throw error;
    }
    if (file === undefined) {
      this.#drop(name, opening);
      return undefined;
    }
    this.#ready.set(opening, file);
    file.users += 1;
    this.#evict();
    return this.#stored(file, opening);
  }

  /** The same for a cached file, within the call; undefined for any other. */
  getKept(key: FileKey): StoredFile | undefined {
    const name = `${key.owner}/${key.fileId}`;
    const opening = this.#kept.get(name);
    const file = opening === undefined ? undefined : this.#ready.get(opening);
    if (opening === undefined || file === undefined || this.#calls.standStill) return undefined;
    this.#moveLast(name, opening);
    file.users += 1;
    return this.#stored(file, opening);
  }

  /** The file is removed: its readers may finish, no new one gets it. */
  async forget(key: FileKey, late: OnLate): Promise<void> {
    const name = `${key.owner}/${key.fileId}`;
    const opening = this.#kept.get(name);
    if (opening === undefined) return;
    this.#kept.delete(name);
    const file = await opening.catch(() => undefined);
    if (file?.users === 0) await this.#close(file, late);
  }

  async close(): Promise<void> {
    const kept = [...this.#kept.values()];
    this.#kept.clear();
    for (const opening of kept) {
      const file = await opening.catch(() => undefined);
      if (file?.users === 0) await this.#close(file);
    }
  }

  /** Rejects with `TaskTimedOut` when the file system does not answer; what it opens later is closed. */
  #openNew(key: FileKey, name: string): Promise<OpenFile | undefined> {
    const abandoned = (file: OpenFile | undefined) => {
      if (file !== undefined) void this.#close(file);
    };
    return this.#calls.answer((late) => this.#open(key, name, late), abandoned);
  }

  async #open(key: FileKey, name: string, late: OnLate): Promise<OpenFile | undefined> {
    const file = fileName(key);
    const handle = await this.#folders.use(key.owner, (folder) => folder.open(file, READ_FLAGS), late);
    if (handle === undefined) return undefined;
    try {
      const stats = await this.#calls.run(() => handle.stat(), late);
      if (!stats.isFile()) throw new Error('there is something under its name that is no file');
      this.#openCount += 1;
      return { handle, sizeBytes: stats.size, name, users: 0 };
    } catch (error) {
      await this.#calls.free(() => handle.close(), late);
      throw error;
    }
  }

  #stored(file: OpenFile, opening: Promise<OpenFile | undefined>): StoredFile {
    return new OpenReader(file, this.#calls, this.#faults, () => {
      file.users -= 1;
      if (file.users === 0 && this.#kept.get(file.name) !== opening) void this.#close(file);
    });
  }

  #moveLast(name: string, opening: Promise<OpenFile | undefined>): void {
    if (opening === this.#latest) return;
    this.#kept.delete(name);
    this.#kept.set(name, opening);
    this.#latest = opening;
  }

  #evict(): void {
    if (this.#kept.size <= this.#keptMax) return;
    for (const [name, opening] of this.#kept) {
      this.#kept.delete(name);
      void opening.then(
        (file) => (file?.users === 0 ? this.#close(file) : undefined),
        () => undefined,
      );
      return;
    }
  }

  #drop(name: string, opening: Promise<OpenFile | undefined>): void {
    if (this.#kept.get(name) === opening) this.#kept.delete(name);
  }

  async #close({ handle, name }: OpenFile, late?: OnLate): Promise<void> {
    this.#openCount -= 1;
    const close = () => this.#calls.free(() => handle.close(), late);
    await this.#faults.guard(`closing ${name}`, close).catch(() => undefined);
  }
}

/** One use of an open file. */
class OpenReader implements StoredFile {
  readonly sizeBytes: number;
  /** Absent while the disk of other files does not answer: the event loop must not wait for it. */
  readonly readNow: StoredFile['readNow'];
  readonly #file: OpenFile;
  readonly #calls: FileCalls;
  readonly #faults: StorageFaults;
  #done: (() => void) | undefined;

  /** `done` is called once. */
  constructor(file: OpenFile, calls: FileCalls, faults: StorageFaults, done: () => void) {
    this.sizeBytes = file.sizeBytes;
    this.readNow = calls.stuck > 0 ? undefined : (target, position) => this.#readWithin(target, position);
    this.#file = file;
    this.#calls = calls;
    this.#faults = faults;
    this.#done = done;
  }

  /**
   * Reads until `target` is full or the file ends. Callbacks and a single promise, because a download reads thousands of
   * times.
   */
  read(target: Uint8Array, position: number, late?: OnLate): Promise<number> {
    const { fd } = this.#file.handle;
    return new Promise((resolve, reject) => {
      let done = 0;
      const readOn = (settled: () => void) =>
        read(fd, target, done, target.length - done, position + done, (error, got) => {
          settled();
          if (error !== null) return reject(this.#failure(error));
          done += got;
          if (got === 0 || done === target.length) resolve(done);
          else this.#calls.begin(readOn, reject, late);
        });
      this.#calls.begin(readOn, reject, late);
    });
  }

  #readWithin(target: Uint8Array, position: number): number {
    try {
      return readSync(this.#file.handle.fd, target, 0, target.length, position);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  close(): void {
    this.#done?.();
    this.#done = undefined;
  }

  #failure(error: unknown): GatewayError {
    return this.#faults.failure(`reading ${this.#file.name}`, error);
  }
}
