/**
 * Space for the journal: the quota, and disk space reserved ahead. Free blocks of the file are written as zeros, so
 * that a full disk is detected here and refused, not inside the engine, whose error path ends the process.
 */
import { type FileHandle, open, stat } from 'node:fs/promises';
import type { Schedule } from '../runtime-context.ts';

const CHUNK_BYTES = 1024 * 1024;
/** Zeros on their way to the disk at a time: a commit on the same file waits for all of them. */
const UNSYNCED_BYTES = 4 * CHUNK_BYTES;

/** Share of the quota that live data may take before growth is refused; the rest is for what frees space. */
const LIVE_SHARE = 0.7;
/**
 * Interval between checks for space while the disk is short: a running gateway need not write to notice that it has
 * some.
 */
const RETRY_MS = 1_000;
/** The first room, made before the journal opens: later steps are as large as the journal has become. */
const FIRST_BYTES = 16 * CHUNK_BYTES;

interface Pages {
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
}
/** Statistics of one sub-database; `root` and `free` concern the whole file. */
export interface TableStats extends Pages {
  readonly pageSize: number;
  readonly entryCount: number;
  readonly root: Pages;
  readonly free: Pages;
}

interface SpaceOptions {
  readonly file: string;
  /** Most bytes added at a time; more are added when less than half of a step is left. */
  readonly stepBytes: number;
  /** Bytes that the journal may take. */
  readonly quotaBytes: number;
  /** The figures of the unnamed database, which name the pages of the whole file. */
  readonly whole: () => TableStats;
  /** `lastPageNumber` of the last commit alone: 3 us where all figures take 50. */
  readonly lastPage: () => number;
  /** The figures of the sub-databases. */
  readonly tables: () => readonly TableStats[];
  /** Called once when the disk has no more space, and once when it has again. */
  readonly onShortage?: (error: Error | undefined) => void;
  /** Calls back after so many milliseconds, unless the returned function was called. */
  readonly timer: Schedule['timer'];
}

export class JournalSpace {
  readonly #options: SpaceOptions;
  #allocatedBytes = 0;
  #pageBytes = 0;
  #liveBytes = 0;
  #growing: Promise<void> | undefined;
  #shortage = false;
  #stopRetry: () => void = () => undefined;

  constructor(options: SpaceOptions) {
    this.#options = options;
  }

  /** Growth is to be refused: too much is live, or the disk has refused more room. */
  get full(): boolean {
    return this.#shortage || this.#liveBytes > this.#options.quotaBytes * LIVE_SHARE;
  }

  /** Makes the first room; the journal opens when it is there. */
  async prepare(): Promise<void> {
    this.#allocatedBytes = (await stat(this.#options.file)).size;
    this.#pageBytes = this.#options.whole().pageSize;
    const used = this.#usedBytes();
    if (this.#isShort(used)) await this.#grow(this.#stepBytes(used));
    this.#retryWhileShort();
    this.measure();
  }

  /** Starts to make room when little is left. Cheap: to be called after each commit. */
  watch(lastPage = this.#options.lastPage()): void {
    if (this.#growing !== undefined) return;
    const used = this.#usedBytes(lastPage);
    if (!this.#isShort(used)) {
      // A part of a step was written before the disk was full, and it is enough.
      if (this.#shortage) this.#report(undefined);
      return;
    }
    this.#growing = this.#grow(this.#stepBytes(used)).finally(() => {
      this.#growing = undefined;
      this.#retryWhileShort();
    });
  }

  /** Measures the live data. */
  measure(): void {
    this.#liveBytes = liveBytes(this.#options.whole(), this.#options.tables());
  }

  #usedBytes(lastPage = this.#options.lastPage()): number {
    return (lastPage + 1) * this.#pageBytes;
  }

  /** A step is as large as the journal: a young one does not write zeros for minutes. */
  #stepBytes(used: number): number {
    return Math.min(this.#options.stepBytes, Math.max(FIRST_BYTES, used));
  }

  #isShort(used: number): boolean {
    return this.#allocatedBytes - used < this.#stepBytes(used) / 2;
  }

  async close(): Promise<void> {
    await this.#growing;
    this.#stopRetry();
  }

  async #grow(bytes: number): Promise<void> {
    let file: FileHandle | undefined;
    try {
      // Appending is the one way that never overwrites a page which the engine adds to the file at the same time.
      file = await open(this.#options.file, 'a');
      const zeros = Buffer.alloc(CHUNK_BYTES);
      for (let left = bytes; left > 0; left -= CHUNK_BYTES) {
        await file.write(zeros, 0, Math.min(left, CHUNK_BYTES));
        if (left % UNSYNCED_BYTES === 0) await file.datasync();
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

  #retryWhileShort(): void {
    this.#stopRetry();
    if (this.#shortage) this.#stopRetry = this.#options.timer(RETRY_MS, () => this.watch());
  }

  #report(error: Error | undefined): void {
    const shortage = error !== undefined;
    if (shortage !== this.#shortage) this.#options.onShortage?.(error);
    this.#shortage = shortage;
  }
}

/** Bytes that the rows of one sub-database take. */
export function tableBytes(table: TableStats): number {
  return pagesOf(table) * table.pageSize;
}

/** Pages of all trees and the two meta pages; pages on the free list hold nothing. */
function liveBytes(whole: TableStats, tables: readonly TableStats[]): number {
  let pages = 2 + pagesOf(whole) + pagesOf(whole.free);
  for (const table of tables) pages += pagesOf(table);
  return pages * whole.pageSize;
}

function pagesOf({ treeBranchPageCount, treeLeafPageCount, overflowPages }: Pages): number {
  return treeBranchPageCount + treeLeafPageCount + overflowPages;
}
