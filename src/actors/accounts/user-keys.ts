/**
 * Keys of one user after their enrollment: flags, soft removal, loss to another user who proved possession. Sessions
 * that a change forbids end in its commit, before the reply. The same rules apply to an admin.
 */

import { ERRORS } from '../../domain/errors.ts';
import { hasFlag, KeyFlag, type UserKey, withFlag } from '../../domain/keys.ts';
import { FRESH_LOGIN_MS } from '../../domain/sessions.ts';
import { audited, type Change, type Origin, outcome, type UserOutcome } from '../change.ts';
import { type AuditRecord, isRefusal, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { findById } from './id-list.ts';
import { keyLogged } from './user-admin-keys.ts';
import { activeKeys, isActive, removal } from './user-enrollment.ts';
import type { LoseKey } from './user-messages.ts';
import { changerOf, endSessions, sessionsOfKey } from './user-sessions.ts';
import type { SessionRecord, UserEvent, UserState } from './user-types.ts';

export type KeyCommand =
  | {
      readonly type: 'updateKey';
      readonly keyId: string;
      readonly mcpAccess?: boolean;
      readonly cardDavAccess?: boolean;
      /** A change of it needs a fresh login. */
      readonly browserLogin?: boolean;
      /** Null: of an admin, whom `origin.by` names. */
      readonly sessionId: string | null;
      readonly origin: Origin;
    }
  | {
      readonly type: 'removeKey';
      readonly keyId: string;
      readonly sessionId: string | null;
      readonly origin: Origin;
    };

export interface RemovedKey {
  readonly keyId: string;
  readonly sessionsClosed: number;
  readonly currentClosed: boolean;
}

export interface UpdatedKey {
  readonly key: UserKey;
  readonly current: boolean;
  readonly sessionsClosed: number;
  readonly currentClosed: boolean;
}

export function updateKey(
  state: UserState,
  command: Extract<KeyCommand, { type: 'updateKey' }>,
  turn: Turn,
): UserOutcome<UpdatedKey> | Refusal {
  const session = changerOf(state, command, turn);
  if (isRefusal(session)) return session;
  const key = findById(state.keys, command.keyId);
  if (!isActive(key)) return refuse('KeyNotFound');
  const flags = changedFlags(key, command);
  const browser = (flags ^ key.flags) & KeyFlag.NoBrowserLogin;
  if (browser !== 0) {
    const refusal = refusedBrowserChange(state, key, session, turn);
    if (refusal !== undefined) return refusal;
  }
  const current = session?.keyId === key.id;
  const ended = [
    ...(command.mcpAccess === false ? sessionsOfKey(state, key.id, 'mcp') : []),
    ...(command.cardDavAccess === false ? sessionsOfKey(state, key.id, 'contactSync') : []),
    ...(hasFlag(flags, KeyFlag.NoBrowserLogin) ? sessionsOfKey(state, key.id, 'browser') : []),
  ];
  if (flags === key.flags && ended.length === 0)
    return { reply: { key, current, sessionsClosed: 0, currentClosed: false } satisfies UpdatedKey };
  const reply: UpdatedKey = {
    key: { ...key, flags },
    current,
    sessionsClosed: ended.length,
    currentClosed: ended.some((each) => each.id === session?.id),
  };
  const fields = { keyId: key.id, flagsBefore: key.flags, flagsAfter: flags, sessionsClosed: ended.length };
  return outcome(
    [
      { events: [{ type: 'keyFlagsSet', keyId: key.id, flags }] },
      endSessions(state, ended),
      ...recorded(state, command.origin, 'updated', fields, turn),
    ],
    reply,
  );
}

/** The flag bits of a key after the command; what it leaves out stays. */
function changedFlags({ flags }: UserKey, command: Extract<KeyCommand, { type: 'updateKey' }>): number {
  const { mcpAccess, cardDavAccess, browserLogin } = command;
  let changed = flags;
  if (mcpAccess !== undefined) changed = withFlag(changed, KeyFlag.McpAccess, mcpAccess);
  if (cardDavAccess !== undefined) changed = withFlag(changed, KeyFlag.CardDav, cardDavAccess);
  if (browserLogin !== undefined) changed = withFlag(changed, KeyFlag.NoBrowserLogin, !browserLogin);
  return changed;
}

/** `session` is null for an admin, whose route requires a fresh login itself. */
function refusedBrowserChange(
  state: UserState,
  key: UserKey,
  session: SessionRecord | null,
  turn: Turn,
): Refusal | undefined {
  if (hasFlag(key.flags, KeyFlag.Fido2Key))
    return refuse('InvalidInput', 'browserLogin: a passkey logs in to browsers alone');
  if (session !== null && turn.nowMs - session.createdMs > FRESH_LOGIN_MS)
    return refuse('FreshLoginRequired');
  const protectedKey = turn.settings.get('LastKeyProtection') === 1 && isLastBrowserKey(state, key);
  return protectedKey
    ? refuse('Forbidden', 'the last key that logs in to the account cannot lose its browser login')
    : undefined;
}

/**
 * No other key and no code would let its owner in. Ownership is the only condition of spec 3, so the rule is off unless
 * an admin asks for it.
 */
function isLastBrowserKey(state: UserState, key: UserKey): boolean {
  const others = activeKeys(state).filter((each) => each.id !== key.id && mayLogIn(each));
  return state.contacts.length === 0 && mayLogIn(key) && others.length === 0;
}

export function mayLogIn(key: UserKey): boolean {
  return !hasFlag(key.flags, KeyFlag.NoBrowserLogin);
}

export function removeKey(
  state: UserState,
  command: Extract<KeyCommand, { type: 'removeKey' }>,
  turn: Turn,
): UserOutcome<RemovedKey> | Refusal {
  const session = changerOf(state, command, turn);
  if (isRefusal(session)) return session;
  const key = findById(state.keys, command.keyId);
  if (!isActive(key)) return refuse('KeyNotFound');
  if (turn.settings.get('LastKeyProtection') === 1 && isLastBrowserKey(state, key))
    return refuse('Forbidden', 'the last key of the account cannot be removed');
  const ended = sessionsOfKey(state, key.id);
  const reply: RemovedKey = {
    keyId: key.id,
    sessionsClosed: ended.length,
    currentClosed: ended.some((each) => each.id === session?.id),
  };
  const fields = { keyId: key.id, sessionsClosed: ended.length };
  return outcome(
    [
      removal(state, key),
      endSessions(state, ended),
      ...recorded(state, command.origin, 'removed', fields, turn),
    ],
    reply,
  );
}

/** A change by an admin has an event of its own in the audit log, and an entry in the owner's login log. */
function recorded(
  state: UserState,
  origin: Origin,
  what: 'updated' | 'removed',
  fields: AuditRecord['fields'] & { readonly keyId: string },
  turn: Turn,
): Change[] {
  if (origin.by === undefined) return [audited(state, turn, `key_${what}`, origin, fields)];
  const event = what === 'updated' ? 'key_changed_by_admin' : 'key_removed_by_admin';
  return [keyLogged(event, fields.keyId, turn), audited(state, turn, `admin_key_${what}`, origin, fields)];
}

/** Another user proved possession of a key that this user only claimed. Its index entry has moved already. */
export function loseKey(state: UserState, { keyId }: LoseKey, turn: Turn): UserOutcome<null> {
  const key = findById(state.keys, keyId);
  if (!isActive(key)) return { reply: null };
  const ended = sessionsOfKey(state, keyId);
  const origin: Origin = { ip: '', userAgent: '' };
  const logged: UserEvent = {
    type: 'logged',
    entry: {
      id: turn.newId(),
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
