/**
 * The account of one user: keys, sessions, login log, the blocked flag. Owns the state, its events and how they change
 * it. Secrets are in none of them: a session is known by the SHA-256 of its token.
 */

import { hasContact, withoutContact } from '../../domain/contacts.ts';
import { KeyFlag, type UserKey, withFlag } from '../../domain/keys.ts';
import { ownText } from '../runtime/journal/own-strings.ts';
import { withUsed } from './challenges.ts';
import { findById, withoutIds, withRecord } from './id-list.ts';
import { appended } from './login-log.ts';
import { evolveUpstreams, isUpstreamEvent } from './upstream-state.ts';
import { withAccess, withApp, withoutRequest } from './user-app-request.ts';
import { entryOf, keptKey, keptSession } from './user-records.ts';
import type {
  AppAccess,
  HostGrant,
  SessionOpening,
  SessionRecord,
  UserEvent,
  UserState,
} from './user-types.ts';

const NONE: readonly never[] = [];

export function initialUser(userId: string): UserState {
  return {
    userId,
    createdMs: null,
    handle: '',
    blocked: false,
    nickname: null,
    contacts: NONE,
    keys: NONE,
    sessions: NONE,
    log: NONE,
    usedChallenges: NONE,
    apps: NONE,
    appsPlaced: 0,
    appAccess: NONE,
    hostGrants: NONE,
    upstreams: null,
    removal: null,
    sweepDueMs: null,
  };
}

/**
 * The account of a snapshot. Its texts are cut out of one, which may be many times as large: those that others remember
 * beyond the stay of the account in memory are made to stand for themselves.
 */
export function restoredUser(state: UserState, userId: string): UserState {
  const keys = state.keys.map((key) =>
    Object.assign(keptKey(key, userId), { id: ownText(key.id), publicKey: ownText(key.publicKey) }),
  );
  const sessions = state.sessions.map((session) =>
    Object.assign(keptSession(session, keys), { id: ownText(session.id), hash: ownText(session.hash) }),
  );
  return changed(state, { userId, keys, sessions });
}

export function evolveUser(state: UserState, event: UserEvent): UserState {
  if (isUpstreamEvent(event)) return changed(state, { upstreams: evolveUpstreams(state.upstreams, event) });
  switch (event.type) {
    case 'accountCreated':
    case 'contactLinked':
    case 'contactAdded':
    case 'contactRemoved':
    case 'nicknameSet':
    case 'accountRemoved':
    case 'removalTold':
      return changed(state, changedProfile(state, event));
    case 'keyAdded':
      return changed(state, { keys: withRecord(state.keys, keptKey(event.key, state.userId)) });
    case 'keyProven':
      return withKey(state, event.keyId, { proven: true });
    case 'keyFlagsSet':
      return withKey(state, event.keyId, { flags: event.flags });
    case 'keyRemoved': {
      const flags = findById(state.keys, event.keyId)?.flags ?? 0;
      const removed = withKey(state, event.keyId, { flags: withFlag(flags, KeyFlag.Deleted, true) });
      return withoutGrants(removed, ({ keyId }) => keyId === event.keyId);
    }
    case 'credentialUsed':
      return withKey(state, event.keyId, { counterReported: event.counter, backedUp: event.backedUp });
    case 'sessionOpened':
      return opened(state, event.session, event.as);
    case 'sessionTouched':
      return changeSession(state, event.sessionId, { lastSeenMs: event.utcMs });
    case 'sessionRebound':
      return changeSession(state, event.sessionId, { keyId: event.keyId });
    case 'sessionsEnded':
      return changed(state, { sessions: withoutIds(state.sessions, event.sessionIds) });
    case 'logged':
      return changed(state, { log: appended(state.log, event.entry) });
    case 'challengeUsed':
      return changed(state, { usedChallenges: withUsed(state.usedChallenges, event.challenge, event.utcMs) });
    case 'appPlaced':
      return changed(state, withApp(state, event.entry, event.utcMs));
    case 'appRequestForgotten':
      return changed(state, { apps: withoutRequest(state.apps, event.appId) });
    case 'appDropped':
      return changed(
        withoutGrants(state, ({ appId }) => appId === event.appId),
        {
          apps: state.apps.filter(({ appId }) => appId !== event.appId),
          appAccess: state.appAccess.filter(({ appId }) => appId !== event.appId),
        },
      );
    case 'appAccessGranted':
      return changed(state, { appAccess: withAccess(state.appAccess, event.access) });
    case 'appAccessRevoked': {
      const revoke = (access: AppAccess) =>
        access.appId === event.appId ? { ...access, revokedMs: event.utcMs } : access;
      return changed(
        withoutGrants(state, ({ appId }) => appId === event.appId),
        {
          appAccess: state.appAccess.map(revoke),
        },
      );
    }
    case 'appAccessDropped':
      return changed(
        withoutGrants(state, ({ appId }) => appId === event.appId),
        {
          appAccess: state.appAccess.filter(({ appId }) => appId !== event.appId),
        },
      );
    case 'grantOpened':
      return changed(state, { hostGrants: withRecord(state.hostGrants, event.grant) });
    case 'grantRotated':
      return rotated(state, event);
    case 'grantsEnded':
      return changed(state, { hostGrants: withoutIds(state.hostGrants, event.grantIds) });
    case 'blockedSet': {
      const rest = event.blocked ? withoutGrants(state, () => true) : state;
      return changed(rest, { blocked: event.blocked });
    }
    case 'sweepScheduled':
      return changed(state, { sweepDueMs: event.dueMs });
  }
}

type ProfileEvent = Extract<
  UserEvent,
  { type: `account${string}` | `contact${string}` | 'nicknameSet' | 'removalTold' }
>;

function changedProfile({ userId, contacts, removal }: UserState, event: ProfileEvent): Partial<UserState> {
  switch (event.type) {
    case 'accountCreated': {
      const { utcMs: createdMs, handle, contact } = event;
      return { createdMs, handle, contacts: contact === undefined ? NONE : [contact] };
    }
    case 'contactLinked':
    case 'contactAdded':
      return hasContact(contacts, event.contact) ? {} : { contacts: [...contacts, event.contact] };
    case 'contactRemoved':
      return { contacts: withoutContact(contacts, event.contact) };
    case 'nicknameSet':
      return { nickname: event.nickname };
    case 'accountRemoved':
      return { ...initialUser(userId), removal: { utcMs: event.utcMs, modules: null, failures: 0 } };
    case 'removalTold':
      return removal === null
        ? {}
        : { removal: { ...removal, modules: event.modules, failures: removal.failures + 1 } };
  }
}

function opened(state: UserState, session: SessionRecord, as: SessionOpening): UserState {
  const kept = keptSession(session, state.keys);
  const { keyId, createdMs } = kept;
  if (as === 'refresh') return changed(state, { sessions: withRecord(state.sessions, kept) });
  return changed(state, {
    keys:
      keyId === null || as === 'contact_sync_added'
        ? state.keys
        : changedKey(state, keyId, { lastUsedMs: createdMs }),
    sessions: withRecord(state.sessions, kept),
    log: appended(state.log, entryOf(kept, as)),
  });
}

/**
 * Field by field: spread, many states would each be of a shape of their own, twice the size and slow to read
 * (docs/optimizations.md).
 */
function changed(state: UserState, change: Partial<UserState>): UserState {
  const copy: UserState = {
    userId: state.userId,
    createdMs: state.createdMs,
    handle: state.handle,
    blocked: state.blocked,
    nickname: state.nickname,
    contacts: state.contacts,
    keys: state.keys,
    sessions: state.sessions,
    log: state.log,
    usedChallenges: state.usedChallenges,
    apps: state.apps,
    appsPlaced: state.appsPlaced,
    appAccess: state.appAccess,
    hostGrants: state.hostGrants,
    upstreams: state.upstreams,
    removal: state.removal,
    sweepDueMs: state.sweepDueMs,
  };
  return Object.assign(copy, change);
}

/** Grants end with what they rest on: the key of their login, the access of their application, the account. */
function withoutGrants(state: UserState, ends: (grant: HostGrant) => boolean): UserState {
  if (!state.hostGrants.some(ends)) return state;
  return changed(state, { hostGrants: state.hostGrants.filter((grant) => !ends(grant)) });
}

function rotated(state: UserState, event: Extract<UserEvent, { type: 'grantRotated' }>): UserState {
  const grant = findById(state.hostGrants, event.grantId);
  if (grant === undefined) return state;
  const { refreshHash, formers, utcMs } = event;
  const next: HostGrant = { ...grant, refreshHash, formers, rotatedMs: utcMs };
  return changed(state, { hostGrants: withRecord(state.hostGrants, next) });
}

function withKey(state: UserState, keyId: string, change: Partial<UserKey>): UserState {
  return changed(state, { keys: changedKey(state, keyId, change) });
}

function changedKey(
  { keys, userId }: UserState,
  keyId: string,
  change: Partial<UserKey>,
): readonly UserKey[] {
  const key = findById(keys, keyId);
  return key === undefined ? keys : withRecord(keys, keptKey(Object.assign({}, key, change), userId));
}

function changeSession(state: UserState, sessionId: string, change: Partial<SessionRecord>): UserState {
  const session = findById(state.sessions, sessionId);
  if (session === undefined) return state;
  const kept = Object.assign(keptSession(session, state.keys), change);
  return changed(state, { sessions: withRecord(state.sessions, kept) });
}
