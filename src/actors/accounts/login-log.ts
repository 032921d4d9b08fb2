/** The login log of one account: what an entry holds, how many are kept, and when the oldest leave. */
import { ERRORS, type ErrorName } from '../../domain/errors.ts';
import type { LoginType, SessionKind } from '../../domain/sessions.ts';
import type { Turn } from '../runtime/actor.ts';

/** Successful logins kept; refused ones have a bound of their own, so that hammering cannot flush the log. */
export const LOG_ACCEPTED_MAX = 70;
export const LOG_REFUSED_MAX = 30;
/** Entries that may lie above the bounds until the next clearing: one pass over the log for so many logins. */
const LOG_SLACK = 32;

export type LogEventName =
  | 'login'
  | 'sign_up'
  | 'key_taken_over'
  | 'counter_regressed'
  | 'host_connected'
  | 'host_refused'
  | 'host_revoked'
  | 'contact_sync_added'
  | 'token_reused'
  | 'contact_added'
  | 'contact_removed'
  | 'sessions_ended_by_admin'
  | 'key_added_by_admin'
  | 'key_changed_by_admin'
  | 'key_removed_by_admin';

export interface LogEntry {
  readonly id: string;
  readonly utcMs: number;
  readonly event: LogEventName;
  readonly ok: boolean;
  /** Message of the error table; of a token that was used again with what it was. */
  readonly error: string | null;
  readonly kind: SessionKind;
  readonly loginType: LoginType | null;
  readonly keyId: string | null;
  readonly appId: string | null;
  readonly ip: string;
  readonly userAgent: string;
}

type LogOrigin = Pick<LogEntry, 'ip' | 'userAgent'>;
type LogSubject = Pick<LogEntry, 'kind' | 'loginType' | 'keyId' | 'appId'>;

/** The event of a refused login, for the owner to read. */
export function loginRefused(row: ErrorName, origin: LogOrigin, login: LogSubject, turn: Turn) {
  return logged('login', row, login, origin, turn);
}

/** The event of something that the account or a connected host did, for the owner to read. `reason`: of `token_reused`. */
export function hostLogged(
  event: LogEventName,
  host: Omit<LogSubject, 'kind'>,
  origin: LogOrigin,
  turn: Turn,
  reason?: string,
) {
  const row = event === 'token_reused' ? 'OAuthInvalidGrant' : 'AccessDenied';
  const isRefusal = event === 'host_refused' || event === 'token_reused';
  const { keyId, appId, loginType } = host;
  const kind = event === 'host_refused' ? 'browser' : 'mcp';
  return logged(event, isRefusal ? row : null, { kind, loginType, keyId, appId }, origin, turn, reason);
}

/** The event of a change of the account, of the session that asked for it. */
export function accountLogged(event: LogEventName, by: LogSubject, origin: LogOrigin, turn: Turn) {
  const { kind, loginType, keyId, appId } = by;
  return logged(event, null, { kind, loginType, keyId, appId }, origin, turn);
}

/** `row`: of a refusal. */
function logged(
  event: LogEventName,
  row: ErrorName | null,
  subject: LogSubject,
  { ip, userAgent }: LogOrigin,
  turn: Turn,
  reason?: string,
) {
  const words = row === null ? null : ERRORS[row].message;
  const error = reason === undefined ? words : `${words}: ${reason}`;
  const result = { event, ok: row === null, error };
  const entry: LogEntry = { id: turn.newId(), utcMs: turn.nowMs, ...result, ...subject, ip, userAgent };
  return { type: 'logged', entry } as const;
}

/** Returns the log with a newer entry. A full log is cut back first. */
export function appended(log: readonly LogEntry[], entry: LogEntry): readonly LogEntry[] {
  const full = log.length >= LOG_ACCEPTED_MAX + LOG_REFUSED_MAX + LOG_SLACK;
  return (full ? keptLog(log) : log).concat([entry]);
}

/** The entries within the bounds, in their order: the newest of each kind. */
export function keptLog(log: readonly LogEntry[]): readonly LogEntry[] {
  let accepted = 0;
  for (const { ok } of log) accepted += ok ? 1 : 0;
  let acceptedOver = accepted - LOG_ACCEPTED_MAX;
  let refusedOver = log.length - accepted - LOG_REFUSED_MAX;
  if (acceptedOver <= 0 && refusedOver <= 0) return log;
  return log.filter(({ ok }) => (ok ? acceptedOver-- : refusedOver--) <= 0);
}
