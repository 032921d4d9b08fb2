/** What a turn of the app actor sends: messages to accounts, audit records. Secrets are in none of them. */
import type { AuditEvent } from '../../domain/audit.ts';
import type { AuditRecord, Message, Turn } from '../runtime/actor.ts';
import { messageTo, receiver } from '../runtime/protocol.ts';

/** What an application tells accounts; user-apps.ts and user-app-access.ts decide it. */
type AppMessage =
  | { readonly type: 'appSettled'; readonly commandId: string; readonly reply: unknown }
  | { readonly type: 'appClosed'; readonly appId: string; readonly tick: string }
  | { readonly type: 'appGone'; readonly appId: string };

const USER = receiver<AppMessage>('user');

export function toUser(userId: string, command: AppMessage): Message {
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
