/**
 * Nickname and contacts of one account. A contact is added with a code that was sent to it, and logs in from then on. The
 * last way to log in cannot be removed.
 */
import { CONTACTS_MAX, type Contact, contactKey, hasContact, withoutContact } from '../../domain/contacts.ts';
import { audited, type Change, type Origin, outcome, type UserOutcome } from '../change.ts';
import { isRefusal, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { accountLogged } from './login-log.ts';
import { activeKeys } from './user-enrollment.ts';
import { mayLogIn } from './user-keys.ts';
import { changingSession } from './user-sessions.ts';
import type { UserState } from './user-types.ts';

export type ProfileCommand =
  /** The code that was sent to the contact was right. */
  | {
      readonly type: 'addContact';
      readonly contact: Contact;
      readonly sessionId: string;
      readonly origin: Origin;
    }
  | {
      readonly type: 'removeContact';
      readonly contact: Contact;
      readonly sessionId: string;
      readonly origin: Origin;
    }
  /** Null: none from now on. */
  | { readonly type: 'setNickname'; readonly nickname: string | null };

/**
 * Asks for the account's nickname: by the state of the node that is asked, so that a list of many accounts asks no
 * other node.
 */
export interface FindNickname {
  readonly type: 'nickname';
}

type Of<Type extends ProfileCommand['type']> = Extract<ProfileCommand, { type: Type }>;
type Contacts = readonly Contact[];

export function addContact(
  state: UserState,
  { contact, ...command }: Of<'addContact'>,
  turn: Turn,
): UserOutcome<Contacts> | Refusal {
  const session = changingSession(state, command, turn);
  if (isRefusal(session)) return session;
  const { contacts } = state;
  if (hasContact(contacts, contact)) return { reply: contacts };
  if (contacts.length >= CONTACTS_MAX) return refuse('ContactLimitReached');
  return outcome(
    [
      { events: [{ type: 'contactAdded', contact }], claims: [contactClaim(state, contact)] },
      { events: [accountLogged('contact_added', session, command.origin, turn)] },
      audited(state, turn, 'contact_added', command.origin, { channel: contact.channel }),
    ],
    [...contacts, contact],
  );
}

export function removeContact(
  state: UserState,
  { contact, ...command }: Of<'removeContact'>,
  turn: Turn,
): UserOutcome<Contacts> | Refusal {
  const session = changingSession(state, command, turn);
  if (isRefusal(session)) return session;
  if (!hasContact(state.contacts, contact)) return refuse('NotFound', 'no such contact of the account');
  const left = withoutContact(state.contacts, contact);
  if (left.length === 0 && !activeKeys(state).some(mayLogIn))
    return refuse('Forbidden', 'the last way to log in to the account cannot be removed');
  return outcome(
    [
      { events: [{ type: 'contactRemoved', contact }] },
      releasedContacts(state, [contact]),
      { events: [accountLogged('contact_removed', session, command.origin, turn)] },
      audited(state, turn, 'contact_removed', command.origin, { channel: contact.channel }),
    ],
    left,
  );
}

export function setNickname(
  state: UserState,
  { nickname }: Of<'setNickname'>,
): UserOutcome<string | null> | Refusal {
  if (state.createdMs === null) return refuse('SessionNotFound');
  if (state.nickname === nickname) return { reply: nickname };
  return { events: [{ type: 'nicknameSet', nickname }], reply: nickname };
}

function contactClaim({ userId }: UserState, contact: Contact) {
  return {
    index: 'contact',
    key: contactKey(contact),
    owner: userId,
    onConflict: 'ContactRegistered',
  } as const;
}

/** Their names are free: the next code of one creates an account. */
export function releasedContacts({ userId }: UserState, contacts: Contacts): Change {
  return {
    events: [],
    claims: contacts.map((contact) => ({
      index: 'contact',
      key: contactKey(contact),
      owner: null,
      replaces: userId,
      onConflict: 'InternalError',
    })),
  };
}
