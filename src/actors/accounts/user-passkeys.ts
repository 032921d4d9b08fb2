/**
 * Passkeys and hardware keys of one user: enrollment by a ceremony of the authenticator, and the use of a credential
 * at a login (counter, backup state).
 */
import type { UserKey } from '../../domain/keys.ts';
import type { EnrolledCredential } from '../../workers/fido2.ts';
import { audited, type Change, type Origin, outcome, type UserOutcome } from '../change.ts';
import { isRefusal, type Refusal, type Turn } from '../runtime/actor.ts';
import { challengeUsed } from './challenges.ts';
import type { KeyOwner } from './owners.ts';
import { type AddedKey, enroll, type NewKey } from './user-enrollment.ts';
import { entryOf } from './user-records.ts';
import { changingSession } from './user-sessions.ts';
import type { SessionRecord, UsedChallenge, UserEvent, UserState } from './user-types.ts';
import {
  type Attestation,
  type CredentialUse,
  type Finding,
  isFinding,
  verifyAttestation,
} from './verification.ts';

export interface PasskeyOffer {
  readonly attestation: Attestation;
  /** Hints of the browser, for `excludeCredentials`. */
  readonly transports: readonly string[];
}

export interface AddPasskey {
  readonly type: 'addPasskey';
  readonly offer: PasskeyOffer;
  readonly name?: string;
  /** The current index entry of this credential id. */
  readonly holder?: KeyOwner;
  readonly sessionId: string;
  /** The challenge that it answers. A repeat that gets its first reply needs none. */
  readonly challenge?: UsedChallenge;
  readonly origin: Origin;
}

interface AddPasskeyVerified {
  readonly type: 'addPasskeyVerified';
  readonly command: AddPasskey;
  readonly result: EnrolledCredential | Finding;
}

export type PasskeyCommand = AddPasskey | AddPasskeyVerified;

export function decidePasskey(
  state: UserState,
  command: PasskeyCommand,
  turn: Turn,
): UserOutcome<AddedKey, AddPasskeyVerified> | Refusal {
  if (command.type === 'addPasskeyVerified') {
    const { result } = command;
    return isFinding(result) ? result : judgeAdding(state, command.command, result, turn);
  }
  const judged = judgeAdding(state, command, undefined, turn);
  if (isRefusal(judged)) return judged;
  return {
    next: async (ports) => ({
      type: 'addPasskeyVerified',
      command,
      result: await verifyAttestation(ports, command.offer.attestation),
    }),
  };
}

/** A new key from the browser's offer and, once it is verified, the result of the ceremony. */
export function newPasskey(
  { attestation, transports }: PasskeyOffer,
  credential: EnrolledCredential | undefined,
  more: Pick<NewKey, 'name' | 'holder'>,
): NewKey {
  const { name, holder } = more;
  return {
    publicKey: attestation.credentialId,
    proven: true,
    passKeyFlag: false,
    ...(name === undefined ? {} : { name }),
    ...(holder === undefined ? {} : { holder }),
    passkey: {
      transports,
      ...(credential === undefined
        ? {}
        : {
            fido2PublicKey: credential.cosePublicKey,
            userVerified: credential.userVerified,
            backedUp: credential.backedUp,
            counterReported: credential.counter,
          }),
    },
  };
}

/** Taken before the verification to refuse early, and after it. */
function judgeAdding(
  state: UserState,
  command: AddPasskey,
  credential: EnrolledCredential | undefined,
  turn: Turn,
): UserOutcome<AddedKey> | Refusal {
  const session = changingSession(state, command, turn);
  if (isRefusal(session)) return session;
  const enrolment = enroll(state, turn, newPasskey(command.offer, credential, command));
  if (isRefusal(enrolment)) return enrolment;
  const { change, key } = enrolment;
  const reply: AddedKey = { key, current: false, replaced: [], expiresMs: session.expiresMs };
  const fields = { keyId: key.id, proven: true, replaced: 0 };
  const audit = audited(state, turn, 'key_added', command.origin, fields);
  return outcome([change, challengeUsed(command.challenge, turn), audit], reply);
}

/**
 * Records the use of a credential. A counter that did not advance may mean a copied authenticator, but synced ones do
 * that too: it is logged and refuses nothing. Authenticators without a counter always report 0.
 */
export function credentialUsed(key: UserKey, use: CredentialUse, session: SessionRecord, turn: Turn): Change {
  const reported = key.counterReported ?? 0;
  const regressed = use.counter <= reported && reported > 0;
  const events: UserEvent[] = [];
  if (use.counter > reported || use.backedUp !== key.backedUp) {
    const counter = Math.max(use.counter, reported);
    events.push({ type: 'credentialUsed', keyId: key.id, counter, backedUp: use.backedUp });
  }
  if (regressed) {
    const entry = entryOf(session, 'counter_regressed', { id: turn.newId(), utcMs: turn.nowMs });
    events.push({ type: 'logged', entry });
  }
  return { events };
}
