/**
 * Disk space for uploads: free space less the reservations of uploads under way. An upload reserves its whole size until
 * it ends, although part of it is written already: too careful by at most the bytes in progress.
 */
import { statfs } from 'node:fs/promises';
import { GatewayError } from '../../../domain/errors.ts';
import type { StorageFaults } from './faults.ts';
import type { FileCalls } from './file-calls.ts';

/** Stays free: the journal may lie on the same disk, and on a full one it refuses what grows. */
const FREE_MARGIN_BYTES = 64 * 1024 * 1024;
/** An answer of the disk serves the reservations of this time. A reservation that it would refuse asks the disk again. */
const SAMPLE_MS = 100;

/** Bytes that the disk of a folder has free for this process. */
export type FreeSpaceProbe = () => Promise<number>;

function freeSpaceOf(folder: string): FreeSpaceProbe {
  return async () => {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  };
}

interface Sample {
  readonly atMs: number;
  readonly freeBytes: number;
  /** `#releasedBytes` before the disk was asked: what was released since then may have been written. */
  readonly releasedBytes: number;
}

export class FreeSpace {
  readonly #folder: string;
  readonly #faults: StorageFaults;
  readonly #calls: FileCalls;
  readonly #probe: FreeSpaceProbe;
  readonly #held = new Map<string, number>();
  readonly #elapsedMs: () => number;
  #heldBytes = 0;
  /** Bytes released since the start. */
  #releasedBytes = 0;
  #sample: Sample | undefined;

  constructor(
    folder: string,
    calls: FileCalls,
    faults: StorageFaults,
    probe: FreeSpaceProbe = freeSpaceOf(folder),
    elapsedMs: () => number = () => performance.now(),
  ) {
    this.#folder = folder;
    this.#faults = faults;
    this.#calls = calls;
    this.#probe = probe;
    this.#elapsedMs = elapsedMs;
  }

  /** Rejects with `StorageFull`; with `FileStorageFailed` or `TaskTimedOut` when the disk does not answer. */
  async reserve(holder: string, sizeBytes: number): Promise<void> {
    const sample = this.#sample;
    const isFresh = sample !== undefined && this.#elapsedMs() < sample.atMs + SAMPLE_MS;
    if (isFresh && this.#fits(holder, sizeBytes, sample)) this.#hold(holder, sizeBytes);
    else
      await this.#withSample((asked) => {
        if (!this.#fits(holder, sizeBytes, asked)) throw new GatewayError('StorageFull');
        this.#hold(holder, sizeBytes);
      });
  }

  #fits(holder: string, sizeBytes: number, sample: Sample): boolean {
    const others = this.#heldBytes - (this.#held.get(holder) ?? 0);
    return this.#freeNow(sample) - others >= sizeBytes;
  }

  #freeNow({ freeBytes, releasedBytes }: Sample): number {
    return freeBytes - FREE_MARGIN_BYTES - (this.#releasedBytes - releasedBytes);
  }

  /** Reserves in the tick of `#fits`, so that two requests cannot both get the last space. */
  #hold(holder: string, sizeBytes: number): void {
    this.release(holder);
    this.#held.set(holder, sizeBytes);
    this.#heldBytes += sizeBytes;
  }

  release(holder: string): void {
    const bytes = this.#held.get(holder) ?? 0;
    this.#heldBytes -= bytes;
    this.#releasedBytes += bytes;
    this.#held.delete(holder);
  }

  /** Reserves for the time of `work`. Rejects as `reserve` does. */
  async use<T>(holder: string, sizeBytes: number, work: () => Promise<T>): Promise<T> {
    await this.reserve(holder, sizeBytes);
    try {
      return await work();
    } finally {
      this.release(holder);
    }
  }

  /** Rejects with `FileStorageFailed`, `TaskTimedOut`. */
  freeBytes(): Promise<number> {
    return this.#withSample((sample) => Math.max(0, this.#freeNow(sample) - this.#heldBytes));
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  #withSample<T>(decide: (sample: Sample) => T): Promise<T> {
    const doing = `looking for free space in ${this.#folder}`;
    const calls = this.#calls;
    return this.#faults.guard(doing, async () => {
      const [atMs, releasedBytes] = [this.#elapsedMs(), this.#releasedBytes];
      const freeBytes = await calls.answer((late) => calls.run(this.#probe, late));
      const sample = { atMs, freeBytes, releasedBytes };
      // An older answer may come last.
      if (this.#sample === undefined || this.#sample.atMs < atMs) this.#sample = sample;
      return decide(sample);
    });
  }
}
