/**
 * Which actors are in memory. Owns the live instances of each kind in the order of their last use: idle ones leave
 * after a while, and beyond the bound the one idle longest gives way.
 */
import type { Clock } from '../../domain/time.ts';
import type { AnyKind } from './actor.ts';
import { Cell } from './cell.ts';
import { checkName, ID_MAX_BYTES, KIND_MAX_BYTES } from './journal/plain-data.ts';
import type { Journal } from './journal/port.ts';

/** A longer tail is written as a snapshot before the actor leaves, so that a replay stays short. */
const SNAPSHOT_TAIL = 20;
/** Instances examined when memory is needed; busy ones are skipped. */
const EVICTION_LOOKS = 32;

interface PassivationOptions {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly liveActorsMax: number;
  /** Writes a snapshot with the next group. */
  readonly snapshot: (cell: Cell) => void;
}

/** The live instances of one kind. */
class House {
  readonly kind: AnyKind;
  readonly cells = new Map<string, Cell>();
  oldest: Cell | undefined;
  newest: Cell | undefined;

  constructor(kind: AnyKind) {
    this.kind = kind;
  }

  touch(cell: Cell): void {
    if (this.newest === cell) return;
    this.unlink(cell);
    cell.older = this.newest;
    if (this.newest !== undefined) this.newest.newer = cell;
    this.newest = cell;
    this.oldest ??= cell;
  }

  unlink(cell: Cell): void {
    if (cell.older !== undefined) cell.older.newer = cell.newer;
    if (cell.newer !== undefined) cell.newer.older = cell.older;
    if (this.oldest === cell) this.oldest = cell.newer;
    if (this.newest === cell) this.newest = cell.older;
    cell.older = undefined;
    cell.newer = undefined;
  }
}

export class Passivation {
  readonly #options: PassivationOptions;
  readonly #houses = new Map<string, House>();
  passivated = 0;

  constructor(kinds: readonly AnyKind[], options: PassivationOptions) {
    this.#options = options;
    for (const kind of kinds) {
      checkName('the name of an actor kind', kind.kind, KIND_MAX_BYTES);
      if (this.#houses.has(kind.kind)) throw new TypeError(`two actor kinds are called ${kind.kind}`);
      this.#houses.set(kind.kind, new House(kind));
    }
  }

  kindNamed(name: string): AnyKind | undefined {
    return this.#houses.get(name)?.kind;
  }

  /** The live instance, or undefined; does not count as use. */
  live(kindName: string, id: string): Cell | undefined {
    return this.#houses.get(kindName)?.cells.get(id);
  }

  /** The instance, replayed if it was not live. Throws what a replay throws. */
  acquire(kindName: string, id: string): Cell {
    const house = this.#houses.get(kindName);
    if (house === undefined) throw new TypeError(`there is no actor kind ${kindName}`);
    let cell = house.cells.get(id);
    if (cell === undefined) {
      checkName('an actor id', id, ID_MAX_BYTES);
      cell = new Cell(house.kind, id);
      cell.replay(this.#options.journal);
      house.cells.set(cell.id, cell);
      house.touch(cell);
      if (house.cells.size > this.#options.liveActorsMax) this.#makeRoom(house, cell);
    } else house.touch(cell);
    cell.lastUsedMs = this.#options.clock();
    return cell;
  }

  get size(): number {
    let size = 0;
    for (const house of this.#houses.values()) size += house.cells.size;
    return size;
  }

  sizes(): Record<string, number> {
    return Object.fromEntries([...this.#houses].map(([name, house]) => [name, house.cells.size]));
  }

  *cells(): Iterable<Cell> {
    for (const house of this.#houses.values()) yield* house.cells.values();
  }

  /**
   * Removes actors from memory that were idle for their kind's time, or all idle ones. It examines at most
   * `looksMax`. True when there may be more.
   */
  sweep(looksMax: number, everyIdle = false): boolean {
    const nowMs = this.#options.clock();
    let looks = 0;
    for (const house of this.#houses.values()) {
      const { idleMs } = house.kind.limits;
      // Cells that stay move behind the newest one of now: the walk ends there.
      const last = house.newest;
      let cell = house.oldest;
      while (cell !== undefined && (everyIdle || nowMs - cell.lastUsedMs >= idleMs)) {
        if (looks === looksMax) return true;
        looks += 1;
        const { newer }: Cell = cell;
        this.#passivate(house, cell);
        cell = cell === last ? undefined : newer;
      }
    }
    return false;
  }

  /** True when the instance left; one with a long tail leaves when its snapshot is on disk. */
  #passivate(house: House, cell: Cell): boolean {
    if (cell.busy) {
      // Counts as used, so that the next run examines others.
      cell.lastUsedMs = this.#options.clock();
      house.touch(cell);
      return false;
    }
    if (cell.tail >= SNAPSHOT_TAIL && !cell.stale) {
      this.#options.snapshot(cell);
      const { gate, lastUsedMs } = cell;
      if (gate !== undefined) {
        house.touch(cell);
        gate.effects.push(() => {
          if (!cell.busy && cell.lastUsedMs === lastUsedMs) this.#leave(house, cell);
        });
        return false;
      }
    }
    this.#leave(house, cell);
    return true;
  }

  #leave(house: House, cell: Cell): void {
    if (house.cells.get(cell.id) !== cell) return;
    house.unlink(cell);
    house.cells.delete(cell.id);
    this.passivated += 1;
  }

  #makeRoom(house: House, fresh: Cell): void {
    let cell = house.oldest;
    for (let looks = 0; looks < EVICTION_LOOKS && cell !== undefined && cell !== fresh; looks += 1) {
      const { newer }: Cell = cell;
      if (this.#passivate(house, cell)) return;
      cell = newer;
    }
  }
}
