/**
 * Ids that stay unique over restarts, also with the clock set back: a floor above everything handed out is kept on
 * disk, one second ahead, and a restart begins there.
 */
import { TickSource } from '../../domain/ids.ts';

/** How far ahead the floor is kept: 1,000 ms in units of an id (domain/ids.ts). */
const RESERVE = 1_000n << 20n;

export class IdGenerator {
  readonly #source: TickSource;
  readonly #reserve: (floor: bigint) => void;
  #reserved: bigint;

  /** `floor` is what the journal holds; `reserve` writes a new one with the next group. */
  constructor(floor: bigint, reserve: (floor: bigint) => void) {
    this.#source = new TickSource(floor);
    this.#reserved = floor;
    this.#reserve = reserve;
  }

  next(nowMs: number): bigint {
    const id = this.#source.next(nowMs);
    if (id >= this.#reserved) {
      this.#reserved = id + RESERVE;
      this.#reserve(this.#reserved);
    }
    return id;
  }
}
