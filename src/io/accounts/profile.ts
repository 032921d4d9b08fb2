/** Profile of an account: nickname and contacts, with their changes. */
import { user } from '../../actors/accounts/user.ts';
import type { Contact } from '../../domain/contacts.ts';
import { GatewayError } from '../../domain/errors.ts';
import { array, idText, named, nullable, object, oneOf, text, utcText } from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import { toIso } from '../../domain/time.ts';
import type { RouteContext } from '../http/table/route.ts';
import { originOf } from './login-parts.ts';
import { redeem } from './one-time-codes.ts';

/** Characters. */
export const NICKNAME_MAX = 64;

const contactSchema = named(
  'Contact',
  object({ channel: oneOf(['phone', 'email']), address: text({ examples: ['+15550100'] }) }),
);

export const contactsSchema = array(contactSchema);

export const profileSchema = named(
  'Profile',
  object({
    userId: idText(),
    createdUtc: utcText(),
    nickname: nullable(text({ examples: ['Ada'] })),
    contacts: contactsSchema,
  }),
);

type Context = RouteContext<unknown, unknown, SessionContext>;

export async function profileOf({ actors, session }: Context) {
  const { userId } = session;
  const { createdMs, nickname, contacts } = await actors.query(user, userId, { type: 'account' });
  if (createdMs === null) throw new GatewayError('SessionNotFound');
  return { userId, createdUtc: toIso(createdMs), nickname, contacts: [...contacts] };
}

export async function setNickname(context: Context, nickname: string | null) {
  const { actors, session } = context;
  await actors.ask(user, session.userId, { type: 'setNickname', nickname });
  return profileOf(context);
}

/** Adds a contact with a code that was sent to it. Throws what the code and the account refuse. */
export async function addContact(
  context: Context,
  challengeId: string | number,
  code: string,
): Promise<Contact[]> {
  const { channel, address } = await redeem(context, challengeId, code);
  return change(context, 'addContact', { channel, address });
}

/** Undefined: the request named none, or two. */
export async function removeContact(context: Context, contact: Contact | undefined): Promise<Contact[]> {
  if (contact === undefined) throw new GatewayError('InvalidInput', 'expected either phone or email');
  return change(context, 'removeContact', contact);
}

async function change(
  context: Context,
  type: 'addContact' | 'removeContact',
  contact: Contact,
): Promise<Contact[]> {
  const { actors, session } = context;
  const { id: sessionId, userId } = session;
  const command = { contact, sessionId, origin: originOf(context) };
  const contacts = await actors.ask(user, userId, { type, ...command });
  return [...contacts];
}
