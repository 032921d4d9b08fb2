/** Effects of a turn of the user actor, put together from parts: events, claims, timers, messages, audit records. */
import type { AuditEvent } from '../domain/audit.ts';
import type { UserEvent, UserState, UserTimer } from './accounts/user-types.ts';
import { UPLOAD } from './files/v1/upload-messages.ts';
import type { AuditRecord, Claim, Later, Message, Outcome, Timer, Turn } from './runtime/actor.ts';
import type { Typed } from './runtime/protocol.ts';
import { messageTo } from './runtime/protocol.ts';

export interface Origin {
  readonly ip: string;
  /** User agent, at most 256 characters. */
  readonly userAgent: string;
  /** User id of the admin, where it is not the account itself that asks. */
  readonly by?: string;
}

export interface Change {
  readonly events: readonly UserEvent[];
  readonly claims?: readonly Claim[];
  readonly timers?: readonly Timer<UserTimer>[];
  readonly send?: readonly Message[];
  readonly audit?: readonly AuditRecord[];
}

/** The outcome of a turn of an account; `FollowUp` is the command that `next` resolves with. */
export type UserOutcome<Reply, FollowUp extends Typed = never> = Outcome<
  UserEvent,
  Reply,
  UserTimer | FollowUp
>;

/** The parts in their order; `reply` goes out when they are on disk. */
export function outcome<Reply>(changes: readonly Change[], reply: Reply | Later): UserOutcome<Reply> {
  const { events, claims, timers, send, audit } = merged(changes);
  // No spread: all outcomes keep one hidden class, so code that reads them stays fast.
  return { events, claims, timers, send, audit, reply };
}

export function merged(changes: readonly Change[]): Required<Change> {
  const events: UserEvent[] = [];
  const claims: Claim[] = [];
  const timers: Timer<UserTimer>[] = [];
  const send: Message[] = [];
  const audit: AuditRecord[] = [];
  for (const change of changes) {
    append(events, change.events);
    append(claims, change.claims);
    append(timers, change.timers);
    append(send, change.send);
    append(audit, change.audit);
  }
  return { events, claims, timers, send, audit };
}

function append<T>(all: T[], more: readonly T[] | undefined): void {
  if (more === undefined) return;
  for (const each of more) all.push(each);
}

/** The account was blocked: its open v1 upload ends, so that the slot is free for others. */
export function uploadDropped({ userId }: UserState): Change {
  return { events: [], send: [messageTo(UPLOAD, userId, { type: 'dropUpload' })] };
}

/** An audit record alone. `fields` never hold a secret. */
export function audited(
  state: UserState,
  turn: Turn,
  event: AuditEvent,
  origin: Origin,
  fields: AuditRecord['fields'] = {},
): Change {
  const record: AuditRecord = {
    utcMs: turn.nowMs,
    event,
    userId: state.userId,
    fields: { ip: origin.ip, ...(origin.by === undefined ? {} : { by: origin.by }), ...fields },
  };
  return { events: [], audit: [record] };
}
