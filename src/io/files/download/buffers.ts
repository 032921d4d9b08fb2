/**
 * Buffers through which files leave. An answer has the same for its whole length, so what clients that do not read can
 * hold is bounded: 64 of 512 KB, the size that is fast, then 2,048 of 64 KB, then no further answer is begun. While few
 * are out a long answer has two, and one is filled while the other leaves.
 */
import { pageMemory } from '../../../domain/page-memory.ts';

/** Bytes of one read and one write. Measured: 512 KB is the fastest (files.md "The shape that is fast"). */
export const LARGE_BYTES = 512 * 1024;
export const SMALL_BYTES = 64 * 1024;
const LARGE_MAX = 64;
const SMALL_MAX = 2_048;
/** Of each size, kept for the next answer while nobody uses them. */
const IDLE_MAX = 16;

export interface SendBufferCounters {
  /** Buffers that are out. */
  readonly large: number;
  readonly small: number;
  /** Answers that have them. */
  readonly answers: number;
  /** Answers that were not begun. */
  readonly refused: number;
}

interface SendBufferOptions {
  readonly largeMax?: number;
  readonly smallMax?: number;
}

interface BufferPool {
  readonly sizeBytes: number;
  readonly lentMax: number;
  readonly idle: Buffer[];
  lent: number;
}

export class SendBuffers {
  readonly #large: BufferPool;
  readonly #small: BufferPool;
  #answers = 0;
  #refused = 0;

  constructor({ largeMax = LARGE_MAX, smallMax = SMALL_MAX }: SendBufferOptions = {}) {
    this.#large = { sizeBytes: LARGE_BYTES, lentMax: largeMax, idle: [], lent: 0 };
    this.#small = { sizeBytes: SMALL_BYTES, lentMax: smallMax, idle: [], lent: 0 };
  }

  /** One or two buffers of one size for an answer of that length; undefined when all are out. */
  lend(lengthBytes: number): readonly Buffer[] | undefined {
    const large = lengthBytes > SMALL_BYTES ? take(this.#large) : undefined;
    const buffer = large ?? take(this.#small);
    if (buffer === undefined) {
      this.#refused += 1;
      return undefined;
    }
    this.#answers += 1;
    const plenty = large !== undefined && this.#large.lent < this.#large.lentMax / 2;
    const second = plenty && lengthBytes > LARGE_BYTES ? take(this.#large) : undefined;
    return second === undefined ? [buffer] : [buffer, second];
  }

  /** Once, when neither a read nor the socket has one of them any more. */
  giveBack(buffers: readonly Buffer[]): void {
    this.#answers -= 1;
    for (const buffer of buffers) {
      const pool = buffer.length === LARGE_BYTES ? this.#large : this.#small;
      pool.lent -= 1;
      if (pool.idle.length < IDLE_MAX) pool.idle.push(buffer);
    }
  }

  counters(): SendBufferCounters {
    return {
      large: this.#large.lent,
      small: this.#small.lent,
      answers: this.#answers,
      refused: this.#refused,
    };
  }
}

function take(pool: BufferPool): Buffer | undefined {
  if (pool.lent >= pool.lentMax) return undefined;
  pool.lent += 1;
  return pool.idle.pop() ?? pageMemory(pool.sizeBytes);
}
