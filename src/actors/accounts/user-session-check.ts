/**
 * Session check of every request with a session: is it valid, is quota left, when was it last used. Owns the volatile
 * state of the account (limiter windows, last uses), which is empty after the actor is loaded.
 */
import { hasFlag, KeyFlag, keyTypeOf } from '../../domain/keys.ts';
import {
  judge,
  type QuotaResult,
  type ScopeCode,
  secondsToReset,
  windowIndex,
} from '../../domain/limits/quotas.ts';
import type { Role } from '../../domain/roles.ts';
import {
  isProvenLogin,
  type SessionContext,
  type SessionGrant,
  type SessionKind,
  TOUCH_INTERVAL_MS,
} from '../../domain/sessions.ts';
import type { SharedCounts } from '../limits/shared-counts.ts';
import type { Turn } from '../runtime/actor.ts';
import { findById, withRecord } from './id-list.ts';
import { endOf } from './session-expiry.ts';
import { isNamed } from './user-contact-sync.ts';
import { activeKeys, isActive } from './user-enrollment.ts';
import type { HostGrant, SessionRecord, UserState } from './user-types.ts';

export interface AuthenticateSession {
  readonly type: 'enterSession';
  readonly sessionId: string;
  readonly kind: SessionKind;
  /** SHA-256 of the token: the record must agree with the index. */
  readonly hash: string;
  /**
   * Scope `s` counts the session and its user, `p` its key: sessions with proof together, those of each proofless login type in a
   * window of their own (decision 0105). Absent: nothing is counted.
   */
  readonly charge?: { readonly scope: ScopeCode; readonly cost: number } | undefined;
  readonly adminPublicKeys: ReadonlySet<string>;
  /** Role of the account, as the staff keeps it. */
  readonly role?: Role | undefined;
  /** The resource that the token is used at; absent or null: one that takes sessions bound to none. */
  readonly audience?: string | null;
  /** The user name that the sender of a contact sync token gives, as it was sent. */
  readonly username?: string | undefined;
  /** Other nodes of a cluster count too; absent: they do not. */
  readonly shared?: AccountCounts | undefined;
}

/** Counts of other nodes that a session is charged for. */
export type AccountCounts = Readonly<Record<'session' | 'user' | 'sessionKey', SharedCounts>>;

/** Is the session alive? A question that is no use of it: a page that is merely open does not keep it from idling. */
export interface CheckSession {
  readonly type: 'checkSession';
  readonly sessionId: string;
}

export interface CheckedSession {
  readonly session: SessionContext;
  /** Hash of the command, as the string that the account keeps. */
  readonly hash: string;
  readonly quotaResult: QuotaResult | undefined;
  /** The use should be written down (at most once a minute). */
  readonly touch: boolean;
}

/** Volatile record of a session that was used. */
interface Use {
  readonly id: string;
  lastMs: number;
  /** Time at which a write was last asked for, Unix milliseconds. */
  touchedMs: number;
  /** Number of the window that `used` belongs to. */
  window: number;
  used: number;
  /** The last context, and what it was made of. */
  made: MadeContext | undefined;
}

interface MadeContext extends Pick<AuthenticateSession, 'adminPublicKeys' | 'role'> {
  readonly state: UserState;
  readonly context: SessionContext;
}

const NO_KEYS: ReadonlySet<string> = new Set();
const NO_USES: readonly never[] = [];

export interface UserVolatile {
  /** Uses in the order of the sessions' ids. */
  uses: readonly Use[];
  /** Number of the window in which `used` and `usedByKey` count. */
  window: number;
  /** Count of all sessions of the user, in scope `s`. */
  used: number;
  /**
   * Counts by public key, and by public key and login type for sessions without proof. Undefined until one is counted.
   */
  usedByKey: Map<string, number> | undefined;
}

export function initialVolatile(): UserVolatile {
  return { uses: NO_USES, window: -1, used: 0, usedByKey: undefined };
}

/** Undefined for a session that is not alive; it is charged nothing. */
export function authenticateSession(
  state: UserState,
  volatile: UserVolatile,
  command: AuthenticateSession,
  turn: Turn,
): CheckedSession | undefined {
  const known = findById(volatile.uses, command.sessionId);
  const session = liveSession(state, command.sessionId, known, turn);
  if (session === undefined || session.kind !== command.kind || session.hash !== command.hash)
    return undefined;
  if (session.kind === 'contactSync' && !isNamed(state, command.username ?? '')) return undefined;
  const use = known ?? firstUse(state, volatile, session);
  const context = knownContextOf(state, session, use, command);
  if (context === undefined || (context.grant?.audience ?? null) !== (command.audience ?? null))
    return undefined;
  const result =
    command.charge === undefined
      ? undefined
      : charged(volatile, use, context, command.charge, command.shared, turn);
  return {
    session: context,
    hash: session.hash,
    quotaResult: result,
    touch: noted(use, session, turn.nowMs),
  };
}

export function checkSession(
  state: UserState,
  volatile: UserVolatile,
  command: CheckSession,
  turn: Turn,
): boolean {
  const use = findById(volatile.uses, command.sessionId);
  const session = liveSession(state, command.sessionId, use, turn);
  return session !== undefined && contextOf(state, session, { adminPublicKeys: NO_KEYS }) !== undefined;
}

function liveSession(
  state: UserState,
  sessionId: string,
  use: Use | undefined,
  turn: Turn,
): SessionRecord | undefined {
  const session = findById(state.sessions, sessionId);
  if (session === undefined || state.blocked) return undefined;
  // Another node may remember a use that is not written down yet.
  const unseenMs = turn.hasPeers ? TOUCH_INTERVAL_MS : 0;
  const seenMs = Math.max(session.lastSeenMs + unseenMs, use?.lastMs ?? 0);
  return turn.nowMs < endOf(session, seenMs, turn.settings) ? session : undefined;
}

/** The later of the written and the remembered last use, in Unix milliseconds. */
export function lastSeen(volatile: UserVolatile, session: SessionRecord): number {
  return Math.max(session.lastSeenMs, findById(volatile.uses, session.id)?.lastMs ?? 0);
}

/** Returns the context of `contextOf`, which is made once because a state is never changed. */
function knownContextOf(
  state: UserState,
  session: SessionRecord,
  use: Use,
  { adminPublicKeys, role }: AuthenticateSession,
): SessionContext | undefined {
  const { made } = use;
  if (made?.state === state && made.role === role && made.adminPublicKeys === adminPublicKeys)
    return made.context;
  const context = contextOf(state, session, { adminPublicKeys, role });
  use.made = context && { state, context, adminPublicKeys, role };
  return context;
}

/** Undefined when the key of the session is gone: the session went with it. */
export function contextOf(
  state: UserState,
  session: SessionRecord,
  { adminPublicKeys, role: given }: Pick<AuthenticateSession, 'adminPublicKeys' | 'role'>,
): SessionContext | undefined {
  const key = session.keyId === null ? null : findById(state.keys, session.keyId);
  if (key !== null && !isActive(key)) return undefined;
  if (session.kind === 'contactSync' && !(key !== null && hasFlag(key.flags, KeyFlag.CardDav)))
    return undefined;
  const grant = session.grantId === undefined ? undefined : findById(state.hostGrants, session.grantId);
  // A session without its grant is over: what ended the grant ended it too.
  if (session.grantId !== undefined && grant === undefined) return undefined;
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
    // The consent of a person who had logged in is a proof.
    proven: grant !== undefined || isProvenLogin(session.loginType, session.signed === true),
    createdMs: session.createdMs,
    expiresMs: session.expiresMs,
  };
  const { nickname } = state;
  const named = nickname === null ? context : { ...context, nickname };
  if (grant !== undefined) return { ...named, grant: sessionGrantOf(grant) };
  const { entry } = session;
  if (entry === undefined) return role === undefined ? named : { ...named, role };
  return role === undefined ? { ...named, entry } : { ...named, entry, role };
}

function sessionGrantOf({ id, appId, audience, entry }: HostGrant): SessionGrant {
  return entry === undefined ? { id, appId, audience } : { id, appId, audience, entry };
}

/** Only a proven key counts: any account can claim a public key. */
function holdsAdminKey(state: UserState, adminPublicKeys: ReadonlySet<string>): boolean {
  return activeKeys(state).some(
    (key) => key.proven && !hasFlag(key.flags, KeyFlag.Fido2Key) && adminPublicKeys.has(key.publicKey),
  );
}

function charged(
  volatile: UserVolatile,
  use: Use,
  session: SessionContext,
  { scope, cost }: NonNullable<AuthenticateSession['charge']>,
  shared: AccountCounts | undefined,
  { settings, nowMs }: Turn,
): QuotaResult | undefined {
  const windowSeconds = settings.get('RateLimitWindowSeconds');
  advanceWindow(volatile, use, windowIndex(nowMs, windowSeconds));
  const resetSeconds = secondsToReset(nowMs, windowSeconds);
  if (scope !== 'p') {
    const quota = settings.get('SessionApiRPSLimit') * windowSeconds;
    const quotaOfUser = settings.get('UserApiRPSLimit') * windowSeconds;
    const charge = { quota, quotaOfUser, resetSeconds, cost, userId: session.userId };
    return chargedSession(volatile, use, charge, shared);
  }
  const quota = settings.get('PubKeyApiRPSLimit') * windowSeconds;
  if (quota === 0) return undefined;
  const name = unprovenKeyOf(session) ?? session.userId;
  const used = (volatile.usedByKey?.get(name) ?? 0) + cost;
  const { window } = volatile;
  const others = shared?.sessionKey.others(name, window) ?? 0;
  const result = judge('p', quota, used + others, resetSeconds, cost);
  volatile.usedByKey ??= new Map();
  if (!result.allowed) return result;
  volatile.usedByKey.set(name, used);
  shared?.sessionKey.note(name, window, used, quota);
  return result;
}

interface SessionCharge {
  /** Quota of the session, and that of its user; 0: none. */
  readonly quota: number;
  readonly quotaOfUser: number;
  readonly resetSeconds: number;
  readonly cost: number;
  readonly userId: string;
}

/** The session's window and its user's: the tighter one decides and is shown, a refusal counts in neither. */
function chargedSession(
  volatile: UserVolatile,
  use: Use,
  { quota, quotaOfUser, resetSeconds, cost, userId }: SessionCharge,
  shared: AccountCounts | undefined,
): QuotaResult | undefined {
  if (quota === 0 && quotaOfUser === 0) return undefined;
  const { window } = volatile;
  const used = use.used + (shared?.session.others(use.id, window) ?? 0);
  const usedByUser = volatile.used + (shared?.user.others(userId, window) ?? 0);
  const left = quota === 0 ? Number.POSITIVE_INFINITY : quota - used;
  const byUser = quotaOfUser > 0 && quotaOfUser - usedByUser < left;
  const result = byUser
    ? judge('s', quotaOfUser, usedByUser + cost, resetSeconds, cost)
    : judge('s', quota, used + cost, resetSeconds, cost);
  if (!result.allowed) return result;
  use.used += cost;
  volatile.used += cost;
  if (quota > 0) shared?.session.note(use.id, window, use.used, quota);
  if (quotaOfUser > 0) shared?.user.note(userId, window, volatile.used, quotaOfUser);
  return result;
}

function advanceWindow(volatile: UserVolatile, use: Use, window: number): void {
  if (use.window !== window) {
    use.window = window;
    use.used = 0;
  }
  if (volatile.window === window) return;
  volatile.window = window;
  volatile.used = 0;
  volatile.usedByKey = undefined;
}

/**
 * A caller who knows only the public key gets McpBasic or McpApp sessions with it: those may not spend the quota of its
 * holder.
 */
function unprovenKeyOf({ publicKey, loginType, proven, grant, keyType }: SessionContext): string | null {
  // A passkey is no name of this scope: a connected host without a software key behind it has a window of its own.
  const isSoftware = keyType === 'UserKey' || keyType === 'PasswordKey';
  if (grant !== undefined && !isSoftware) return `grant ${grant.id}`;
  if (publicKey === null || proven) return publicKey;
  return `${publicKey} ${loginType}`;
}

/** Begins the memory of a session's uses; those of sessions that ended are dropped when it would outgrow the sessions. */
function firstUse(state: UserState, volatile: UserVolatile, session: SessionRecord): Use {
  const use: Use = {
    id: session.id,
    lastMs: 0,
    touchedMs: session.lastSeenMs,
    window: -1,
    used: 0,
    made: undefined,
  };
  const full = volatile.uses.length > state.sessions.length;
  const kept = full
    ? volatile.uses.filter(({ id }) => findById(state.sessions, id) !== undefined)
    : volatile.uses;
  volatile.uses = withRecord(kept, use);
  return use;
}

/** Remembers the use; true when it is time to write it down. */
function noted(use: Use, session: SessionRecord, nowMs: number): boolean {
  use.lastMs = Math.max(use.lastMs, nowMs);
  if (nowMs - Math.max(use.touchedMs, session.lastSeenMs) < TOUCH_INTERVAL_MS) return false;
  use.touchedMs = nowMs;
  return true;
}
