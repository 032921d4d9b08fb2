/** Lifetime of the sessions of an account: their end, and which ones a new session pushes out. */
import {
  BROWSER_SESSIONS_MAX,
  CONTACT_SYNC_TOKENS_MAX,
  GRANT_SESSIONS_MAX,
  MCP_SESSIONS_MAX,
  TOUCH_INTERVAL_MS,
} from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { Turn } from '../runtime/actor.ts';
import type { SessionRecord, UserState } from './user-types.ts';

/** Moment from which the session is refused. `seenMs` is its last use. */
export function endOf(session: SessionRecord, seenMs: number, settings: SettingsReader): number {
  if (session.kind !== 'browser') return session.expiresMs;
  return Math.min(session.expiresMs, seenMs + settings.get('BrowserSessionIdleSeconds') * SECOND_MS);
}

/** Sessions that a new one pushes out: the one it replaces, expired ones, the oldest over the cap. */
export function outdated(
  state: UserState,
  turn: Turn,
  opening: SessionRecord,
  replacesSessionId: string | undefined,
): SessionRecord[] {
  const max = sessionsMax(opening);
  // Nothing expires before the sweep is due, so most openings look at no other session.
  const unexpired = state.sweepDueMs !== null && turn.nowMs < state.sweepDueMs;
  if (unexpired && replacesSessionId === undefined && state.sessions.length < max) return [];
  const leaving: SessionRecord[] = [];
  const rivals: SessionRecord[] = [];
  for (const session of state.sessions) {
    if (session.id === replacesSessionId || isExpired(session, turn)) leaving.push(session);
    else if (sharesCap(session, opening)) rivals.push(session);
  }
  const surplus = rivals.length + 1 - max;
  return surplus > 0 ? [...leaving, ...rivals.slice(0, surplus)] : leaving;
}

function sessionsMax({ kind, grantId }: SessionRecord): number {
  if (grantId !== undefined) return GRANT_SESSIONS_MAX;
  if (kind === 'contactSync') return CONTACT_SYNC_TOKENS_MAX;
  return kind === 'browser' ? BROWSER_SESSIONS_MAX : MCP_SESSIONS_MAX;
}

function sharesCap(session: SessionRecord, opening: SessionRecord): boolean {
  if (session.kind !== opening.kind || session.grantId !== opening.grantId) return false;
  if (opening.grantId !== undefined) return true;
  return (
    opening.kind === 'browser' ||
    (session.keyId === opening.keyId &&
      session.loginType === opening.loginType &&
      session.signed === opening.signed)
  );
}

/** The written last use is up to one touch behind the real one, so the sweep waits that much longer. */
export function isExpired(session: SessionRecord, turn: Turn): boolean {
  return turn.nowMs >= endOf(session, session.lastSeenMs, turn.settings) + TOUCH_INTERVAL_MS;
}
