/**
 * The audit log on disk: one sub-database a ring, all keyed by one sequence of positions, so that a page of several
 * rings is a merge. Owns the positions and the bound of each ring.
 */
import { isNodeRing, STORED_RINGS, type StoredRing } from '../../../domain/audit.ts';
import { type AuditRow, DamagedRow, type Operation } from './port.ts';
import type { StoredTable } from './reader.ts';

export type AuditOperation = Extract<Operation, { op: 'audit' | 'auditTrim' }>;

/** Records that a new one removes at most: after its bound was lowered a ring shrinks as it is written. */
export const GONE_PER_RECORD = 4;
/** Positions of the oldest records that are read ahead, so that a full ring costs one read in so many records. */
const OLDEST_READ = 256;

/** The rings of the log, each with the sub-database it is in. */
export function auditTables(table: (name: string) => StoredTable): ReadonlyMap<StoredRing, StoredTable> {
  return new Map(STORED_RINGS.map((ring) => [ring, table(auditTableName(ring))]));
}

export function auditTableName(ring: StoredRing): string {
  return ring === null ? 'audit' : `audit/${ring}`;
}

export class JournalAudit {
  readonly #rings: ReadonlyMap<StoredRing, Ring>;
  readonly #rowsMax: (ring: StoredRing) => number;
  #last = 0;
  /** Newest positions. */
  readonly #newest = { shared: 0, ofNode: 0 };

  /** `rowsMax` is asked at every record: a lower bound takes effect as the log is written. */
  constructor(tables: ReadonlyMap<StoredRing, StoredTable>, rowsMax: (ring: StoredRing) => number) {
    this.#rings = new Map([...tables].map(([ring, table]) => [ring, new Ring(table)]));
    this.#rowsMax = rowsMax;
  }

  /** Finds the newest position. */
  prepare(): void {
    for (const [name, ring] of this.#rings) {
      const newest = ring.prepare();
      const part = partOf(name);
      this.#newest[part] = Math.max(this.#newest[part], newest);
      this.#last = Math.max(this.#last, newest);
    }
  }

  /** A group begins: the rows of all earlier ones can be read. */
  begin(): void {
    for (const ring of this.#rings.values()) ring.begin();
  }

  write(operation: AuditOperation): void {
    const ring = this.#rings.get(operation.ring);
    if (ring === undefined) throw new TypeError(`the audit log has no ring ${operation.ring}`);
    const part = partOf(operation.ring);
    if (operation.op === 'auditTrim') {
      ring.trim(operation.rows, this.#newest[part]);
      return;
    }
    this.#last += 1;
    this.#newest[part] = this.#last;
    ring.add(this.#last, operation.row);
    ring.shrink(this.#rowsMax(operation.ring));
    this.#rings.get(null)?.shrink(this.#rowsMax(null));
  }

  rows(ring: StoredRing): number {
    return this.#rings.get(ring)?.rows ?? 0;
  }

  /** Oldest first, after a position. */
  page(afterSeq: number, limit: number, rings: readonly StoredRing[] = STORED_RINGS): AuditRow[] {
    return this.#merged({ start: afterSeq + 1, limit }, rings, (a, b) => a < b);
  }

  /** Newest first, before a position. */
  before(beforeSeq: number, limit: number, rings: readonly StoredRing[] = STORED_RINGS): AuditRow[] {
    const start = Math.min(beforeSeq, Number.MAX_SAFE_INTEGER) - 1;
    return this.#merged({ start, reverse: true, limit }, rings, (a, b) => a > b);
  }

  #merged(
    range: { start: number; reverse?: boolean; limit: number },
    rings: readonly StoredRing[],
    precedes: (a: number, b: number) => boolean,
  ): AuditRow[] {
    const heads = rings.flatMap((name) => {
      const ring = this.#rings.get(name);
      return ring === undefined || ring.rows === 0 ? [] : [new Head(name, ring.table.getRange(range))];
    });
    const rows: AuditRow[] = [];
    try {
      while (rows.length < range.limit) {
        let first: Head | undefined;
        for (const head of heads) {
          if (head.row === undefined) continue;
          if (first?.row === undefined || precedes(head.row.seq, first.row.seq)) first = head;
        }
        if (first?.row === undefined) break;
        rows.push(first.row);
        first.move();
      }
    } finally {
      for (const head of heads) head.close();
    }
    return rows;
  }
}

function partOf(ring: StoredRing): 'shared' | 'ofNode' {
  return isNodeRing(ring) ? 'ofNode' : 'shared';
}

/** Position of a merge in one ring. */
class Head {
  row: AuditRow | undefined;
  readonly #ring: StoredRing;
  readonly #iterator: Iterator<{ key: unknown; value: unknown }>;

  constructor(ring: StoredRing, range: Iterable<{ key: unknown; value: unknown }>) {
    this.#ring = ring;
    this.#iterator = range[Symbol.iterator]();
    this.move();
  }

  move(): void {
    const { done, value } = this.#iterator.next();
    if (done === true) this.row = undefined;
    else {
      const record = value.value instanceof DamagedRow ? undefined : value.value;
      this.row = { seq: value.key as number, ring: this.#ring, record };
    }
  }

  /** Gives the engine's cursor back. */
  close(): void {
    if (this.row !== undefined) this.#iterator.return?.();
  }
}

/** One ring. Rows of the group that is being written cannot be read yet, so their positions are kept here. */
class Ring {
  readonly table: StoredTable;
  rows = 0;
  /** Positions read ahead, the oldest first, from `#next` on. */
  #oldest: number[] = [];
  #next = 0;
  #removedTo = 0;
  #fresh: number[] = [];
  #freshNext = 0;

  constructor(table: StoredTable) {
    this.table = table;
  }

  /** The newest position, 0 of an empty ring. */
  prepare(): number {
    this.rows = this.table.count();
    for (const key of this.table.getKeys({ reverse: true, limit: 1 })) return Number(key);
    return 0;
  }

  begin(): void {
    if (this.#fresh.length === 0) return;
    this.#fresh = [];
    this.#freshNext = 0;
  }

  add(seq: number, row: unknown): void {
    this.table.put(seq, row);
    this.#fresh.push(seq);
    this.rows += 1;
  }

  shrink(rowsMax: number): void {
    for (let gone = 0; gone < GONE_PER_RECORD && this.rows > rowsMax; gone += 1) this.#removeOldest();
  }

  /** Removes so many of the oldest, but not the one at position `kept`. */
  trim(rows: number, kept: number): void {
    const most = Math.min(rows, this.rows);
    for (let gone = 0; gone < most && this.#first() !== kept; gone += 1) this.#removeOldest();
  }

  #first(): number | undefined {
    if (this.#next === this.#oldest.length) {
      this.#oldest = [];
      this.#next = 0;
      for (const key of this.table.getKeys({ start: this.#removedTo + 1, limit: OLDEST_READ }))
        this.#oldest.push(Number(key));
    }
    return this.#oldest[this.#next] ?? this.#fresh[this.#freshNext];
  }

  #removeOldest(): void {
    const oldest = this.#first();
    if (oldest === undefined) return;
    if (this.#next < this.#oldest.length) this.#next += 1;
    else this.#freshNext += 1;
    this.#removedTo = oldest;
    this.table.remove(oldest);
    this.rows -= 1;
  }
}
