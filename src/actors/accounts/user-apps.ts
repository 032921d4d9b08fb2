/**
 * Applications that one account registered: which one a request means. The applications themselves live in their own
 * actors; a registration is answered when theirs has taken it over.
 */
import {
  APP_ACCESS_MAX,
  APP_RECORDS_MAX,
  APPS_MAX,
  type AppPatch,
  type SealedKey,
  sameUrl,
} from '../../domain/apps.ts';
import { SECOND_MS } from '../../domain/time.ts';
import {
  APP,
  type ConfigureApp,
  type RemoveApp,
  type RemovedApp,
  type SettledApp,
} from '../apps/app-messages.ts';
import { type Change, type Origin, outcome, type UserOutcome } from '../change.ts';
import {
  isRefusal,
  Later,
  type Message,
  type Outcome,
  type Refusal,
  refuse,
  type Timer,
  type Turn,
} from '../runtime/actor.ts';
import { messageTo } from '../runtime/protocol.ts';
import { type AppAccessCommand, NO_APP, sessionsOfApp } from './user-app-access.ts';
import { type KeptEntry, registeredWith, requestOf, requestTimers } from './user-app-request.ts';
import type { AppSettled } from './user-messages.ts';
import { isRemoved } from './user-removal.ts';
import { endSessions } from './user-sessions.ts';
import type { AppEntry, AppOverdue, RequestKey, UserEvent, UserState } from './user-types.ts';

/** Registers an application or changes one. The reply is the app actor's `SettledApp`. */
interface UpsertApp {
  readonly type: 'upsertApp';
  /** Absent: found by its address or name. */
  readonly appId?: string;
  readonly patch: AppPatch;
  /** Sealed key for a new application. */
  readonly key: SealedKey;
  /** Key of a request with an Idempotency-Key. */
  readonly request?: RequestKey;
  readonly origin: Origin;
}

export type AppsCommand =
  | AppAccessCommand
  | UpsertApp
  | { readonly type: 'removeApp'; readonly appId: string; readonly origin: Origin };

type Decision<Reply> = UserOutcome<Reply> | Refusal;

/** An application answers its account within milliseconds. */
const ANSWER_TIMEOUT_MS = 10 * SECOND_MS;

export function appSettled(
  _state: UserState,
  { commandId, reply }: AppSettled,
): Outcome<UserEvent, null, never, AppSettled['reply']> {
  return { answers: [{ commandId, reply }], timers: [{ name: overdueTimer(commandId), dueMs: null }] };
}

export function appOverdue(_state: UserState, { commandId }: AppOverdue): UserOutcome<null> {
  return { answers: [{ commandId, refusal: refuse('Quarantined') }] };
}

export function upsertApp(state: UserState, command: UpsertApp, turn: Turn): Decision<SettledApp> {
  if (isRemoved(state)) return refuse('SessionNotFound');
  const { patch, key, request, origin } = command;
  const first = request === undefined ? undefined : registeredWith(state, request.key, turn.nowMs);
  if (first !== undefined) return decideRepeat(state, first, command, turn);
  const target = targetOf(state, command);
  if (isRefusal(target)) return target;
  const placed = target ?? newEntry(state, command, turn);
  if (isRefusal(placed)) return placed;
  const entry: AppEntry = {
    ...placed,
    name: patch.name ?? placed.name,
    url: patch.url ?? placed.url,
  };
  const isNew = target === undefined;
  const moved = isNew || entry.name !== placed.name || entry.url !== placed.url;
  return {
    events: moved ? [{ type: 'appPlaced', entry, utcMs: turn.nowMs }] : [],
    send: [configure(state, entry, { patch, key, origin }, turn)],
    timers: [overdue(turn, turn.commandId), ...(isNew ? requestTimers(entry) : [])],
    reply: new Later(turn.commandId),
  };
}

/** The first answer was lost: the application answers once more, and nothing of it changes. */
function decideRepeat(
  state: UserState,
  entry: KeptEntry,
  command: UpsertApp,
  turn: Turn,
): Decision<SettledApp> {
  const { patch, request, origin } = command;
  if (request?.fingerprint !== entry.request.fingerprint) return refuse('IdempotencyKeyReused');
  const { apiKey: key } = entry.request;
  return {
    send: [configure(state, entry, { patch, key, origin, repeat: true }, turn)],
    timers: [overdue(turn, turn.commandId)],
    reply: new Later(turn.commandId),
  };
}

function configure(
  { userId }: UserState,
  { appId }: AppEntry,
  rest: Pick<ConfigureApp, 'patch' | 'key' | 'origin' | 'repeat'>,
  { commandId }: Turn,
): Message {
  const command: ConfigureApp = { type: 'configure', commandId, ownerId: userId, ...rest };
  return messageTo(APP, appId, command);
}

/** The application that the request means. Undefined: none of the account's, so a new one is created. */
function targetOf(state: UserState, { appId, patch }: UpsertApp): AppEntry | Refusal | undefined {
  const { apps } = state;
  if (appId !== undefined) return apps.find((entry) => entry.appId === appId) ?? refuse('NotFound', NO_APP);
  const { name, url } = patch;
  if (name === undefined && url === undefined) return apps.length === 1 ? apps[0] : undefined;
  const byUrl = url === undefined ? undefined : apps.find((entry) => sameUrl(entry.url, url));
  return byUrl ?? (name === undefined ? undefined : apps.find((entry) => entry.name === name));
}

function newEntry(
  state: UserState,
  { patch: { name, url }, key, request }: UpsertApp,
  turn: Turn,
): AppEntry | Refusal {
  if (name === undefined || url === undefined)
    return refuse('InvalidInput', 'a new application needs name and url');
  if (state.apps.length >= APPS_MAX) return refuse('AppLimitReached', `at most ${APPS_MAX} applications`);
  if (state.appsPlaced >= APP_RECORDS_MAX || state.appAccess.length >= APP_ACCESS_MAX)
    return refuse('AppLimitReached', 'removed applications included');
  return { appId: turn.newId(), name, url, ...requestOf(request, key, turn) };
}

function overdueTimer(commandId: string): string {
  return `app:${commandId}`;
}

/** Ends the wait of a command that an application does not answer. What was asked is done all the same, later. */
function overdue(turn: Turn, commandId: string): Timer<AppOverdue> {
  return {
    name: overdueTimer(commandId),
    dueMs: turn.nowMs + ANSWER_TIMEOUT_MS,
    command: { type: 'appOverdue', commandId },
  };
}

/** The account lets go of it in this turn, the application itself in its own; then the caller is answered. */
export function removeApp(
  state: UserState,
  { appId, origin }: Extract<AppsCommand, { type: 'removeApp' }>,
  turn: Turn,
): Decision<RemovedApp> {
  const entry = state.apps.find((each) => each.appId === appId);
  if (entry === undefined) return refuse('NotFound', NO_APP);
  const ended = sessionsOfApp(state, appId);
  const reply: RemovedApp = { appId, sessionsClosed: ended.length };
  const remove: RemoveApp = {
    type: 'remove',
    commandId: turn.commandId,
    ownerId: state.userId,
    reply,
    origin,
  };
  const change: Change = {
    events: [{ type: 'appDropped', appId }],
    send: [messageTo(APP, appId, remove)],
    timers: [overdue(turn, turn.commandId), ...requestTimers(entry, true)],
  };
  return outcome<RemovedApp>([change, endSessions(state, ended)], new Later(turn.commandId));
}
