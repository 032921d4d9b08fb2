/**
 * Orders events of all modules by tick (spec 6.2 rule 3). An event waits for earlier ones that arrive later. At its
 * time it is released with all before it, so that no event waits longer than the window, whatever the ticks of other
 * modules are.
 */

/** Facts about an event that the window needs. */
export interface Waiting {
  readonly tick: bigint;
  /** Rises with every event: the order of equal ticks. */
  readonly arrival: number;
  readonly acceptedMs: number;
}

interface HeapEntry<Event extends Waiting> {
  readonly event: Event;
  taken: boolean;
}

export class ReorderWindow<Event extends Waiting> {
  /** A binary heap, the first in order on top. */
  readonly #heap: HeapEntry<Event>[] = [];
  /** In the order of arrival; those before `#first` have had their time, and are let go. */
  #arrived: (HeapEntry<Event> | undefined)[] = [];
  #first = 0;
  /** The last in order of those that are here although their time is over. */
  #barrier: Event | undefined;

  get size(): number {
    return this.#heap.length;
  }

  add(event: Event): void {
    const entry = { event, taken: false };
    this.#arrived.push(entry);
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || isBefore(parent.event, event)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = entry;
  }

  /** The next events in order whose turn it is; at most `limit`. */
  take(nowMs: number, windowMs: number, limit: number): Event[] {
    this.#expire(nowMs, windowMs);
    const taken: Event[] = [];
    while (taken.length < limit) {
      const next = this.#heap[0];
      if (next === undefined || this.#barrier === undefined || isBefore(this.#barrier, next.event)) {
        this.#barrier = undefined;
        break;
      }
      next.taken = true;
      taken.push(next.event);
      this.#removeTop();
    }
    return taken;
  }

  /** Milliseconds until there is something to take; 0 when there is, undefined when nothing waits. */
  waitMs(nowMs: number, windowMs: number): number | undefined {
    if (this.#heap.length === 0) return undefined;
    if (this.#barrier !== undefined) return 0;
    while (this.#arrived[this.#first]?.taken === true) this.#passOldest();
    const oldest = this.#arrived[this.#first]?.event;
    return oldest === undefined || isOver(oldest, nowMs, windowMs) ? 0 : oldest.acceptedMs + windowMs - nowMs;
  }

  #expire(nowMs: number, windowMs: number): void {
    for (;;) {
      const oldest = this.#arrived[this.#first];
      if (oldest === undefined || !(oldest.taken || isOver(oldest.event, nowMs, windowMs))) break;
      this.#passOldest();
      if (oldest.taken) continue;
      if (this.#barrier === undefined || isBefore(this.#barrier, oldest.event)) this.#barrier = oldest.event;
    }
    if (this.#first > 1_000 && this.#first * 2 > this.#arrived.length) {
      this.#arrived = this.#arrived.slice(this.#first);
      this.#first = 0;
    }
  }

  #passOldest(): void {
    this.#arrived[this.#first] = undefined;
    this.#first += 1;
  }

  #removeTop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      if (left === undefined) break;
      const right = heap[2 * at + 2];
      const rightFirst = right !== undefined && isBefore(right.event, left.event);
      const child = rightFirst ? right : left;
      if (isBefore(last.event, child.event)) break;
      heap[at] = child;
      at = 2 * at + (rightFirst ? 2 : 1);
    }
    heap[at] = last;
  }
}

/** A clock that was set back must not hold an event for longer. */
function isOver({ acceptedMs }: Waiting, nowMs: number, windowMs: number): boolean {
  return nowMs >= acceptedMs + windowMs || nowMs < acceptedMs;
}

function isBefore(one: Waiting, other: Waiting): boolean {
  return one.tick === other.tick ? one.arrival < other.arrival : one.tick < other.tick;
}
