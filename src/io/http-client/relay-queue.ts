/**
 * Assigns the connections to one module to relayed calls. A call is admitted within its caller's shares, its body is
 * buffered, and only then it takes a connection; calls with a complete body go first (decision 0056).
 */
import type { Holder } from '../../domain/limits/holders.ts';
import { Lease, type SharedBound, type ShareRefusal } from '../../domain/limits/shares.ts';

export interface QueuedRelay {
  readonly holder: Holder;
  /** Its body is complete, or it has none. */
  readonly isWhole: boolean;
  /** Belongs to the queue. */
  entry: QueueEntry | undefined;
  /** Called on admission: its body may be read. Calls `RelayQueue.ready` when enough of it is buffered. */
  gather(): void;
  /** A connection is assigned. */
  go(): void;
}

interface RelayQueueBounds {
  /** Admitted calls, whose bodies are being read. */
  readonly calls: SharedBound;
  /** Calls that wait for admission, their bodies unread. */
  readonly waiting: SharedBound;
  readonly connections: SharedBound;
}

/** The entry of a call, from `enter` to `leave`. */
export interface QueueEntry {
  /**
   * Undefined after `leave`. V8 chains the copies of a Set that grows and shrinks, and an old copy keeps its entries until a
   * full garbage collection. So the lists hold entries, which drop their calls.
   */
  member: QueuedRelay | undefined;
  /** A lease of `waiting` until admission, then of `calls`. */
  lease: Lease;
  isAdmitted: boolean;
  connection: Lease | undefined;
}

export class RelayQueue {
  readonly #bounds: RelayQueueBounds;
  /** Places in order of arrival, as in `#whole` and `#partial`. */
  readonly #waiting = new Set<QueueEntry>();
  readonly #whole = new Set<QueueEntry>();
  readonly #partial = new Set<QueueEntry>();
  /** Lists in the order in which they take connections. */
  readonly #ready = [this.#whole, this.#partial];

  constructor(bounds: RelayQueueBounds) {
    this.#bounds = bounds;
  }

  /** Admits or queues the call; returns the refusal when its caller's share of the queue is exhausted. */
  enter(member: QueuedRelay): ShareRefusal | undefined {
    const { calls, waiting } = this.#bounds;
    const admitted = calls.takeIfFree(member.holder);
    const lease = admitted ?? waiting.take(member.holder);
    if (!(lease instanceof Lease)) return lease;
    member.entry = { member, lease, isAdmitted: admitted !== undefined, connection: undefined };
    if (admitted === undefined) this.#waiting.add(member.entry);
    else member.gather();
    return undefined;
  }

  /** Enough of the body is buffered for a connection. */
  ready(member: QueuedRelay): void {
    const { entry, isWhole } = member;
    if (entry === undefined) return;
    // While no call waits, there is no order to keep.
    if (this.#whole.size + this.#partial.size === 0 && this.#connect(entry)) return;
    (isWhole ? this.#whole : this.#partial).add(entry);
    this.#assign();
  }

  /** Removes the call in any phase. */
  leave(member: QueuedRelay): void {
    const { entry } = member;
    if (entry === undefined) return;
    member.entry = undefined;
    entry.member = undefined;
    if (entry.connection === undefined) {
      this.#waiting.delete(entry);
      for (const queue of this.#ready) queue.delete(entry);
    }
    entry.lease.release();
    entry.connection?.release();
    if (entry.isAdmitted) this.#admit();
    this.#assign();
  }

  /** Admits queued calls in order, skipping callers whose share is exhausted. */
  #admit(): void {
    for (const entry of this.#waiting) {
      const { member } = entry;
      const lease = member && this.#bounds.calls.takeIfFree(member.holder);
      if (member === undefined || lease === undefined) continue;
      this.#waiting.delete(entry);
      entry.lease.release();
      entry.lease = lease;
      entry.isAdmitted = true;
      member.gather();
    }
  }

  #assign(): void {
    for (const queue of this.#ready)
      if (queue.size > 0) for (const entry of queue) this.#connect(entry, queue);
  }

  /** False: the caller's share of the connections is exhausted. */
  #connect(entry: QueueEntry, queue?: Set<QueueEntry>): boolean {
    const { member } = entry;
    const lease = member && this.#bounds.connections.takeIfFree(member.holder);
    if (member === undefined || lease === undefined) return false;
    queue?.delete(entry);
    entry.connection = lease;
    member.go();
    return true;
  }
}
