/**
 * Contact sync tokens of one account: adding and removal. A token is a session of the kind `contactSync`, so that it ends
 * with its key, the flag of the key and a block as other sessions do, in the same commit.
 */
import { hasContact, parseEmail, parsePhone } from '../../domain/contacts.ts';
import { hasFlag, KeyFlag } from '../../domain/keys.ts';
import { CONTACT_SYNC_TOKENS_MAX } from '../../domain/sessions.ts';
import { audited, type Origin, outcome, type UserOutcome } from '../change.ts';
import { isRefusal, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { findById } from './id-list.ts';
import { isActive } from './user-enrollment.ts';
import { changingSession, endSessions, openSession, sessionsOfKey } from './user-sessions.ts';
import type { SessionRecord, UserState } from './user-types.ts';

export type ContactSyncCommand =
  | {
      readonly type: 'addContactSync';
      readonly keyId: string;
      readonly name: string;
      readonly sessionId: string;
      readonly origin: Origin;
    }
  | { readonly type: 'removeContactSync'; readonly id: string; readonly origin: Origin };

type Of<Type extends ContactSyncCommand['type']> = Extract<ContactSyncCommand, { type: Type }>;

/** The reply to `addContactSync`. */
export interface AddedContactSync {
  /** The secret. Goes to the caller and nowhere else. */
  readonly token: string;
  readonly record: SessionRecord;
}

export function addContactSync(
  state: UserState,
  command: Of<'addContactSync'>,
  turn: Turn,
): UserOutcome<AddedContactSync> | Refusal {
  const session = changingSession(state, command, turn);
  if (isRefusal(session)) return session;
  const key = findById(state.keys, command.keyId);
  if (!isActive(key)) return refuse('KeyNotFound');
  if (!hasFlag(key.flags, KeyFlag.CardDav))
    return refuse('Forbidden', 'the key has no contact sync access (cardDavAccess)');
  if (sessionsOfKey(state, key.id, 'contactSync').length >= CONTACT_SYNC_TOKENS_MAX)
    return refuse('ContactSyncLimitReached');
  const { keyId, name, origin } = command;
  const request = { kind: 'contactSync', loginType: null, keyId, appId: null, name, origin } as const;
  const opening = openSession(state, turn, request, 'contact_sync_added');
  const { token, session: record } = opening;
  const audit = audited(state, turn, 'contact_sync_added', origin, { keyId, tokenId: record.id });
  return outcome([opening.change, audit], { token, record });
}

export function removeContactSync(
  state: UserState,
  { id, origin }: Of<'removeContactSync'>,
  turn: Turn,
): UserOutcome<null> | Refusal {
  const record = findById(state.sessions, id);
  if (record?.kind !== 'contactSync') return refuse('NotFound', 'no such contact sync token');
  const audit = audited(state, turn, 'contact_sync_removed', origin, { keyId: record.keyId, tokenId: id });
  return outcome([endSessions(state, [record]), audit], null);
}

/** Tokens of the account, the oldest first. */
export function contactSyncTokens({ sessions }: UserState): SessionRecord[] {
  return sessions.filter(({ kind }) => kind === 'contactSync');
}

/** Is it the user id or a proven contact of the account, in any spelling that a log-in takes? */
export function isNamed({ userId, contacts }: UserState, username: string): boolean {
  if (username === userId) return true;
  const named = parsePhone(username) ?? parseEmail(username);
  return named !== undefined && hasContact(contacts, named);
}
