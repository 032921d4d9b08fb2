/** Filtered pages of the audit log, with a bound on the records that a page reads. */
import { setImmediate } from 'node:timers/promises';
import type { AuditRecord } from '../../actors/runtime/actor.ts';
import type { AuditRow } from '../../actors/runtime/journal/port.ts';
import { AUDIT_EVENTS, type AuditEvent, type AuditRing, type StoredRing } from '../../domain/audit.ts';
import { DAY_MS } from '../../domain/time.ts';

/** Records that one page reads; the page says where to continue. */
export const AUDIT_SCAN_MAX = 20_000;
/** Records read before the search yields to the event loop: about 5 ms, measured over LMDB. */
const SLICE = 1_000;
/** A record has the time at which its request began and is written when it ends: at most this much later. */
const LATE_MS = DAY_MS;

export interface AuditLog {
  auditPage(afterSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[];
  auditBefore(beforeSeq: number, limit: number, rings?: readonly StoredRing[]): AuditRow[];
}

export interface AuditSearch {
  /** Positions, both exclusive. */
  readonly after: number;
  readonly before: number;
  readonly oldestFirst: boolean;
  readonly limit: number;
  readonly userId: string | undefined;
  readonly event: AuditEvent | undefined;
  readonly ring: AuditRing | undefined;
  /** Both inclusive; infinite where the search has no such end. */
  readonly fromMs: number;
  readonly toMs: number;
}

interface AuditPage {
  readonly rows: readonly AuditRow[];
  /** Where the next page begins (exclusive); undefined at the end of the log. */
  readonly next: number | undefined;
}

export async function searchAudit(log: AuditLog, search: AuditSearch): Promise<AuditPage> {
  const { limit, oldestFirst } = search;
  const ring = search.ring ?? (search.event === undefined ? undefined : AUDIT_EVENTS[search.event]);
  // Records of versions without rings hold every event.
  const rings = ring === undefined ? undefined : [null, ring];
  const isFiltered = ring !== undefined || search.userId !== undefined || isTimed(search);
  const read = (position: number, count: number) =>
    oldestFirst ? log.auditPage(position, count, rings) : log.auditBefore(position, count, rings);
  const rows: AuditRow[] = [];
  let position = oldestFirst ? search.after : startOf(log, search, rings);
  for (let left = AUDIT_SCAN_MAX; ; ) {
    const count = Math.min(SLICE, left, isFiltered ? SLICE : limit - rows.length);
    const slice = read(position, count);
    for (const row of slice) {
      if (isBehind(row, search)) return { rows, next: undefined };
      position = row.seq;
      if (fits(row, search)) rows.push(row);
      if (rows.length === limit) return { rows, next: read(position, 1).length === 0 ? undefined : position };
    }
    if (slice.length < count) return { rows, next: undefined };
    left -= slice.length;
    if (left === 0) return { rows, next: position };
    // Yields to other requests.
    await setImmediate();
  }
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

/** No record from here on matches. */
function isBehind(row: AuditRow, { after, fromMs, oldestFirst }: AuditSearch): boolean {
  if (oldestFirst) return false;
  return row.seq <= after || timeOf(row) < fromMs - LATE_MS;
}

/** A position above every match: a binary search down to one slice behind the end of the requested time. */
function startOf(log: AuditLog, { before, toMs }: AuditSearch, rings: readonly StoredRing[] | undefined) {
  const [newest] = log.auditBefore(before, 1, rings);
  if (newest === undefined || !Number.isFinite(toMs)) return before;
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
