/**
 * The account of one user: keys, sessions, login log, the blocked flag. Owns the state, its events and how they change
 * it. Secrets are in none of them: a session is known by the SHA-256 of its token.
 */
import type { Contact } from '../domain/contacts.ts';
import { KeyFlag, type UserKey, withFlag } from '../domain/keys.ts';
import type { LoginType, SessionKind } from '../domain/sessions.ts';
import { placedApp, withAccess } from './access-list.ts';
import { appended, type LogEntry } from './login-log.ts';
import { findSession, type SessionList, withoutSessions, withSession } from './session-list.ts';

export interface SessionRecord {
  readonly id: string;
  readonly kind: SessionKind;
  readonly loginType: LoginType | null;
  readonly keyId: string | null;
  readonly appId: string | null;
  /** SHA-256 of the token, base64url. */
  readonly hash: string;
  readonly createdMs: number;
  readonly lastSeenMs: number;
  /** Absolute end. A browser session may end sooner, when it is idle. */
  readonly expiresMs: number;
  readonly ip: string;
  readonly userAgent: string;
}

/** An application that the user registered. The rest of it is its own actor's. */
export interface AppEntry {
  readonly appId: string;
  readonly name: string;
  readonly url: string;
}

export interface AppAccess {
  readonly appId: string;
  readonly grantedMs: number;
  /** The user registered it, allowed it, or let a key log in for it: only the first two allow webhooks. */
  readonly source: 'registration' | 'consent' | 'login';
  /** When the user took the access back; null while it stands. */
  readonly revokedMs: number | null;
}

export interface UserState {
  readonly userId: string;
  /** Null: there is no such account. */
  readonly createdMs: number | null;
  /** 32 random bytes in base64url: `user.id` of the authenticators, the same for the life of the account. */
  readonly handle: string;
  readonly blocked: boolean;
  /** Where one-time codes are sent, of an account that came by one. */
  readonly contact: Contact | null;
  /** By key id, removed ones included (spec 3: the record is kept). */
  readonly keys: Readonly<Record<string, UserKey>>;
  /** In the order of their opening. */
  readonly sessions: SessionList;
  readonly log: readonly LogEntry[];
  /** Applications that the user registered, in that order, and how many there ever were. */
  readonly apps: readonly AppEntry[];
  readonly appsPlaced: number;
  /** Applications that may act for the user, and those that no longer may. */
  readonly appAccess: readonly AppAccess[];
  /** When the timer that clears expired sessions is due; null without one. */
  readonly sweepDueMs: number | null;
}

export type UserEvent =
  | {
      readonly type: 'accountCreated';
      readonly utcMs: number;
      readonly handle: string;
      readonly contact?: Contact;
    }
  /** Of version 1 alone: a contact of an account that was there already. */
  | { readonly type: 'contactLinked'; readonly contact: Contact }
  | { readonly type: 'keyAdded'; readonly key: UserKey }
  | { readonly type: 'keyProven'; readonly keyId: string }
  | { readonly type: 'keyFlagsSet'; readonly keyId: string; readonly flags: number }
  | { readonly type: 'keyRemoved'; readonly keyId: string }
  | {
      readonly type: 'credentialUsed';
      readonly keyId: string;
      readonly counter: number;
      readonly backedUp: boolean;
    }
  | { readonly type: 'sessionOpened'; readonly session: SessionRecord; readonly as: 'login' | 'sign_up' }
  | { readonly type: 'sessionTouched'; readonly sessionId: string; readonly utcMs: number }
  | { readonly type: 'sessionRebound'; readonly sessionId: string; readonly keyId: string }
  | { readonly type: 'sessionsEnded'; readonly sessionIds: readonly string[] }
  | { readonly type: 'logged'; readonly entry: LogEntry }
  /** A new application, or another name or address of a known one. */
  | { readonly type: 'appPlaced'; readonly entry: AppEntry; readonly utcMs: number }
  | { readonly type: 'appDropped'; readonly appId: string }
  | { readonly type: 'appAccessGranted'; readonly access: AppAccess }
  | { readonly type: 'appAccessRevoked'; readonly appId: string; readonly utcMs: number }
  | { readonly type: 'appAccessDropped'; readonly appId: string }
  | { readonly type: 'blockedSet'; readonly blocked: boolean }
  | { readonly type: 'sweepScheduled'; readonly dueMs: number | null };

export function initialUser(userId: string): UserState {
  return {
    userId,
    createdMs: null,
    handle: '',
    blocked: false,
    contact: null,
    keys: {},
    sessions: [],
    log: [],
    apps: [],
    appsPlaced: 0,
    appAccess: [],
    sweepDueMs: null,
  };
}

export function evolveUser(state: UserState, event: UserEvent): UserState {
  switch (event.type) {
    case 'accountCreated':
      return { ...state, createdMs: event.utcMs, handle: event.handle, contact: event.contact ?? null };
    case 'contactLinked':
      return { ...state, contact: state.contact ?? event.contact };
    case 'keyAdded':
      return { ...state, keys: { ...state.keys, [event.key.id]: event.key } };
    case 'keyProven':
      return withKey(state, event.keyId, (key) => ({ ...key, proven: true }));
    case 'keyFlagsSet':
      return withKey(state, event.keyId, (key) => ({ ...key, flags: event.flags }));
    case 'keyRemoved':
      return withKey(state, event.keyId, (key) => ({
        ...key,
        flags: withFlag(key.flags, KeyFlag.Deleted, true),
      }));
    case 'credentialUsed':
      return withKey(state, event.keyId, (key) => ({
        ...key,
        counterReported: event.counter,
        backedUp: event.backedUp,
      }));
    case 'sessionOpened':
      return opened(state, event.session, event.as);
    case 'sessionTouched':
      return changeSession(state, event.sessionId, { lastSeenMs: event.utcMs });
    case 'sessionRebound':
      return changeSession(state, event.sessionId, { keyId: event.keyId });
    case 'sessionsEnded':
      return { ...state, sessions: withoutSessions(state.sessions, event.sessionIds) };
    case 'logged':
      return { ...state, log: appended(state.log, event.entry) };
    case 'appPlaced':
      return { ...state, ...placedApp(state, event.entry, event.utcMs) };
    case 'appDropped':
      return {
        ...state,
        apps: state.apps.filter(({ appId }) => appId !== event.appId),
        appAccess: state.appAccess.filter(({ appId }) => appId !== event.appId),
      };
    case 'appAccessGranted':
      return { ...state, appAccess: withAccess(state.appAccess, event.access) };
    case 'appAccessRevoked': {
      const revoke = (access: AppAccess) =>
        access.appId === event.appId ? { ...access, revokedMs: event.utcMs } : access;
      return { ...state, appAccess: state.appAccess.map(revoke) };
    }
    case 'appAccessDropped':
      return { ...state, appAccess: state.appAccess.filter(({ appId }) => appId !== event.appId) };
    case 'blockedSet':
      return { ...state, blocked: event.blocked };
    case 'sweepScheduled':
      return { ...state, sweepDueMs: event.dueMs };
  }
}

/** A session is its own log entry, under the same id: one event writes both. */
function opened(state: UserState, session: SessionRecord, as: 'login' | 'sign_up'): UserState {
  const { id, kind, loginType, keyId, appId, createdMs, ip, userAgent } = session;
  const entry: LogEntry = {
    id,
    utcMs: createdMs,
    event: as,
    ok: true,
    error: null,
    kind,
    loginType,
    keyId,
    appId,
    ip,
    userAgent,
  };
  // Field by field: it happens at every login, and a spread of states of many shapes is slow.
  return {
    userId: state.userId,
    createdMs: state.createdMs,
    handle: state.handle,
    blocked: state.blocked,
    contact: state.contact,
    keys:
      keyId === null ? state.keys : changedKey(state, keyId, (key) => ({ ...key, lastUsedMs: createdMs })),
    sessions: withSession(state.sessions, session),
    log: appended(state.log, entry),
    apps: state.apps,
    appsPlaced: state.appsPlaced,
    appAccess: state.appAccess,
    sweepDueMs: state.sweepDueMs,
  };
}

function withKey(state: UserState, keyId: string, change: (key: UserKey) => UserKey): UserState {
  return { ...state, keys: changedKey(state, keyId, change) };
}

function changedKey(
  { keys }: UserState,
  keyId: string,
  change: (key: UserKey) => UserKey,
): UserState['keys'] {
  const key = keys[keyId];
  return key === undefined ? keys : { ...keys, [keyId]: change(key) };
}

function changeSession(state: UserState, sessionId: string, change: Partial<SessionRecord>): UserState {
  const session = findSession(state.sessions, sessionId);
  return session === undefined
    ? state
    : { ...state, sessions: withSession(state.sessions, { ...session, ...change }) };
}
