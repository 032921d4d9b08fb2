/** Logins with a one-time code: sessions without a key, and the account that the first one of a contact creates. */
import { type ContactChannel, contactKey, hasContact } from '../../domain/contacts.ts';
import { ERRORS, type ErrorName } from '../../domain/errors.ts';
import { audited, type Change, type Origin, outcome, type UserOutcome } from '../change.ts';
import { type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { loginRefused } from './login-log.ts';
import type { SessionOwner } from './owners.ts';
import { endingElsewhere } from './user-login.ts';
import type { CodeRefused } from './user-messages.ts';
import { isRemoved } from './user-removal.ts';
import { openSession } from './user-sessions.ts';
import type { UserEvent, UserState } from './user-types.ts';

export interface CodeLogin {
  readonly type: 'codeLogin';
  readonly channel: ContactChannel;
  readonly address: string;
  /** Authenticator handle of the account, where this login creates it. */
  readonly handle: string;
  /** Session of the `sid` sent with the login. The login ends it, regardless of its owner. */
  readonly previous?: SessionOwner;
  readonly origin: Origin;
}

export interface CodeLoggedIn {
  readonly token: string;
  readonly userId: string;
  readonly newAccount: boolean;
  readonly createdMs: number;
  readonly expiresMs: number;
}

export function codeRefused(state: UserState, { error, origin }: CodeRefused, turn: Turn): UserOutcome<null> {
  if (state.createdMs === null) return { reply: null };
  return { events: [logged(error, origin, turn)], reply: null };
}

export function codeLogin(
  state: UserState,
  command: CodeLogin,
  turn: Turn,
): UserOutcome<CodeLoggedIn> | Refusal {
  const { channel, origin, previous } = command;
  if (state.blocked) return blocked(state, command, turn);
  const newAccount = state.createdMs === null;
  // It was removed, or went with the account, since the index was read.
  if (isRemoved(state) || (!newAccount && !hasContact(state.contacts, command)))
    return refuse('ChallengeExpired');
  const own = previous !== undefined && previous.userId === state.userId;
  const { change, session, token } = openSession(
    state,
    turn,
    {
      kind: 'browser',
      loginType: null,
      keyId: null,
      appId: null,
      origin,
      ...(own ? { replacesSessionId: previous.sessionId } : {}),
    },
    newAccount ? 'sign_up' : 'login',
  );
  const { createdMs, expiresMs } = session;
  const reply: CodeLoggedIn = { token, userId: state.userId, newAccount, createdMs, expiresMs };
  return outcome(
    [
      newAccount ? creation(state, command, turn) : { events: [] },
      change,
      { events: [], send: previous === undefined || own ? [] : [endingElsewhere(previous, origin)] },
      audited(state, turn, newAccount ? 'sign_up' : 'login', origin, { channel, sessionId: session.id }),
    ],
    reply,
  );
}

/** Account and contact in one commit. Two logins cannot both create it: the name in the index is one. */
function creation(state: UserState, { channel, address, handle }: CodeLogin, turn: Turn): Change {
  const contact = { channel, address };
  return {
    events: [{ type: 'accountCreated', utcMs: turn.nowMs, handle, contact }],
    claims: [
      { index: 'contact', key: contactKey(contact), owner: state.userId, onConflict: 'ChallengeExpired' },
    ],
  };
}

function blocked(state: UserState, { channel, origin }: CodeLogin, turn: Turn): UserOutcome<CodeLoggedIn> {
  const fields = { channel, loginType: null, error: ERRORS.AccessDenied.message };
  return {
    events: [logged('AccessDenied', origin, turn)],
    audit: audited(state, turn, 'login_refused', origin, fields).audit ?? [],
    answers: [{ commandId: turn.commandId, refusal: refuse('AccessDenied') }],
  };
}

function logged(row: ErrorName, origin: Origin, turn: Turn): UserEvent {
  return loginRefused(row, origin, { kind: 'browser', loginType: null, keyId: null, appId: null }, turn);
}
