/**
 * The log of events on disk, in three sub-databases: the log by sequence, waiting events by arrival, identities of
 * both. Owns their keys; the event log assigns the sequence numbers.
 */
import { DamagedRow, type EventRow, type EventRows, type Operation, type Packed } from './port.ts';
import type { StoredTable } from './reader.ts';

export interface EventTables {
  readonly events: StoredTable;
  readonly eventInbox: StoredTable;
  readonly eventIdentity: StoredTable;
}

export type EventOperation = Extract<Operation, { op: 'eventAccept' | 'eventRelease' | 'eventRemove' }>;

/** Names of the sub-databases. */
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

  constructor(tables: EventTables, pack: (value: unknown) => Packed) {
    this.#tables = tables;
    this.#pack = pack;
  }

  write(operation: EventOperation): void {
    const { events, eventInbox, eventIdentity } = this.#tables;
    switch (operation.op) {
      case 'eventAccept':
        eventInbox.put(operation.arrival, operation.row);
        // Nothing is read from it: the key says all.
        eventIdentity.put(operation.identity, this.#pack(1));
        return;
      case 'eventRelease':
        if (operation.arrival !== null) eventInbox.remove(operation.arrival);
        events.put(operation.sequence, operation.row);
        return;
      case 'eventRemove':
        events.remove(operation.sequence);
        if (operation.identity !== null) eventIdentity.remove(operation.identity);
        return;
    }
  }

  ends(): { oldest: number; newest: number } {
    return { oldest: this.#end(false), newest: this.#end(true) };
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

  knows(identity: string): boolean {
    return this.#tables.eventIdentity.has(identity);
  }

  sizeBytes(): number {
    return this.#tables.events.sizeBytes();
  }

  #end(reverse: boolean): number {
    for (const key of this.#tables.events.getKeys({ reverse, limit: 1 })) return Number(key);
    return 0;
  }
}

function rowOf(value: unknown): EventRow | undefined {
  return value instanceof DamagedRow ? undefined : (value as EventRow);
}
