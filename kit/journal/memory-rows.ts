/**
 * The rows of the journal in memory, and what a bad disk does to them. Which groups of writes get here, and when, is
 * memory-journal.ts's to say.
 */
import { isDeepStrictEqual } from 'node:util';
import type { IndexName } from '../../src/actors/runtime/actor.ts';
import { type AuditOperation, GONE_PER_RECORD } from '../../src/actors/runtime/journal/audit.ts';
import { EventWrites } from '../../src/actors/runtime/journal/event-writes.ts';
import { copyPlain } from '../../src/actors/runtime/journal/plain-data.ts';
import type * as port from '../../src/actors/runtime/journal/port.ts';
import type { AuditRow } from '../../src/actors/runtime/journal/port.ts';
import { contentOf } from '../../src/actors/runtime/journal/reader.ts';
import type { Typed } from '../../src/actors/runtime/protocol.ts';
import { isNodeRing, type StoredRing } from '../../src/domain/audit.ts';
import { MemoryDamage } from './memory-damage.ts';
import { MemoryEvents } from './memory-events.ts';

interface Shelf {
  snapshot: port.SnapshotRow | undefined;
  rows: Map<number, port.TurnRow>;
}

export class MemoryRows {
  readonly events = new MemoryEvents();
  /** Faults of the rows, and of the file. */
  readonly damage: MemoryDamage;
  /** Nothing is walked: rows are verified when they are read. */
  readonly walkedBytes = 0;
  readonly #shelves = new Map<string, Shelf>();
  readonly #indexes = new Map<string, string>();
  readonly #mail = new Map<string, port.MailRow>();
  readonly #timers = new Map<string, port.TimerRow>();
  readonly #dead = new Map<string, port.DeadRow>();
  readonly #meta = new Map<string, unknown>();
  readonly #audit: MemoryAudit;
  /** Event writes of the batch that is being written. */
  #eventWrites: EventWrites | undefined;
  #skipped = 0;

  constructor(ignoresChecksums: boolean, auditRowsMax: (ring: StoredRing) => number) {
    this.damage = new MemoryDamage(ignoresChecksums);
    this.#audit = new MemoryAudit(auditRowsMax);
  }

  get damagedRows(): number {
    return this.damage.found;
  }

  load(kind: string, id: string): port.StoredActor | undefined {
    const shelf = this.#shelves.get(`${kind}\0${id}`);
    if (shelf === undefined) return undefined;
    const rows = [...shelf.rows].sort(([a], [b]) => a - b);
    const actor = `${kind}\0${id}`;
    return {
      snapshot: shelf.snapshot && this.#readSnapshot(actor, copyPlain(shelf.snapshot) as port.SnapshotRow),
      rows: rows.map(([seq, row]) => ({
        seq,
        row: this.#readTurn(`${actor}\0${seq}`, copyPlain(row) as port.TurnRow),
      })),
    };
  }

  #readSnapshot(name: string, row: port.SnapshotRow): port.SnapshotRow {
    const [version, seq, state, ring, timers] = row;
    return [version, seq, this.damage.require('snapshot', name, state), ring, timers];
  }

  #readTurn(name: string, [version, events, ring, timers]: port.TurnRow): port.TurnRow {
    return [version, this.damage.require('journal', name, events), ring, timers];
  }

  /** JSON of rows, names, messages and timers, to search for what must not be there. */
  searchText(): string {
    const shelves = [...this.#shelves].map(([actor, { snapshot, rows }]) => [
      actor,
      snapshot,
      [...rows.values()],
    ]);
    const tables = [this.#indexes, this.#mail, this.#timers, this.#dead, this.#meta].map((table) => [
      ...table,
    ]);
    return JSON.stringify([shelves, tables], (_key, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
  }

  has(kind: string, id: string): boolean {
    return this.#shelves.has(`${kind}\0${id}`);
  }

  lastSeq(kind: string, id: string): number {
    const shelf = this.#shelves.get(`${kind}\0${id}`);
    return Math.max(0, shelf?.snapshot?.[1] ?? 0, ...(shelf?.rows.keys() ?? []));
  }

  rowsAfter(kind: string, id: string, afterSeq: number): port.TurnRow[] | undefined {
    const rows = this.load(kind, id)?.rows.filter(({ seq }) => seq > afterSeq) ?? [];
    const isWhole = rows.every(({ seq }, index) => seq === afterSeq + index + 1);
    if (!isWhole || (rows.length === 0 && this.lastSeq(kind, id) > afterSeq)) return undefined;
    return rows.map(({ row }) => row);
  }

  ids(kind: string, afterId: string, limit: number, descending = false): string[] {
    const isNext = (id: string) => afterId === '' || (descending ? id < afterId : id > afterId);
    const names = [...this.#shelves.keys()].map((name) => name.split('\0'));
    const ids = names.flatMap(([of = '', id = '']) => (of === kind && isNext(id) ? [id] : [])).sort();
    return (descending ? ids.reverse() : ids).slice(0, limit);
  }

  lookup(index: IndexName, key: string): string | undefined {
    const name = `${index}\0${key}`;
    return this.damage.require('index', name, this.#indexes.get(name));
  }

  count(index: IndexName): number {
    return [...this.#indexes.keys()].filter((key) => key.startsWith(`${index}\0`)).length;
  }

  *mailboxes(): Iterable<{ toKind: string; toId: string; lastSeq: number }> {
    const lastSeqs = new Map<string, { toKind: string; toId: string; lastSeq: number }>();
    for (const { toKind, toId, seq } of this.#mail.values()) {
      const name = `${toKind}\0${toId}`;
      lastSeqs.set(name, { toKind, toId, lastSeq: Math.max(seq, lastSeqs.get(name)?.lastSeq ?? 0) });
    }
    yield* lastSeqs.values();
  }

  hasMail(key: port.MailKey): boolean {
    return this.#mail.has(mailName(key));
  }

  mail(toKind: string, toId: string, afterSeq: number, limit: number): port.MailRow[] {
    return [...this.#mail.values()]
      .filter((row) => row.toKind === toKind && row.toId === toId && row.seq > afterSeq)
      .sort((a, b) => a.seq - b.seq)
      .slice(0, limit)
      .map((row) => ({ ...row, ...this.#content('mail', mailName(row), row.command) }));
  }

  timers(untilMs: number, limit: number, isWanted?: port.IsWanted): port.TimerRow[] {
    return [...this.#timers.values()]
      .filter((row) => row.dueMs <= untilMs && isWanted?.(row.kind, row.id) !== false)
      .sort((a, b) => a.dueMs - b.dueMs)
      .slice(0, limit)
      .map((row) => ({ ...row, ...this.#content('timer', timerName(row), row.command) }));
  }

  #content(table: string, name: string, command: Typed) {
    return contentOf(this.damage.read(table, name, copyPlain(command)));
  }

  dead(limit: number): port.DeadRow[] {
    return [...this.#dead.values()].sort((a, b) => a.timeMs - b.timeMs).slice(0, limit);
  }
  auditRows(ring: StoredRing): number {
    return this.#audit.rows(ring);
  }
  auditPage(afterSeq: number, limit: number, rings?: readonly StoredRing[]): port.AuditRow[] {
    return this.#audit.page(afterSeq, limit, rings);
  }
  auditBefore(beforeSeq: number, limit: number, rings?: readonly StoredRing[]): port.AuditRow[] {
    return this.#audit.before(beforeSeq, limit, rings);
  }

  meta(key: string): unknown {
    return copyPlain(this.#meta.get(key));
  }

  /** A row on "disk" that was picked by a number from 0 to 1 is no longer what was written; its name, if there is one. */
  rot(pick: number): string | undefined {
    const rows = [
      ...[...this.#shelves].flatMap(([actor, { rows, snapshot }]) => [
        ...[...rows.keys()].map((seq) => ['journal', `${actor}\0${seq}`] as const),
        ...(snapshot === undefined ? [] : [['snapshot', actor] as const]),
      ]),
      ...[...this.#mail.keys()].map((name) => ['mail', name] as const),
      ...[...this.#timers.keys()].map((name) => ['timer', name] as const),
      ...[...this.#indexes.keys()].map((name) => ['index', name] as const),
    ];
    const [table, name] = rows[Math.floor(pick * rows.length)] ?? [];
    if (table === undefined || name === undefined) return undefined;
    this.damage.rot(table, name);
    return `${table} ${name.replaceAll('\0', ' ')}`;
  }

  /** The file loses its end: the newest turn of each actor. `restore` is a backup of the same moment. */
  cutOff(): { restore: () => void } {
    const lost = [...this.#shelves.values()].map(({ rows }) => {
      const newest = Math.max(0, ...rows.keys());
      const row = rows.get(newest);
      rows.delete(newest);
      return () => (row === undefined ? undefined : rows.set(newest, row));
    });
    this.damage.cut = true;
    return {
      restore: () => {
        for (const put of lost) put();
        this.damage.cut = false;
      },
    };
  }

  /** Writes a group, as that on disk does. */
  protected write(turns: readonly (readonly port.Operation[])[]): port.SkippedWrites {
    const skipped = new Map<number, number>();
    this.#eventWrites = new EventWrites({ rows: this.events, copy: copyPlain });
    for (const [index, operations] of turns.entries()) {
      this.#skipped = 0;
      for (const operation of operations) this.#apply(operation);
      if (this.#skipped > 0) skipped.set(index, this.#skipped);
    }
    return skipped;
  }

  #apply(operation: port.Operation): void {
    switch (operation.op) {
      case 'append':
        this.#shelf(operation.kind, operation.id).rows.set(operation.seq, operation.row as port.TurnRow);
        this.damage.heal('journal', `${operation.kind}\0${operation.id}\0${operation.seq}`);
        return;
      case 'snapshot':
        this.#replace(operation.kind, operation.id, operation.row as port.SnapshotRow, operation.fromSeq);
        return;
      case 'mail':
        this.#mail.set(mailName(operation.key), { ...operation.key, command: operation.row as Typed });
        return;
      case 'mailRemove':
        this.#mail.delete(mailName(operation.key));
        this.damage.heal('mail', mailName(operation.key));
        return;
      case 'timer':
        this.#timers.set(timerName(operation.key), { ...operation.key, command: operation.row as Typed });
        this.damage.heal('timer', timerName(operation.key));
        return;
      case 'timerRemove':
        this.#timers.delete(timerName(operation.key));
        return;
      case 'dead': {
        const { command, reason } = operation.row as { command: Typed; reason: string };
        this.#dead.set(deadName(operation.key), { ...operation.key, command, reason });
        return;
      }
      case 'deadRemove':
        this.#dead.delete(deadName(operation.key));
        return;
      case 'index':
        this.damage.heal('index', `${operation.index}\0${operation.key}`);
        if (operation.owner === null) this.#indexes.delete(`${operation.index}\0${operation.key}`);
        else this.#indexes.set(`${operation.index}\0${operation.key}`, operation.owner);
        return;
      case 'audit':
      case 'auditTrim':
        this.#audit.write(operation);
        return;
      case 'meta':
        this.#meta.set(operation.key, operation.row);
        return;
      case 'metaOnce':
        if (isDeepStrictEqual(this.#meta.get(operation.key), operation.was))
          this.#meta.set(operation.key, operation.row);
        return;
      case 'eventWait':
      case 'eventEnter':
      case 'eventLeave':
        this.events.write(operation);
        return;
      default: {
        const write = this.#eventWrites?.decide(operation);
        if (write === undefined) this.#skipped += 1;
        else this.events.write(write);
      }
    }
  }

  #replace(kind: string, id: string, row: port.SnapshotRow, fromSeq: number): void {
    const shelf = this.#shelf(kind, id);
    shelf.snapshot = row;
    this.damage.heal('snapshot', `${kind}\0${id}`);
    for (let seq = fromSeq; seq <= row[1]; seq += 1) shelf.rows.delete(seq);
  }

  #shelf(kind: string, id: string): Shelf {
    const name = `${kind}\0${id}`;
    const shelf: Shelf = this.#shelves.get(name) ?? { snapshot: undefined, rows: new Map() };
    this.#shelves.set(name, shelf);
    return shelf;
  }
}

const mailName = ({ toKind, toId, seq, fromKind, fromId }: port.MailKey) =>
  [toKind, toId, seq, fromKind, fromId].join('\0');
const timerName = ({ dueMs, kind, id, name }: port.TimerKey) => [dueMs, kind, id, name].join('\0');
const deadName = ({ timeMs, kind, id, seq }: port.DeadKey) => [timeMs, kind, id, seq].join('\0');

class MemoryAudit {
  readonly #rowsMax: (ring: StoredRing) => number;
  #rows: AuditRow[] = [];

  constructor(rowsMax: (ring: StoredRing) => number) {
    this.#rowsMax = rowsMax;
  }

  write(operation: AuditOperation): void {
    const { ring } = operation;
    const newest = this.#rows.at(-1)?.seq ?? 0;
    if (operation.op === 'auditTrim') {
      const kept = this.#rows.findLast((row) => isNodeRing(row.ring) === isNodeRing(ring));
      let left = operation.rows;
      this.#rows = this.#rows.filter((row) => row.ring !== ring || row === kept || --left < 0);
      return;
    }
    this.#rows.push({ seq: newest + 1, ring, record: operation.row });
    this.#shrink(ring);
    this.#shrink(null);
  }

  #shrink(ring: StoredRing): void {
    const max = this.#rowsMax(ring);
    if (this.#rows.length <= max) return;
    let over = Math.min(this.rows(ring) - max, GONE_PER_RECORD);
    if (over > 0) this.#rows = this.#rows.filter((row) => row.ring !== ring || --over < 0);
  }

  rows(ring: StoredRing): number {
    return this.#rows.filter((row) => row.ring === ring).length;
  }

  page(afterSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[] {
    const page: AuditRow[] = [];
    for (const row of this.#rows) {
      if (page.length === limit) break;
      if (row.seq > afterSeq && isOf(row, rings)) page.push(row);
    }
    return page;
  }

  before(beforeSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[] {
    const page: AuditRow[] = [];
    for (let index = this.#rows.length - 1; index >= 0 && page.length < limit; index -= 1) {
      const row = this.#rows[index] as AuditRow;
      if (row.seq < beforeSeq && isOf(row, rings)) page.push(row);
    }
    return page;
  }
}

function isOf({ ring }: AuditRow, rings: readonly StoredRing[] | undefined): boolean {
  return rings === undefined || rings.includes(ring);
}
