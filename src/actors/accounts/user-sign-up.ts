/** Sign-up: a new account from a key whose holder proved to have it: a signature, or a ceremony of an authenticator. */
import type { UserKey } from '../../domain/keys.ts';
import type { EnrolledCredential } from '../../workers/fido2.ts';
import { audited, type Origin, outcome, type UserOutcome } from '../change.ts';
import { isRefusal, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import type { Ports } from '../runtime/ports.ts';
import { challengeUsed } from './challenges.ts';
import type { KeyOwner } from './owners.ts';
import { enroll } from './user-enrollment.ts';
import { newPasskey, type PasskeyOffer } from './user-passkeys.ts';
import { isRemoved } from './user-removal.ts';
import { openSession } from './user-sessions.ts';
import type { UsedChallenge, UserEvent, UserState } from './user-types.ts';
import { type Finding, isFinding, type Proof, verifyAttestation, verifyEnrollment } from './verification.ts';

/** A software key with a signature, or what an authenticator offers. */
type Evidence =
  | {
      readonly publicKey: string;
      readonly proof: Proof;
      readonly passKeyFlag: boolean;
      readonly offer?: never;
    }
  | { readonly offer: PasskeyOffer };

export type SignUp = Evidence & {
  readonly type: 'signUp';
  readonly name?: string;
  /** `user.id` that the registration options announced. */
  readonly handle: string;
  /** The challenge that it answers. The id of the account is derived from it, so it creates one at most. */
  readonly challenge: UsedChallenge;
  readonly holder?: KeyOwner;
  readonly origin: Origin;
};

interface SignUpVerified {
  readonly type: 'signUpVerified';
  readonly command: SignUp;
  /** Result of the ceremony, for a passkey. */
  readonly result: Finding | EnrolledCredential | undefined;
}

export type SignUpCommand = SignUp | SignUpVerified;

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
): UserOutcome<SignedUp, SignUpVerified> | Refusal {
  if (command.type === 'signUp') return beginSignUp(state, command, turn);
  const { result } = command;
  return isFinding(result) ? result : createAccount(state, command.command, result, turn);
}

function beginSignUp(
  state: UserState,
  command: SignUp,
  turn: Turn,
): UserOutcome<SignedUp, SignUpVerified> | Refusal {
  if (command.offer !== undefined) {
    const judged = createAccount(state, command, undefined, turn);
    if (isRefusal(judged)) return judged;
  }
  return {
    next: async (ports) => ({ type: 'signUpVerified', command, result: await verify(ports, command) }),
  };
}

function verify(ports: Ports, command: SignUp): Promise<Finding | EnrolledCredential | undefined> {
  return command.offer === undefined
    ? verifyEnrollment(ports, Buffer.from(command.publicKey, 'base64url'), command.proof)
    : verifyAttestation(ports, command.offer.attestation);
}

/**
 * Account, key and session in one commit. Also run before the verification of a passkey, to refuse early. A software
 * key may be derived from a password, so only its holder learns that it is registered.
 */
function createAccount(
  state: UserState,
  command: SignUp,
  credential: EnrolledCredential | undefined,
  turn: Turn,
): UserOutcome<SignedUp> | Refusal {
  // The challenge made it, or another one of which the same id was derived.
  if (state.createdMs !== null || isRemoved(state)) return refuse('ChallengeExpired');
  const offered =
    command.offer === undefined
      ? { ...command, proven: true }
      : newPasskey(command.offer, credential, command);
  const enrolment = enroll(state, turn, offered);
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
  const used = challengeUsed(command.challenge, turn);
  return outcome([{ events: [created] }, change, opening.change, used, audit], reply);
}
