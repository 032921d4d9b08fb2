/** One folder per owner below a root, opened without following symbolic links (domain/files/folder-access.ts). */
import type { Dirent } from 'node:fs';
import { type FileHandle, lstat, open, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../../domain/disk-faults.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import { FOLDER_FLAGS, pathInFolder } from '../../../domain/files/folder-access.ts';
import { parseId } from '../../../domain/ids.ts';
import type { FileCalls, OnLate } from './file-calls.ts';

/** Permissions of new folders and files. `group`: a proxy in front that sends files is in the gateway's group. */
const MODES = {
  own: { folder: 0o700, file: 0o600 },
  group: { folder: 0o750, file: 0o640 },
} as const;
export type Readers = keyof typeof MODES;

export class OwnerFolders {
  readonly root: string;
  readonly modes: (typeof MODES)[Readers];
  readonly #calls: FileCalls;

  constructor(root: string, calls: FileCalls, readers: Readers = 'own') {
    this.root = root;
    this.modes = MODES[readers];
    this.#calls = calls;
  }

  /** Runs `work` in the owner's folder; undefined when there is none. `late`: of every call in it. */
  async use<T>(
    owner: string,
    work: (folder: OwnerFolder) => Promise<T>,
    late: OnLate,
  ): Promise<T | undefined> {
    const path = join(this.root, fileSafe(owner));
    const calls = this.#calls;
    const handle = await calls.run(() => openIfPresent(path, FOLDER_FLAGS), late);
    if (handle === undefined) return undefined;
    try {
      return await work(new OwnerFolder(handle, path, calls, late));
    } finally {
      await calls.free(() => handle.close(), late);
    }
  }
}

/** The names in a folder, while it is open. */
export class OwnerFolder {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #calls: FileCalls;
  readonly #late: OnLate;

  constructor(handle: FileHandle, path: string, calls: FileCalls, late: OnLate) {
    this.#handle = handle;
    this.#path = path;
    this.#calls = calls;
    this.#late = late;
  }

  /** Undefined when the name does not exist. */
  open(name: string, flags: number): Promise<FileHandle | undefined> {
    return this.#run(name, (path) => openIfPresent(path, flags));
  }

  /** False when there was nothing to remove. */
  unlink(name: string): Promise<boolean> {
    return this.#run(name, async (path) => (await unlessAbsent(unlink(path), 'absent')) !== 'absent');
  }

  has(name: string): Promise<boolean> {
    return this.#run(name, async (path) => (await unlessAbsent(lstat(path), undefined)) !== undefined);
  }

  /**
   * Returns the time of the last write, Unix milliseconds. For a name that is gone by now it is infinite, so it is
   * before no moment.
   */
  writtenMs(name: string): Promise<number> {
    return this.#run(
      name,
      async (path) => (await unlessAbsent(lstat(path), undefined))?.mtimeMs ?? Number.POSITIVE_INFINITY,
    );
  }

  entries(): AsyncGenerator<Dirent> {
    return entriesOf(this.#pathOf('.'), this.#calls, this.#late);
  }

  /** Makes removed names durable. */
  sync(): Promise<void> {
    return this.#calls.run(() => this.#handle.sync(), this.#late);
  }

  #run<T>(name: string, call: (path: string) => Promise<T>): Promise<T> {
    return this.#calls.run(() => call(this.#pathOf(name)), this.#late);
  }

  #pathOf(name: string): string {
    return pathInFolder(this.#handle.fd, this.#path, name);
  }
}

export function fileName(key: FileKey): string {
  return fileSafe(key.fileId);
}

export function partName(key: FileKey): string {
  const name = fileName(key);
  return key.segment === undefined ? `${name}.part` : `${name}.${key.segment}.part`;
}

export function ownerName(key: FileKey): string {
  return fileSafe(key.owner);
}

/** Lists a folder whose entries are read as they are asked for. */
export async function* entriesOf(path: string, calls: FileCalls, late: OnLate): AsyncGenerator<Dirent> {
  const folder = await calls.run(() => opendir(path), late);
  try {
    const next = () => calls.run(() => folder.read(), late);
    for (let entry = await next(); entry !== null; entry = await next()) yield entry;
  } finally {
    await calls.free(() => folder.close(), late);
  }
}

function openIfPresent(path: string, flags: number): Promise<FileHandle | undefined> {
  return unlessAbsent(open(path, flags), undefined);
}

async function unlessAbsent<T, A>(call: Promise<T>, absent: A): Promise<T | A> {
  try {
    return await call;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return absent;
    throw error;
  }
}

/** Paths are built from parsed integers only. Anything else is a bug of the caller. */
function fileSafe(id: string): string {
  const parsed = parseId(id);
  if (parsed === undefined) throw new RangeError('not an id');
  return parsed;
}
