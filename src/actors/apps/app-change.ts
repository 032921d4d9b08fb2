/** Messages and audit records of a turn of the app actor. Secrets are in none of them. */
import { GATEWAY_OWNER_ID } from '../../domain/apps.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import type { WebhookNotice } from '../../domain/webhooks/types.ts';
import { type AppNotice, USER } from '../accounts/user-messages.ts';
import type { AuditRecord, Message, Turn } from '../runtime/actor.ts';
import { messageTo } from '../runtime/protocol.ts';
import { APP } from './app-messages.ts';
import type { AppState } from './app-state.ts';

export function toUser(userId: string, command: AppNotice): Message {
  return messageTo(USER, userId, command);
}

/** Message to itself: the owner is to be notified. */
export function notice({ id }: Pick<AppState, 'id'>, notice: WebhookNotice): Message {
  return messageTo(APP, id, { type: 'tell', notice });
}

/** Notices to the owner and the application when an admin, or a change of redirect URIs, decided anew. */
export function approvalNotices(before: AppState, after: AppState): Message[] {
  const { id: appId, ownerId, name, approved, disabled } = after;
  if (ownerId === GATEWAY_OWNER_ID || (before.approved === approved && before.disabled === disabled))
    return [];
  return [notice(after, { type: 'AppApprovalChanged', ownerId, data: { appId, name, approved, disabled } })];
}

export function appRecord(
  turn: Turn,
  event: AuditEvent,
  userId: string,
  fields: AuditRecord['fields'],
): AuditRecord {
  return { utcMs: turn.nowMs, event, userId, fields };
}
