/**
 * Events on their way into the log. An accepted event is on disk before it is acknowledged; one write moves it to the log,
 * and a crash loses and repeats nothing (decision 0050). Of a cluster every node accepts, and the owner of the log releases.
 */
import { GatewayError } from '../../domain/errors.ts';
import type { IncomingEvent } from '../../domain/events/intake.ts';
import type { EventRow, EventWrite, Operation, Packed } from '../runtime/journal/port.ts';
import { NotOwner } from '../runtime/not-owner.ts';
import { EVENTS_HOME, EVENTS_PARTITION, OWNS_ALL } from '../runtime/ownership.ts';
import type { EventLogOptions } from './log.ts';
import { ReorderWindow, type Waiting } from './reorder-window.ts';
import { rowOf } from './row.ts';

/** Events that wait for their turn, of all modules together: in the usual half second, 100,000 a second. */
export const WAITING_MAX = 50_000;
const WAITING_MAX_BYTES = 64 * 1024 * 1024;
/** Part of that which one module may take: a flood of one leaves room for the others. */
export const MODULE_SHARE = 0.5;
/** Events released or read in one turn of the event loop. */
const SLICE = 500;
/** Seconds after which a push to a node without a lease may be repeated. */
const LEASE_WAIT_SECONDS = 1;
/** Shortest interval between two runs that move events to the log, so that events share their writes. */
const RELEASE_STEP_MS = 5;

export interface Intake {
  readonly accepted: number;
  readonly duplicates: number;
}

/** An event that waits; its position and time are known once it is written. */
interface Waiter extends Waiting {
  readonly module: string;
  readonly row: Packed;
  readonly sizeBytes: number;
  arrival: number;
  acceptedMs: number;
}

interface EventInboxOptions
  extends Pick<EventLogOptions, 'administration' | 'settings' | 'clock' | 'schedule' | 'ownership'> {
  /**
   * True while the lease of this node in a cluster runs. Without it a write would wait for the database, and its clock
   * may be wrong.
   */
  readonly admits?: (() => boolean) | undefined;
}

interface Load {
  events: number;
  sizeBytes: number;
}

export class EventInbox {
  readonly #options: EventInboxOptions;
  /** All events that wait, by arrival, as the journal has them. */
  readonly #waiters = new Map<number, Waiter>();
  /** The same in the order of their release; only at the owner of the log. */
  #window: ReorderWindow<Waiter> | undefined;
  /** Events that this process is writing, by identity: spares reading their rows. */
  readonly #drafts = new Map<string, Waiter>();
  /** The highest tick that went into the log, by module, since this node releases. */
  readonly #highest = new Map<string, bigint>();
  readonly #waiting: Load = { events: 0, sizeBytes: 0 };
  /** The same by module; the modules are those of the configuration. */
  readonly #waitingOf = new Map<string, Load>();
  #cancelRelease: (() => void) | undefined;
  #stopped = false;
  readonly #counts = { accepted: 0, duplicates: 0, late: 0, overloaded: 0, storageFull: 0 };

  /** Reads the events that were accepted earlier and not released. */
  constructor(options: EventInboxOptions) {
    this.#options = options;
    this.#restore();
    options.administration.journal.events.follow({
      leaving: () => undefined,
      written: (writes) => this.#written(writes),
    });
    this.ownershipChanged();
  }

  /** Call it when the owner of `EVENTS_HOME` may be another: the owner alone releases events. */
  ownershipChanged(): void {
    const { ownership = OWNS_ALL } = this.#options;
    if (!ownership.owns(...EVENTS_HOME)) this.#evict();
    else if (this.#window === undefined) this.#takeOver();
  }

  /**
   * Takes all of the events or none; known ones are counted and dropped. All is on disk when it resolves. With
   * `alongside`, writes of the owner of the log, all of it stands or falls together. Rejects with `Overloaded` (also when
   * another node owns what is written alongside), `StorageFull`, `Stopping` or `JournalUnavailable`.
   */
  async accept(events: readonly IncomingEvent[], alongside: readonly Operation[] = []): Promise<Intake> {
    this.#requireRoom(events);
    const { administration } = this.#options;
    const { journal } = administration;
    let skipped = events.length;
    // A repeat is answered without a write.
    if (alongside.length > 0 || events.some(({ identity }) => !journal.events.knows(identity))) {
      const { operations, drafts, sizeBytes } = this.#draft(events);
      const partition = alongside.length > 0 ? EVENTS_PARTITION : undefined;
      try {
        skipped = await administration.write([...operations, ...alongside], sizeBytes, partition);
      } finally {
        for (const [index, draft] of drafts.entries()) {
          this.#count(draft, -1);
          const { identity = '' } = events[index] ?? {};
          if (this.#drafts.get(identity) === draft) this.#drafts.delete(identity);
        }
      }
    }
    const intake = { accepted: events.length - skipped, duplicates: skipped };
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
    const { admits = () => true } = this.#options;
    if (!admits()) throw new GatewayError('JournalUnavailable', undefined, LEASE_WAIT_SECONDS);
    if (this.#stopped) throw new GatewayError('Stopping');
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
    for (const load of [this.#waiting, own]) {
      load.events += sign;
      load.sizeBytes += sign * sizeBytes;
    }
  }

  /** Events count among those that wait while they are being written. */
  #draft(events: readonly IncomingEvent[]) {
    const { administration, clock } = this.#options;
    const { journal } = administration;
    const acceptedMs = clock();
    const operations: Operation[] = [];
    const drafts: Waiter[] = [];
    let total = 0;
    for (const event of events) {
      const { identity, module } = event;
      const row = journal.pack(rowOf(event, acceptedMs));
      const sizeBytes = journal.sizeBytes(row);
      const draft = { tick: BigInt(event.tick), arrival: 0, acceptedMs, module, row, sizeBytes };
      operations.push({ op: 'eventAccept', identity, row });
      drafts.push(draft);
      // The first one is written, later ones are passed over.
      if (!this.#drafts.has(identity)) this.#drafts.set(identity, draft);
      this.#count(draft, 1);
      total += sizeBytes;
    }
    return { operations, drafts, sizeBytes: total };
  }

  /** Whichever node has written it: the wait counts from now, because clocks of nodes differ. */
  #written(writes: readonly EventWrite[]): void {
    const acceptedMs = this.#options.clock();
    for (const write of writes) {
      if (write.op === 'eventWait') {
        const waiter = this.#drafts.get(write.identity) ?? this.#read(write.row);
        waiter.arrival = write.arrival;
        waiter.acceptedMs = acceptedMs;
        this.#add(waiter);
      } else if (write.op === 'eventEnter' && write.arrival !== null) this.#remove(write.arrival);
    }
    this.#scheduleRelease();
  }

  #read(row: Packed): Waiter {
    const { journal } = this.#options.administration;
    const [module, tick, , , , , , , acceptedMs] = journal.unpack(row) as EventRow;
    return { tick: BigInt(tick), arrival: 0, acceptedMs, module, row, sizeBytes: journal.sizeBytes(row) };
  }

  #add(waiter: Waiter): void {
    this.#waiters.set(waiter.arrival, waiter);
    this.#window?.add(waiter);
    this.#count(waiter, 1);
  }

  #remove(arrival: number): void {
    const waiter = this.#waiters.get(arrival);
    if (waiter === undefined) return;
    this.#waiters.delete(arrival);
    this.#count(waiter, -1);
  }

  #restore(): void {
    const { journal } = this.#options.administration;
    let rows: ReturnType<typeof journal.events.waiting>;
    let after = 0;
    do {
      rows = journal.events.waiting(after, SLICE);
      for (const { arrival, row } of rows) {
        after = arrival;
        // A damaged one stays where it is, to be seen by `check`.
        if (row === undefined) continue;
        const waiter = this.#read(journal.pack(row));
        waiter.arrival = arrival;
        this.#add(waiter);
      }
    } while (rows.length === SLICE);
  }

  #takeOver(): void {
    this.#window = new ReorderWindow();
    for (const waiter of this.#waiters.values()) this.#window.add(waiter);
    this.#scheduleRelease();
  }

  #evict(): void {
    this.#cancelRelease?.();
    this.#cancelRelease = undefined;
    this.#window = undefined;
    this.#highest.clear();
  }

  #scheduleRelease(): void {
    const { clock, schedule, settings } = this.#options;
    if (this.#stopped || this.#cancelRelease !== undefined) return;
    const waitMs = this.#window?.waitMs(clock(), settings.get('EventReorderMilliseconds'));
    if (waitMs === undefined) return;
    this.#cancelRelease = schedule.timer(Math.max(waitMs, RELEASE_STEP_MS), () => {
      this.#cancelRelease = undefined;
      this.#release();
      this.#scheduleRelease();
    });
  }

  #release(): void {
    const { administration, clock, settings } = this.#options;
    const taken = this.#window?.take(clock(), settings.get('EventReorderMilliseconds'), SLICE) ?? [];
    if (taken.length === 0) return;
    for (const { module, tick } of taken) {
      const highest = this.#highest.get(module);
      if (highest !== undefined && tick < highest) this.#counts.late += 1;
      else this.#highest.set(module, tick);
    }
    const operations = taken.map(({ arrival, row }): Operation => ({ op: 'eventRelease', arrival, row }));
    administration.write(operations, 0, EVENTS_PARTITION).catch((error: unknown) => this.#notReleased(error));
  }

  /** Nothing was released: the events still wait. A node that is no owner any more may be it again by now. */
  #notReleased(error: unknown): void {
    if (!(error instanceof NotOwner)) this.stop();
    else if (this.#window !== undefined) this.#takeOver();
  }
}

/** True if there is room for `more` events. Their bytes are not known yet, so the bytes that wait now decide. */
function hasRoom(load: Load | undefined, more: number, share: number): boolean {
  const { events, sizeBytes } = load ?? { events: 0, sizeBytes: 0 };
  return events + more <= WAITING_MAX * share && sizeBytes <= WAITING_MAX_BYTES * share;
}
