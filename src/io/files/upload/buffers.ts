/**
 * Shared memory of uploads: the main thread fills a buffer and a worker thread writes it, without a copy in between.
 * Bounded for all uploads together. An upload that gets no buffer writes on the main thread (body-writer.ts).
 */

/** 512 KB with four in flight is the fastest of the measured sizes. */
export const SHARED_BUFFER_BYTES = 512 * 1024;
/** 56 MiB in all: with the prebuffered bodies, the 64 MiB that 60 uploads may take. */
const SHARED_BUFFERS_MAX = 112;

/** Has a single owner from `take` to `giveBack`. */
export class SharedBuffer {
  readonly memory = new SharedArrayBuffer(SHARED_BUFFER_BYTES);
  readonly #view = Buffer.from(this.memory);
  #filledBytes = 0;

  get filledBytes(): number {
    return this.#filledBytes;
  }

  get isFull(): boolean {
    return this.#filledBytes === SHARED_BUFFER_BYTES;
  }

  /** Copies from the beginning of `bytes` (not empty) as much as fits; returns the number of bytes. */
  fill(bytes: Uint8Array): number {
    const from = this.#filledBytes;
    this.#filledBytes = Math.min(from + bytes.length, SHARED_BUFFER_BYTES);
    const taken = this.#filledBytes - from;
    // `set` and `copy` into shared memory go byte by byte unless both sides are aligned alike: ten times slower.
    this.#view.fill(taken === bytes.length ? bytes : bytes.subarray(0, taken), from, this.#filledBytes);
    return taken;
  }

  clear(): this {
    this.#filledBytes = 0;
    return this;
  }
}

export interface SharedBufferCounters {
  readonly lent: number;
  /** Lent or idle. */
  readonly made: number;
  /** Calls of `take` when all were lent. */
  readonly missed: number;
}

/**
 * Buffers are never released: shared memory is freed only after every thread that saw it has collected garbage, and V8
 * does not count it towards that. 60 parallel uploads took 1.8 GB when idle buffers were released.
 */
export class SharedBuffers {
  readonly #max: number;
  readonly #idle: SharedBuffer[] = [];
  #lent = 0;
  #made = 0;
  #missed = 0;
  #users = 0;

  constructor(max = SHARED_BUFFERS_MAX) {
    this.#max = max;
  }

  /** Registers a user of the buffers; call `leave` once at its end. */
  join(): void {
    this.#users += 1;
  }

  leave(): void {
    this.#users -= 1;
  }

  /** Returns how many of `wanted` buffers each user may have at the workers while it fills another one. At least 1. */
  share(wanted: number): number {
    return Math.max(1, Math.min(wanted, Math.floor(this.#max / this.#users) - 1));
  }

  /** Empty. Undefined when all are lent. */
  take(): SharedBuffer | undefined {
    if (this.#lent >= this.#max) {
      this.#missed += 1;
      return undefined;
    }
    this.#lent += 1;
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle.clear();
    this.#made += 1;
    return new SharedBuffer();
  }

  /** Call once, when no thread uses it any more. */
  giveBack(sharedBuffer: SharedBuffer): void {
    this.#lent -= 1;
    this.#idle.push(sharedBuffer);
  }

  counters(): SharedBufferCounters {
    return { lent: this.#lent, made: this.#made, missed: this.#missed };
  }
}
