/**
 * The file system calls of a part, one task each: make it, and publish it as a file. Syncs are awaited, so that they hold
 * no thread; all other calls are short and synchronous.
 */
import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemCode } from '../domain/disk-faults.ts';
import { FOLDER_FLAGS, pathInFolder } from '../domain/files/folder-access.ts';
import { type PartBounds, partFault } from '../domain/files/part-bounds.ts';
import { PREVIEW_READ_BYTES, previewOf } from '../domain/files/text-preview.ts';

/** Names are checked by the caller: no separators, no `..`. */
interface PartPlace {
  /** Path of the folder of all owners. */
  readonly root: string;
  /** Name of the owner's folder. */
  readonly owner: string;
  /** Name of the part in it. */
  readonly part: string;
}

export interface MakePartTask extends PartPlace {
  /** Permissions of the folder, where it is created, and of the part. */
  readonly modes: { readonly folder: number; readonly file: number };
  /** Bytes that the part has already stay: another node may have written them. */
  readonly keepsBytes?: boolean;
}

export interface PublishPartTask extends PartPlace, PartBounds {
  readonly file: string;
  /** Removed after the rename: `part` is a copy of it. */
  readonly original?: string;
}

/** A system error, or a part that is not what it should be: no bug of the task. */
export interface FileFault {
  readonly code: string | undefined;
  readonly message: string;
}

/** Descriptor of the empty part, open for reading and writing. The caller closes it. */
export type MakePartResult = number | FileFault;

interface PublishedPart {
  /** False when there is neither a part nor a file. */
  readonly published: boolean;
  /** Beginning of a text; undefined for other files, and when an earlier run published the file. */
  readonly preview: { readonly text: string | undefined } | undefined;
}

export type PublishPartResult = PublishedPart | FileFault;

const MAKE_FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
const KEEP_FLAGS = MAKE_FLAGS & ~constants.O_TRUNC;
const PART_FLAGS = constants.O_RDWR | constants.O_NOFOLLOW;
/** O_NONBLOCK: a pipe under that name must not block the thread. */
const FILE_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/**
 * A folder as young as this may not be on disk: another task has made it and still syncs, or ended before. Later the system itself
 * has written it.
 */
const YOUNG_FOLDER_MS = 120_000;
/** Young folders whose names this thread has synced; they are forgotten together. */
const SYNCED_FOLDERS_MAX = 1_000;
const syncedFolders = new Set<string>();
const NOTHING: PublishedPart = { published: false, preview: undefined };

const syncData = promisify(fdatasync);
const sync = promisify(fsync);
/** One for each thread; read into and decoded within one call. */
const BEGINNING = Buffer.alloc(PREVIEW_READ_BYTES);

/** A part that is not what it should be. */
class PartFault extends Error {}

/** Creates the owner's folder and an empty part in it; bytes of an earlier attempt are discarded, unless they are kept. */
export async function makePart({
  root,
  owner,
  part,
  modes,
  keepsBytes,
}: MakePartTask): Promise<MakePartResult> {
  const path = join(root, owner);
  try {
    const folder = openIfPresent(path, FOLDER_FLAGS) ?? (await makeFolder(root, path, modes.folder));
    try {
      return openSync(
        pathInFolder(folder, path, part),
        keepsBytes === true ? KEEP_FLAGS : MAKE_FLAGS,
        modes.file,
      );
    } finally {
      closeSync(folder);
    }
  } catch (error) {
    return faultOf(error);
  }
}

/** Bytes, name, directory and its own name: each is on disk before the next one. */
export async function publishPart(task: PublishPartTask): Promise<PublishPartResult> {
  const path = join(task.root, task.owner);
  try {
    const folder = openIfPresent(path, FOLDER_FLAGS);
    if (folder === undefined) return NOTHING;
    try {
      const part = pathInFolder(folder, path, task.part);
      const file = pathInFolder(folder, path, task.file);
      const fd = openIfPresent(part, PART_FLAGS);
      if (fd === undefined) return await publishedEarlier(folder, file, task);
      const preview = await settleBytes(fd, task);
      // Another node may have published the same part while its bytes were synced.
      if (!renameIfPresent(part, file)) return await publishedEarlier(folder, file, task);
      if (task.original !== undefined) unlinkIfPresent(pathInFolder(folder, path, task.original));
      await syncNames(folder, task.root);
      return { published: true, preview };
    } finally {
      closeSync(folder);
    }
  } catch (error) {
    return faultOf(error);
  }
}

/** Leaves the bytes of the file alone and syncs them; closes `fd`. */
async function settleBytes(fd: number, bounds: PartBounds): Promise<PublishedPart['preview']> {
  try {
    const stats = fstatSync(fd);
    const fault = partFault(stats, bounds);
    if (fault !== undefined) throw new PartFault(fault);
    if (stats.size > bounds.sizeBytes) ftruncateSync(fd, bounds.sizeBytes);
    const bytes = readSync(fd, BEGINNING, 0, Math.min(bounds.sizeBytes, BEGINNING.length), 0);
    const text = previewOf(BEGINNING.subarray(0, bytes));
    await syncData(fd);
    return { text };
  } finally {
    closeSync(fd);
  }
}

/** An earlier run got as far as the rename; its directory may not have reached the disk. */
async function publishedEarlier(
  folder: number,
  file: string,
  { root, sizeBytes }: Pick<PublishPartTask, 'root' | 'sizeBytes'>,
): Promise<PublishedPart> {
  const fd = openIfPresent(file, FILE_FLAGS);
  if (fd === undefined) return NOTHING;
  try {
    const { size } = fstatSync(fd);
    if (size !== sizeBytes) throw new PartFault(`the file has ${size} bytes, expected were ${sizeBytes}`);
  } finally {
    closeSync(fd);
  }
  await syncNames(folder, root);
  return { published: true, preview: undefined };
}

async function syncNames(folder: number, root: string): Promise<void> {
  await sync(folder);
  const { birthtimeMs, dev, ino } = fstatSync(folder);
  const name = `${dev} ${ino} ${birthtimeMs}`;
  if (Date.now() - birthtimeMs >= YOUNG_FOLDER_MS || syncedFolders.has(name)) return;
  await syncFolder(root);
  if (syncedFolders.size >= SYNCED_FOLDERS_MAX) syncedFolders.clear();
  syncedFolders.add(name);
}

async function syncFolder(path: string): Promise<void> {
  const folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await sync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Another task may create the same folder. */
async function makeFolder(root: string, path: string, mode: number): Promise<number> {
  try {
    mkdirSync(path, { mode });
    await syncFolder(root);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  }
  return openSync(path, FOLDER_FLAGS);
}

function openIfPresent(path: string, flags: number): number | undefined {
  return ifPresent(() => openSync(path, flags));
}

function renameIfPresent(path: string, target: string): boolean {
  const renamed = ifPresent(() => {
    renameSync(path, target);
    return true;
  });
  return renamed === true;
}

function unlinkIfPresent(path: string): void {
  ifPresent(() => unlinkSync(path));
}

/** Undefined where there is no such file. */
function ifPresent<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Anything else is a bug. */
function faultOf(error: unknown): FileFault {
  const code = systemCode(error);
  if (!(error instanceof Error) || (code === undefined && !(error instanceof PartFault))) throw error;
  return { code, message: error.message };
}
