/**
 * Logins of one user, in a browser and over MCP. Eligibility is judged before the signature is checked, so that keys
 * that may not log in cost no work. It is judged again after the check, because the key may be gone by then.
 */
import { ERRORS, type ErrorName } from '../../domain/errors.ts';
import { hasFlag, KeyFlag, type KeyType, keyTypeOf, type UserKey } from '../../domain/keys.ts';
import type { LoginType, SessionKind } from '../../domain/sessions.ts';
import { type AppIndexEntry, type EntryTicks, ticksOf } from '../apps/app-access-index.ts';
import { audited, type Change, type Origin, outcome, type UserOutcome } from '../change.ts';
import { type Message, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import type { Ports } from '../runtime/ports.ts';
import { messageTo } from '../runtime/protocol.ts';
import { challengeUsed, refusedChallenge } from './challenges.ts';
import { findById } from './id-list.ts';
import { loginRefused } from './login-log.ts';
import type { SessionOwner } from './owners.ts';
import { allowsApp, firstLogin, unchangedIndexEntry } from './user-app-access.ts';
import { isActive } from './user-enrollment.ts';
import { USER } from './user-messages.ts';
import { credentialUsed } from './user-passkeys.ts';
import { type Opening, openSession } from './user-sessions.ts';
import type { UsedChallenge, UserState } from './user-types.ts';
import {
  type Assertion,
  type CredentialUse,
  type Finding,
  isFinding,
  type Proof,
  verifyAssertion,
  verifyProof,
} from './verification.ts';

/** Exactly one of `proof` and `assertion`. */
export interface Login {
  readonly type: 'login';
  /** Key that the index names for `publicKey`. */
  readonly keyId: string;
  /** Public key of a software key, or a credential id. */
  readonly publicKey: string;
  readonly proof?: Proof;
  readonly assertion?: Assertion;
  /** The challenge that it answers. */
  readonly challenge: UsedChallenge;
  /** Session of the `sid` sent with the login. The login ends it, regardless of its owner. */
  readonly previous?: SessionOwner;
  readonly origin: Origin;
}

export interface McpLogin {
  readonly type: 'mcpLogin';
  readonly loginType: LoginType;
  readonly keyId: string;
  readonly publicKey: string;
  /** Required for McpVerified; checked for McpApp where it is given. */
  readonly proof?: Proof;
  readonly appId: string | null;
  /** The current index entry of the application. */
  readonly indexEntry?: AppIndexEntry;
  /** Session of the bearer sent with the login: it ends where the same key opened it (spec 5.1). */
  readonly previousId?: string;
  /** Others flood the key: a refusal is not written down, or they would push the owner's entries out of the log. */
  readonly crowded?: boolean;
  readonly origin: Origin;
}

interface LoginVerified {
  readonly type: 'loginVerified';
  readonly command: Login | McpLogin;
  /** The use of the credential, for a valid assertion. */
  readonly result: Finding | CredentialUse | undefined;
}

export type LoginCommand = Login | McpLogin | LoginVerified;

export interface LoggedIn {
  readonly token: string;
  readonly userId: string;
  readonly keyId: string;
  readonly keyType: KeyType;
  readonly loginType: LoginType | null;
  readonly appId: string | null;
  readonly createdMs: number;
  readonly expiresMs: number;
}

export function decideLogin(
  state: UserState,
  command: LoginCommand,
  turn: Turn,
): UserOutcome<LoggedIn, LoginVerified> | Refusal {
  const login = command.type === 'loginVerified' ? command.command : command;
  const spent = login.type === 'login' ? refusedChallenge(state, login.challenge, turn) : undefined;
  if (spent !== undefined) return spent;
  if (command.type === 'loginVerified') return endLogin(state, login, command.result, turn);
  return beginLogin(state, login, turn);
}

function beginLogin(
  state: UserState,
  command: Login | McpLogin,
  turn: Turn,
): UserOutcome<LoggedIn, LoginVerified> | Refusal {
  const key = eligibleKey(state, command);
  if (typeof key === 'string') return refused(state, command, key, turn);
  const verify = verification(state, command, key);
  if (verify === undefined) return completeLogin(state, command, key, undefined, turn);
  return { next: async (ports) => ({ type: 'loginVerified', command, result: await verify(ports) }) };
}

/** Undefined for McpBasic, which proves nothing; every browser login proves something. */
function verification(
  state: UserState,
  command: Login | McpLogin,
  key: UserKey,
): ((ports: Ports) => Promise<Finding | CredentialUse | undefined>) | undefined {
  const { proof } = command;
  if (proof !== undefined)
    return (ports) => verifyProof(ports, Buffer.from(command.publicKey, 'base64url'), proof);
  if (command.type === 'mcpLogin') return undefined;
  const { assertion } = command;
  return async (ports) =>
    assertion === undefined
      ? { refuse: 'InvalidSignature' }
      : verifyAssertion(ports, assertion, key, state.handle);
}

function endLogin(
  state: UserState,
  command: Login | McpLogin,
  result: Finding | CredentialUse | undefined,
  turn: Turn,
): UserOutcome<LoggedIn> | Refusal {
  const key = eligibleKey(state, command);
  if (typeof key === 'string') return refused(state, command, key, turn);
  if (!isFinding(result)) return completeLogin(state, command, key, result, turn);
  return result.refuse === 'InvalidSignature' ? refused(state, command, result.refuse, turn) : result;
}

/** Checks in this order: key, account, McpAccess, blocked, app (spec 7.2). The signature is verified after them. */
function eligibleKey(state: UserState, command: Login | McpLogin): UserKey | ErrorName {
  if (state.createdMs === null) return 'AccountNotFound';
  const key = findById(state.keys, command.keyId);
  const byCredential = command.type === 'login' && command.assertion !== undefined;
  if (!isActive(key) || key.publicKey !== command.publicKey) return 'SessionNotFound';
  if (hasFlag(key.flags, KeyFlag.Fido2Key) !== byCredential) return 'SessionNotFound';
  if (command.type === 'mcpLogin' && !hasFlag(key.flags, KeyFlag.McpAccess)) return 'AccessDenied';
  // The holder of a claimed key may be another person, who would log in to the account of the claimer.
  if (command.type === 'login' && !key.proven) return 'AccessDenied';
  if (command.type === 'login' && hasFlag(key.flags, KeyFlag.NoBrowserLogin)) return 'AccessDenied';
  if (state.blocked) return 'AccessDenied';
  if (command.type === 'mcpLogin' && command.appId !== null) {
    if (!allowsApp(state, command.appId, command.indexEntry, key.publicKey)) return 'AccessDenied';
  }
  return key;
}

function completeLogin(
  state: UserState,
  command: Login | McpLogin,
  key: UserKey,
  use: CredentialUse | undefined,
  turn: Turn,
): UserOutcome<LoggedIn> {
  const loginType = command.type === 'mcpLogin' ? command.loginType : null;
  const appId = command.type === 'mcpLogin' ? command.appId : null;
  const previous = command.type === 'login' ? command.previous : undefined;
  const own = previous !== undefined && previous.userId === state.userId;
  const replacesSessionId =
    command.type === 'mcpLogin' ? sameKeySession(state, command) : own ? previous.sessionId : undefined;
  const opening: Opening = openSession(state, turn, {
    kind: kindOf(command),
    loginType,
    keyId: key.id,
    appId,
    // Whatever was sent is verified by now.
    signed: command.proof !== undefined,
    entry: entryTicksOf(command),
    origin: command.origin,
    ...(replacesSessionId === undefined ? {} : { replacesSessionId }),
  });
  const { token, session } = opening;
  const send: Message[] = previous === undefined || own ? [] : [endingElsewhere(previous, command.origin)];
  const reply: LoggedIn = {
    token,
    userId: state.userId,
    keyId: key.id,
    keyType: keyTypeOf(key.flags),
    loginType,
    appId,
    createdMs: session.createdMs,
    expiresMs: session.expiresMs,
  };
  const fields = { keyId: key.id, loginType, appId, sessionId: session.id };
  const changes: Change[] = [
    opening.change,
    use === undefined ? { events: [] } : credentialUsed(key, use, session, turn),
    appId === null ? { events: [] } : firstLogin(state, appId, turn),
    challengeUsed(command.type === 'login' ? command.challenge : undefined, turn),
    { events: [], send },
    audited(state, turn, 'login', command.origin, fields),
    sameIndexEntry(command),
  ];
  return outcome(changes, reply);
}

/** The session that a re-login rotates; one of another key, or that is gone, is not concerned. */
function sameKeySession(state: UserState, { previousId, keyId }: McpLogin): string | undefined {
  const session = previousId === undefined ? undefined : findById(state.sessions, previousId);
  return session?.kind === 'mcp' && session.keyId === keyId ? session.id : undefined;
}

/** Returns the ticks of the entry that the turn also claims to be unchanged. */
function entryTicksOf(command: Login | McpLogin): EntryTicks | undefined {
  if (command.type !== 'mcpLogin' || command.appId === null || command.indexEntry === undefined)
    return undefined;
  return ticksOf(command.indexEntry);
}

function sameIndexEntry(command: Login | McpLogin): Change {
  if (command.type !== 'mcpLogin' || command.appId === null || command.indexEntry === undefined)
    return { events: [] };
  return unchangedIndexEntry(command.appId, command.indexEntry);
}

/** Ends a session of another user whose cookie was sent with the login. */
export function endingElsewhere(previous: SessionOwner, origin: Origin): Message {
  return messageTo(USER, previous.userId, { type: 'endSession', sessionId: previous.sessionId, origin });
}

/** A refusal that the owner can read in the login log. A key or account that is not there has no log. */
function refused(
  state: UserState,
  command: Login | McpLogin,
  row: ErrorName,
  turn: Turn,
): UserOutcome<LoggedIn> | Refusal {
  if (row === 'AccountNotFound' || row === 'SessionNotFound') return refuse(row);
  if (command.type === 'mcpLogin' && command.crowded === true) return refuse(row);
  const loginType = command.type === 'mcpLogin' ? command.loginType : null;
  const appId = command.type === 'mcpLogin' ? command.appId : null;
  const { keyId, origin } = command;
  const entry = { kind: kindOf(command), loginType, keyId, appId };
  const fields = { keyId, loginType, appId, error: ERRORS[row].message };
  return {
    events: [loginRefused(row, origin, entry, turn)],
    audit: audited(state, turn, 'login_refused', origin, fields).audit ?? [],
    answers: [{ commandId: turn.commandId, refusal: refuse(row) }],
  };
}

function kindOf(command: Login | McpLogin): SessionKind {
  return command.type === 'login' ? 'browser' : 'mcp';
}
