/**
 * The newest events of the log in memory: event streams and webhooks read them right after the commit, and each row is
 * decoded once for all of them. A copy of what is on disk; each node has its own.
 */
import type { StoredEvent } from '../../domain/events/events.ts';
import type { Packed } from '../runtime/journal/port.ts';

/** Bounds in events and bytes of their rows. */
export const NEWEST_EVENTS_MAX = 4_096;
const NEWEST_MAX_BYTES = 16 * 1024 * 1024;

export class NewestEvents {
  readonly #decode: (sequence: number, row: Packed) => StoredEvent;
  readonly #bytesMax: number;
  /** An event is in the slot of its sequence modulo the size: as a row until it is first read. */
  readonly #rows = new Array<Packed | undefined>(NEWEST_EVENTS_MAX);
  readonly #events = new Array<StoredEvent | undefined>(NEWEST_EVENTS_MAX);
  readonly #sizes = new Float64Array(NEWEST_EVENTS_MAX);
  #sizeBytes = 0;
  /** The first sequence that is there, and the one after the last. */
  #start = 0;
  #end = 0;

  constructor(decode: (sequence: number, row: Packed) => StoredEvent, bytesMax: number = NEWEST_MAX_BYTES) {
    this.#decode = decode;
    this.#bytesMax = bytesMax;
  }

  /** The row is on disk, and stays as it is. */
  add(sequence: number, row: Packed, sizeBytes: number): void {
    // After a gap it begins anew, so that it has all events from its first one on.
    if (sequence !== this.#end) {
      while (this.#start < this.#end) this.#evict();
      this.#start = sequence;
    }
    if (sequence - this.#start >= NEWEST_EVENTS_MAX) this.#evict();
    const slot = sequence % NEWEST_EVENTS_MAX;
    this.#rows[slot] = row;
    this.#sizes[slot] = sizeBytes;
    this.#sizeBytes += sizeBytes;
    this.#end = sequence + 1;
    while (this.#sizeBytes > this.#bytesMax) this.#evict();
  }

  /** The events after a position, at most `limit`; undefined where one of them may be on disk alone. */
  page(afterSequence: number, limit: number): StoredEvent[] | undefined {
    if (this.#start === this.#end || afterSequence + 1 < this.#start) return undefined;
    const events: StoredEvent[] = [];
    const end = Math.min(this.#end, afterSequence + 1 + limit);
    for (let sequence = afterSequence + 1; sequence < end; sequence += 1) events.push(this.#at(sequence));
    return events;
  }

  #at(sequence: number): StoredEvent {
    const slot = sequence % NEWEST_EVENTS_MAX;
    const known = this.#events[slot];
    if (known !== undefined) return known;
    const event = this.#decode(sequence, this.#rows[slot] as Packed);
    this.#rows[slot] = undefined;
    this.#events[slot] = event;
    return event;
  }

  #evict(): void {
    const slot = this.#start % NEWEST_EVENTS_MAX;
    this.#rows[slot] = undefined;
    this.#events[slot] = undefined;
    this.#sizeBytes -= this.#sizes[slot] ?? 0;
    this.#start += 1;
  }
}
