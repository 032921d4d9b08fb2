/** The account itself: profile, nickname, and contacts that one-time codes log in from. */
import { parseEmail, parsePhone } from '../../domain/contacts.ts';
import { ID_EXAMPLE } from '../../domain/examples.ts';
import { nameText, nullable, object, optional, text } from '../../domain/schema.ts';
import { challengeIdSchema } from '../accounts/login-parts.ts';
import {
  addContact,
  contactsSchema,
  NICKNAME_MAX,
  profileOf,
  profileSchema,
  removeContact,
  setNickname,
} from '../accounts/profile.ts';
import { type AnyRoute, defineRoute } from '../http/table/route.ts';

const account = defineRoute({
  method: 'GET',
  path: '/auth/v1/account',
  summary: 'The account: id, nickname, contacts',
  docs: { description: 'A code that is sent to one of the contacts logs in to the account.' },
  group: 'auth',
  auth: 'session',
  limits: [],
  result: profileSchema,
  handle: (context) => profileOf(context),
});

const nickname = defineRoute({
  method: 'POST',
  path: '/auth/v1/account',
  summary: 'Set the nickname of the account, or take it away',
  docs: { description: 'Null takes it away.' },
  group: 'auth',
  auth: 'session',
  limits: [],
  body: object({ nickname: nullable(nameText(NICKNAME_MAX)) }),
  result: profileSchema,
  handle: (context) => setNickname(context, context.body.nickname),
});

const addContactRoute = defineRoute({
  method: 'POST',
  path: '/auth/v1/account/contacts/add',
  summary: 'Add a phone number or an e-mail address to the account, with a code that was sent to it',
  docs: {
    description:
      'Ask for the code with `login_phone` or `login_email` first, in the same session. From then on codes of the contact log in to this account. Needs a recent login where key changes do.',
    examples: { usual: { body: { challengeId: ID_EXAMPLE, code: '31415926' } } },
  },
  group: 'auth',
  auth: 'session',
  limits: ['CheckPubKey'],
  body: object({
    challengeId: challengeIdSchema,
    code: text({ maxLength: 16, examples: ['31415926'] }),
  }),
  result: contactsSchema,
  errors: [
    'ChallengeExpired',
    'InvalidCode',
    'DeliveryUnavailable',
    'ContactRegistered',
    'ContactLimitReached',
    'FreshLoginRequired',
  ],
  handle: (context) => addContact(context, context.body.challengeId, context.body.code),
});

const ADDRESS_CHARACTERS_MAX = 320;

const removeContactRoute = defineRoute({
  method: 'POST',
  path: '/auth/v1/account/contacts/remove',
  summary: 'Remove a contact from the account',
  docs: {
    description:
      'Send `phone` or `email`. The last way to log in stays: without another contact or key the answer is 403. Needs a recent login where key changes do.',
    examples: { usual: { body: { phone: '+15550100' } } },
  },
  group: 'auth',
  auth: 'session',
  limits: [],
  body: object({
    phone: optional(text({ maxLength: ADDRESS_CHARACTERS_MAX, examples: ['+15550100'] })),
    email: optional(text({ maxLength: ADDRESS_CHARACTERS_MAX, examples: ['ada@mail.example'] })),
  }),
  result: contactsSchema,
  errors: ['NotFound', 'FreshLoginRequired', 'Forbidden'],
  handle(context) {
    const { phone, email } = context.body;
    const contact =
      phone === undefined ? parseEmail(email ?? '') : email === undefined ? parsePhone(phone) : undefined;
    return removeContact(context, contact);
  },
});

export const accountRoutes: readonly AnyRoute[] = [account, nickname, addContactRoute, removeContactRoute];
