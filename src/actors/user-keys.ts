/**
 * Keys of one user: enrolment, the password-key replacement, flags, soft removal, takeover by proof. A key's name in
 * the index moves in the commit that changes the key; sessions of a key end with it.
 */
import { ERRORS } from '../domain/errors.ts';
import { hasFlag, KeyFlag, type UserKey, withFlag } from '../domain/keys.ts';
import { SECOND_MS } from '../domain/time.ts';
import { type KeyOwner, keyOwner } from './owners.ts';
import { type Claim, isRefusal, type Message, type Outcome, type Refusal, refuse, type Turn } from './runtime/actor.ts';
import { audited, type Change, merged, type Origin, outcome } from './user-change.ts';
import { endSessions, sessionsOfKey } from './user-sessions.ts';
import type { SessionRecord, UserEvent, UserState } from './user-state.ts';
import { type Finding, type Proof, verifyEnrolment } from './verification.ts';

/** Key records of one user, removed ones included: they are kept, so they are counted. */
export const KEY_RECORDS_MAX = 1_000;

export interface AddKey {
  readonly type: 'addKey';
  /** base64url of 32 bytes. */
  readonly publicKey: string;
  /** Without one the key is a claim (auth.md A9). */
  readonly proof?: Proof;
  readonly passKeyFlag: boolean;
  readonly name?: string;
  /** What the index says of this key now. */
  readonly holder?: KeyOwner;
  readonly sessionId: string;
  readonly origin: Origin;
}

export type KeyCommand =
  | AddKey
  | { readonly type: 'addKeyVerified'; readonly command: AddKey; readonly finding: Finding | undefined }
  | {
      readonly type: 'updateKey';
      readonly keyId: string;
      readonly mcpAccess?: boolean;
      readonly cardDavAccess?: boolean;
      readonly sessionId: string;
      readonly origin: Origin;
    }
  | { readonly type: 'removeKey'; readonly keyId: string; readonly sessionId: string; readonly origin: Origin }
  | { readonly type: 'loseKey'; readonly keyId: string };

export interface AddedKey {
  readonly key: UserKey;
  readonly current: boolean;
  readonly replaced: readonly string[];
  /** End of the session that added it. */
  readonly expiresMs: number;
}

export interface RemovedKey {
  readonly keyId: string;
  readonly sessionsClosed: number;
  readonly currentClosed: boolean;
}

export interface UpdatedKey {
  readonly key: UserKey;
  readonly current: boolean;
  readonly sessionsClosed: number;
}

export function isActive(key: UserKey | undefined): key is UserKey {
  return key !== undefined && !hasFlag(key.flags, KeyFlag.Deleted);
}

export function activeKeys(state: UserState): UserKey[] {
  return Object.values(state.keys).filter(isActive);
}

/** The user's own active software key with these bytes. FIDO2 records never match (auth.md A3). */
export function softwareKey(state: UserState, publicKey: string): UserKey | undefined {
  return activeKeys(state).find(
    (key) => key.publicKey === publicKey && !hasFlag(key.flags, KeyFlag.Fido2Key),
  );
}

export interface Enrolment {
  readonly change: Change;
  readonly key: UserKey;
  readonly replaced: readonly UserKey[];
}

/** A new software key: claims its name, takes it over from an unproven holder, replaces older password keys. */
export function enrol(
  state: UserState,
  turn: Turn,
  request: Pick<AddKey, 'publicKey' | 'passKeyFlag' | 'name' | 'holder'> & { readonly proven: boolean },
): Enrolment | Refusal {
  const { publicKey, passKeyFlag, name, holder, proven } = request;
  if (holder !== undefined && (holder.userId === state.userId || holder.proven || !proven))
    return refuse('KeyAlreadyRegistered');
  const active = activeKeys(state);
  const replaced = passKeyFlag ? active.filter((key) => hasFlag(key.flags, KeyFlag.PasswordKey)) : [];
  const remaining = active.length - replaced.length;
  if (remaining + 1 > turn.settings.get('ActiveKeysLimit')) return refuse('KeyLimitReached');
  if (Object.keys(state.keys).length >= KEY_RECORDS_MAX)
    return refuse('KeyLimitReached', `at most ${KEY_RECORDS_MAX} keys, removed ones included`);
  const key: UserKey = {
    id: turn.tick(),
    ownerId: state.userId,
    publicKey,
    signatureCounter: 0,
    flags: passKeyFlag ? KeyFlag.PasswordKey : KeyFlag.UserKey,
    createdMs: turn.nowMs,
    proven,
    ...(name === undefined ? {} : { name }),
  };
  const claim: Claim = {
    index: 'publicKey',
    key: publicKey,
    owner: keyOwner({ userId: state.userId, keyId: key.id, proven }),
    ...(holder === undefined ? {} : { replaces: keyOwner(holder) }),
    onConflict: 'KeyAlreadyRegistered',
  };
  const send: Message[] =
    holder === undefined
      ? []
      : [{ toKind: 'user', toId: holder.userId, command: { type: 'loseKey', keyId: holder.keyId } }];
  const change = merged([
    ...replaced.map((old) => removal(state, old)),
    { events: [{ type: 'keyAdded', key }], claims: [claim], send },
  ]);
  return { change, key, replaced };
}

export function decideKey(state: UserState, command: KeyCommand, turn: Turn): Outcome<UserEvent> | Refusal {
  switch (command.type) {
    case 'addKey': {
      const judged = judgeAdding(state, command, turn);
      if (isRefusal(judged)) return judged;
      const publicKey = Buffer.from(command.publicKey, 'base64url');
      return {
        next: async (ports) => ({
          type: 'addKeyVerified',
          command,
          finding: await verifyEnrolment(ports, publicKey, command.proof),
        }),
      };
    }
    case 'addKeyVerified': {
      if (command.finding !== undefined) return command.finding;
      return judgeAdding(state, command.command, turn);
    }
    case 'updateKey':
      return decideUpdate(state, command, turn);
    case 'removeKey':
      return decideRemove(state, command, turn);
    case 'loseKey':
      return decideLoss(state, command.keyId, turn);
  }
}

/** The whole decision on a new key, given that it is sound: taken before the verification to refuse early, and after. */
function judgeAdding(state: UserState, command: AddKey, turn: Turn): Outcome<UserEvent> | Refusal {
  const session = changingSession(state, command.sessionId, turn);
  if (isRefusal(session)) return session;
  const own = softwareKey(state, command.publicKey);
  if (own !== undefined) {
    if (own.proven || command.proof === undefined || command.passKeyFlag) return refuse('KeyAlreadyRegistered');
    return prove(state, own, session, command, turn);
  }
  const enrolment = enrol(state, turn, { ...command, proven: command.proof !== undefined });
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
      endSessions(state, ended),
      audited(state, turn, 'key_added', command.origin, fields),
    ],
    reply,
  );
}

/** The holder of a claimed key now proves to have it. */
function prove(
  state: UserState,
  key: UserKey,
  session: SessionRecord,
  command: AddKey,
  turn: Turn,
): Outcome<UserEvent> {
  const before = keyOwner({ userId: state.userId, keyId: key.id, proven: false });
  const claim: Claim = {
    index: 'publicKey',
    key: key.publicKey,
    owner: keyOwner({ userId: state.userId, keyId: key.id, proven: true }),
    replaces: before,
    onConflict: 'KeyAlreadyRegistered',
  };
  const reply: AddedKey = {
    key: { ...key, proven: true },
    current: session.keyId === key.id,
    replaced: [],
    expiresMs: session.expiresMs,
  };
  const audit = audited(state, turn, 'key_proven', command.origin, { keyId: key.id });
  return outcome([{ events: [{ type: 'keyProven', keyId: key.id }], claims: [claim] }, audit], reply);
}

function decideUpdate(
  state: UserState,
  command: Extract<KeyCommand, { type: 'updateKey' }>,
  turn: Turn,
): Outcome<UserEvent> | Refusal {
  const session = changingSession(state, command.sessionId, turn);
  if (isRefusal(session)) return session;
  const key = state.keys[command.keyId];
  if (!isActive(key)) return refuse('KeyNotFound');
  const { mcpAccess, cardDavAccess } = command;
  let flags = key.flags;
  if (mcpAccess !== undefined) flags = withFlag(flags, KeyFlag.McpAccess, mcpAccess);
  if (cardDavAccess !== undefined) flags = withFlag(flags, KeyFlag.CardDav, cardDavAccess);
  const current = session.keyId === key.id;
  if (flags === key.flags) return { reply: { key, current, sessionsClosed: 0 } satisfies UpdatedKey };
  const ended = mcpAccess === false ? sessionsOfKey(state, key.id, 'mcp') : [];
  const reply: UpdatedKey = { key: { ...key, flags }, current, sessionsClosed: ended.length };
  const fields = { keyId: key.id, flagsBefore: key.flags, flagsAfter: flags, sessionsClosed: ended.length };
  return outcome(
    [
      { events: [{ type: 'keyFlagsSet', keyId: key.id, flags }] },
      endSessions(state, ended),
      audited(state, turn, 'key_updated', command.origin, fields),
    ],
    reply,
  );
}

function decideRemove(
  state: UserState,
  command: Extract<KeyCommand, { type: 'removeKey' }>,
  turn: Turn,
): Outcome<UserEvent> | Refusal {
  const session = changingSession(state, command.sessionId, turn);
  if (isRefusal(session)) return session;
  const key = state.keys[command.keyId];
  if (!isActive(key)) return refuse('KeyNotFound');
  const ended = sessionsOfKey(state, key.id);
  const reply: RemovedKey = {
    keyId: key.id,
    sessionsClosed: ended.length,
    currentClosed: ended.some((each) => each.id === session.id),
  };
  const fields = { keyId: key.id, sessionsClosed: ended.length };
  return outcome(
    [
      removal(state, key),
      endSessions(state, ended),
      audited(state, turn, 'key_removed', command.origin, fields),
    ],
    reply,
  );
}

/** Somebody proved to have a key that this user only claimed. Its name has moved already. */
function decideLoss(state: UserState, keyId: string, turn: Turn): Outcome<UserEvent> {
  const key = state.keys[keyId];
  if (!isActive(key)) return { reply: null };
  const ended = sessionsOfKey(state, keyId);
  const origin: Origin = { ip: '', userAgent: '' };
  const logged: UserEvent = {
    type: 'logged',
    entry: {
      id: turn.tick(),
      utcMs: turn.nowMs,
      event: 'key_taken_over',
      ok: false,
      error: ERRORS.KeyAlreadyRegistered.message,
      kind: 'browser',
      loginType: null,
      keyId,
      appId: null,
      ...origin,
    },
  };
  return outcome(
    [
      { events: [{ type: 'keyRemoved', keyId }, logged] },
      endSessions(state, ended),
      audited(state, turn, 'key_taken_over', origin, { keyId, sessionsClosed: ended.length }),
    ],
    null,
  );
}

/** Soft removal: the record stays, the name is free again. A name that moved away meanwhile is not ours to release. */
function removal(state: UserState, key: UserKey): Change {
  return {
    events: [{ type: 'keyRemoved', keyId: key.id }],
    claims: [
      {
        index: hasFlag(key.flags, KeyFlag.Fido2Key) ? 'credentialId' : 'publicKey',
        key: key.publicKey,
        owner: null,
        replaces: keyOwner({ userId: state.userId, keyId: key.id, proven: key.proven }),
        onConflict: 'KeyNotFound',
      },
    ],
  };
}

/** The session behind a key change: still there, and fresh where the setting asks for it. */
function changingSession(state: UserState, sessionId: string, turn: Turn): SessionRecord | Refusal {
  const session = state.sessions[sessionId];
  if (session === undefined) return refuse('SessionNotFound');
  const freshSeconds = turn.settings.get('KeyChangeFreshLoginSeconds');
  if (freshSeconds > 0 && turn.nowMs - session.createdMs > freshSeconds * SECOND_MS)
    return refuse('FreshLoginRequired');
  return session;
}
