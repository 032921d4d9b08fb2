/**
 * Send buffers of downloads: 64 of 512 KB, then 2,048 of 64 KB, then answers are refused. An answer keeps its buffers,
 * so memory is bounded when clients do not read. While few are lent, a long answer has two and reads ahead.
 */
import { pageMemory } from '../../../domain/page-memory.ts';

/** Bytes of one read and one write. 512 KB was the fastest size (docs/optimizations.md). */
export const LARGE_BYTES = 512 * 1024;
export const SMALL_BYTES = 64 * 1024;
const LARGE_MAX = 64;
const SMALL_MAX = 2_048;
/** Unused buffers of each size that are kept for the next answer. */
const IDLE_MAX = 16;

export interface SendBufferCounters {
  /** Buffers that are lent. */
  readonly large: number;
  readonly small: number;
  /** Answers that have buffers. */
  readonly answers: number;
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

  /** One or two buffers of one size for an answer of that length; undefined when all are lent. */
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

  /** Call once, when neither a read nor the socket uses one of them. */
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
