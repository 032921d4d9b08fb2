/**
 * One folder per owner below a root, and the way into it that no symbolic link can bend: the folder itself is opened
 * without following links, and names in it are used through that descriptor (what `openat` does in C; Node has no such
 * call, Linux offers it as /proc/self/fd/N/name). Elsewhere the folder is checked, then used by its path.
 */
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../../domain/disk-faults.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import { parseId } from '../../../domain/ids.ts';

const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const DESCRIPTOR_PATHS = process.platform === 'linux' && existsSync('/proc/self/fd');
/** Of the gateway alone. */
const FOLDER_MODE = 0o700;

export interface OwnerFolder {
  /** Where names of this folder are found while it is open. */
  pathOf(name: string): string;
  /** Makes what was made, renamed or removed in it durable. */
  sync(): Promise<void>;
}

export class OwnerFolders {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** Runs `work` in the owner's folder, which is made first. */
  async make<T>(owner: string, work: (folder: OwnerFolder) => Promise<T>): Promise<T> {
    const path = this.#pathOf(owner);
    try {
      await mkdir(path, { mode: FOLDER_MODE });
      await syncFolder(this.root);
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
    }
    return useFolder(await open(path, FOLDER_FLAGS), path, work);
  }

  /** Runs `work` in the owner's folder; undefined when there is none. */
  async use<T>(owner: string, work: (folder: OwnerFolder) => Promise<T>): Promise<T | undefined> {
    const path = this.#pathOf(owner);
    const handle = await openIfPresent(path, FOLDER_FLAGS);
    return handle === undefined ? undefined : useFolder(handle, path, work);
  }

  #pathOf(owner: string): string {
    return join(this.root, fileSafe(owner));
  }
}

/** The name of a finished file in its owner's folder. */
export function fileName(key: FileKey): string {
  return fileSafe(key.fileId);
}

export function ownerName(key: FileKey): string {
  return fileSafe(key.owner);
}

/** Undefined when there is nothing by that name. */
export async function openIfPresent(path: string, flags: number): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Whether anything has that name. */
export async function isPresent(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
}

async function useFolder<T>(
  handle: FileHandle,
  path: string,
  work: (folder: OwnerFolder) => Promise<T>,
): Promise<T> {
  const base = DESCRIPTOR_PATHS ? `/proc/self/fd/${handle.fd}` : path;
  try {
    return await work({ pathOf: (name) => join(base, name), sync: () => handle.sync() });
  } finally {
    await handle.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Paths are built from parsed integers alone. Anything else here is a bug of the caller: it has no answer of its own. */
function fileSafe(id: string): string {
  const parsed = parseId(id);
  if (parsed === undefined) throw new RangeError('not an id');
  return parsed;
}
