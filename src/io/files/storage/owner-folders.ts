/** One folder per owner below a root, opened without following symbolic links (domain/files/folder-access.ts). */
import { type FileHandle, lstat, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../../domain/disk-faults.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import { FOLDER_FLAGS, pathInFolder } from '../../../domain/files/folder-access.ts';
import { parseId } from '../../../domain/ids.ts';

/** Permissions of new folders and files. `group`: a proxy in front that sends files is in the gateway's group. */
const MODES = {
  own: { folder: 0o700, file: 0o600 },
  group: { folder: 0o750, file: 0o640 },
} as const;
export type Readers = keyof typeof MODES;

export interface OwnerFolder {
  /** Path of a name in this folder, valid while the folder is open. */
  pathOf(name: string): string;
  /** Makes created, renamed and removed names durable. */
  sync(): Promise<void>;
}

export class OwnerFolders {
  readonly root: string;
  readonly modes: (typeof MODES)[Readers];

  constructor(root: string, readers: Readers = 'own') {
    this.root = root;
    this.modes = MODES[readers];
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

/** False when there was nothing to remove. */
export async function unlinkIfPresent(path: string): Promise<boolean> {
  try {
    await unlink(path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Undefined when the name does not exist. */
export async function openIfPresent(path: string, flags: number): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** True when the name exists. */
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
  try {
    return await work({
      pathOf: (name) => pathInFolder(handle.fd, path, name),
      sync: () => handle.sync(),
    });
  } finally {
    await handle.close();
  }
}

/** Paths are built from parsed integers only. Anything else is a bug of the caller. */
function fileSafe(id: string): string {
  const parsed = parseId(id);
  if (parsed === undefined) throw new RangeError('not an id');
  return parsed;
}
