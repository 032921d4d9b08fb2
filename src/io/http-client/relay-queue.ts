/**
 * The order in which relayed calls get the connections to one module. A call is admitted within its caller's shares, then
 * its body is gathered, and only when enough of it is here it takes a connection: whole calls go first.
 */
import type { Holder } from '../../domain/limits/holders.ts';
import { Lease, type SharedBound, type ShareRefusal } from '../../domain/limits/shares.ts';

export interface QueuedRelay {
  readonly holder: Holder;
  /** All of its body is here, or it has none. */
  readonly isWhole: boolean;
  /** It is admitted: its body may be read. Calls `RelayQueue.ready` when enough of it is here, at once or later. */
  gather(): void;
  /** It has a connection to take. */
  go(): void;
}

export interface RelayQueueBounds {
  /** Admitted calls, whose bodies are read. */
  readonly calls: SharedBound;
  /** Calls that wait to be admitted, their bodies unread. */
  readonly waiting: SharedBound;
  /** Connections in use. */
  readonly connections: SharedBound;
}

interface QueueEntry {
  /** Of `calls`, or of `waiting` until it is admitted. */
  lease: Lease;
  isAdmitted: boolean;
  connection: Lease | undefined;
}

export class RelayQueue {
  readonly #bounds: RelayQueueBounds;
  readonly #entries = new Map<QueuedRelay, QueueEntry>();
  /** In the order of arrival, as the two others. */
  readonly #waiting = new Set<QueuedRelay>();
  readonly #whole = new Set<QueuedRelay>();
  readonly #partial = new Set<QueuedRelay>();

  constructor(bounds: RelayQueueBounds) {
    this.#bounds = bounds;
  }

  /** Admits the call or has it wait; the refusal when its caller has as many waiting as it may. */
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

  /** Enough of the body is here for a connection. */
  ready(member: QueuedRelay): void {
    if (!this.#entries.has(member)) return;
    (member.isWhole ? this.#whole : this.#partial).add(member);
    this.#assign();
  }

  /** The call is over, wherever it was. */
  leave(member: QueuedRelay): void {
    const place = this.#entries.get(member);
    if (place === undefined) return;
    this.#entries.delete(member);
    for (const line of [this.#waiting, this.#whole, this.#partial]) line.delete(member);
    place.lease.release();
    place.connection?.release();
    if (place.isAdmitted) this.#admit();
    this.#assign();
  }

  /** The first in line whose caller has a share left. */
  #admit(): void {
    const { calls } = this.#bounds;
    for (const member of this.#waiting) {
      const place = this.#entries.get(member);
      const lease = calls.fits(member.holder) ? calls.take(member.holder) : undefined;
      if (place === undefined || !(lease instanceof Lease)) continue;
      this.#waiting.delete(member);
      place.lease.release();
      place.lease = lease;
      place.isAdmitted = true;
      member.gather();
    }
  }

  #assign(): void {
    const { connections } = this.#bounds;
    for (const line of [this.#whole, this.#partial]) {
      for (const member of line) {
        const place = this.#entries.get(member);
        const lease = connections.fits(member.holder) ? connections.take(member.holder) : undefined;
        if (place === undefined || !(lease instanceof Lease)) continue;
        line.delete(member);
        place.connection = lease;
        member.go();
      }
    }
  }
}
