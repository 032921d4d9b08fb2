/**
 * The log of events on disk, in three sub-databases: the log by sequence, waiting events by arrival, identities of
 * both. Owns their keys; the event log assigns the sequence numbers.
 */
import { EventFollowers } from './event-writes.ts';
import {
  DamagedRow,
  type EventFollower,
  type EventRow,
  type EventRows,
  type EventWrite,
  type Packed,
} from './port.ts';
import type { StoredTable } from './reader.ts';

export interface EventTables {
  readonly events: StoredTable;
  readonly eventInbox: StoredTable;
  readonly eventIdentity: StoredTable;
}

export function eventTables(table: (name: string) => StoredTable): EventTables {
  return {
    events: table('events'),
    eventInbox: table('events/inbox'),
    eventIdentity: table('events/identity'),
  };
}

export class JournalEvents implements EventRows {
  readonly #tables: EventTables;
  readonly #pack: (value: unknown) => Packed;
  readonly #followers = new EventFollowers();

  constructor(tables: EventTables, pack: (value: unknown) => Packed) {
    this.#tables = tables;
    this.#pack = pack;
  }

  follow(follower: EventFollower): () => void {
    return this.#followers.add(follower);
  }

  write(write: EventWrite): void {
    const { events, eventInbox, eventIdentity } = this.#tables;
    this.#followers.writing(write);
    switch (write.op) {
      case 'eventWait':
        eventInbox.put(write.arrival, write.row);
        // Nothing is read from it: the key says all.
        eventIdentity.put(write.identity, this.#pack(1));
        return;
      case 'eventEnter':
        if (write.arrival !== null) eventInbox.remove(write.arrival);
        events.put(write.sequence, write.row);
        return;
      case 'eventLeave':
        events.remove(write.sequence);
        if (write.identity !== null) eventIdentity.remove(write.identity);
        return;
    }
  }

  /** Announces that the written rows are on disk. */
  committed(): void {
    this.#followers.written();
  }

  ends(): { oldest: number; newest: number } {
    const { events } = this.#tables;
    return { oldest: endOf(events, false), newest: endOf(events, true) };
  }

  page(afterSequence: number, limit: number): { sequence: number; row: EventRow | undefined }[] {
    const rows: { sequence: number; row: EventRow | undefined }[] = [];
    for (const { key, value } of this.#tables.events.getRange({ start: afterSequence + 1, limit })) {
      rows.push({ sequence: key as number, row: rowOf(value) });
    }
    return rows;
  }

  waiting(afterArrival: number, limit: number): { arrival: number; row: EventRow | undefined }[] {
    const rows: { arrival: number; row: EventRow | undefined }[] = [];
    for (const { key, value } of this.#tables.eventInbox.getRange({ start: afterArrival + 1, limit })) {
      rows.push({ arrival: key as number, row: rowOf(value) });
    }
    return rows;
  }

  lastArrival(): number {
    return endOf(this.#tables.eventInbox, true);
  }

  waits(arrival: number): boolean {
    return this.#tables.eventInbox.has(arrival);
  }

  waitingRow(arrival: number): Packed | undefined {
    return this.#tables.eventInbox.copy(arrival);
  }

  knows(identity: string): boolean {
    return this.#tables.eventIdentity.has(identity);
  }

  sizeBytes(): number {
    return this.#tables.events.sizeBytes();
  }
}

function endOf(table: StoredTable, reverse: boolean): number {
  for (const key of table.getKeys({ reverse, limit: 1 })) return Number(key);
  return 0;
}

function rowOf(value: unknown): EventRow | undefined {
  return value instanceof DamagedRow ? undefined : (value as EventRow);
}
