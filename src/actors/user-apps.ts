/**
 * Applications of one account: which one a registration means, and which applications may act for the account. The
 * applications themselves live in their own actors; a registration is answered when theirs has taken it over.
 */
import {
  APP_ACCESS_MAX,
  APP_RECORDS_MAX,
  APPS_MAX,
  type AppPatch,
  type SealedKey,
  sameUrl,
} from '../domain/apps.ts';
import { type AppDoor, letsIn } from './app-door.ts';
import { isRefusal, Later, type Outcome, type Refusal, refuse, type Turn } from './runtime/actor.ts';
import { audited, type Change, type Origin, outcome } from './user-change.ts';
import { endSessions } from './user-sessions.ts';
import type { AppAccess, AppEntry, SessionRecord, UserEvent, UserState } from './user-state.ts';

/** Registers an application or changes one. The reply is the app actor's `SettledApp`. */
export interface UpsertApp {
  readonly type: 'upsertApp';
  /** Absent: found by its address or name (config.md "App registration"). */
  readonly appId?: string;
  readonly patch: AppPatch;
  /** For a new application. */
  readonly key: SealedKey;
  readonly origin: Origin;
}

export interface RevokeAppAccess {
  readonly type: 'revokeAppAccess';
  readonly appId: string;
  readonly origin: Origin;
}

export type AppsCommand =
  | UpsertApp
  | { readonly type: 'removeApp'; readonly appId: string; readonly origin: Origin }
  | RevokeAppAccess
  /** The person allows an application; `door` is what the index says of it now. */
  | {
      readonly type: 'grantAppAccess';
      readonly appId: string;
      readonly door: AppDoor | undefined;
      readonly origin: Origin;
    }
  /** From the app actor: it has done what the waiting command asked for. */
  | { readonly type: 'appSettled'; readonly commandId: string; readonly reply: unknown }
  /** From the app actor: its sessions that were opened before the tick are over. */
  | { readonly type: 'appClosed'; readonly appId: string; readonly tick: string }
  /** From the app actor: it was removed. */
  | { readonly type: 'appGone'; readonly appId: string };

export interface RevokedAppAccess {
  readonly appId: string;
  readonly sessionsClosed: number;
}
export type RemovedApp = RevokedAppAccess;

type Decision = Outcome<UserEvent> | Refusal;

const NO_APP = 'no such application';

export function decideApps(state: UserState, command: AppsCommand, turn: Turn): Decision {
  switch (command.type) {
    case 'upsertApp':
      return decideUpsert(state, command, turn);
    case 'removeApp':
      return decideRemove(state, command.appId, command.origin, turn);
    case 'revokeAppAccess':
      return decideRevoke(state, command, turn);
    case 'grantAppAccess':
      return decideGrant(state, command, turn);
    case 'appSettled':
      return { answers: [{ commandId: command.commandId, reply: command.reply }] };
    case 'appClosed': {
      const { appId, tick } = command;
      const ended = sessionsOfApp(state, appId).filter(({ id }) => BigInt(id) < BigInt(tick));
      return outcome([endSessions(state, ended)], null);
    }
    case 'appGone': {
      const { appId } = command;
      const known = accessOf(state, appId) !== undefined;
      const dropped: UserEvent[] = known ? [{ type: 'appAccessDropped', appId }] : [];
      return outcome([{ events: dropped }, endSessions(state, sessionsOfApp(state, appId))], null);
    }
  }
}

export function accessOf(state: UserState, appId: string): AppAccess | undefined {
  return state.appAccess.find((access) => access.appId === appId);
}

/**
 * May a key of this account log in for the application (spec 5.1 rule 6)? A person who took the access back is obeyed.
 */
export function admitsApp(
  state: UserState,
  appId: string,
  door: AppDoor | undefined,
  publicKey: string,
): boolean {
  if (!letsIn(door, { userId: state.userId, publicKey })) return false;
  const access = accessOf(state, appId);
  if (access === undefined) return !owns(state, door) && state.appAccess.length < APP_ACCESS_MAX;
  return access.revokedMs === null;
}

/** The first login for somebody else's application puts it into the list that the person sees. */
export function firstLogin(state: UserState, appId: string, turn: Turn): Change {
  if (accessOf(state, appId) !== undefined) return { events: [] };
  return granted(state, { appId, grantedMs: turn.nowMs, source: 'login', revokedMs: null }, true);
}

function owns(state: UserState, door: AppDoor | undefined): boolean {
  return door?.ownerId === state.userId;
}

function sessionsOfApp(state: UserState, appId: string): SessionRecord[] {
  return state.sessions.filter((session) => session.appId === appId);
}

function decideUpsert(state: UserState, command: UpsertApp, turn: Turn): Decision {
  const { patch, key, origin } = command;
  const target = targetOf(state, command);
  if (isRefusal(target)) return target;
  const placed = target ?? newEntry(state, patch, turn);
  if (isRefusal(placed)) return placed;
  const entry: AppEntry = {
    appId: placed.appId,
    name: patch.name ?? placed.name,
    url: patch.url ?? placed.url,
  };
  const isNew = target === undefined;
  const moved = isNew || entry.name !== placed.name || entry.url !== placed.url;
  const configure = {
    type: 'configure',
    commandId: turn.commandId,
    ownerId: state.userId,
    patch,
    key,
    origin,
  };
  return {
    events: moved ? [{ type: 'appPlaced', entry, utcMs: turn.nowMs }] : [],
    send: [{ toKind: 'app', toId: entry.appId, command: configure }],
    reply: new Later(turn.commandId),
  };
}

/** config.md "App registration". Undefined: none of the account's applications is meant, so a new one is. */
function targetOf(state: UserState, { appId, patch }: UpsertApp): AppEntry | Refusal | undefined {
  const { apps } = state;
  if (appId !== undefined) return apps.find((entry) => entry.appId === appId) ?? refuse('NotFound', NO_APP);
  const { name, url } = patch;
  if (name === undefined && url === undefined) return apps.length === 1 ? apps[0] : undefined;
  const byUrl = url === undefined ? undefined : apps.find((entry) => sameUrl(entry.url, url));
  return byUrl ?? (name === undefined ? undefined : apps.find((entry) => entry.name === name));
}

function newEntry(state: UserState, { name, url }: AppPatch, turn: Turn): AppEntry | Refusal {
  if (name === undefined || url === undefined)
    return refuse('InvalidInput', 'a new application needs name and url');
  if (state.apps.length >= APPS_MAX) return refuse('AppLimitReached', `at most ${APPS_MAX} applications`);
  if (state.appsPlaced >= APP_RECORDS_MAX || state.appAccess.length >= APP_ACCESS_MAX)
    return refuse('AppLimitReached', 'removed applications included');
  return { appId: turn.tick(), name, url };
}

/** The account lets go of it in this turn, the application itself in its own; then the caller is answered. */
function decideRemove(state: UserState, appId: string, origin: Origin, turn: Turn): Decision {
  if (!state.apps.some((entry) => entry.appId === appId)) return refuse('NotFound', NO_APP);
  const ended = sessionsOfApp(state, appId);
  const reply: RemovedApp = { appId, sessionsClosed: ended.length };
  const remove = { type: 'remove', commandId: turn.commandId, ownerId: state.userId, reply, origin };
  const change: Change = {
    events: [{ type: 'appDropped', appId }],
    send: [{ toKind: 'app', toId: appId, command: remove }],
  };
  return outcome([change, endSessions(state, ended)], new Later(turn.commandId));
}

function decideRevoke(state: UserState, { appId, origin }: RevokeAppAccess, turn: Turn): Decision {
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

/** An application that takes no sessions cannot be told from one that is not there. */
function decideGrant(
  state: UserState,
  { appId, door, origin }: Extract<AppsCommand, { type: 'grantAppAccess' }>,
  turn: Turn,
): Decision {
  const present = accessOf(state, appId);
  const own = owns(state, door);
  const known = own ? state.apps.some((entry) => entry.appId === appId) : door?.openedTick != null;
  if (!known) return refuse('NotFound', NO_APP);
  const source = own ? 'registration' : 'consent';
  if (present?.revokedMs === null && present.source === source) return { reply: present };
  if (present === undefined && state.appAccess.length >= APP_ACCESS_MAX)
    return refuse('AppLimitReached', `at most ${APP_ACCESS_MAX} applications with access`);
  const access: AppAccess = { appId, grantedMs: turn.nowMs, source, revokedMs: null };
  const change = granted(state, access, !own);
  return outcome([change, audited(state, turn, 'app_access_granted', origin, { appId })], access);
}

/** `join`: an application of somebody else is to know whom it acts for, to tell them when it closes. */
function granted(state: UserState, access: AppAccess, join: boolean): Change {
  const command = { type: 'join', userId: state.userId };
  return {
    events: [{ type: 'appAccessGranted', access }],
    send: join ? [{ toKind: 'app', toId: access.appId, command }] : [],
  };
}
