/**
 * Sessions of one user: opening under the caps, ending, closing on demand, the last-seen touch and the sweep of
 * expired ones. A session ends in the same commit that releases the name of its token.
 */
import { hashToken, makeToken } from '../../domain/ids.ts';
import { type LoginType, NO_END_MS, type SessionKind, TOUCH_INTERVAL_MS } from '../../domain/sessions.ts';
import { MINUTE_MS, SECOND_MS } from '../../domain/time.ts';
import type { EntryTicks } from '../apps/app-access-index.ts';
import {
  audited,
  type Change,
  merged,
  type Origin,
  outcome,
  type UserOutcome,
  uploadDropped,
} from '../change.ts';
import { type Claim, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { refusedChallenge } from './challenges.ts';
import { findById } from './id-list.ts';
import { accountLogged } from './login-log.ts';
import { sessionIndex, sessionOwner } from './owners.ts';
import { endOf, isExpired, outdated } from './session-expiry.ts';
import type { EndSession } from './user-messages.ts';
import type {
  HostGrant,
  LoginRecord,
  SessionOpening,
  SessionRecord,
  Sweep,
  UsedChallenge,
  UserState,
} from './user-types.ts';

export const SWEEP_TIMER = 'sweep';

export type SessionCommand =
  /** The listed ones, all but the current one, or (neither given) all. */
  | {
      readonly type: 'closeSessions';
      readonly currentSessionId: string;
      readonly sessionIds?: readonly string[];
      readonly others?: boolean;
      readonly origin: Origin;
    }
  | { readonly type: 'touchSession'; readonly sessionId: string; readonly seenMs: number }
  | {
      readonly type: 'setBlocked';
      readonly blocked: boolean;
      /** Kept in the audit log alone. */
      readonly reason?: string | undefined;
      readonly origin: Origin;
    };

/** The reply to `setBlocked`. */
export interface BlockedAccount {
  readonly blocked: boolean;
  readonly sessionsClosed: number;
}

export interface ClosedSessions {
  readonly sessionsClosed: number;
  readonly currentClosed: boolean;
}

interface NewSession {
  readonly kind: SessionKind;
  readonly loginType: LoginType | null;
  readonly keyId: string | null;
  readonly appId: string | null;
  /** The login carried a signature that is good; kept where the login type does not say it. */
  readonly signed?: boolean;
  /** Id of the grant, for a connected host. */
  readonly grantId?: string;
  /** Name of the device, for a contact sync token. */
  readonly name?: string;
  /** Entry that opened an `McpApp` login. */
  readonly entry?: EntryTicks | undefined;
  readonly origin: Origin;
  /** A session of this user that the new one replaces: its `sid` was sent with the login. */
  readonly replacesSessionId?: string;
}

export interface Opening {
  readonly change: Change;
  readonly session: SessionRecord;
  /** The secret. Goes to the caller and nowhere else. */
  readonly token: string;
}

/** Opens a session, drops the oldest ones over the cap and the expired ones, and sees to the sweep. */
export function openSession(
  state: UserState,
  turn: Turn,
  request: NewSession,
  as: SessionOpening = 'login',
): Opening {
  const token = makeToken(state.userId, turn.randomBytes(32));
  const hash = hashToken(token);
  if (hash === undefined) throw new Error('a fresh token has no hash');
  const { kind, loginType, keyId, appId, signed, grantId, entry, name, origin } = request;
  const session: SessionRecord = {
    id: turn.newId(),
    kind,
    loginType,
    keyId,
    appId,
    ...(signed === true && loginType === 'McpApp' ? { signed } : {}),
    ...(entry === undefined ? {} : { entry }),
    ...(grantId === undefined ? {} : { grantId }),
    ...(name === undefined ? {} : { name }),
    hash,
    createdMs: turn.nowMs,
    lastSeenMs: kind === 'contactSync' ? 0 : turn.nowMs,
    expiresMs: absoluteEnd(request, turn),
    ip: origin.ip,
    userAgent: origin.userAgent,
  };
  const owner = sessionOwner({ userId: state.userId, sessionId: session.id });
  const claim: Claim = { index: sessionIndex(kind), key: hash, owner, onConflict: 'InternalError' };
  const change = merged([
    endSessions(state, outdated(state, turn, session, request.replacesSessionId)),
    { events: [{ type: 'sessionOpened', session, as }], claims: [claim] },
    kind === 'contactSync'
      ? { events: [] }
      : scheduled(state, turn, endOf(session, session.lastSeenMs, turn.settings)),
  ]);
  return { change, session, token };
}

function absoluteEnd({ kind, grantId }: NewSession, { nowMs, settings }: Turn): number {
  if (kind === 'contactSync') return NO_END_MS;
  const ofMcp = grantId === undefined ? 'McpSessionSeconds' : 'OAuthAccessSeconds';
  return nowMs + settings.get(kind === 'mcp' ? ofMcp : 'BrowserSessionSeconds') * SECOND_MS;
}

/** Ends the given sessions: their records go, their names are released. */
export function endSessions(state: UserState, sessions: readonly SessionRecord[]): Change {
  if (sessions.length === 0) return { events: [] };
  return {
    events: [{ type: 'sessionsEnded', sessionIds: sessions.map((session) => session.id) }],
    claims: sessions.map((session) => ({
      index: sessionIndex(session.kind),
      key: session.hash,
      owner: null,
      replaces: sessionOwner({ userId: state.userId, sessionId: session.id }),
      onConflict: 'InternalError',
    })),
  };
}

/** Ends grants with their sessions, and further sessions. */
export function endGrants(
  state: UserState,
  grants: readonly HostGrant[],
  sessions: readonly SessionRecord[] = [],
): Change {
  if (grants.length === 0) return endSessions(state, sessions);
  const grantIds = grants.map(({ id }) => id);
  const isOver = (session: SessionRecord) =>
    sessions.includes(session) || (session.grantId !== undefined && grantIds.includes(session.grantId));
  return merged([
    { events: [{ type: 'grantsEnded', grantIds }] },
    endSessions(state, state.sessions.filter(isOver)),
  ]);
}

/** Tokens of devices are no log-ins: they are listed, and end, for themselves. */
export function isLogin(session: SessionRecord): session is LoginRecord {
  return session.kind !== 'contactSync';
}

/** With `kind`: without those of connected hosts, which the consent allows and not a flag of the key. */
export function sessionsOfKey(state: UserState, keyId: string, kind?: SessionKind): SessionRecord[] {
  return state.sessions.filter(
    (session) =>
      session.keyId === keyId &&
      (kind === undefined || (session.kind === kind && session.grantId === undefined)),
  );
}

export function endSession(
  state: UserState,
  { sessionId, origin }: EndSession,
  turn: Turn,
): UserOutcome<number> {
  const session = findById(state.sessions, sessionId);
  if (session === undefined) return { reply: 0 };
  const ended = endSessions(state, [session]);
  return outcome([ended, audited(state, turn, 'logout', origin, { sessionId: session.id })], 1);
}

export function touchSession(
  state: UserState,
  { sessionId, seenMs }: Extract<SessionCommand, { type: 'touchSession' }>,
): UserOutcome<null> {
  const session = findById(state.sessions, sessionId);
  if (session === undefined || seenMs - session.lastSeenMs < TOUCH_INTERVAL_MS) return { reply: null };
  return { events: [{ type: 'sessionTouched', sessionId: session.id, utcMs: seenMs }], reply: null };
}

export function closeSessions(
  state: UserState,
  command: Extract<SessionCommand, { type: 'closeSessions' }>,
  turn: Turn,
): UserOutcome<ClosedSessions> | Refusal {
  const { sessionIds, others, currentSessionId } = command;
  const chosen: SessionRecord[] = [];
  if (sessionIds === undefined) {
    const all = state.sessions.filter(isLogin);
    chosen.push(...(others === true ? all.filter((session) => session.id !== currentSessionId) : all));
  } else {
    for (const id of new Set(sessionIds)) {
      const session = findById(state.sessions, id);
      if (session === undefined || !isLogin(session)) return refuse('NotFound', 'no such session');
      chosen.push(session);
    }
  }
  const reply: ClosedSessions = {
    sessionsClosed: chosen.length,
    currentClosed: chosen.some((session) => session.id === currentSessionId),
  };
  const grants = state.hostGrants.filter(({ id }) =>
    sessionIds === undefined
      ? others !== true || findById(state.sessions, currentSessionId)?.grantId !== id
      : chosen.some((session) => session.grantId === id),
  );
  if (chosen.length === 0 && grants.length === 0) return { reply };
  const ended = endGrants(state, grants, chosen);
  return outcome([ended, ...sessionsEnded(state, command.origin, chosen.length, turn)], reply);
}

/** An admin's act is an event of its own in the audit log; the owner reads in the login log that it was one. */
function sessionsEnded(state: UserState, origin: Origin, count: number, turn: Turn): Change[] {
  if (origin.by === undefined) return [audited(state, turn, 'sessions_closed', origin, { count })];
  const subject = { kind: 'browser', loginType: null, keyId: null, appId: null } as const;
  const nowhere = { ip: '', userAgent: '' };
  return [
    { events: [accountLogged('sessions_ended_by_admin', subject, nowhere, turn)] },
    audited(state, turn, 'sessions_ended_by_admin', origin, { count }),
  ];
}

/** Blocking ends every session before the answer is sent. */
export function setBlocked(
  state: UserState,
  command: Extract<SessionCommand, { type: 'setBlocked' }>,
  turn: Turn,
): UserOutcome<BlockedAccount> | Refusal {
  if (state.createdMs === null) return refuse('NotFound', 'no such user');
  const sessions = command.blocked ? state.sessions : [];
  const reply: BlockedAccount = { blocked: command.blocked, sessionsClosed: sessions.length };
  if (state.blocked === command.blocked) return { reply };
  const name = command.blocked ? 'user_blocked' : 'user_unblocked';
  const said = command.reason === undefined ? {} : { reason: command.reason };
  return outcome(
    [
      { events: [{ type: 'blockedSet', blocked: command.blocked }] },
      endSessions(state, sessions),
      ...(command.blocked ? [uploadDropped(state)] : []),
      audited(state, turn, name, command.origin, { blockedBefore: state.blocked, ...reply, ...said }),
    ],
    reply,
  );
}

export function sweep(state: UserState, _command: Sweep, turn: Turn): UserOutcome<null> {
  const expired = state.sessions.filter((session) => isExpired(session, turn));
  const ended = endSessions(state, expired);
  const left = state.sessions.filter((session) => isLogin(session) && !expired.includes(session));
  const next = Math.min(...left.map((session) => endOf(session, session.lastSeenMs, turn.settings)));
  const rest = left.length === 0 ? unscheduled() : scheduled({ ...state, sweepDueMs: null }, turn, next);
  return outcome([ended, rest], null);
}

function scheduled(state: UserState, turn: Turn, endMs: number): Change {
  const dueMs = Math.max(endMs + TOUCH_INTERVAL_MS, turn.nowMs + MINUTE_MS);
  if (state.sweepDueMs !== null && state.sweepDueMs <= dueMs) return { events: [] };
  return {
    events: [{ type: 'sweepScheduled', dueMs }],
    timers: [{ name: SWEEP_TIMER, dueMs, command: { type: 'sweep' } }],
  };
}

function unscheduled(): Change {
  return { events: [{ type: 'sweepScheduled', dueMs: null }] };
}

/**
 * Returns the session that changes a key: that of the owner, or null for an admin, who has none of this account. The
 * route has judged the admin's own.
 */
export function changerOf(
  state: UserState,
  { sessionId }: { readonly sessionId: string | null },
  turn: Turn,
): SessionRecord | null | Refusal {
  if (sessionId !== null) return changingSession(state, { sessionId }, turn);
  return state.createdMs === null ? refuse('NotFound', 'no such user') : null;
}

/** The session behind a key change: still there, its challenge not used yet, and fresh where the setting asks for it. */
export function changingSession(
  state: UserState,
  { sessionId, challenge }: { readonly sessionId: string; readonly challenge?: UsedChallenge },
  turn: Turn,
): SessionRecord | Refusal {
  const session = findById(state.sessions, sessionId);
  if (session === undefined || !isLogin(session)) return refuse('SessionNotFound');
  const used = refusedChallenge(state, challenge, turn);
  if (used !== undefined) return used;
  const freshSeconds = turn.settings.get('KeyChangeFreshLoginSeconds');
  if (freshSeconds > 0 && turn.nowMs - session.createdMs > freshSeconds * SECOND_MS)
    return refuse('FreshLoginRequired');
  return session;
}
