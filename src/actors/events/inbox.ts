/**
 * Events on their way into the log: known ids, and events that wait for their turn. An accepted event is on disk
 * before it is acknowledged; one write moves it to the log. A crash loses and repeats nothing (decision 0050).
 */
import { GatewayError } from '../../domain/errors.ts';
import type { IncomingEvent } from '../../domain/events/intake.ts';
import type { Operation, Packed } from '../runtime/journal/port.ts';
import { EVENTS_HOME, EVENTS_PARTITION, OWNS_ALL } from '../runtime/ownership.ts';
import type { EventLogOptions, JournalEventLog } from './log.ts';
import { ReorderWindow, type Waiting } from './reorder-window.ts';
import { rowOf } from './row.ts';

/** Events that wait for their turn, of all modules together: in the usual half second, 100,000 a second. */
export const WAITING_MAX = 50_000;
const WAITING_MAX_BYTES = 64 * 1024 * 1024;
/** What one module may take of that: a flood of one leaves room for the others. */
export const MODULE_SHARE = 0.5;
/** Events released or read in one turn of the event loop. */
const SLICE = 500;
/** Shortest interval between two runs that move events to the log, so that events share their writes. */
const RELEASE_STEP_MS = 5;

export interface Intake {
  readonly accepted: number;
  readonly duplicates: number;
}

interface Waiter extends Waiting {
  readonly module: string;
  readonly row: Packed;
  readonly sizeBytes: number;
}

type EventInboxOptions = Pick<
  EventLogOptions,
  'administration' | 'settings' | 'clock' | 'schedule' | 'ownership'
> & {
  readonly log: Pick<JournalEventLog, 'append'>;
};

export class EventInbox {
  readonly #options: EventInboxOptions;
  #window = new ReorderWindow<Waiter>();
  /** Accepted and on the way to disk. */
  readonly #pending = new Set<string>();
  /** The highest tick that went into the log, by module, since the start. */
  readonly #highest = new Map<string, bigint>();
  #lastWrite: Promise<void> = Promise.resolve();
  #arrival = 0;
  readonly #waiting = { events: 0, sizeBytes: 0 };
  /** The same by module; the modules are those of the configuration. */
  readonly #waitingOf = new Map<string, { events: number; sizeBytes: number }>();
  #cancelRelease: (() => void) | undefined;
  #stopped = false;
  #isOwner = false;
  readonly #counts = { accepted: 0, duplicates: 0, late: 0, overloaded: 0, storageFull: 0 };

  /** Restores the events that an earlier run accepted but did not release, if they are this node's. */
  constructor(options: EventInboxOptions) {
    this.#options = options;
    this.ownershipChanged();
  }

  /** Call it when the owner of `EVENTS_HOME` may be another: the owner alone accepts and releases events. */
  ownershipChanged(): void {
    const { ownership = OWNS_ALL } = this.#options;
    const isOwner = ownership.owns(...EVENTS_HOME);
    if (isOwner === this.#isOwner) return;
    this.#isOwner = isOwner;
    if (isOwner) this.#restore();
    else this.#letGo();
  }

  /**
   * Takes all of the events or none; known ones are counted and dropped. All is on disk when it resolves, together
   * with `alongside`. Rejects with `Overloaded`, `StorageFull`, `Stopping` (also at a node that is not the owner) or
   * `JournalUnavailable`.
   */
  async accept(events: readonly IncomingEvent[], alongside: readonly Operation[] = []): Promise<Intake> {
    this.#requireRoom(events);
    const { administration } = this.#options;
    const { operations, waiters, identities, sizeBytes } = this.#draft(events);
    for (const waiter of waiters) this.#count(waiter, 1);
    if (operations.length + alongside.length > 0) {
      const accepted = () => {
        for (const identity of identities) this.#pending.delete(identity);
        for (const waiter of waiters) this.#window.add(waiter);
        this.#scheduleRelease();
      };
      const all = [...operations, ...alongside];
      this.#lastWrite = administration.write(all, sizeBytes, accepted, EVENTS_PARTITION);
    }
    // A known event may still be on its way to disk: writes keep their order, so it is there when the last one is.
    await this.#lastWrite;
    const intake = { accepted: waiters.length, duplicates: events.length - waiters.length };
    this.#counts.accepted += intake.accepted;
    this.#counts.duplicates += intake.duplicates;
    return intake;
  }

  /** Accepts no more events; those accepted are released after the next start. */
  stop(): void {
    this.#stopped = true;
    this.#cancelRelease?.();
  }

  counters() {
    return { ...this.#counts, waiting: this.#waiting.events, waitingBytes: this.#waiting.sizeBytes };
  }

  #requireRoom(events: readonly IncomingEvent[]): void {
    if (this.#stopped || !this.#isOwner) throw new GatewayError('Stopping');
    if (this.#options.administration.journal.full()) {
      this.#counts.storageFull += 1;
      throw new GatewayError('StorageFull');
    }
    const added = new Map<string, number>();
    for (const { module } of events) added.set(module, (added.get(module) ?? 0) + 1);
    const overloaded = [...added].some(
      ([module, more]) => !hasRoom(this.#waitingOf.get(module), more, MODULE_SHARE),
    );
    if (overloaded || !hasRoom(this.#waiting, events.length, 1)) {
      this.#counts.overloaded += 1;
      throw new GatewayError('Overloaded');
    }
  }

  #count({ module, sizeBytes }: Waiter, sign: 1 | -1): void {
    let own = this.#waitingOf.get(module);
    if (own === undefined) {
      own = { events: 0, sizeBytes: 0 };
      this.#waitingOf.set(module, own);
    }
    for (const counts of [this.#waiting, own]) {
      counts.events += sign;
      counts.sizeBytes += sign * sizeBytes;
    }
  }

  /** The events that are not known yet, packed. */
  #draft(events: readonly IncomingEvent[]) {
    const { journal } = this.#options.administration;
    const acceptedMs = this.#options.clock();
    const operations: Operation[] = [];
    const waiters: Waiter[] = [];
    const identities: string[] = [];
    let total = 0;
    for (const event of events) {
      const { identity, module } = event;
      if (this.#pending.has(identity) || journal.events.knows(identity)) continue;
      const row = journal.pack(rowOf(event, acceptedMs));
      const sizeBytes = journal.sizeBytes(row);
      const arrival = ++this.#arrival;
      this.#pending.add(identity);
      identities.push(identity);
      operations.push({ op: 'eventAccept', arrival, identity, row });
      waiters.push({ tick: BigInt(event.tick), arrival, acceptedMs, module, row, sizeBytes });
      total += sizeBytes;
    }
    return { operations, waiters, identities, sizeBytes: total };
  }

  #restore(): void {
    const { journal } = this.#options.administration;
    let rows: ReturnType<typeof journal.events.waiting>;
    do {
      rows = journal.events.waiting(this.#arrival, SLICE);
      for (const { arrival, row } of rows) {
        this.#arrival = arrival;
        // A damaged one stays where it is, to be seen by `check`.
        if (row === undefined) continue;
        const packed = journal.pack(row);
        const sizeBytes = journal.sizeBytes(packed);
        const [module, tick, , , , , , , acceptedMs] = row;
        const waiter = { tick: BigInt(tick), arrival, acceptedMs, module, row: packed, sizeBytes };
        this.#window.add(waiter);
        this.#count(waiter, 1);
      }
    } while (rows.length === SLICE);
    this.#scheduleRelease();
  }

  /** The next owner reads them from the journal. */
  #letGo(): void {
    this.#cancelRelease?.();
    this.#cancelRelease = undefined;
    this.#window = new ReorderWindow();
    this.#arrival = 0;
    this.#waiting.events = 0;
    this.#waiting.sizeBytes = 0;
    this.#waitingOf.clear();
    this.#highest.clear();
  }

  #scheduleRelease(): void {
    const { clock, schedule, settings } = this.#options;
    if (this.#stopped || !this.#isOwner || this.#cancelRelease !== undefined) return;
    const waitMs = this.#window.waitMs(clock(), settings.get('EventReorderMilliseconds'));
    if (waitMs === undefined) return;
    this.#cancelRelease = schedule.timer(Math.max(waitMs, RELEASE_STEP_MS), () => {
      this.#cancelRelease = undefined;
      this.#release();
      this.#scheduleRelease();
    });
  }

  #release(): void {
    const { log, clock, settings } = this.#options;
    const taken = this.#window.take(clock(), settings.get('EventReorderMilliseconds'), SLICE);
    if (taken.length === 0) return;
    for (const { module, tick } of taken) {
      const highest = this.#highest.get(module);
      if (highest !== undefined && tick < highest) this.#counts.late += 1;
      else this.#highest.set(module, tick);
    }
    const left = () => {
      for (const waiter of taken) this.#count(waiter, -1);
    };
    // Only a failed disk refuses it, and that ends the process: the events are still among the waiting.
    log.append(taken, left).catch(() => this.stop());
  }
}

/** May so many more wait? The bytes of what comes are not known yet: what is there decides. */
function hasRoom(
  counts: { events: number; sizeBytes: number } | undefined,
  more: number,
  share: number,
): boolean {
  const { events, sizeBytes } = counts ?? { events: 0, sizeBytes: 0 };
  return events + more <= WAITING_MAX * share && sizeBytes <= WAITING_MAX_BYTES * share;
}
