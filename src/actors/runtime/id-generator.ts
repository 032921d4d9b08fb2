/**
 * Ids that stay unique over restarts, also with the clock set back: a floor above everything handed out is kept on
 * disk, one second ahead, and a restart begins there.
 */
import { NODES_MAX, TickSource, tickAt } from '../../domain/ids.ts';
import type { NewestIds } from './cluster-view.ts';
import { floorKey, type Journal } from './journal/port.ts';

/**
 * An id of a node is above those that it has applied of others, unless their clocks are further ahead: two nodes whose
 * clocks are within the warned 500 ms of the database's differ by at most so much. Milliseconds.
 */
const CLOCKS_APART_MAX_MS = 1_000;
/** Distance that the floor is kept ahead: 1,000 ms in units of an id (domain/ids.ts). */
const RESERVE = 1_000n << 20n;

export class IdGenerator {
  readonly #source: TickSource;
  readonly #reserve: (floor: bigint) => void;
  readonly #newest: NewestIds | undefined;
  #reserved: bigint;

  /**
   * `floor` is what the journal holds; `reserve` writes a new one with the next group. `node`: see `TickSource`. `newest`:
   * of the nodes of a cluster.
   */
  constructor(floor: bigint, reserve: (floor: bigint) => void, node?: number, newest?: NewestIds) {
    this.#source = new TickSource(floor, node);
    this.#reserved = floor;
    this.#reserve = reserve;
    this.#newest = newest;
  }

  next(nowMs: number): bigint {
    const newest = this.#newest;
    if (newest !== undefined && newest.applied > this.#source.last) {
      const highest = tickAt(nowMs + CLOCKS_APART_MAX_MS);
      this.#source.raise(newest.applied < highest ? newest.applied : highest);
    }
    const id = this.#source.next(nowMs);
    if (newest !== undefined) newest.given = id;
    if (id >= this.#reserved) {
      this.#reserved = id + RESERVE;
      this.#reserve(this.#reserved);
    }
    return id;
  }
}

/**
 * The floor of a node is its own or that of the single machine before it, whichever is higher: nodes share no id. A
 * single machine takes ids of all numbers, so it begins above all nodes.
 */
export function storedFloor(journal: Pick<Journal, 'meta'>, node: number | undefined): bigint {
  const nodes = node === undefined ? Array.from({ length: NODES_MAX }, (_, each) => each) : [node];
  const floors = [undefined, ...nodes].map((each) => floorOf(journal.meta(floorKey(each))));
  return floors.reduce((most, floor) => (floor > most ? floor : most));
}

function floorOf(stored: unknown): bigint {
  return typeof stored === 'bigint' ? stored : BigInt(typeof stored === 'number' ? stored : 0);
}
