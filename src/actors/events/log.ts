/**
 * Event log as readers see it: follows what is written to the journal, by any node. Sequence numbers are given when an
 * event is written, so a number that was readable once is never given again. Incoming events: inbox.ts.
 */
import { GatewayError } from '../../domain/errors.ts';
import { type EventLog, OWN_MODULE, type OwnEvent, type StoredEvent } from '../../domain/events/events.ts';
import { jsonTextOf } from '../../domain/events/intake.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import type { Clock } from '../../domain/time.ts';
import type { Administration } from '../runtime/administration.ts';
import {
  EVENT_EPOCH_KEY,
  EVENT_EPOCH_LOG_KEY,
  type EventRow,
  type EventWrite,
  type Journal,
  type Operation,
} from '../runtime/journal/port.ts';
import { EVENTS_PARTITION, type Ownership } from '../runtime/ownership.ts';
import type { Schedule } from '../runtime/runtime-context.ts';
import { NewestEvents } from './newest-events.ts';
import { LOG_MAX_BYTES, retainEvents } from './retention.ts';
import { eventOf, ownRow } from './row.ts';

export interface EventLogOptions {
  readonly administration: Pick<Administration, 'journal' | 'write' | 'tick'>;
  readonly settings: SettingsReader;
  readonly clock: Clock;
  readonly schedule: Schedule;
  /** A fresh name of a log: letters and digits, never the same twice. */
  readonly newEpoch: () => string;
  /** Id of the present life of a cluster's log. */
  readonly logId?: string | undefined;
  /** Bytes that the log may take; `LOG_MAX_BYTES` unless given. */
  readonly bytesMax?: number;
  /** Decides if this node releases and removes events; it does unless given. */
  readonly ownership?: Ownership;
}

/** Opens the log of the journal; a new or restored one gets an epoch, on disk when this resolves. Of several nodes the first one gives it. */
export async function openEventLog(options: EventLogOptions): Promise<JournalEventLog> {
  const { administration, newEpoch, logId } = options;
  const { journal } = administration;
  const epoch = stored(journal, EVENT_EPOCH_KEY);
  const ofLog = stored(journal, EVENT_EPOCH_LOG_KEY);
  const values: Operation[] = [];
  const write = (key: string, value: string, was: string | undefined) =>
    values.push({ op: 'metaOnce', key, row: journal.pack(value), ...(was === undefined ? {} : { was }) });
  // An imported journal has an epoch that belongs to no log yet, and keeps it.
  const isOfOther = logId !== undefined && ofLog !== undefined && ofLog !== logId;
  if (epoch === undefined || isOfOther) write(EVENT_EPOCH_KEY, newEpoch(), epoch);
  if (logId !== undefined && ofLog !== logId) write(EVENT_EPOCH_LOG_KEY, logId, ofLog);
  if (values.length > 0) await administration.write(values, 0);
  return new JournalEventLog(options, String(journal.meta(EVENT_EPOCH_KEY)));
}

function stored(journal: Pick<Journal, 'meta'>, key: string): string | undefined {
  const value = journal.meta(key);
  return typeof value === 'string' ? value : undefined;
}

export class JournalEventLog implements EventLog {
  readonly epoch: string;
  readonly #options: EventLogOptions;
  readonly #listeners = new Set<() => void>();
  readonly #stopRetention: () => void;
  readonly #memory: NewestEvents;
  #oldest: number;
  #newest: number;
  #stopped = false;
  #own = 0;
  #trimmed = 0;

  constructor(options: EventLogOptions, epoch: string) {
    this.#options = options;
    this.epoch = epoch;
    const { journal } = options.administration;
    const { events } = journal;
    this.#memory = new NewestEvents((sequence, row) => eventOf(sequence, journal.unpack(row) as EventRow));
    ({ oldest: this.#oldest, newest: this.#newest } = events.ends());
    events.follow({
      // Before the rows are gone: a reader asks for the oldest first, and misses none without knowing.
      leaving: (oldest) => {
        this.#oldest = oldest;
      },
      written: (writes) => this.#written(writes),
    });
    this.#stopRetention = retainEvents({
      ...options,
      rows: events,
      bytesMax: options.bytesMax ?? LOG_MAX_BYTES,
      ends: () => ({ oldest: this.#oldest, newest: this.#newest }),
      remove: (operations) => this.#remove(operations),
    });
  }

  get oldest(): number {
    return this.#oldest;
  }

  get newest(): number {
    return this.#newest;
  }

  page(afterSequence: number, limit: number): StoredEvent[] {
    let after = Math.max(afterSequence, this.#oldest - 1, 0);
    const newest = this.#memory.page(after, limit);
    if (newest !== undefined) return newest;
    const events: StoredEvent[] = [];
    // In place of damaged ones the next: a page with fewer events is the last.
    while (events.length < limit && after < this.#newest) {
      const most = Math.min(limit - events.length, this.#newest - after);
      const rows = this.#options.administration.journal.events.page(after, most);
      for (const { sequence, row } of rows) if (row !== undefined) events.push(eventOf(sequence, row));
      after = rows.at(-1)?.sequence ?? this.#newest;
    }
    return events;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async publish(event: OwnEvent): Promise<void> {
    const { administration, clock } = this.#options;
    const { journal } = administration;
    if (this.#stopped) throw new GatewayError('Stopping');
    if (journal.full()) throw new GatewayError('StorageFull');
    const tick = administration.tick();
    const jsonText = jsonTextOf(OWN_MODULE, tick, event.type, JSON.stringify(event.data));
    const row = journal.pack(ownRow(tick, event, jsonText, clock()));
    this.#own += 1;
    await administration.write([{ op: 'eventPublish', row }], journal.sizeBytes(row));
  }

  stop(): void {
    this.#stopped = true;
    this.#stopRetention();
  }

  counters() {
    const rows = this.#newest === 0 ? 0 : this.#newest - this.#oldest + 1;
    const sizeBytes = this.#options.administration.journal.events.sizeBytes();
    return { rows, sizeBytes, newest: this.#newest, own: this.#own, trimmed: this.#trimmed };
  }

  /** Readers are notified once for all of them. */
  #written(writes: readonly EventWrite[]): void {
    const { journal } = this.#options.administration;
    const before = this.#newest;
    for (const write of writes) {
      if (write.op === 'eventLeave') this.#trimmed += 1;
      else if (write.op === 'eventEnter') {
        this.#newest = write.sequence;
        this.#memory.add(write.sequence, write.row, journal.sizeBytes(write.row));
      }
    }
    if (this.#newest === before) return;
    if (this.#oldest === 0) this.#oldest = this.#options.administration.journal.events.ends().oldest;
    for (const listener of this.#listeners) listener();
  }

  #remove(operations: readonly Operation[]): Promise<unknown> {
    return this.#options.administration.write(operations, 0, EVENTS_PARTITION);
  }
}
