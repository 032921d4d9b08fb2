/**
 * Room for the journal: the quota, and disk space ahead of need. Owns the blocks of the journal's file that hold no data yet: real zeros, so that a full
 * disk is met here, where it can be refused, and never inside the engine, whose error path ends the process.
 */
import { type FileHandle, open, stat } from 'node:fs/promises';

const CHUNK_BYTES = 1024 * 1024;

/** Share of the quota that live data may take before growth is refused. Source: architecture.md "The journal". */
const LIVE_SHARE = 0.7;
/** Room made before the journal opens; the rest of the first step follows in the background. */
const FIRST_BYTES = 16 * CHUNK_BYTES;

interface Pages {
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
}
/** What the engine tells of one sub-database; `root`, `free` and `lastPageNumber` concern the whole file. */
export interface TableStats extends Pages {
  readonly pageSize: number;
  readonly entryCount: number;
  readonly lastPageNumber: number;
  readonly root: Pages;
  readonly free: Pages;
}

export interface SpaceOptions {
  /** The file that grows. */
  readonly file: string;
  /** Bytes added at a time; more are added when less than half of it is left. */
  readonly stepBytes: number;
  /** Bytes that the journal may take. */
  readonly quotaBytes: number;
  /** The figures of all sub-databases, the unnamed one first. */
  readonly stats: () => readonly TableStats[];
  /** Told once when the disk has no more room, and once when it has again. */
  readonly onShortage?: (error: Error | undefined) => void;
}

export class JournalSpace {
  readonly #options: SpaceOptions;
  #allocatedBytes = 0;
  #liveBytes = 0;
  #growing: Promise<void> | undefined;
  #shortage = false;

  constructor(options: SpaceOptions) {
    this.#options = options;
  }

  /** Growth is to be refused: too much is live, or the disk has refused more room. */
  get full(): boolean {
    return this.#shortage || this.#liveBytes > this.#options.quotaBytes * LIVE_SHARE;
  }

  /** Makes the first room; the journal opens when it is there. */
  async prepare(): Promise<void> {
    const { file, stepBytes } = this.#options;
    this.#allocatedBytes = (await stat(file)).size;
    const firstBytes = Math.min(stepBytes, FIRST_BYTES);
    if (this.#allocatedBytes - usedBytes(this.#options.stats()) < firstBytes / 2)
      await this.#grow(firstBytes);
    this.measure();
  }

  /** Looks at what is live, and starts to make room when little is left. */
  measure(): void {
    const stats = this.#options.stats();
    this.#liveBytes = liveBytes(stats);
    const { stepBytes } = this.#options;
    if (this.#growing !== undefined || this.#allocatedBytes - usedBytes(stats) >= stepBytes / 2) return;
    this.#growing = this.#grow(stepBytes).finally(() => {
      this.#growing = undefined;
    });
  }

  async close(): Promise<void> {
    await this.#growing;
  }

  async #grow(bytes: number): Promise<void> {
    let file: FileHandle | undefined;
    try {
      // Appending is the one way that never overwrites a page which the engine adds to the file at the same time.
      file = await open(this.#options.file, 'a');
      const zeros = Buffer.alloc(CHUNK_BYTES);
      for (let left = bytes; left > 0; left -= CHUNK_BYTES) {
        await file.write(zeros, 0, Math.min(left, CHUNK_BYTES));
      }
      await file.datasync();
      this.#report(undefined);
    } catch (error) {
      this.#report(error instanceof Error ? error : new Error(String(error)));
    } finally {
      await file?.close();
      this.#allocatedBytes = (await stat(this.#options.file)).size;
    }
  }

  #report(error: Error | undefined): void {
    const shortage = error !== undefined;
    if (shortage !== this.#shortage) this.#options.onShortage?.(error);
    this.#shortage = shortage;
  }
}

function usedBytes([whole]: readonly TableStats[]): number {
  return whole === undefined ? 0 : (whole.lastPageNumber + 1) * whole.pageSize;
}

/** Pages of all trees and the two meta pages; pages on the free list hold nothing. */
function liveBytes(stats: readonly TableStats[]): number {
  const [whole] = stats;
  if (whole === undefined) return 0;
  let pages = 2 + pagesOf(whole.free);
  for (const table of stats) pages += pagesOf(table);
  return pages * whole.pageSize;
}

function pagesOf({ treeBranchPageCount, treeLeafPageCount, overflowPages }: Pages): number {
  return treeBranchPageCount + treeLeafPageCount + overflowPages;
}
