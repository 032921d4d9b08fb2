/** What a turn of the user actor does, put together from parts: events, claims, timers, messages, audit records. */
import type { AuditRecord, Claim, Message, Outcome, Timer, Turn } from './runtime/actor.ts';
import type { UserEvent, UserState } from './user-state.ts';

/** Where a request came from. */
export interface Origin {
  readonly ip: string;
  /** At most 256 characters. */
  readonly userAgent: string;
  /** User id of the admin, where it is not the account itself that asks. */
  readonly by?: string;
}

export interface Change {
  readonly events: readonly UserEvent[];
  readonly claims?: readonly Claim[];
  readonly timers?: readonly Timer[];
  readonly send?: readonly Message[];
  readonly audit?: readonly AuditRecord[];
}

/** The parts in their order; `reply` goes out when they are on disk. */
export function outcome(changes: readonly Change[], reply: unknown): Outcome<UserEvent> {
  return { ...merged(changes), reply };
}

export function merged(changes: readonly Change[]): Required<Change> {
  return {
    events: changes.flatMap((change) => change.events),
    claims: changes.flatMap((change) => change.claims ?? []),
    timers: changes.flatMap((change) => change.timers ?? []),
    send: changes.flatMap((change) => change.send ?? []),
    audit: changes.flatMap((change) => change.audit ?? []),
  };
}

/** The account was blocked: its open v1 upload ends, so that the slot is free for others. */
export function uploadDropped({ userId }: UserState): Change {
  return { events: [], send: [{ toKind: 'upload', toId: userId, command: { type: 'dropUpload' } }] };
}

/** An audit record alone. `fields` never hold a secret. */
export function audited(
  state: UserState,
  turn: Turn,
  event: string,
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
