/**
 * Enrollment of keys, and of software keys from end to end: the limit, the name in the index, takeover from an unproven holder, replacement of older
 * password keys, proof for a key that was only claimed. All of it in one commit.
 */
import { hasFlag, KeyFlag, type UserKey, withFlag } from '../../domain/keys.ts';
import { audited, type Change, merged, type Origin, outcome, type UserOutcome } from '../change.ts';
import {
  type Claim,
  type IndexName,
  isRefusal,
  type Message,
  type Refusal,
  refuse,
  type Turn,
} from '../runtime/actor.ts';
import { messageTo } from '../runtime/protocol.ts';
import { challengeUsed } from './challenges.ts';
import { type KeyOwner, keyOwner } from './owners.ts';
import { USER } from './user-messages.ts';
import { changingSession, endSessions, sessionsOfKey } from './user-sessions.ts';
import type { SessionRecord, UsedChallenge, UserEvent, UserState } from './user-types.ts';
import { type Finding, type Proof, verifyEnrollment } from './verification.ts';

/** Data of a new key. A passkey's `publicKey` is its credential id, its parts come from the ceremony. */
export interface NewKey {
  readonly publicKey: string;
  readonly proven: boolean;
  readonly passKeyFlag: boolean;
  readonly name?: string;
  /** Bits of what the key may do from the start; none unless given. */
  readonly access?: number;
  /** The current index entry of this key. */
  readonly holder?: KeyOwner;
  readonly passkey?: Pick<
    UserKey,
    'fido2PublicKey' | 'userVerified' | 'backedUp' | 'transports' | 'counterReported'
  >;
}

/** Key records of one user, removed ones included: they are kept, so they are counted. */
const KEY_RECORDS_MAX = 1_000;

export interface AddKey {
  readonly type: 'addKey';
  /** base64url of 32 bytes. */
  readonly publicKey: string;
  /** Without one the key is a claim. */
  readonly proof?: Proof;
  readonly passKeyFlag: boolean;
  readonly name?: string;
  /** False: the key may only use MCP. */
  readonly browserLogin?: boolean;
  /** The current index entry of this key. */
  readonly holder?: KeyOwner;
  readonly sessionId: string;
  /** The challenge that it answers. A repeat that gets its first reply needs none. */
  readonly challenge?: UsedChallenge;
  readonly origin: Origin;
}

interface AddKeyVerified {
  readonly type: 'addKeyVerified';
  readonly command: AddKey;
  readonly finding: Finding | undefined;
}

export type EnrollmentCommand = AddKey | AddKeyVerified;

export interface AddedKey {
  readonly key: UserKey;
  readonly current: boolean;
  readonly replaced: readonly string[];
  /** End of the session that added it. */
  readonly expiresMs: number;
}

export interface Enrollment {
  readonly change: Change;
  readonly key: UserKey;
  readonly replaced: readonly UserKey[];
}

export function isActive(key: UserKey | undefined): key is UserKey {
  return key !== undefined && !hasFlag(key.flags, KeyFlag.Deleted);
}

export function activeKeys(state: UserState): UserKey[] {
  return state.keys.filter(isActive);
}

/** The user's own active software key with these bytes. FIDO2 records never match. */
export function softwareKey(state: UserState, publicKey: string): UserKey | undefined {
  return activeKeys(state).find(
    (key) => key.publicKey === publicKey && !hasFlag(key.flags, KeyFlag.Fido2Key),
  );
}

export function decideEnrollment(
  state: UserState,
  command: EnrollmentCommand,
  turn: Turn,
): UserOutcome<AddedKey, AddKeyVerified> | Refusal {
  if (command.type === 'addKeyVerified') return command.finding ?? judgeAdding(state, command.command, turn);
  const { proof } = command;
  const judged = proof ? changingSession(state, command, turn) : judgeAdding(state, command, turn);
  if (isRefusal(judged)) return judged;
  const publicKey = Buffer.from(command.publicKey, 'base64url');
  return {
    next: async (ports) => ({
      type: 'addKeyVerified',
      command,
      finding: await verifyEnrollment(ports, publicKey, proof),
    }),
  };
}

/**
 * A new key: claims its name, takes it over from an unproven holder, replaces older password keys. The limits come
 * first, so that a full account learns nothing of other keys.
 */
export function enroll(state: UserState, turn: Turn, request: NewKey): Enrollment | Refusal {
  const { publicKey, passKeyFlag, name, holder, proven, passkey } = request;
  const active = activeKeys(state);
  const replaced = passKeyFlag ? active.filter((key) => hasFlag(key.flags, KeyFlag.PasswordKey)) : [];
  const remaining = active.length - replaced.length;
  if (remaining + 1 > turn.settings.get('ActiveKeysLimit')) return refuse('KeyLimitReached');
  if (state.keys.length >= KEY_RECORDS_MAX)
    return refuse('KeyLimitReached', `at most ${KEY_RECORDS_MAX} keys, removed ones included`);
  if (holder !== undefined && (holder.userId === state.userId || holder.proven || !proven))
    return refuse('KeyAlreadyRegistered');
  const key: UserKey = {
    id: turn.newId(),
    ownerId: state.userId,
    publicKey,
    signatureCounter: 0,
    flags: kindFlag(request) | (request.access ?? 0),
    createdMs: turn.nowMs,
    proven,
    ...passkey,
    ...(name === undefined ? {} : { name }),
  };
  const claim: Claim = {
    index: indexOf(key),
    key: publicKey,
    owner: keyOwner({ userId: state.userId, keyId: key.id, proven }),
    ...(holder === undefined ? {} : { replaces: keyOwner(holder) }),
    onConflict: 'KeyAlreadyRegistered',
  };
  const send: Message[] =
    holder === undefined ? [] : [messageTo(USER, holder.userId, { type: 'loseKey', keyId: holder.keyId })];
  const change = merged([
    ...replaced.map((old) => removal(state, old)),
    { events: [{ type: 'keyAdded', key }], claims: [claim], send },
  ]);
  return { change, key, replaced };
}

function kindFlag({ passkey, passKeyFlag }: NewKey): number {
  if (passkey !== undefined) return KeyFlag.Fido2Key;
  return passKeyFlag ? KeyFlag.PasswordKey : KeyFlag.UserKey;
}

/** Software keys and credential ids are separate name spaces. */
function indexOf(key: UserKey): IndexName {
  return hasFlag(key.flags, KeyFlag.Fido2Key) ? 'credentialId' : 'publicKey';
}

/**
 * The whole decision on a new key, given that it is sound. Taken before the verification too, to refuse early, but not
 * where a proof was sent: whether a key is registered is revealed only to its holder.
 */
function judgeAdding(state: UserState, command: AddKey, turn: Turn): UserOutcome<AddedKey> | Refusal {
  const session = changingSession(state, command, turn);
  if (isRefusal(session)) return session;
  const own = softwareKey(state, command.publicKey);
  if (own !== undefined) {
    if (own.proven || command.proof === undefined || command.passKeyFlag)
      return refuse('KeyAlreadyRegistered');
    return prove(state, own, session, command, turn);
  }
  const access = withFlag(0, KeyFlag.NoBrowserLogin, command.browserLogin === false);
  const enrolment = enroll(state, turn, { ...command, access, proven: command.proof !== undefined });
  if (isRefusal(enrolment)) return enrolment;
  const { key, replaced } = enrolment;
  const rebound = replaced.some((old) => old.id === session.keyId);
  const ended = replaced.flatMap((old) => sessionsOfKey(state, old.id)).filter((each) => each !== session);
  const rebinding: Change = {
    events: rebound ? [{ type: 'sessionRebound', sessionId: session.id, keyId: key.id }] : [],
  };
  const fields = { keyId: key.id, proven: key.proven, replaced: replaced.length };
  const reply: AddedKey = {
    key,
    current: rebound,
    replaced: replaced.map((old) => old.id),
    expiresMs: session.expiresMs,
  };
  return outcome(
    [
      enrolment.change,
      rebinding,
      challengeUsed(command.challenge, turn),
      endSessions(state, ended),
      audited(state, turn, 'key_added', command.origin, fields),
    ],
    reply,
  );
}

/** The holder of a claimed key now proves to have it. A key that may only use MCP stays so. */
function prove(
  state: UserState,
  key: UserKey,
  session: SessionRecord,
  command: AddKey,
  turn: Turn,
): UserOutcome<AddedKey> {
  const before = keyOwner({ userId: state.userId, keyId: key.id, proven: false });
  const claim: Claim = {
    index: 'publicKey',
    key: key.publicKey,
    owner: keyOwner({ userId: state.userId, keyId: key.id, proven: true }),
    replaces: before,
    onConflict: 'KeyAlreadyRegistered',
  };
  const restricted = command.browserLogin === false;
  const flags = restricted ? withFlag(key.flags, KeyFlag.NoBrowserLogin, true) : key.flags;
  const reply: AddedKey = {
    key: { ...key, flags, proven: true },
    current: session.keyId === key.id,
    replaced: [],
    expiresMs: session.expiresMs,
  };
  const audit = audited(state, turn, 'key_proven', command.origin, { keyId: key.id });
  const events: UserEvent[] = [{ type: 'keyProven', keyId: key.id }];
  if (flags !== key.flags) events.push({ type: 'keyFlagsSet', keyId: key.id, flags });
  const proven: Change = { events, claims: [claim] };
  return outcome([proven, challengeUsed(command.challenge, turn), audit], reply);
}

/** Soft removal: the record stays, the name is free again. A name that moved away meanwhile is not ours to release. */
export function removal(state: UserState, key: UserKey): Change {
  return {
    events: [{ type: 'keyRemoved', keyId: key.id }],
    claims: [
      {
        index: indexOf(key),
        key: key.publicKey,
        owner: null,
        replaces: keyOwner({ userId: state.userId, keyId: key.id, proven: key.proven }),
        onConflict: 'KeyNotFound',
      },
    ],
  };
}
