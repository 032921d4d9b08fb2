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

/** Bytes that the disk of a folder has free for this process. */
export type FreeSpaceProbe = () => Promise<number>;

function freeSpaceOf(folder: string): FreeSpaceProbe {
  return async () => {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  };
}

export class FreeSpace {
  readonly #folder: string;
  readonly #faults: StorageFaults;
  readonly #calls: FileCalls;
  readonly #probe: FreeSpaceProbe;
  readonly #held = new Map<string, number>();
  #heldBytes = 0;

  constructor(
    folder: string,
    calls: FileCalls,
    faults: StorageFaults,
    probe: FreeSpaceProbe = freeSpaceOf(folder),
  ) {
    this.#folder = folder;
    this.#faults = faults;
    this.#calls = calls;
    this.#probe = probe;
  }

  /** Rejects with `StorageFull`; with `FileStorageFailed` or `TaskTimedOut` when the disk does not answer. */
  reserve(holder: string, sizeBytes: number): Promise<void> {
    return this.#withFreeBytes((free) => this.#hold(holder, sizeBytes, free));
  }

  /** Synchronous, so that two requests cannot both get the last space. */
  #hold(holder: string, sizeBytes: number, free: number): void {
    const before = this.#held.get(holder) ?? 0;
    if (free - FREE_MARGIN_BYTES - (this.#heldBytes - before) < sizeBytes)
      throw new GatewayError('StorageFull');
    this.#held.set(holder, sizeBytes);
    this.#heldBytes += sizeBytes - before;
  }

  release(holder: string): void {
    this.#heldBytes -= this.#held.get(holder) ?? 0;
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
    return this.#withFreeBytes((free) => Math.max(0, free - FREE_MARGIN_BYTES - this.#heldBytes));
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  #withFreeBytes<T>(decide: (freeBytes: number) => T): Promise<T> {
    const doing = `looking for free space in ${this.#folder}`;
    const calls = this.#calls;
    return this.#faults.guard(doing, async () =>
      decide(await calls.answer((late) => calls.run(this.#probe, late))),
    );
  }
}
