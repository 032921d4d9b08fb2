/**
 * Memory through which uploads go: pieces that the main thread fills and a worker thread writes, without a copy between
 * them. Bounded for all uploads together; whoever gets none writes by itself (receiver.ts).
 */

/** Measured: 512 KB, four in flight, is the fastest (files.md "The shape that is fast"). */
export const SLAB_BYTES = 512 * 1024;
/** 48 MiB in all: within the 64 MiB that 60 uploads may take. */
const SLABS_MAX = 96;
export interface SlabCounters {
  readonly lent: number;
  /** Lent or idle. */
  readonly made: number;
  /** How often there was none. */
  readonly missed: number;
}

/**
 * A slab that was made once is kept for good: shared memory that is let go is freed only when every thread that saw it
 * happens to collect, and V8 does not count it towards that. 60 uploads at once took 1.8 GB when idle slabs were let go.
 */
export class Slabs {
  readonly #max: number;
  readonly #idle: SharedArrayBuffer[] = [];
  #lent = 0;
  #made = 0;
  #missed = 0;

  constructor(max = SLABS_MAX) {
    this.#max = max;
  }

  /** Undefined when all are lent. What an earlier upload left in it is still there. */
  take(): SharedArrayBuffer | undefined {
    if (this.#lent >= this.#max) {
      this.#missed += 1;
      return undefined;
    }
    this.#lent += 1;
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    this.#made += 1;
    return new SharedArrayBuffer(SLAB_BYTES);
  }

  /** Once, when no thread has it any more. */
  giveBack(slab: SharedArrayBuffer): void {
    this.#lent -= 1;
    this.#idle.push(slab);
  }

  counters(): SlabCounters {
    return { lent: this.#lent, made: this.#made, missed: this.#missed };
  }
}
