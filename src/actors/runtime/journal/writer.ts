/**
 * Writes of the journal on disk: what each operation does to the rows. Owns the windows of the logs of which only
 * the newest rows are kept. Runs within one batch; the promise of the batch says whether all of it is on disk.
 */

import { isDeepStrictEqual } from 'node:util';
import type { IndexName } from '../actor.ts';
import type { JournalAudit } from './audit.ts';
import { EventWrites, isEventRequest } from './event-writes.ts';
import type { JournalEvents } from './events.ts';
import {
  DamagedRow,
  type EventRequest,
  type EventWrite,
  type JournalTurn,
  type Operation,
  type Packed,
  type SkippedWrites,
} from './port.ts';
import type { StoredTable } from './reader.ts';
import { deadKey, mailKey, type Part, timerKey } from './reader.ts';

/** Every index has a table of its own. */
export const INDEXES: readonly IndexName[] = [
  'publicKey',
  'credentialId',
  'sessionHash',
  'sidHash',
  'contactSync',
  'appId',
  'crc32',
  'contact',
  'draft',
];

export interface Tables {
  readonly journal: StoredTable;
  readonly snapshot: StoredTable;
  readonly mailbox: StoredTable;
  readonly timer: StoredTable;
  readonly dead: StoredTable;
  readonly meta: StoredTable;
}

interface DecidedGroup {
  readonly turns: readonly Pick<JournalTurn, 'operations'>[];
  /** Undefined when everything is written. */
  readonly skipped: SkippedWrites | undefined;
}

interface JournalWriterOptions {
  readonly tables: Tables;
  readonly indexes: ReadonlyMap<IndexName, StoredTable>;
  readonly events: JournalEvents;
  readonly audit: JournalAudit;
  readonly pack: (value: unknown) => Packed;
  readonly unpack: (row: Packed) => unknown;
  readonly deadRowsMax: number;
}

export class JournalWriter {
  readonly #options: JournalWriterOptions;
  #deadRows = 0;

  constructor(options: JournalWriterOptions) {
    this.#options = options;
  }

  /** Finds the ends of the logs. */
  prepare(): void {
    this.#options.audit.prepare();
    this.#deadRows = this.#options.tables.dead.count();
  }

  /**
   * Decides the requests of events before the batch begins, because the engine's thread runs idle while a batch that
   * has begun waits for reads.
   */
  decide(turns: readonly JournalTurn[]): DecidedGroup {
    if (!turns.some(hasEventRequest)) return { turns, skipped: undefined };
    const { events: rows, pack, unpack } = this.#options;
    const events = new EventWrites({ rows, copy: (row) => pack(unpack(row)) });
    const skipped = new Map<number, number>();
    const decided = turns.map((turn, index) => {
      if (!hasEventRequest(turn)) return turn;
      const operations: Operation[] = [];
      for (const operation of turn.operations) {
        const write = isEventRequest(operation) ? decidedOf(events, operation) : operation;
        if (write !== undefined) operations.push(write);
      }
      const count = turn.operations.length - operations.length;
      if (count > 0) skipped.set(index, count);
      return { operations };
    });
    return { turns: decided, skipped };
  }

  /** Writes turns as they were decided. */
  write(turns: DecidedGroup['turns']): void {
    this.#options.audit.begin();
    for (const { operations } of turns) for (const operation of operations) this.#writeOne(operation);
  }

  #writeOne(operation: Operation): void {
    const { journal, snapshot, mailbox, timer, dead, meta } = this.#options.tables;
    switch (operation.op) {
      case 'append':
        journal.put([operation.kind, operation.id, operation.seq], operation.row);
        return;
      case 'snapshot': {
        const { kind, id, seq, fromSeq, row } = operation;
        snapshot.put([kind, id], row);
        for (let covered = fromSeq; covered <= seq; covered += 1) journal.remove([kind, id, covered]);
        return;
      }
      case 'mail':
        mailbox.put(mailKey(operation.key), operation.row);
        return;
      case 'mailRemove':
        mailbox.remove(mailKey(operation.key));
        return;
      case 'timer':
        timer.put(timerKey(operation.key), operation.row);
        return;
      case 'timerRemove':
        timer.remove(timerKey(operation.key));
        return;
      case 'dead':
        dead.put(deadKey(operation.key), operation.row);
        this.#trimDead();
        return;
      case 'deadRemove':
        if (dead.has(deadKey(operation.key))) this.#deadRows -= 1;
        dead.remove(deadKey(operation.key));
        return;
      case 'index':
        this.#writeIndex(operation.index, operation.key, operation.owner);
        return;
      case 'audit':
      case 'auditTrim':
        this.#options.audit.write(operation);
        return;
      case 'meta':
        meta.put(operation.key, operation.row);
        return;
      case 'metaOnce':
        if (isDeepStrictEqual(meta.get(operation.key), operation.was)) meta.put(operation.key, operation.row);
        return;
      case 'eventWait':
      case 'eventEnter':
      case 'eventLeave':
        this.#options.events.write(operation);
        return;
      default:
        throw new TypeError(`${operation.op} was not decided`);
    }
  }

  #writeIndex(index: IndexName, key: string, owner: string | null): void {
    const table = this.#options.indexes.get(index);
    if (table === undefined) throw new TypeError(`there is no index ${index}`);
    if (owner === null) table.remove(key);
    else table.put(key, this.#options.pack(owner));
  }

  #trimDead(): void {
    const { tables, deadRowsMax } = this.#options;
    this.#deadRows += 1;
    if (this.#deadRows <= deadRowsMax) return;
    for (const oldest of tables.dead.getKeys({ limit: 1 })) tables.dead.remove(oldest as Part[]);
    this.#deadRows -= 1;
  }
}

function hasEventRequest({ operations }: Pick<JournalTurn, 'operations'>): boolean {
  return operations.some(isEventRequest);
}

function decidedOf(events: EventWrites, request: EventRequest): EventWrite | undefined {
  try {
    return events.decide(request);
  } catch (error) {
    // A damaged event stays where it is, to be seen by `check`.
    if (error instanceof DamagedRow) return undefined;
    throw error;
  }
}
