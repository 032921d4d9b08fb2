/** The one way of a record into the audit log: its event names its ring. */
import { AUDIT_EVENTS } from '../../../domain/audit.ts';
import type { AuditRecord } from '../actor.ts';
import type { Operation, Packed } from '../journal/port.ts';

/** Throws TypeError when the record cannot be stored. */
export function auditOperation(record: AuditRecord, pack: (value: unknown) => Packed): Operation {
  return { op: 'audit', ring: AUDIT_EVENTS[record.event], row: pack(record) };
}
