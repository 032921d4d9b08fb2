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

interface QueueEntry {
  /** A lease of `waiting` until admission, then of `calls`. */
  lease: Lease;
  isAdmitted: boolean;
  connection: Lease | undefined;
}

export class RelayQueue {
  readonly #bounds: RelayQueueBounds;
  readonly #entries = new Map<QueuedRelay, QueueEntry>();
  /** In order of arrival, as `#whole` and `#partial`. */
  readonly #waiting = new Set<QueuedRelay>();
  readonly #whole = new Set<QueuedRelay>();
  readonly #partial = new Set<QueuedRelay>();

  constructor(bounds: RelayQueueBounds) {
    this.#bounds = bounds;
  }

  /** Admits or queues the call; returns the refusal when its caller's share of the queue is exhausted. */
  enter(member: QueuedRelay): ShareRefusal | undefined {
    const { calls, waiting } = this.#bounds;
    const admitted = calls.fits(member.holder) ? calls.take(member.holder) : undefined;
    if (admitted instanceof Lease) {
      this.#entries.set(member, { lease: admitted, isAdmitted: true, connection: undefined });
      member.gather();
      return undefined;
    }
    const lease = waiting.take(member.holder);
    if (!(lease instanceof Lease)) return lease;
    this.#entries.set(member, { lease, isAdmitted: false, connection: undefined });
    this.#waiting.add(member);
    return undefined;
  }

  /** Enough of the body is buffered for a connection. */
  ready(member: QueuedRelay): void {
    if (!this.#entries.has(member)) return;
    (member.isWhole ? this.#whole : this.#partial).add(member);
    this.#assign();
  }

  /** Removes the call in any phase. */
  leave(member: QueuedRelay): void {
    const entry = this.#entries.get(member);
    if (entry === undefined) return;
    this.#entries.delete(member);
    for (const queue of [this.#waiting, this.#whole, this.#partial]) queue.delete(member);
    entry.lease.release();
    entry.connection?.release();
    if (entry.isAdmitted) this.#admit();
    this.#assign();
  }

  /** Admits queued calls in order, skipping callers whose share is exhausted. */
  #admit(): void {
    const { calls } = this.#bounds;
    for (const member of this.#waiting) {
      const entry = this.#entries.get(member);
      const lease = calls.fits(member.holder) ? calls.take(member.holder) : undefined;
      if (entry === undefined || !(lease instanceof Lease)) continue;
      this.#waiting.delete(member);
      entry.lease.release();
      entry.lease = lease;
      entry.isAdmitted = true;
      member.gather();
    }
  }

  #assign(): void {
    const { connections } = this.#bounds;
    for (const queue of [this.#whole, this.#partial]) {
      for (const member of queue) {
        const entry = this.#entries.get(member);
        const lease = connections.fits(member.holder) ? connections.take(member.holder) : undefined;
        if (entry === undefined || !(lease instanceof Lease)) continue;
        queue.delete(member);
        entry.connection = lease;
        member.go();
      }
    }
  }
}
