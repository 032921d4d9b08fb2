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
  place: QueuePlace | undefined;
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
  /** Connections in use. */
  readonly connections: SharedBound;
}

/** The place of a call, from `enter` to `leave`. */
export interface QueuePlace {
  /**
   * Undefined after `leave`. V8 chains the copies of a Set that grows and shrinks, and an old copy keeps its entries until a
   * full garbage collection. So the lists hold places, which let go of their calls.
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
  readonly #waiting = new Set<QueuePlace>();
  readonly #whole = new Set<QueuePlace>();
  readonly #partial = new Set<QueuePlace>();
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
    member.place = { member, lease, isAdmitted: admitted !== undefined, connection: undefined };
    if (admitted === undefined) this.#waiting.add(member.place);
    else member.gather();
    return undefined;
  }

  /** Enough of the body is buffered for a connection. */
  ready(member: QueuedRelay): void {
    const { place, isWhole } = member;
    if (place === undefined) return;
    // While no call waits, there is no order to keep.
    if (this.#whole.size + this.#partial.size === 0 && this.#connect(place)) return;
    (isWhole ? this.#whole : this.#partial).add(place);
    this.#assign();
  }

  /** Removes the call in any phase. */
  leave(member: QueuedRelay): void {
    const { place } = member;
    if (place === undefined) return;
    member.place = undefined;
    place.member = undefined;
    if (place.connection === undefined) {
      this.#waiting.delete(place);
      for (const queue of this.#ready) queue.delete(place);
    }
    place.lease.release();
    place.connection?.release();
    if (place.isAdmitted) this.#admit();
    this.#assign();
  }

  /** Admits queued calls in order, skipping callers whose share is exhausted. */
  #admit(): void {
    for (const place of this.#waiting) {
      const { member } = place;
      const lease = member && this.#bounds.calls.takeIfFree(member.holder);
      if (member === undefined || lease === undefined) continue;
      this.#waiting.delete(place);
      place.lease.release();
      place.lease = lease;
      place.isAdmitted = true;
      member.gather();
    }
  }

  #assign(): void {
    for (const queue of this.#ready)
      if (queue.size > 0) for (const place of queue) this.#connect(place, queue);
  }

  /** False: the caller's share of the connections is exhausted. */
  #connect(place: QueuePlace, queue?: Set<QueuePlace>): boolean {
    const { member } = place;
    const lease = member && this.#bounds.connections.takeIfFree(member.holder);
    if (member === undefined || lease === undefined) return false;
    queue?.delete(place);
    place.connection = lease;
    member.go();
    return true;
  }
}
