/**
 * Applications that may act for one account: its own and those it allowed, by its word or by a key that logs in for
 * them. What was taken back stays on record, so that a further login is refused until the person allows it again.
 */
import { APP_ACCESS_MAX } from '../../domain/apps.ts';
import { type AppIndexEntry, formatIndexEntry, mayOpenSession } from '../apps/app-access-index.ts';
import { APP, type RemovedApp } from '../apps/app-messages.ts';
import { audited, type Change, type Origin, outcome, type UserOutcome } from '../change.ts';
import { type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { messageTo } from '../runtime/protocol.ts';
import type { AppClosed, AppGone } from './user-messages.ts';
import { isRemoved } from './user-removal.ts';
import { endGrants, endSessions } from './user-sessions.ts';
import type { AppAccess, SessionRecord, UserEvent, UserState } from './user-types.ts';

interface RevokeAppAccess {
  readonly type: 'revokeAppAccess';
  readonly appId: string;
  readonly origin: Origin;
}

export type AppAccessCommand =
  | RevokeAppAccess
  /** The user allows an application; `indexEntry` is its current entry in the access index. */
  | {
      readonly type: 'grantAppAccess';
      readonly appId: string;
      readonly indexEntry: AppIndexEntry | undefined;
      readonly origin: Origin;
    };

/** The reply to `revokeAppAccess`. */
export type RevokedAppAccess = RemovedApp;

export const NO_APP = 'no such application';

type Decision<Reply> = UserOutcome<Reply> | Refusal;

export function appClosed(state: UserState, { appId, tick, over }: AppClosed): UserOutcome<null> {
  const isOver = ({ id, entry }: Pick<SessionRecord, 'id' | 'entry'>) => {
    if (entry === undefined || over === undefined) return BigInt(id) < BigInt(tick);
    return entry.openedTick === over.openedTick || entry.keyTick === over.keyTick;
  };
  const grants = state.hostGrants.filter((grant) => grant.appId === appId && isOver(grant));
  // Those of a grant end with it: they keep no ticks of their own.
  const sessions = sessionsOfApp(state, appId).filter((each) => each.grantId === undefined && isOver(each));
  return outcome([endGrants(state, grants, sessions)], null);
}

export function appGone(state: UserState, { appId }: AppGone): UserOutcome<null> {
  const known = accessOf(state, appId) !== undefined;
  const dropped: UserEvent[] = known ? [{ type: 'appAccessDropped', appId }] : [];
  return outcome([{ events: dropped }, endSessions(state, sessionsOfApp(state, appId))], null);
}

export function accessOf(state: UserState, appId: string): AppAccess | undefined {
  return state.appAccess.find((access) => access.appId === appId);
}

/**
 * May a key of this account log in for the application (spec 5.1 rule 6)? A person who took the access back is obeyed.
 */
export function allowsApp(
  state: UserState,
  appId: string,
  indexEntry: AppIndexEntry | undefined,
  publicKey: string,
): boolean {
  if (!mayOpenSession(indexEntry, { userId: state.userId, publicKey })) return false;
  const access = accessOf(state, appId);
  if (access === undefined) return !owns(state, indexEntry) && state.appAccess.length < APP_ACCESS_MAX;
  return access.revokedMs === null;
}

/** The first login for another user's application adds it to the user's list. */
export function firstLogin(state: UserState, appId: string, turn: Turn): Change {
  if (accessOf(state, appId) !== undefined) return { events: [] };
  return granted(state, { appId, grantedMs: turn.nowMs, source: 'login', revokedMs: null }, true);
}

function owns(state: UserState, indexEntry: AppIndexEntry | undefined): boolean {
  return indexEntry?.ownerId === state.userId;
}

/** Those of hosts that connected as it included, whatever their scope. */
export function sessionsOfApp(state: UserState, appId: string): SessionRecord[] {
  const grants = new Set(state.hostGrants.filter((grant) => grant.appId === appId).map(({ id }) => id));
  return state.sessions.filter(
    (session) => session.appId === appId || (session.grantId !== undefined && grants.has(session.grantId)),
  );
}

/** The application is still what it was when the command was made: one that closed meanwhile would end the session at once. */
export function unchangedIndexEntry(appId: string, indexEntry: AppIndexEntry): Change {
  const text = formatIndexEntry(indexEntry);
  return {
    events: [],
    claims: [{ index: 'appId', key: appId, owner: text, replaces: text, onConflict: 'AccessDenied' }],
  };
}

/** A host connects as an application: it is then listed among those with access, which brings no webhooks. */
export function connectedAccess(state: UserState, appId: string, turn: Turn): Change | Refusal {
  const present = accessOf(state, appId);
  if (present?.revokedMs === null) return { events: [] };
  if (present === undefined && state.appAccess.length >= APP_ACCESS_MAX)
    return refuse('AppLimitReached', `at most ${APP_ACCESS_MAX} applications with access`);
  return granted(state, { appId, grantedMs: turn.nowMs, source: 'login', revokedMs: null }, true);
}

export function revokeAppAccess(
  state: UserState,
  { appId, origin }: RevokeAppAccess,
  turn: Turn,
): Decision<RevokedAppAccess> {
  const access = accessOf(state, appId);
  if (access === undefined || access.revokedMs !== null) return refuse('NotFound', NO_APP);
  const ended = sessionsOfApp(state, appId);
  const reply: RevokedAppAccess = { appId, sessionsClosed: ended.length };
  return outcome(
    [
      { events: [{ type: 'appAccessRevoked', appId, utcMs: turn.nowMs }] },
      endSessions(state, ended),
      audited(state, turn, 'app_access_revoked', origin, { appId, sessionsClosed: ended.length }),
    ],
    reply,
  );
}

/** An application that takes no sessions is answered like one that does not exist. */
export function grantAppAccess(
  state: UserState,
  { appId, indexEntry, origin }: Extract<AppAccessCommand, { type: 'grantAppAccess' }>,
  turn: Turn,
): Decision<AppAccess> {
  if (isRemoved(state)) return refuse('SessionNotFound');
  const present = accessOf(state, appId);
  const own = owns(state, indexEntry);
  const known = own ? state.apps.some((entry) => entry.appId === appId) : indexEntry?.openedTick != null;
  if (!known) return refuse('NotFound', NO_APP);
  const source = own ? 'registration' : 'consent';
  if (present?.revokedMs === null && present.source === source) return { reply: present };
  if (present === undefined && state.appAccess.length >= APP_ACCESS_MAX)
    return refuse('AppLimitReached', `at most ${APP_ACCESS_MAX} applications with access`);
  const access: AppAccess = { appId, grantedMs: turn.nowMs, source, revokedMs: null };
  const change = granted(state, access, !own);
  return outcome([change, audited(state, turn, 'app_access_granted', origin, { appId })], access);
}

/** `join`: another user's application records the users that it acts for, to notify them when it closes. */
function granted(state: UserState, access: AppAccess, join: boolean): Change {
  return {
    events: [{ type: 'appAccessGranted', access }],
    send: join ? [messageTo(APP, access.appId, { type: 'join', userId: state.userId })] : [],
  };
}
