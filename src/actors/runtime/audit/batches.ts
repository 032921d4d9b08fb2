/**
 * Audit records for the database of a cluster: packed, and cut into batches of one ring each. A batch spans a minute at
 * most, so that a page finds by the end of a batch all that may hold a record of a time.
 */
import { AUDIT_EVENTS, AUDIT_RINGS, type AuditRing } from '../../../domain/audit.ts';
import { MINUTE_MS } from '../../../domain/time.ts';
import type { AuditRecord } from '../actor.ts';
import { checkPlain } from '../journal/plain-data.ts';
import { createPackr } from '../journal/row-checksum.ts';

export interface PackedCall {
  readonly timeMs: number;
  readonly ring: AuditRing;
  readonly row: Uint8Array;
}

/** Stored as one row. Its records are in the order of their times. */
export interface CallBatch {
  readonly ring: AuditRing;
  readonly records: readonly PackedCall[];
}

export const BATCH_RECORDS_MAX = 4_000;
export const BATCH_SPAN_MS = MINUTE_MS;

const packr = createPackr();

/** Throws TypeError when the record cannot be stored. */
export function packCall(record: AuditRecord): PackedCall {
  checkPlain(record);
  return { timeMs: record.utcMs, ring: AUDIT_EVENTS[record.event], row: packr.pack(record) };
}

/** Throws for bytes that are no packed value. */
export function unpackCall(row: Uint8Array): unknown {
  return packr.unpack(row as Buffer);
}

export function batchesOf(records: readonly PackedCall[]): CallBatch[] {
  const batches: CallBatch[] = [];
  for (const ring of AUDIT_RINGS) {
    const sorted = records.filter((record) => record.ring === ring).sort((a, b) => a.timeMs - b.timeMs);
    for (let start = 0; start < sorted.length; ) {
      const untilMs = (sorted[start]?.timeMs ?? 0) + BATCH_SPAN_MS;
      const most = sorted.slice(start, start + BATCH_RECORDS_MAX);
      const end = most.findIndex(({ timeMs }) => timeMs > untilMs);
      const batch = end < 0 ? most : most.slice(0, end);
      batches.push({ ring, records: batch });
      start += batch.length;
    }
  }
  return batches;
}
