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
} from '../domain/apps.ts';
import { SECOND_MS } from '../domain/time.ts';
import {
  isRefusal,
  Later,
  type Outcome,
  type Refusal,
  refuse,
  type Timer,
  type Turn,
} from './runtime/actor.ts';
import {
  type AppAccessCommand,
  decideAppAccess,
  NO_APP,
  type RevokedAppAccess,
  sessionsOfApp,
} from './user-app-access.ts';
import { type Change, type Origin, outcome } from './user-change.ts';
import { endSessions } from './user-sessions.ts';
import type { AppEntry, UserEvent, UserState } from './user-state.ts';

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

export type AppsCommand =
  | AppAccessCommand
  | UpsertApp
  | { readonly type: 'removeApp'; readonly appId: string; readonly origin: Origin }
  /** From the app actor: it has done what the waiting command asked for. */
  | { readonly type: 'appSettled'; readonly commandId: string; readonly reply: unknown }
  /** The app actor has not answered: it is quarantined, or its message became a dead letter. */
  | { readonly type: 'appOverdue'; readonly commandId: string };

export type RemovedApp = RevokedAppAccess;

type Decision = Outcome<UserEvent> | Refusal;

/** An application answers its account within milliseconds. */
const ANSWER_TIMEOUT_MS = 10 * SECOND_MS;

export function decideApps(state: UserState, command: AppsCommand, turn: Turn): Decision {
  switch (command.type) {
    case 'upsertApp':
      return decideUpsert(state, command, turn);
    case 'removeApp':
      return decideRemove(state, command.appId, command.origin, turn);
    case 'appSettled': {
      const { commandId, reply } = command;
      return { answers: [{ commandId, reply }], timers: [{ ...overdue(turn, commandId), dueMs: null }] };
    }
    case 'appOverdue':
      return { answers: [{ commandId: command.commandId, refusal: refuse('Quarantined') }] };
    default:
      return decideAppAccess(state, command, turn);
  }
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
    timers: [overdue(turn, turn.commandId)],
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

/** Ends the wait of a command that an application does not answer. What was asked is done all the same, later. */
function overdue(turn: Turn, commandId: string): Timer {
  return {
    name: `app:${commandId}`,
    dueMs: turn.nowMs + ANSWER_TIMEOUT_MS,
    command: { type: 'appOverdue', commandId },
  };
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
    timers: [overdue(turn, turn.commandId)],
  };
  return outcome([change, endSessions(state, ended)], new Later(turn.commandId));
}
