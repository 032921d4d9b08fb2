/**
 * Memory for a whole run, touched before it. A virtual machine may give its free memory back to the host (free page
 * reporting, Documentation/mm/free_page_reporting.rst of Linux), and who then writes to it first waits for the host: 4 ms
 * a mebibyte where it was measured, in place of 0.4. It hits whoever is next, so rates of neighbours differ by luck.
 */
import { rmSync } from 'node:fs';
import { type FileHandle, mkdtemp, open, statfs } from 'node:fs/promises';
import { join } from 'node:path';

/** A file system in memory, on every Linux. */
const MEMORY_FOLDER = '/dev/shm';
/** Only whole blocks of so much are given back. */
const BLOCK_BYTES = 2 * 1024 * 1024;
/** Of each of them stays one page in use. */
const KEPT_BYTES = 4096;

export interface WarmMemory {
  readonly bytes: number;
  /** Ends what keeps it. */
  release(): Promise<void>;
}

/** At most; what is not there, or takes longer, is left out. */
export interface WarmBounds {
  readonly bytes: number;
  readonly ms: number;
}

/**
 * Writes pages of memory and frees them again, but one of each block: the blocks are in pieces, which the kernel hands
 * out before whole ones, and are not given back while the pages stay. Not more than half of the free memory, nothing
 * where no file system is in memory, and no further block once `stop` is aborted.
 */
export async function warmMemory(
  bounds: WarmBounds,
  stop: AbortSignal,
  folder: string = MEMORY_FOLDER,
): Promise<WarmMemory> {
  const blocks = Math.floor(Math.min(bounds.bytes, await sparedBytes(folder)) / BLOCK_BYTES);
  if (blocks === 0) return { bytes: 0, release: async () => undefined };
  const [freed, kept] = await namelessFiles(folder);
  let written = 0;
  try {
    const [most, page] = [Buffer.alloc(BLOCK_BYTES - KEPT_BYTES, 1), Buffer.alloc(KEPT_BYTES, 1)];
    const endMs = performance.now() + bounds.ms;
    // One after the other: the pages of a block are neighbours only where nobody else takes some meanwhile.
    for (; written < blocks && performance.now() < endMs && !stop.aborted; written += 1) {
      await freed.writeFile(most);
      await kept.writeFile(page);
    }
  } catch (error) {
    await kept.close();
    throw error;
  } finally {
    await freed.close();
  }
  return { bytes: written * BLOCK_BYTES, release: () => kept.close() };
}

/** Half of what is free, for this process and in that folder. */
async function sparedBytes(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return Math.min(process.availableMemory(), bavail * bsize) / 2;
  } catch {
    return 0;
  }
}

/** Two without a name: however this process ends, nothing of them is left. */
async function namelessFiles(folder: string): Promise<[FileHandle, FileHandle]> {
  const own = await mkdtemp(join(folder, 'gatehouse-memory-'));
  try {
    return [await open(join(own, 'freed'), 'wx'), await open(join(own, 'kept'), 'wx')];
  } finally {
    rmSync(own, { recursive: true });
  }
}
