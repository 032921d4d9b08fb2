/**
 * The user actor: one account with its keys, sessions, login log and limiter windows. Gives every command to the file
 * that decides it and answers what may be asked of an account.
 */

import type { SealedKey } from '../../domain/apps.ts';
import type { Contact } from '../../domain/contacts.ts';
import type { UserKey } from '../../domain/keys.ts';
import { grantEndMs } from '../../domain/oauth/grants.ts';
import type { UpstreamCredential, UpstreamLogin } from '../../domain/oauth/upstream-credentials.ts';
import type { RemovedApp, SettledApp } from '../apps/app-messages.ts';
import { defineActor, type QueryView } from '../runtime/actor.ts';
import type { Protocol } from '../runtime/protocol.ts';
import { keptLog, type LogEntry } from './login-log.ts';
import { endOf } from './session-expiry.ts';
import { type AdminKeyCommand, type ClaimedKey, decideAdminKey } from './user-admin-keys.ts';
import {
  accessOf,
  appClosed,
  appGone,
  grantAppAccess,
  type RevokedAppAccess,
  revokeAppAccess,
} from './user-app-access.ts';
import { forgetAppRequest, registeredWith } from './user-app-request.ts';
import { type AppsCommand, appOverdue, appSettled, removeApp, upsertApp } from './user-apps.ts';
import { type CodeLoggedIn, type CodeLogin, codeLogin, codeRefused } from './user-codes.ts';
import {
  type AddedContactSync,
  addContactSync,
  type ContactSyncCommand,
  contactSyncTokens,
  removeContactSync,
} from './user-contact-sync.ts';
import {
  addContact,
  type FindNickname,
  type ProfileCommand,
  removeContact,
  setNickname,
} from './user-contacts.ts';
import { type AddedKey, activeKeys, decideEnrollment, type EnrollmentCommand } from './user-enrollment.ts';
import {
  decideConsent,
  type EndedGrant,
  endGrant,
  type GrantCommand,
  type IssuedAccess,
  openGrant,
  refreshGrant,
} from './user-grants.ts';
import {
  type KeyCommand,
  loseKey,
  type RemovedKey,
  removeKey,
  type UpdatedKey,
  updateKey,
} from './user-keys.ts';
import { decideLogin, type LoggedIn, type LoginCommand } from './user-login.ts';
import { USER, type UserMessage } from './user-messages.ts';
import { decidePasskey, type PasskeyCommand } from './user-passkeys.ts';
import {
  type RemovalCommand,
  type RemovedAccount,
  removalTried,
  removeAccount,
  tellRemoval,
} from './user-removal.ts';
import {
  type AuthenticateSession,
  authenticateSession,
  type CheckedSession,
  type CheckSession,
  checkSession,
  initialVolatile,
  lastSeen,
  type UserVolatile,
} from './user-session-check.ts';
import {
  type BlockedAccount,
  type ClosedSessions,
  closeSessions,
  endSession,
  isLogin,
  type SessionCommand,
  setBlocked,
  sweep,
  touchSession,
} from './user-sessions.ts';
import { decideSignUp, type SignedUp, type SignUpCommand } from './user-sign-up.ts';
import { evolveUser, initialUser, restoredUser } from './user-state.ts';
import type {
  AppAccess,
  AppEntry,
  HostGrant,
  LoginRecord,
  SessionRecord,
  UserEvent,
  UserState,
  UserTimer,
} from './user-types.ts';
import { upcastUser } from './user-upcast.ts';
import {
  type CallCredential,
  connectUpstream,
  disconnectUpstream,
  type FindUpstreamCredential,
  findCredential,
  openUpstreamLogin,
  renewUpstream,
  takeUpstreamLogin,
  type UpstreamCommand,
  upstreamRefreshed,
} from './user-upstreams.ts';

type UserCommand =
  | SignUpCommand
  | LoginCommand
  | CodeLogin
  | EnrollmentCommand
  | PasskeyCommand
  | AdminKeyCommand
  | KeyCommand
  | SessionCommand
  | AppsCommand
  | GrantCommand
  | ContactSyncCommand
  | ProfileCommand
  | UpstreamCommand
  | RemovalCommand
  | UserMessage
  | UserTimer;

type UserQuery =
  /** `AccountView`. */
  | { readonly type: 'account' }
  /** The person's decision about an application: `AppAccess`, or undefined. */
  | { readonly type: 'appAccess'; readonly appId: string }
  /** The API key of the application that was registered with this Idempotency-Key: `SealedKey`, for an hour. */
  | { readonly type: 'issuedKey'; readonly key: string }
  /** Active keys, or with `removed` all that there ever were, `UserKey[]`, in the order of their ids. */
  | { readonly type: 'keys'; readonly removed?: boolean }
  /** Live sessions with their last use, `LoginRecord[]`, the oldest first. */
  | { readonly type: 'sessions' }
  /** Contact sync tokens with their last use, `SessionRecord[]`, the oldest first. */
  | { readonly type: 'contactSync' }
  /** Live connected hosts with their sessions, `LiveGrant[]`, the oldest first. */
  | { readonly type: 'grants' }
  /** The newest first, `LogEntry[]`. */
  | { readonly type: 'logins' }
  /** Credentials for other MCP servers, `UpstreamCredential[]`, the oldest first. */
  | { readonly type: 'upstreams' };

export interface AccountView {
  readonly exists: boolean;
  readonly handle: string;
  readonly blocked: boolean;
  readonly keys: readonly UserKey[];
  /** Null: there is no such account. */
  readonly createdMs: number | null;
  readonly nickname: string | null;
  readonly contacts: readonly Contact[];
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
    case 'removeContact':
    case 'removeAccount':
    case 'tellRemoval':
    case 'removalTried':
    case 'revokeAppAccess':
    case 'removeApp':
    case 'appSettled':
    case 'appOverdue':
    case 'forgetAppRequest':
    case 'appClosed':
    case 'appGone':
    case 'endGrant':
    case 'removeContactSync':
    case 'disconnectUpstream':
    case 'sweep':
      return true;
    case 'updateKey':
      return command.mcpAccess === false || command.cardDavAccess === false || command.browserLogin === false;
    case 'setBlocked':
      return command.blocked;
    default:
      return false;
  }
}

/** Replies by command type. A command that a turn continues with has the reply of the one that began. */
interface UserReplies {
  readonly signUp: SignedUp;
  readonly signUpVerified: SignedUp;
  readonly login: LoggedIn;
  readonly mcpLogin: LoggedIn;
  readonly loginVerified: LoggedIn;
  readonly codeLogin: CodeLoggedIn;
  readonly addKey: AddedKey;
  readonly addKeyVerified: AddedKey;
  readonly addPasskey: AddedKey;
  readonly addPasskeyVerified: AddedKey;
  readonly claimKey: ClaimedKey;
  readonly claimKeyVerified: ClaimedKey;
  readonly updateKey: UpdatedKey;
  readonly removeKey: RemovedKey;
  readonly upsertApp: SettledApp;
  readonly removeApp: RemovedApp;
  readonly revokeAppAccess: RevokedAppAccess;
  readonly grantAppAccess: AppAccess;
  readonly decideConsent: string | null;
  readonly openGrant: IssuedAccess;
  readonly refreshGrant: IssuedAccess;
  readonly endGrant: EndedGrant;
  readonly addContactSync: AddedContactSync;
  readonly removeContactSync: null;
  readonly addContact: readonly Contact[];
  readonly removeContact: readonly Contact[];
  readonly setNickname: string | null;
  readonly openUpstreamLogin: null;
  readonly takeUpstreamLogin: UpstreamLogin;
  readonly connectUpstream: null;
  readonly renewUpstream: CallCredential;
  readonly upstreamRefreshed: CallCredential;
  readonly disconnectUpstream: null;
  readonly removeAccount: RemovedAccount;
  readonly endSession: number;
  readonly closeSessions: ClosedSessions;
  readonly touchSession: null;
  readonly setBlocked: BlockedAccount;
  readonly sweep: null;
}

/** A connected host, its live sessions, and when it or one of them was last used. */
export interface LiveGrant extends HostGrant {
  readonly sessionIds: readonly string[];
  readonly usedMs: number;
}

interface UserResults {
  readonly account: AccountView;
  readonly appAccess: AppAccess | undefined;
  readonly issuedKey: SealedKey | undefined;
  readonly keys: readonly UserKey[];
  readonly sessions: readonly LoginRecord[];
  readonly contactSync: readonly SessionRecord[];
  readonly grants: readonly LiveGrant[];
  readonly logins: readonly LogEntry[];
  readonly upstreams: readonly UpstreamCredential[];
}

interface UserVolatileReplies {
  readonly enterSession: CheckedSession | undefined;
  readonly checkSession: boolean;
  readonly upstreamCredential: CallCredential | undefined;
  readonly nickname: string | null;
}

export type UserProtocol = Protocol<
  UserCommand,
  UserReplies,
  UserQuery,
  UserResults,
  AuthenticateSession | CheckSession | FindUpstreamCredential | FindNickname,
  UserVolatileReplies
>;

export const user = defineActor<UserState, UserProtocol, UserEvent, UserVolatile>({
  kind: USER,
  version: 10,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  upcast: upcastUser,
  restored: restoredUser,
  initial: initialUser,
  volatile: initialVolatile,
  evolve: evolveUser,
  frees,

  decide: {
    signUp: decideSignUp,
    signUpVerified: decideSignUp,
    login: decideLogin,
    mcpLogin: decideLogin,
    loginVerified: decideLogin,
    codeLogin,
    codeRefused,
    addKey: decideEnrollment,
    addKeyVerified: decideEnrollment,
    addPasskey: decidePasskey,
    addPasskeyVerified: decidePasskey,
    claimKey: decideAdminKey,
    claimKeyVerified: decideAdminKey,
    updateKey,
    removeKey,
    loseKey,
    upsertApp,
    removeApp,
    revokeAppAccess,
    grantAppAccess,
    appSettled,
    appOverdue,
    forgetAppRequest,
    appClosed,
    appGone,
    endSession,
    closeSessions,
    touchSession,
    decideConsent,
    openGrant,
    refreshGrant,
    endGrant,
    addContactSync,
    removeContactSync,
    addContact,
    removeContact,
    setNickname,
    openUpstreamLogin,
    takeUpstreamLogin,
    connectUpstream,
    renewUpstream,
    upstreamRefreshed,
    disconnectUpstream,
    removeAccount,
    tellRemoval,
    removalTried,
    setBlocked,
    sweep,
  },

  decideNow: {
    enterSession: authenticateSession,
    checkSession,
    upstreamCredential: (state, _volatile, command) => findCredential(state, command),
    nickname: ({ nickname }) => nickname,
  },

  query: {
    account: accountOf,
    appAccess: (state, { appId }) => accessOf(state, appId),
    issuedKey: (state, { key }, _volatile, { nowMs }) => registeredWith(state, key, nowMs)?.request.apiKey,
    keys: (state, { removed }) => (removed === true ? state.keys : activeKeys(state)),
    sessions: (state, _query, volatile, view) => liveSessions(state, volatile, view),
    contactSync: (state, _query, volatile) =>
      contactSyncTokens(state).map((token) => ({ ...token, lastSeenMs: lastSeen(volatile, token) })),
    grants: (state, _query, volatile, view) => liveGrants(state, volatile, view),
    logins: ({ log }) => keptLog(log).toReversed(),
    upstreams: ({ upstreams }) => upstreams?.credentials ?? [],
  },
});

function accountOf(state: UserState): AccountView {
  const { createdMs, handle, blocked, nickname, contacts, apps, appAccess } = state;
  const keys = activeKeys(state);
  const exists = createdMs !== null;
  return { exists, createdMs, handle, blocked, nickname, contacts, keys, apps, appAccess };
}

function liveSessions(
  state: UserState,
  volatile: UserVolatile,
  { nowMs, settings }: QueryView,
): LoginRecord[] {
  const live: LoginRecord[] = [];
  for (const session of state.sessions.filter(isLogin)) {
    const lastSeenMs = lastSeen(volatile, session);
    if (nowMs < endOf(session, lastSeenMs, settings)) live.push({ ...session, lastSeenMs });
  }
  return live;
}

function liveGrants(
  { hostGrants, sessions }: UserState,
  volatile: UserVolatile,
  { nowMs }: QueryView,
): LiveGrant[] {
  return hostGrants
    .filter((grant) => nowMs < grantEndMs(grant))
    .map((grant) => {
      const own = sessions.filter(({ grantId, expiresMs }) => grantId === grant.id && nowMs < expiresMs);
      const usedMs = Math.max(grant.rotatedMs, ...own.map((session) => lastSeen(volatile, session)));
      return { ...grant, sessionIds: own.map(({ id }) => id), usedMs };
    });
}
