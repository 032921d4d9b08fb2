/**
 * The engine's files before the engine opens them: is each an LMDB file (another file ends the process), is it
 * readable by its owner alone, and does its name survive a power cut.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** The engine's names for its files in the folder. */
export const DATA_FILE = 'data.mdb';
/**
 * Without overlapping sync nothing is visible before it is durable, nor after its fsync has failed. Unless noSubdir
 * is given, a folder with a dot in its name is taken for the file itself.
 */
export const ENGINE = { overlappingSync: false, noSubdir: false, maxDbs: 32 };
export const LOCK_FILE = 'lock.mdb';
/**
 * Version of the layout of the rows, which is metadata. A journal with a newer one refuses to open. 2: rows have
 * checksums, and the audit log has rings.
 */
export const SCHEMA = 2;
export const SCHEMA_KEY = 'schema';
/** A journal in the making, and the lock that the engine puts beside a file without a folder of its own. */
const NEW_FILE = 'new.mdb';
const NEW_LOCK_FILE = `${NEW_FILE}-lock`;

/**
 * Bytes of the engine's lock file, which it maps into memory: 8,272 bytes of it are used. A page without a block on the
 * disk would end the process with SIGBUS when the disk is full.
 */
const LOCK_FILE_BYTES = 3 * 4096;
/** `MDB_MAGIC`, little-endian, behind the header of the two meta pages. */
const MAGIC = 0xbeefc0de;
const MAGIC_OFFSET_BYTES = 24;
const PAGE_BYTES = 4096;

/** True for a missing or empty file too: the engine makes those anew. */
export function isJournalFile(path: string): boolean {
  if (!existsSync(path)) return true;
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(PAGE_BYTES + MAGIC_OFFSET_BYTES + 4);
    const sizeBytes = readSync(file, head, 0, head.length, 0);
    const marked = [0, PAGE_BYTES].some((page) => head.readUInt32LE(page + MAGIC_OFFSET_BYTES) === MAGIC);
    return sizeBytes === 0 || marked;
  } finally {
    closeSync(file);
  }
}

/**
 * Makes the journal where there is none yet. `create` lets the engine write its first pages to the path that it is given.
 * They are on the disk before the file has its name: half of them would be a journal that never opens again.
 */
export async function makeJournalFiles(
  directory: string,
  create: (path: string) => Promise<void>,
): Promise<void> {
  const file = join(directory, DATA_FILE);
  if (!existsSync(file) || statSync(file).size === 0) {
    const path = join(directory, NEW_FILE);
    for (const name of [NEW_FILE, NEW_LOCK_FILE]) rmSync(join(directory, name), { force: true });
    makeFile(path);
    makeLockFile(join(directory, NEW_LOCK_FILE));
    await create(path);
    syncToDisk(path);
    renameSync(path, file);
  }
  rmSync(join(directory, NEW_LOCK_FILE), { force: true });
  // One that is there stays closed: closing it again would drop the locks that this process holds on it.
  if (!existsSync(join(directory, LOCK_FILE))) makeLockFile(join(directory, LOCK_FILE));
  // The folder is synced at every start: the run that created the file may have been killed before this step.
  syncToDisk(directory);
}

/** Makes missing folders of an absolute path, their owner's alone, whose names outlast a power cut. */
export function makeFolders(path: string): void {
  // One level at a time: on some file systems (procfs) Node's recursive form never comes back.
  if (existsSync(path)) return;
  makeFolders(dirname(path));
  mkdirSync(path, { mode: 0o700 });
  syncToDisk(dirname(path));
}

/** Empty, and readable by its owner alone; the engine would create a file that all users can read. */
function makeFile(path: string): void {
  closeSync(openSync(path, 'a', 0o600));
}

/** Makes the file with all of its blocks, or not at all. */
function makeLockFile(path: string): void {
  const file = openSync(path, 'w', 0o600);
  try {
    writeFileSync(file, Buffer.alloc(LOCK_FILE_BYTES));
  } catch (error) {
    rmSync(path);
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Puts the content of a file, or the names in a folder, on the disk. */
export function syncToDisk(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
