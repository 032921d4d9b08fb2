/**
 * The engine's files before the engine sees them: is one an LMDB data file at all (the engine takes the process with it
 * when it opens something else), and may nobody but the owner read them.
 */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';

/** The engine's names for its files in the folder. */
export const DATA_FILE = 'data.mdb';
/**
 * Without overlapping sync nothing is visible before it is durable, nor after its fsync has failed. Unless noSubdir
 * is given, a folder with a dot in its name is taken for the file itself.
 */
export const ENGINE = { overlappingSync: false, noSubdir: false, maxDbs: 32 };
export const LOCK_FILE = 'lock.mdb';

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

/** Makes missing files empty and readable by their owner alone; the engine would let everybody read what it creates. */
export function makeJournalFiles(directory: string): void {
  for (const name of [DATA_FILE, LOCK_FILE]) {
    const path = join(directory, name);
    // One that is there stays closed: closing it again would drop the locks that this process holds on it.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
  }
}
