/**
 * Keeps actors in memory. Owns the live instances of each kind in the order of their last use: idle ones leave after a
 * while, and beyond the bound the one idle longest is evicted.
 */
import type { Clock } from '../../domain/time.ts';
import type { AnyKind } from './actor.ts';
import { Cell } from './cell.ts';
import { checkName, ID_MAX_BYTES, KIND_MAX_BYTES } from './journal/plain-data.ts';
import type { Journal } from './journal/port.ts';

/** A longer tail is written as a snapshot before the actor leaves, so that a replay stays short. */
const SNAPSHOT_TAIL = 20;
/** Instances examined when memory is needed; busy ones are skipped. */
const EVICTION_EXAMINED_MAX = 32;

interface PassivationOptions {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly liveActorsMax: number;
  /** Writes a snapshot with the next group, which ends with `snapshotStored`. */
  readonly snapshot: (cell: Cell) => void;
  /** Called with each instance that is loaded. */
  readonly onLoaded?: ((cell: Cell) => void) | undefined;
}

class KindResidents {
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
  readonly #residentsByKind = new Map<string, KindResidents>();
  passivated = 0;

  constructor(kinds: readonly AnyKind[], options: PassivationOptions) {
    this.#options = options;
    for (const kind of kinds) {
      checkName('the name of an actor kind', kind.kind, KIND_MAX_BYTES);
      if (this.#residentsByKind.has(kind.kind))
        throw new TypeError(`two actor kinds are called ${kind.kind}`);
      this.#residentsByKind.set(kind.kind, new KindResidents(kind));
    }
  }

  kindNamed(name: string): AnyKind | undefined {
    return this.#residentsByKind.get(name)?.kind;
  }

  /** The live instance, or undefined; does not count as use. */
  live(kindName: string, id: string): Cell | undefined {
    return this.#residentsByKind.get(kindName)?.cells.get(id);
  }

  /** The snapshot of an instance that was idle is on disk: it leaves unless it was used since. */
  snapshotStored(cell: Cell, lastUsedMs: number): void {
    if (!cell.busy && cell.lastUsedMs === lastUsedMs) this.drop(cell);
  }

  /** Takes an instance out of memory whatever it is doing. */
  drop(cell: Cell): void {
    const residents = this.#residentsByKind.get(cell.kind.kind);
    if (residents !== undefined) this.#leave(residents, cell);
  }

  /** The instance, replayed if it was not live. Throws what a replay throws. */
  acquire(kindName: string, id: string): Cell {
    const residents = this.#residentsByKind.get(kindName);
    if (residents === undefined) throw new TypeError(`there is no actor kind ${kindName}`);
    let cell = residents.cells.get(id);
    if (cell === undefined) {
      checkName('an actor id', id, ID_MAX_BYTES);
      cell = new Cell(residents.kind, id);
      cell.replay(this.#options.journal);
      this.#options.onLoaded?.(cell);
      residents.cells.set(cell.id, cell);
      residents.touch(cell);
      if (residents.cells.size > this.#options.liveActorsMax) this.#makeRoom(residents, cell);
    } else residents.touch(cell);
    cell.lastUsedMs = this.#options.clock();
    return cell;
  }

  get size(): number {
    let size = 0;
    for (const residents of this.#residentsByKind.values()) size += residents.cells.size;
    return size;
  }

  sizes(): Record<string, number> {
    return Object.fromEntries(
      [...this.#residentsByKind].map(([name, residents]) => [name, residents.cells.size]),
    );
  }

  *cells(): Iterable<Cell> {
    for (const residents of this.#residentsByKind.values()) yield* residents.cells.values();
  }

  /**
   * Removes actors from memory that were idle for their kind's time, or all idle ones. It examines at most
   * `examinedMax`. True when there may be more.
   */
  sweep(examinedMax: number, everyIdle = false): boolean {
    const nowMs = this.#options.clock();
    let examined = 0;
    for (const residents of this.#residentsByKind.values()) {
      const { idleMs } = residents.kind.limits;
      // Cells that stay move behind the newest one of now: the walk ends there.
      const last = residents.newest;
      let cell = residents.oldest;
      while (cell !== undefined && (everyIdle || nowMs - cell.lastUsedMs >= idleMs)) {
        if (examined === examinedMax) return true;
        examined += 1;
        const { newer }: Cell = cell;
        this.#passivate(residents, cell);
        cell = cell === last ? undefined : newer;
      }
    }
    return false;
  }

  /** True when the instance left; one with a long tail leaves when its snapshot is on disk. */
  #passivate(residents: KindResidents, cell: Cell): boolean {
    if (cell.busy) {
      // Counts as used, so that the next run examines others.
      cell.lastUsedMs = this.#options.clock();
      residents.touch(cell);
      return false;
    }
    if (cell.tail >= SNAPSHOT_TAIL && !cell.stale) {
      this.#options.snapshot(cell);
      if (cell.gate !== undefined) {
        residents.touch(cell);
        return false;
      }
    }
    this.#leave(residents, cell);
    return true;
  }

  #leave(residents: KindResidents, cell: Cell): void {
    if (residents.cells.get(cell.id) !== cell) return;
    residents.unlink(cell);
    residents.cells.delete(cell.id);
    this.passivated += 1;
  }

  #makeRoom(residents: KindResidents, fresh: Cell): void {
    let cell = residents.oldest;
    for (
      let examined = 0;
      examined < EVICTION_EXAMINED_MAX && cell !== undefined && cell !== fresh;
      examined += 1
    ) {
      const { newer }: Cell = cell;
      if (this.#passivate(residents, cell)) return;
      cell = newer;
    }
  }
}
