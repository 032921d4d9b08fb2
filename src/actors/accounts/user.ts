/**
 * The user actor: one account with its keys, sessions, login log and limiter windows. Gives every command to the file
 * that decides it and answers what may be asked of an account.
 */
import type { UserKey } from '../../domain/keys.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { defineActor } from '../runtime/actor.ts';
import { keptLog, type LogEntry } from './login-log.ts';
import { endOf } from './session-expiry.ts';
import { type AdminKeyCommand, decideAdminKey } from './user-admin-keys.ts';
import { accessOf } from './user-app-access.ts';
import { registeredWith } from './user-app-request.ts';
import { type AppsCommand, decideApps } from './user-apps.ts';
import { type CodeLoginCommand, decideCodes } from './user-codes.ts';
import { activeKeys, decideEnrolment, type EnrolmentCommand } from './user-enrollment.ts';
import { decideKey, type KeyCommand } from './user-keys.ts';
import { decideLogin, type LoginCommand } from './user-login.ts';
import { decidePasskey, type PasskeyCommand } from './user-passkeys.ts';
import {
  type CheckSession,
  checkSession,
  type EnterSession,
  enterSession,
  initialVolatile,
  lastSeen,
  type UserVolatile,
} from './user-session-check.ts';
import { decideSession, type SessionCommand } from './user-sessions.ts';
import { decideSignUp, type SignUpCommand } from './user-sign-up.ts';
import {
  type AppAccess,
  type AppEntry,
  evolveUser,
  initialUser,
  restoredUser,
  type SessionRecord,
  type UserEvent,
  type UserState,
} from './user-state.ts';
import { upcastUser } from './user-upcast.ts';

export type UserCommand =
  | SignUpCommand
  | LoginCommand
  | CodeLoginCommand
  | EnrolmentCommand
  | PasskeyCommand
  | AdminKeyCommand
  | KeyCommand
  | SessionCommand
  | AppsCommand;

export type UserQuery =
  /** `AccountView`. */
  | { readonly type: 'account' }
  /** What the person decided about an application: `AppAccess`, or undefined. */
  | { readonly type: 'appAccess'; readonly appId: string }
  /** The API key of the application that was registered with this Idempotency-Key: `SealedKey`, for an hour. */
  | { readonly type: 'issuedKey'; readonly key: string; readonly nowMs: number }
  /** Active keys, or with `removed` all that there ever were, `UserKey[]`, in the order of their ids. */
  | { readonly type: 'keys'; readonly removed?: boolean }
  /** Sessions that live at `nowMs`, with their last use, `SessionRecord[]`, the oldest first. */
  | { readonly type: 'sessions'; readonly nowMs: number; readonly settings: SettingsReader }
  /** The newest first, `LogEntry[]`. */
  | { readonly type: 'logins' };

export interface AccountView {
  readonly exists: boolean;
  readonly handle: string;
  readonly blocked: boolean;
  readonly keys: readonly UserKey[];
  /** Null: there is no such account. */
  readonly createdMs: number | null;
  /** Applications that the user registered, and those that may act for the user or no longer may. */
  readonly apps: readonly AppEntry[];
  readonly appAccess: readonly AppAccess[];
}

/** Commands that end something are served while the disk is full. */
function frees(command: UserCommand): boolean {
  switch (command.type) {
    case 'endSession':
    case 'closeSessions':
    case 'removeKey':
    case 'loseKey':
    case 'revokeAppAccess':
    case 'removeApp':
    case 'appSettled':
    case 'appOverdue':
    case 'forgetAppRequest':
    case 'appClosed':
    case 'appGone':
    case 'sweep':
      return true;
    case 'updateKey':
      return command.mcpAccess === false;
    case 'setBlocked':
      return command.blocked;
    default:
      return false;
  }
}

export const user = defineActor<UserState, UserCommand, UserEvent, UserQuery, UserVolatile>({
  kind: 'user',
  version: 5,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  upcast: upcastUser,
  restored: restoredUser,
  initial: initialUser,
  volatile: initialVolatile,
  evolve: evolveUser,
  frees: (command) => frees(command as UserCommand),

  decide(state, command, turn) {
    switch (command.type) {
      case 'signUp':
      case 'signUpVerified':
        return decideSignUp(state, command, turn);
      case 'login':
      case 'mcpLogin':
      case 'loginVerified':
        return decideLogin(state, command, turn);
      case 'codeLogin':
      case 'codeRefused':
        return decideCodes(state, command, turn);
      case 'addKey':
      case 'addKeyVerified':
        return decideEnrolment(state, command, turn);
      case 'addPasskey':
      case 'addPasskeyVerified':
        return decidePasskey(state, command, turn);
      case 'claimKey':
      case 'claimKeyVerified':
        return decideAdminKey(state, command, turn);
      case 'updateKey':
      case 'removeKey':
      case 'loseKey':
        return decideKey(state, command, turn);
      case 'upsertApp':
      case 'removeApp':
      case 'revokeAppAccess':
      case 'grantAppAccess':
      case 'appSettled':
      case 'appOverdue':
      case 'forgetAppRequest':
      case 'appClosed':
      case 'appGone':
        return decideApps(state, command, turn);
      case 'endSession':
      case 'closeSessions':
      case 'touchSession':
      case 'setBlocked':
      case 'sweep':
        return decideSession(state, command, turn);
    }
  },

  decideNow(state, volatile, sent, turn) {
    const command = sent as EnterSession | CheckSession;
    if (command.type === 'checkSession') return checkSession(state, volatile, command, turn);
    return enterSession(state, volatile, command, turn);
  },

  query(state, query, volatile) {
    switch (query.type) {
      case 'account':
        return accountOf(state);
      case 'appAccess':
        return accessOf(state, query.appId);
      case 'issuedKey':
        return registeredWith(state, query.key, query.nowMs)?.request.apiKey;
      case 'keys':
        return query.removed === true ? state.keys : activeKeys(state);
      case 'sessions':
        return liveSessions(state, query.nowMs, query.settings, volatile);
      case 'logins':
        return keptLog(state.log).toReversed() satisfies LogEntry[];
    }
  },
});

function accountOf(state: UserState): AccountView {
  const { createdMs, handle, blocked, apps, appAccess } = state;
  return { exists: createdMs !== null, createdMs, handle, blocked, keys: activeKeys(state), apps, appAccess };
}

function liveSessions(
  state: UserState,
  nowMs: number,
  settings: SettingsReader,
  volatile: UserVolatile,
): SessionRecord[] {
  const live: SessionRecord[] = [];
  for (const session of state.sessions) {
    const lastSeenMs = lastSeen(volatile, session);
    if (nowMs < endOf(session, lastSeenMs, settings)) live.push({ ...session, lastSeenMs });
  }
  return live;
}
