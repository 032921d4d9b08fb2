/**
 * Reads of the journal on disk. Owns how rows are found: the order of the keys does all of the work, nothing is
 * scanned that is not returned.
 */

import type { Typed } from '../protocol.ts';
import { ownStrings } from './own-strings.ts';
import type { Packed } from './port.ts';
import {
  DamagedRow,
  type DeadKey,
  type DeadRow,
  type IsWanted,
  type MailKey,
  type MailRow,
  type SnapshotRow,
  type StoredActor,
  type TimerKey,
  type TimerRow,
  type TurnRow,
} from './port.ts';

/** A text above each id. */
const HIGHEST = '\u{10ffff}';

export type Part = string | number;
interface Range {
  readonly start?: Part[] | Part;
  readonly end?: Part[] | Part;
  readonly limit?: number;
  readonly reverse?: boolean;
}

/** The part of a sub-database that reading takes. Keys compare element by element: numbers before strings. */
export interface Table {
  /** Throws `DamagedRow`. */
  get(key: Part[] | Part): unknown;
  /** Is there such a row, damaged or not? */
  has(key: Part[] | Part): boolean;
  /** A value is a `DamagedRow` where the row is damaged. */
  getRange(range: Range): Iterable<{ key: unknown; value: unknown }>;
  getKeys(range: Range): Iterable<unknown>;
  /** May rows of the range be missing, because damage was found there? `isBetween`: only where others of the kind enclose it. */
  mayHave(from: Part[], until: Part[], isBetween: boolean): boolean;
}

interface ReadableTables {
  readonly journal: Table;
  readonly snapshot: Table;
  readonly mailbox: Table;
  readonly timer: Table;
  readonly dead: Table;
}

/** A number above every sequence number. */
const LAST = Number.MAX_SAFE_INTEGER;

export function mailKey({ toKind, toId, seq, fromKind, fromId }: MailKey): Part[] {
  return [toKind, toId, seq, fromKind, fromId];
}

export function timerKey({ dueMs, kind, id, name }: TimerKey): Part[] {
  return [dueMs, kind, id, name];
}

export function deadKey({ timeMs, kind, id, seq }: DeadKey): Part[] {
  return [timeMs, kind, id, seq];
}

export class JournalReader {
  readonly #tables: ReadableTables;

  constructor(tables: ReadableTables) {
    this.#tables = tables;
  }

  load(kind: string, id: string): StoredActor | undefined {
    const snapshot = this.#tables.snapshot.get([kind, id]) as SnapshotRow | undefined;
    if (snapshot === undefined && !this.#tables.journal.has([kind, id, 1])) {
      this.#requireAbsent(kind, id);
      return undefined;
    }
    const start = [kind, id, (snapshot?.[1] ?? 0) + 1];
    const rows: { seq: number; row: TurnRow }[] = [];
    for (const { key, value } of this.#tables.journal.getRange({ start, end: [kind, id, LAST] })) {
      if (value instanceof DamagedRow) throw value;
      rows.push({ seq: (key as [string, string, number])[2], row: ownStrings(value) as TurnRow });
    }
    const next = [kind, id, (rows.at(-1)?.seq ?? snapshot?.[1] ?? 0) + 1];
    if (this.#tables.journal.mayHave(next, [kind, id, LAST], false)) throw missing('journal', next);
    return { snapshot, rows };
  }

  /** An actor without rows is a new one, unless damage was found where its rows would be. Throws `DamagedRow`. */
  #requireAbsent(kind: string, id: string): void {
    if (this.#tables.snapshot.mayHave([kind, id], [kind, id], true)) throw missing('snapshot', [kind, id]);
    const first = [kind, id, 1];
    if (this.#tables.journal.mayHave(first, [kind, id, LAST], true)) throw missing('journal', first);
  }

  has(kind: string, id: string): boolean {
    // Rows begin with 1 and go only when a snapshot covers them.
    return this.#tables.snapshot.has([kind, id]) || this.#tables.journal.has([kind, id, 1]);
  }

  lastSeq(kind: string, id: string): number {
    const range = { start: [kind, id, LAST], end: [kind, id, 0], reverse: true, limit: 1 };
    for (const key of this.#tables.journal.getKeys(range)) return (key as [string, string, number])[2];
    const snapshot = this.#tables.snapshot.get([kind, id]) as SnapshotRow | undefined;
    return snapshot?.[1] ?? 0;
  }

  rowsAfter(kind: string, id: string, afterSeq: number): TurnRow[] | undefined {
    const rows: TurnRow[] = [];
    for (const { key, value } of this.#tables.journal.getRange({
      start: [kind, id, afterSeq + 1],
      end: [kind, id, LAST],
    })) {
      if (value instanceof DamagedRow) throw value;
      if ((key as [string, string, number])[2] !== afterSeq + rows.length + 1) return undefined;
      rows.push(ownStrings(value) as TurnRow);
    }
    return rows.length > 0 || this.lastSeq(kind, id) <= afterSeq ? rows : undefined;
  }

  /** Jumps from id to id over both tables: an actor may stand in either. */
  ids(kind: string, afterId: string, limit: number, descending = false): string[] {
    const next = descending ? previousId : nextId;
    const ids: string[] = [];
    let last = afterId;
    while (ids.length < limit) {
      const inJournal = next(this.#tables.journal, kind, last);
      const inSnapshot = next(this.#tables.snapshot, kind, last);
      if (inJournal === undefined && inSnapshot === undefined) return ids;
      const isJournal =
        inSnapshot === undefined || (inJournal !== undefined && inJournal < inSnapshot !== descending);
      last = isJournal ? (inJournal ?? last) : inSnapshot;
      ids.push(last);
    }
    return ids;
  }

  *mailboxes(): Iterable<{ toKind: string; toId: string; lastSeq: number }> {
    let box: { toKind: string; toId: string; lastSeq: number } | undefined;
    for (const key of this.#tables.mailbox.getKeys({})) {
      const [toKind, toId, seq] = key as [string, string, number];
      if (box?.toKind === toKind && box.toId === toId) box.lastSeq = seq;
      else {
        if (box !== undefined) yield box;
        box = { toKind, toId, lastSeq: seq };
      }
    }
    if (box !== undefined) yield box;
  }

  hasMail(key: MailKey): boolean {
    return this.#tables.mailbox.has(mailKey(key));
  }

  mail(toKind: string, toId: string, afterSeq: number, limit: number): MailRow[] {
    const rows: MailRow[] = [];
    const range = { start: [toKind, toId, afterSeq + 1], end: [toKind, toId, LAST], limit };
    for (const { key, value } of this.#tables.mailbox.getRange(range)) {
      const [, , seq, fromKind, fromId] = key as [string, string, number, string, string];
      rows.push({ toKind, toId, seq, fromKind, fromId, ...contentOf(value) });
    }
    return rows;
  }

  timers(untilMs: number, limit: number, isWanted?: IsWanted): TimerRow[] {
    const rows: TimerRow[] = [];
    const range = isWanted === undefined ? { limit } : {};
    for (const { key, value } of this.#tables.timer.getRange(range)) {
      const [dueMs, kind, id, name] = key as [number, string, string, string];
      if (dueMs > untilMs || rows.length === limit) break;
      if (isWanted?.(kind, id) === false) continue;
      rows.push({ dueMs, kind, id, name, ...contentOf(value) });
    }
    return rows;
  }

  dead(limit: number): DeadRow[] {
    const rows: DeadRow[] = [];
    for (const { key, value } of this.#tables.dead.getRange({ limit })) {
      const [timeMs, kind, id, seq] = key as [number, string, string, number];
      const { command, damage } = contentOf(value);
      const letter = value as { command: Typed; reason: string };
      const content = damage === undefined ? letter : { command, reason: damage.message };
      rows.push({ timeMs, kind, id, seq, command: content.command, reason: content.reason });
    }
    return rows;
  }
}

function missing(table: string, key: Part[]): DamagedRow {
  return new DamagedRow(table, key, new Uint8Array(), 'it may be one that was hit beside it');
}

/** The command of a row, or what stands for that of a damaged one. */
export function contentOf(value: unknown): { command: Typed; damage?: DamagedRow } {
  if (!(value instanceof DamagedRow)) return { command: value as Typed };
  const { bytes } = value;
  const command: Typed & { readonly bytes: Uint8Array } = { type: 'unreadable', bytes };
  return { command, damage: value };
}

function nextId(table: Table, kind: string, afterId: string): string | undefined {
  const start = afterId === '' ? [kind] : [kind, afterId, LAST];
  for (const key of table.getKeys({ start, limit: 1 })) {
    const [foundKind, id] = key as [string, string];
    if (foundKind !== kind) return undefined;
    return id === afterId ? undefined : id;
  }
  return undefined;
}

/** The id before one, the last of the kind before ''. A snapshot has the one itself as its first key. */
function previousId(table: Table, kind: string, beforeId: string): string | undefined {
  const start = [kind, beforeId === '' ? HIGHEST : beforeId];
  for (const key of table.getKeys({ start, end: [kind], reverse: true, limit: 2 })) {
    const [, id] = key as [string, string];
    if (id !== beforeId) return id;
  }
  return undefined;
}

/** The part of a sub-database that reading and writing take. */
export interface StoredTable extends Table {
  /** The row, to be put under another key. Throws `DamagedRow`. */
  copy(key: Part[] | Part): Packed | undefined;
  put(key: Part[] | Part, row: Packed): void;
  remove(key: Part[] | Part): void;
  /** Rows on disk, and what they take. */
  count(): number;
  sizeBytes(): number;
}
