/** Sign-up: a new account from a software key whose holder proved to have it. */
import type { UserKey } from '../domain/keys.ts';
import type { KeyOwner } from './owners.ts';
import { isRefusal, type Outcome, type Refusal, refuse, type Turn } from './runtime/actor.ts';
import { audited, type Origin, outcome } from './user-change.ts';
import { enrol } from './user-enrolment.ts';
import { openSession } from './user-sessions.ts';
import type { UserEvent, UserState } from './user-state.ts';
import { type Finding, type Proof, verifyEnrolment } from './verification.ts';

export interface SignUp {
  readonly type: 'signUp';
  readonly publicKey: string;
  readonly proof: Proof;
  readonly passKeyFlag: boolean;
  readonly name?: string;
  /** `user.id` that the registration options announced. */
  readonly handle: string;
  readonly holder?: KeyOwner;
  readonly origin: Origin;
}

export type SignUpCommand =
  | SignUp
  | { readonly type: 'signUpVerified'; readonly command: SignUp; readonly finding: Finding | undefined };

export interface SignedUp {
  /** The secret of the new session. */
  readonly token: string;
  readonly key: UserKey;
  readonly userId: string;
  readonly createdMs: number;
  readonly expiresMs: number;
}

export function decideSignUp(
  state: UserState,
  command: SignUpCommand,
  turn: Turn,
): Outcome<UserEvent> | Refusal {
  return command.type === 'signUp'
    ? beginSignUp(state, command, turn)
    : (command.finding ?? createAccount(state, command.command, turn));
}

function beginSignUp(state: UserState, command: SignUp, turn: Turn): Outcome<UserEvent> | Refusal {
  const judged = createAccount(state, command, turn);
  if (isRefusal(judged)) return judged;
  const publicKey = Buffer.from(command.publicKey, 'base64url');
  return {
    next: async (ports) => ({
      type: 'signUpVerified',
      command,
      finding: await verifyEnrolment(ports, publicKey, command.proof),
    }),
  };
}

/** Account, key and session in one commit. */
function createAccount(state: UserState, command: SignUp, turn: Turn): Outcome<UserEvent> | Refusal {
  if (state.createdMs !== null) return refuse('KeyAlreadyRegistered');
  const enrolment = enrol(state, turn, { ...command, proven: true });
  if (isRefusal(enrolment)) return enrolment;
  const { key, change } = enrolment;
  const request = {
    kind: 'browser',
    loginType: null,
    keyId: key.id,
    appId: null,
    origin: command.origin,
  } as const;
  const opening = openSession(state, turn, request, 'sign_up');
  const created: UserEvent = { type: 'accountCreated', utcMs: turn.nowMs, handle: command.handle };
  const { token, session } = opening;
  const reply: SignedUp = {
    token,
    key: { ...key, lastUsedMs: session.createdMs },
    userId: state.userId,
    createdMs: session.createdMs,
    expiresMs: session.expiresMs,
  };
  const audit = audited(state, turn, 'sign_up', command.origin, { keyId: key.id, sessionId: session.id });
  return outcome([{ events: [created] }, change, opening.change, audit], reply);
}
