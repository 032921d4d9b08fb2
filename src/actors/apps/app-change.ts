/** What a turn of the app actor sends: messages to accounts, audit records. Secrets are in none of them. */
import type { AuditEvent } from '../../domain/audit.ts';
import { type AppNotice, USER } from '../accounts/user-messages.ts';
import type { AuditRecord, Message, Turn } from '../runtime/actor.ts';
import { messageTo } from '../runtime/protocol.ts';

export function toUser(userId: string, command: AppNotice): Message {
  return messageTo(USER, userId, command);
}

export function appRecord(
  turn: Turn,
  event: AuditEvent,
  userId: string,
  fields: AuditRecord['fields'],
): AuditRecord {
  return { utcMs: turn.nowMs, event, userId, fields };
}
