/**
 * The journal in memory, for the simulation and for tests: order, atomicity and visibility of a disk, with faults on
 * demand. A crash keeps what is durable, and forgets the group in flight or keeps it unacknowledged.
 */
import type { StoredRing } from '../../domain/audit.ts';
import type { IndexName } from './actor.ts';
import type * as port from './journal-port.ts';
import { MemoryAudit } from './memory-audit.ts';
import { MemoryEvents } from './memory-events.ts';
import { checkPlain, copyPlain } from './plain-data.ts';

interface Shelf {
  snapshot: port.SnapshotRow | undefined;
  rows: Map<number, port.TurnRow>;
}

interface Flight {
  readonly group: readonly port.Operation[];
  readonly done: (error: Error | undefined) => void;
}

export interface MemoryJournalOptions {
  /** Runs the completion of a commit. Without it commits wait for `flush` (the simulation drives them). */
  readonly immediate?: (run: () => void) => void;
  /** Audit records kept of a ring; all unless given. */
  readonly auditRowsMax?: (ring: StoredRing) => number;
  /** Planted fault: what reaches the disk in place of the group. */
  readonly tamper?: (group: readonly port.Operation[]) => readonly port.Operation[];
  /** Planted fault: a group is acknowledged before it is written. */
  readonly acknowledgesEarly?: boolean;
}

export class MemoryJournal implements port.Journal {
  readonly events = new MemoryEvents();
  readonly #options: MemoryJournalOptions;
  readonly #shelves = new Map<string, Shelf>();
  readonly #indexes = new Map<string, string>();
  readonly #mail = new Map<string, port.MailRow>();
  readonly #timers = new Map<string, port.TimerRow>();
  readonly #dead = new Map<string, port.DeadRow>();
  readonly #meta = new Map<string, unknown>();
  readonly #audit: MemoryAudit;
  #inFlight: Flight | undefined;
  #epoch = 0;
  /** Acknowledged and not written: only with the planted fault. */
  #early: (readonly port.Operation[])[] = [];
  #failure: Error | undefined;
  #full = false;

  constructor(options: MemoryJournalOptions = {}) {
    this.#options = options;
    this.#audit = new MemoryAudit(options.auditRowsMax ?? (() => Number.POSITIVE_INFINITY));
  }

  pack(value: unknown): port.Packed {
    checkPlain(value);
    return copyPlain(value);
  }

  /** A flat charge: groups close by their commands long before. */
  sizeBytes = () => 64;

  commit(group: readonly port.Operation[], done: (error: Error | undefined) => void): void {
    if (this.#inFlight !== undefined) throw new Error('a group is in flight already');
    this.#inFlight = { group, done };
    const epoch = this.#epoch;
    this.#options.immediate?.(() => {
      if (epoch === this.#epoch) this.flush();
    });
  }

  /** Puts the group in flight on "disk" and acknowledges it. False when there was none. */
  flush(): boolean {
    const inFlight = this.#inFlight;
    if (inFlight === undefined) return false;
    this.#inFlight = undefined;
    const failure = this.#failure;
    this.#failure = undefined;
    if (this.#options.acknowledgesEarly === true) {
      this.#early.push([...inFlight.group]);
      if (this.#early.length > 1) this.#apply(this.#early.shift() ?? []);
    } else if (failure === undefined) this.#apply(inFlight.group);
    inFlight.done(failure);
    return true;
  }

  get flushing(): boolean {
    return this.#inFlight !== undefined;
  }

  /** The process dies: the group in flight is lost, or written without anybody being told. */
  crash(inFlight: 'lost' | 'written'): void {
    if (inFlight === 'written' && this.#inFlight !== undefined) this.#apply(this.#inFlight.group);
    this.#inFlight = undefined;
    this.#early = [];
    this.#epoch += 1;
  }

  /** The next commit fails with this error, and nothing of it is written. */
  failNext(error: Error): void {
    this.#failure = error;
  }

  setFull(full: boolean): void {
    this.#full = full;
  }

  load(kind: string, id: string): port.StoredActor | undefined {
    const shelf = this.#shelves.get(`${kind}\0${id}`);
    if (shelf === undefined) return undefined;
    const rows = [...shelf.rows].sort(([a], [b]) => a - b);
    return {
      snapshot: copyPlain(shelf.snapshot) as port.SnapshotRow | undefined,
      rows: rows.map(([seq, row]) => ({ seq, row: copyPlain(row) as port.TurnRow })),
    };
  }

  has(kind: string, id: string): boolean {
    return this.#shelves.has(`${kind}\0${id}`);
  }

  ids(kind: string, afterId: string, limit: number): string[] {
    const names = [...this.#shelves.keys()].map((name) => name.split('\0'));
    const ids = names.flatMap(([of = '', id = '']) => (of === kind && id > afterId ? [id] : []));
    return ids.sort().slice(0, limit);
  }

  lookup(index: IndexName, key: string): string | undefined {
    return this.#indexes.get(`${index}\0${key}`);
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

  mail(toKind: string, toId: string, afterSeq: number, limit: number): port.MailRow[] {
    return [...this.#mail.values()]
      .filter((row) => row.toKind === toKind && row.toId === toId && row.seq > afterSeq)
      .sort((a, b) => a.seq - b.seq)
      .slice(0, limit)
      .map((row) => ({ ...row, command: copyPlain(row.command) as object }));
  }

  timers(untilMs: number, limit: number): port.TimerRow[] {
    return [...this.#timers.values()]
      .filter((row) => row.dueMs <= untilMs)
      .sort((a, b) => a.dueMs - b.dueMs)
      .slice(0, limit)
      .map((row) => ({ ...row, command: copyPlain(row.command) as object }));
  }

  dead(limit: number): port.DeadRow[] {
    return [...this.#dead.values()].sort((a, b) => a.timeMs - b.timeMs).slice(0, limit);
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

  full(): boolean {
    return this.#full;
  }

  async close(): Promise<void> {
    this.#epoch += 1;
  }

  #apply(group: readonly port.Operation[]): void {
    for (const operation of this.#options.tamper?.(group) ?? group) this.#applyOne(operation);
  }

  #applyOne(operation: port.Operation): void {
    switch (operation.op) {
      case 'append':
        this.#shelf(operation.kind, operation.id).rows.set(operation.seq, operation.row as port.TurnRow);
        return;
      case 'snapshot':
        this.#replace(operation.kind, operation.id, operation.row as port.SnapshotRow, operation.fromSeq);
        return;
      case 'mail':
        this.#mail.set(mailName(operation.key), { ...operation.key, command: operation.row as object });
        return;
      case 'mailRemove':
        this.#mail.delete(mailName(operation.key));
        return;
      case 'timer':
        this.#timers.set(timerName(operation.key), { ...operation.key, command: operation.row as object });
        return;
      case 'timerRemove':
        this.#timers.delete(timerName(operation.key));
        return;
      case 'dead': {
        const { command, reason } = operation.row as { command: object; reason: string };
        this.#dead.set(deadName(operation.key), { ...operation.key, command, reason });
        return;
      }
      case 'deadRemove':
        this.#dead.delete(deadName(operation.key));
        return;
      case 'index':
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
      default:
        this.events.write(operation);
    }
  }

  #replace(kind: string, id: string, row: port.SnapshotRow, fromSeq: number): void {
    const shelf = this.#shelf(kind, id);
    shelf.snapshot = row;
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
