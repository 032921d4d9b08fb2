/**
 * The door of a user's sessions, passed by every request with one: is the session alive, is its quota left, when was it
 * last seen. Owns the volatile side of the account (limiter windows, last uses), which starts anew when it is loaded.
 */
import { hasFlag, KeyFlag, keyTypeOf } from '../domain/keys.ts';
import { judge, type ScopeCode, secondsToReset, type Verdict, windowIndex } from '../domain/quotas.ts';
import type { Role } from '../domain/roles.ts';
import { type SessionContext, type SessionKind, TOUCH_INTERVAL_MS } from '../domain/sessions.ts';
import type { Turn } from './runtime/actor.ts';
import { endOf } from './session-life.ts';
import { findSession } from './session-list.ts';
import { activeKeys, isActive } from './user-enrolment.ts';
import type { SessionRecord, UserState } from './user-state.ts';

export interface EnterSession {
  readonly type: 'enterSession';
  readonly sessionId: string;
  readonly kind: SessionKind;
  /** SHA-256 of the token: the record must agree with the index. */
  readonly hash: string;
  /**
   * Scope `s` counts the session, `p` its key: sessions with proof together, those of each proofless login type in a
   * window of their own (decision 0012). Absent: nothing is counted.
   */
  readonly charge?: { readonly scope: ScopeCode; readonly cost: number } | undefined;
  readonly adminPublicKeys: ReadonlySet<string>;
  /** Of the account, as the staff keeps it. */
  readonly role?: Role | undefined;
}

/** Is the session alive? A question that is no use of it: a page that is merely open does not keep it from idling. */
export interface CheckSession {
  readonly type: 'checkSession';
  readonly sessionId: string;
}

export interface EnteredSession {
  readonly session: SessionContext;
  readonly verdict: Verdict | undefined;
  /** The use should be written down (at most once a minute). */
  readonly touch: boolean;
}

interface Seen {
  lastMs: number;
  /** When a write was last asked for. */
  touchedMs: number;
}

const NO_KEYS: ReadonlySet<string> = new Set();

export interface UserVolatile {
  /** Last uses by session id. */
  readonly seen: Map<string, Seen>;
  /** Number of the window that is counted. */
  window: number;
  usedBySession: Map<string, number>;
  /** By public key, and by public key and login type for sessions without proof. */
  usedByKey: Map<string, number>;
}

export function initialVolatile(): UserVolatile {
  return { seen: new Map(), window: -1, usedBySession: new Map(), usedByKey: new Map() };
}

/** Undefined for a session that is not alive; it is charged nothing. */
export function enterSession(
  state: UserState,
  volatile: UserVolatile,
  command: EnterSession,
  turn: Turn,
): EnteredSession | undefined {
  const session = liveSession(state, volatile, command.sessionId, turn);
  if (session === undefined || session.kind !== command.kind || session.hash !== command.hash)
    return undefined;
  const context = contextOf(state, session, command);
  if (context === undefined) return undefined;
  const verdict = command.charge === undefined ? undefined : charged(volatile, context, command.charge, turn);
  return { session: context, verdict, touch: noted(state, volatile, session, turn.nowMs) };
}

export function checkSession(
  state: UserState,
  volatile: UserVolatile,
  command: CheckSession,
  turn: Turn,
): boolean {
  const session = liveSession(state, volatile, command.sessionId, turn);
  return session !== undefined && contextOf(state, session, { adminPublicKeys: NO_KEYS }) !== undefined;
}

function liveSession(
  state: UserState,
  volatile: UserVolatile,
  sessionId: string,
  turn: Turn,
): SessionRecord | undefined {
  const session = findSession(state.sessions, sessionId);
  if (session === undefined || state.blocked) return undefined;
  return turn.nowMs < endOf(session, lastSeen(volatile, session), turn.settings) ? session : undefined;
}

/** The later of the written and the remembered last use, in Unix milliseconds. */
export function lastSeen(volatile: UserVolatile, session: SessionRecord): number {
  return Math.max(session.lastSeenMs, volatile.seen.get(session.id)?.lastMs ?? 0);
}

/** Undefined when the key of the session is gone: the session went with it. */
export function contextOf(
  state: UserState,
  session: SessionRecord,
  { adminPublicKeys, role: given }: Pick<EnterSession, 'adminPublicKeys' | 'role'>,
): SessionContext | undefined {
  const key = session.keyId === null ? null : state.keys[session.keyId];
  if (key !== null && !isActive(key)) return undefined;
  const isAdmin = adminPublicKeys.size > 0 && holdsAdminKey(state, adminPublicKeys);
  const role = isAdmin ? 'admin' : given;
  const context: SessionContext = {
    id: session.id,
    kind: session.kind,
    loginType: session.loginType,
    userId: state.userId,
    keyId: session.keyId,
    keyType: key === null ? 'Unknown' : keyTypeOf(key.flags),
    publicKey: key === null ? null : key.publicKey,
    appId: session.appId,
    createdMs: session.createdMs,
    expiresMs: session.expiresMs,
  };
  return role === undefined ? context : { ...context, role };
}

/** Only a proven key counts: anybody may claim a public key by name. */
function holdsAdminKey(state: UserState, adminPublicKeys: ReadonlySet<string>): boolean {
  return activeKeys(state).some(
    (key) => key.proven && !hasFlag(key.flags, KeyFlag.Fido2Key) && adminPublicKeys.has(key.publicKey),
  );
}

function charged(
  volatile: UserVolatile,
  session: SessionContext,
  { scope, cost }: NonNullable<EnterSession['charge']>,
  turn: Turn,
): Verdict | undefined {
  const rps = turn.settings.get(scope === 'p' ? 'PubKeyApiRPSLimit' : 'SessionApiRPSLimit');
  if (rps === 0) return undefined;
  const windowSeconds = turn.settings.get('RateLimitWindowSeconds');
  const window = windowIndex(turn.nowMs, windowSeconds);
  if (window !== volatile.window) {
    volatile.window = window;
    volatile.usedBySession = new Map();
    volatile.usedByKey = new Map();
  }
  const keyName = scope === 'p' ? keyWindow(session) : null;
  const counts = keyName === null ? volatile.usedBySession : volatile.usedByKey;
  const name = keyName ?? session.id;
  const used = (counts.get(name) ?? 0) + cost;
  const verdict = judge(scope, rps * windowSeconds, used, secondsToReset(turn.nowMs, windowSeconds), cost);
  if (verdict.allowed) counts.set(name, used);
  return verdict;
}

/** Who knows only the public key gets McpBasic or McpApp sessions with it: those may not spend what its holder has. */
function keyWindow({ publicKey, loginType }: SessionContext): string | null {
  if (publicKey === null || loginType === 'McpVerified' || loginType === null) return publicKey;
  return `${publicKey} ${loginType}`;
}

/** Remembers the use; true when it is time to write it down. */
function noted(state: UserState, volatile: UserVolatile, session: SessionRecord, nowMs: number): boolean {
  let seen = volatile.seen.get(session.id);
  if (seen === undefined) {
    if (volatile.seen.size > state.sessions.length) forgetEnded(state, volatile);
    seen = { lastMs: nowMs, touchedMs: session.lastSeenMs };
    volatile.seen.set(session.id, seen);
  }
  seen.lastMs = Math.max(seen.lastMs, nowMs);
  if (nowMs - Math.max(seen.touchedMs, session.lastSeenMs) < TOUCH_INTERVAL_MS) return false;
  seen.touchedMs = nowMs;
  return true;
}

function forgetEnded(state: UserState, volatile: UserVolatile): void {
  for (const id of volatile.seen.keys())
    if (findSession(state.sessions, id) === undefined) volatile.seen.delete(id);
}
