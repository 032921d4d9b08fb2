/**
 * Which nodes have stopped: those whose counter of renewals has stood still for a whole lease by this node's own
 * monotonic clock. What another node admits ends before that, because it counts from before its last renewal.
 */
import type { NodeState } from './port.ts';

interface Seen {
  readonly renewals: number;
  readonly sinceMs: number;
}

export class Expeller {
  readonly #leaseMs: number;
  #seen = new Map<number, Seen>();
  #readMs = Number.NEGATIVE_INFINITY;

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** Takes the counters as read at `nowMs`; the nodes that are to be expelled. */
  read(others: readonly NodeState[], nowMs: number): readonly NodeState[] {
    // After a lease without an answer the engine was away, for all nodes perhaps: their time begins anew.
    if (nowMs - this.#readMs >= this.#leaseMs) this.#seen.clear();
    this.#readMs = nowMs;
    const seen = new Map<number, Seen>();
    const stopped: NodeState[] = [];
    for (const other of others) {
      const before = this.#seen.get(other.node);
      const present =
        before?.renewals === other.renewals ? before : { renewals: other.renewals, sinceMs: nowMs };
      seen.set(other.node, present);
      if (nowMs - present.sinceMs >= this.#leaseMs) stopped.push(other);
    }
    this.#seen = seen;
    return stopped;
  }
}
