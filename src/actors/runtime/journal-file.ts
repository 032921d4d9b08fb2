/** Is a file an LMDB data file at all? The engine takes the process with it when it opens something else. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';

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
