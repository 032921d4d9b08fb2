/**
 * Decides what becomes of writes of events: the state that they meet gives the numbers, and no memory of a writer does.
 * The journal of one machine asks it when a group is written, each node of a cluster when a row is applied.
 */
import type { EventFollower, EventRequest, EventRows, EventWrite, Operation, Packed } from './port.ts';

const REQUESTS: ReadonlySet<string> = new Set<EventRequest['op']>([
  'eventAccept',
  'eventRelease',
  'eventPublish',
  'eventRemove',
]);
const WRITES: ReadonlySet<string> = new Set<EventWrite['op']>(['eventWait', 'eventEnter', 'eventLeave']);

export function isEventRequest(operation: Operation): operation is EventRequest {
  return REQUESTS.has(operation.op);
}

/** Is it a write that only the functions below may make? */
export function isEventWrite(operation: Operation): operation is EventWrite {
  return WRITES.has(operation.op);
}

export interface EventWritesOptions {
  /** Rows as the journal shows them: without what is decided here. */
  readonly rows: Pick<EventRows, 'ends' | 'knows' | 'lastArrival' | 'waits' | 'waitingRow'>;
  /** A packed row belongs to one key. */
  readonly copy: (row: Packed) => Packed;
  /** The number under which the next event waits; one above the last that waits unless given. */
  readonly nextArrival?: () => number;
}

/** Decides the requests of one batch: later requests see the results of earlier ones. */
export class EventWrites {
  readonly #options: EventWritesOptions;
  readonly #known = new Map<string, boolean>();
  /** Rows that wait by this batch; undefined for one that no longer does. */
  readonly #waiting = new Map<number, Packed | undefined>();
  #lastArrival: number | undefined;
  #ends: { oldest: number; newest: number } | undefined;

  constructor(options: EventWritesOptions) {
    this.#options = options;
  }

  /** Undefined where the request is passed over. Throws `DamagedRow`. */
  decide(request: EventRequest): EventWrite | undefined {
    switch (request.op) {
      case 'eventAccept':
        return this.#accept(request.identity, request.row);
      case 'eventRelease':
        return this.#release(request.arrival, request.row);
      case 'eventPublish':
        return { op: 'eventEnter', arrival: null, sequence: this.#nextSequence(), row: request.row };
      case 'eventRemove':
        return this.#remove(request.sequence, request.identity);
    }
  }

  #accept(identity: string, row: Packed): EventWrite | undefined {
    if (this.#known.get(identity) ?? this.#options.rows.knows(identity)) return undefined;
    const arrival = this.#options.nextArrival?.() ?? this.#nextArrival();
    this.#known.set(identity, true);
    this.#waiting.set(arrival, row);
    return { op: 'eventWait', arrival, identity, row };
  }

  #release(arrival: number, given: Packed | undefined): EventWrite | undefined {
    const row = this.#waiting.has(arrival) ? this.#copyOf(arrival) : this.#stored(arrival, given);
    if (row === undefined) return undefined;
    this.#waiting.set(arrival, undefined);
    return { op: 'eventEnter', arrival, sequence: this.#nextSequence(), row };
  }

  #copyOf(arrival: number): Packed | undefined {
    const row = this.#waiting.get(arrival);
    return row === undefined ? undefined : this.#options.copy(row);
  }

  #stored(arrival: number, given: Packed | undefined): Packed | undefined {
    const { rows } = this.#options;
    if (given === undefined) return rows.waitingRow(arrival);
    return rows.waits(arrival) ? given : undefined;
  }

  #remove(sequence: number, identity: string | null): EventWrite | undefined {
    const ends = this.#logEnds();
    if (sequence !== ends.oldest || sequence >= ends.newest) return undefined;
    ends.oldest += 1;
    if (identity !== null) this.#known.set(identity, false);
    return { op: 'eventLeave', sequence, identity };
  }

  #nextArrival(): number {
    this.#lastArrival = (this.#lastArrival ?? this.#options.rows.lastArrival()) + 1;
    return this.#lastArrival;
  }

  #nextSequence(): number {
    const ends = this.#logEnds();
    ends.newest += 1;
    if (ends.oldest === 0) ends.oldest = ends.newest;
    return ends.newest;
  }

  #logEnds() {
    this.#ends ??= { ...this.#options.rows.ends() };
    return this.#ends;
  }
}

/** Followers that are called with the writes of a batch. */
export class EventFollowers {
  readonly #followers = new Set<EventFollower>();
  #batch: EventWrite[] = [];

  add(follower: EventFollower): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  /** The process that followed has ended, and the batch with it. */
  clear(): void {
    this.#followers.clear();
    this.#batch = [];
  }

  /** The write is of the batch that is on its way to the disk. */
  writing(write: EventWrite): void {
    this.#batch.push(write);
    if (write.op !== 'eventLeave') return;
    for (const follower of this.#followers) follower.leaving(write.sequence + 1);
  }

  /** The batch is on disk. */
  written(): void {
    if (this.#batch.length === 0) return;
    const batch = this.#batch;
    this.#batch = [];
    for (const follower of this.#followers) follower.written(batch);
  }
}
