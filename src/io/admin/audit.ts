/**
 * Filtered pages of the audit log, with a bound on the records that a page reads. In a cluster that keeps records of calls
 * in its database, pages merge those with the records of the journal by their times.
 */
import { setImmediate } from 'node:timers/promises';
import type { AuditRecord } from '../../actors/runtime/actor.ts';
import type { AuditRow } from '../../actors/runtime/journal/port.ts';
import {
  AUDIT_EVENTS,
  AUDIT_RINGS,
  type AuditEvent,
  type AuditRing,
  nodeRingOf,
  type StoredRing,
} from '../../domain/audit.ts';
import { DAY_MS } from '../../domain/time.ts';

/** Records that one page reads; the page says where to continue. */
export const AUDIT_SCAN_MAX = 20_000;
/** Records read before the search yields to the event loop: about 5 ms, measured over LMDB. */
const SLICE = 1_000;
/** Records of the database are read by whole batches: a filtered page asks for more of them at a time. */
const CALL_SLICE = 4_000;
/** A record has the time at which its request began and is written when it ends: at most this much later. */
const LATE_MS = DAY_MS;

export interface AuditLog {
  auditPage(afterSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[];
  auditBefore(beforeSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[];
}

/** Place of a record in the database: by time, then by node, then by its number there. */
export interface CallPosition {
  readonly timeMs: number;
  readonly node: number;
  readonly seq: number;
}

const BEGINNING: CallPosition = { timeMs: 0, node: 0, seq: 0 };

/** Records in the database, of all nodes. */
export interface CallLog {
  /** The newest first, before a position. */
  before(
    position: CallPosition | undefined,
    limit: number,
    rings: readonly AuditRing[],
  ): Promise<readonly (AuditRow & CallPosition)[]>;
}

export interface AuditSearch {
  /** Positions, both exclusive. */
  readonly after: number;
  readonly before: number;
  /** Exclusive; undefined: from the newest. */
  readonly callsBefore: CallPosition | undefined;
  readonly oldestFirst: boolean;
  readonly limit: number;
  readonly userId: string | undefined;
  readonly event: AuditEvent | undefined;
  readonly ring: AuditRing | undefined;
  /** Both inclusive; infinite where the search has no such end. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** Position at which the next page begins, exclusive. */
interface NextPage {
  readonly position: number;
  readonly calls: CallPosition | undefined;
}

interface AuditPage {
  readonly rows: readonly AuditRow[];
  /** Undefined at the end of the log. */
  readonly next: NextPage | undefined;
}

/** `calls`: records that are in the database, in pages that begin with the newest. */
export async function searchAudit(log: AuditLog, search: AuditSearch, calls?: CallLog): Promise<AuditPage> {
  const { limit } = search;
  const fromJournal = new JournalRows(log, search);
  const fromCalls = calls === undefined || search.oldestFirst ? undefined : new CallRows(calls, search);
  const filtered = isFiltered(search);
  const rows: AuditRow[] = [];
  const next = () => ({ position: fromJournal.position, calls: fromCalls?.position });
  for (let left = AUDIT_SCAN_MAX; ; left -= 1) {
    // Yields to other requests.
    if (left % SLICE === 0 && left < AUDIT_SCAN_MAX) await setImmediate();
    const wanted = Math.max(1, Math.min(left, filtered ? CALL_SLICE : limit - rows.length));
    if (fromJournal.isEmpty) fromJournal.read(Math.min(SLICE, wanted));
    if (fromCalls?.isEmpty === true) await fromCalls.read(wanted);
    const [journalRow, callRow] = [fromJournal.head, fromCalls?.head];
    if (journalRow === undefined && callRow === undefined) return { rows, next: undefined };
    if (left === 0 || rows.length === limit) return { rows, next: next() };
    const isCall =
      journalRow === undefined || (callRow !== undefined && callRow.timeMs >= timeOf(journalRow));
    const row = isCall ? fromCalls?.take() : fromJournal.take();
    if (row !== undefined && fits(row, search)) rows.push(row);
  }
}

/** Rows that were read, and the place of the last one that was taken. */
abstract class Rows<Row extends AuditRow> {
  #rows: readonly Row[] = [];
  #at = 0;
  #isOver = false;

  get isEmpty(): boolean {
    return this.#at === this.#rows.length && !this.#isOver;
  }

  get head(): Row | undefined {
    return this.#rows[this.#at];
  }

  take(): Row | undefined {
    const row = this.head;
    if (row !== undefined) this.#at += 1;
    return row;
  }

  /** The last one that was taken of those that were read. */
  protected get taken(): Row | undefined {
    return this.#rows[this.#at - 1];
  }

  /** `isWhole`: there are no others. */
  protected hold(rows: readonly Row[], isWhole: boolean, isBehind: (row: Row) => boolean): void {
    const end = rows.findIndex(isBehind);
    this.#rows = end < 0 ? rows : rows.slice(0, end);
    this.#at = 0;
    // Those behind are read no more.
    this.#isOver = isWhole || end >= 0;
  }
}

class JournalRows extends Rows<AuditRow> {
  readonly #log: AuditLog;
  readonly #search: AuditSearch;
  readonly #rings: readonly StoredRing[] | undefined;
  #start: number;

  constructor(log: AuditLog, search: AuditSearch) {
    super();
    const ring = ringOf(search);
    this.#log = log;
    this.#search = search;
    // Records of versions without rings hold every event.
    this.#rings = ring === undefined ? undefined : [null, ring, nodeRingOf(ring)];
    this.#start = search.oldestFirst ? search.after : startOf(log, search, this.#rings);
  }

  /** Position of the last row that was taken, where another page begins. */
  get position(): number {
    return this.taken?.seq ?? this.#start;
  }

  read(count: number): void {
    this.#start = this.position;
    const { after, fromMs, oldestFirst } = this.#search;
    const rows = oldestFirst
      ? this.#log.auditPage(this.#start, count, this.#rings)
      : this.#log.auditBefore(this.#start, count, this.#rings);
    /** No record from here on matches. */
    const isBehind = (row: AuditRow) => !oldestFirst && (row.seq <= after || timeOf(row) < fromMs - LATE_MS);
    this.hold(rows, rows.length < count, isBehind);
  }
}

class CallRows extends Rows<AuditRow & CallPosition> {
  readonly #calls: CallLog;
  readonly #fromMs: number;
  readonly #rings: readonly AuditRing[];
  #start: CallPosition | undefined;

  constructor(calls: CallLog, search: AuditSearch) {
    super();
    const { callsBefore, fromMs, toMs } = search;
    const ring = ringOf(search);
    this.#calls = calls;
    this.#fromMs = fromMs;
    this.#rings = ring === undefined ? AUDIT_RINGS : [ring];
    const isLater = Number.isFinite(toMs) && (callsBefore === undefined || callsBefore.timeMs > toMs);
    this.#start = isLater ? { timeMs: toMs, node: Number.MAX_SAFE_INTEGER, seq: 0 } : callsBefore;
  }

  /** Returns a position also where no record was taken: records that arrive later belong to earlier pages. */
  get position(): CallPosition {
    const { head, taken } = this;
    if (taken !== undefined || head === undefined) return taken ?? BEGINNING;
    return { ...head, seq: head.seq + 1 };
  }

  async read(count: number): Promise<void> {
    this.#start = this.taken ?? this.#start;
    const rows = await this.#calls.before(this.#start, count, this.#rings);
    this.hold(rows, rows.length < count, ({ timeMs }) => timeMs < this.#fromMs);
  }
}

function ringOf({ event, ring }: AuditSearch): AuditRing | undefined {
  return ring ?? (event === undefined ? undefined : AUDIT_EVENTS[event]);
}

function isFiltered(search: AuditSearch): boolean {
  return ringOf(search) !== undefined || search.userId !== undefined || isTimed(search);
}

function isTimed({ fromMs, toMs }: AuditSearch): boolean {
  return Number.isFinite(fromMs) || Number.isFinite(toMs);
}

function fits(row: AuditRow, search: AuditSearch): boolean {
  const { userId, event, ring, fromMs, toMs } = search;
  const record = row.record as AuditRecord | undefined;
  if (record === undefined) {
    // Damaged: of no known account, event or time.
    const named = userId !== undefined || event !== undefined || isTimed(search);
    return !named && (ring === undefined || row.ring === ring);
  }
  return (
    (userId === undefined || record.userId === userId) &&
    (event === undefined || record.event === event) &&
    (ring === undefined || AUDIT_EVENTS[record.event] === ring) &&
    record.utcMs >= fromMs &&
    record.utcMs <= toMs
  );
}

/** A position above every match: a binary search down to one slice behind the end of the requested time. */
function startOf(log: AuditLog, { before, toMs }: AuditSearch, rings: readonly StoredRing[] | undefined) {
  const [newest] = log.auditBefore(before, 1, rings);
  if (newest === undefined || !Number.isFinite(toMs)) return newest === undefined ? 1 : newest.seq + 1;
  let [low, high] = [0, newest.seq + 1];
  while (high - low > SLICE) {
    const middle = Math.floor((low + high) / 2);
    const [row] = log.auditBefore(middle, 1, rings);
    if (row !== undefined && row.seq > low && timeOf(row) > toMs + LATE_MS) high = row.seq;
    else low = middle;
  }
  return high;
}

/** NaN for a damaged record: neither before nor after any time. */
function timeOf(row: AuditRow): number {
  return (row.record as AuditRecord | undefined)?.utcMs ?? Number.NaN;
}
