/** The account itself: profile, nickname, contacts that one-time codes log in from, export and removal. */
import { user } from '../../actors/accounts/user.ts';
import { parseEmail, parsePhone } from '../../domain/contacts.ts';
import { ID_EXAMPLE } from '../../domain/examples.ts';
import { idText, integer, nameText, nullable, object, optional, text, unknown } from '../../domain/schema.ts';
import { type ExportDeps, exportOf, PiecesSource } from '../accounts/export.ts';
import { challengeIdSchema, originOf } from '../accounts/login-parts.ts';
import {
  addContact,
  contactsSchema,
  NICKNAME_MAX,
  profileOf,
  profileSchema,
  removeContact,
  setNickname,
} from '../accounts/profile.ts';
import { requireFresh } from '../admin/pagination.ts';
import type { LiveStaff } from '../admin/staff.ts';
import { clearSid } from '../http/checks/sid-cookie.ts';
import { StreamReply } from '../http/exchange/stream.ts';
import { type AnyRoute, defineRoute, Reply } from '../http/table/route.ts';
import { accountCall } from './sessions.ts';

const account = defineRoute({
  method: 'GET',
  path: '/auth/v1/account',
  summary: 'The account: id, nickname, contacts',
  description: 'A code that is sent to one of the contacts logs in to the account.',
  group: 'auth',
  auth: 'session',
  result: profileSchema,
  handle: (context) => profileOf(context),
});

const nickname = defineRoute({
  method: 'POST',
  path: '/auth/v1/account',
  summary: 'Set the nickname of the account, or take it away',
  description: 'Null takes it away.',
  group: 'auth',
  auth: 'session',
  body: object({ nickname: nullable(nameText(NICKNAME_MAX)) }),
  result: profileSchema,
  handle: (context) => setNickname(context, context.body.nickname),
});

const addContactRoute = defineRoute({
  method: 'POST',
  path: '/auth/v1/account/contacts/add',
  summary: 'Add a phone number or an e-mail address to the account, with a code that was sent to it',
  description:
    'Ask for the code with `login_phone` or `login_email` first, in the same session. From then on codes of the contact log in to this account. Needs a recent login where key changes do.',
  docs: { examples: { usual: { body: { challengeId: ID_EXAMPLE, code: '31415926' } } } },
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
  description:
    'Send `phone` or `email`. The last way to log in stays: without another contact or key the answer is 403. Needs a recent login where key changes do.',
  docs: { examples: { usual: { body: { phone: '+15550100' } } } },
  group: 'auth',
  auth: 'session',
  body: object({
    phone: optional(text({ maxLength: ADDRESS_CHARACTERS_MAX, examples: ['+15550100'] })),
    email: optional(text({ maxLength: ADDRESS_CHARACTERS_MAX, examples: ['ada@mail.example'] })),
  }),
  result: contactsSchema,
  errors: ['NotFound', 'FreshLoginRequired'],
  handle(context) {
    const { phone, email } = context.body;
    const contact =
      phone === undefined ? parseEmail(email ?? '') : email === undefined ? parsePhone(phone) : undefined;
    return removeContact(context, contact);
  },
});

export interface AccountDeps extends ExportDeps {
  readonly staff: Pick<LiveStaff, 'leave'>;
  /** Called with an error that was thrown while a file was sent, and is no refusal. */
  readonly onBug: (error: unknown, requestId: string) => void;
}

export function createAccountRoutes(deps: AccountDeps): AnyRoute[] {
  return [account, nickname, addContactRoute, removeContactRoute, exportRoute(deps), removeRoute(deps.staff)];
}

function exportRoute(deps: AccountDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/account/export',
    summary: 'Everything that the gateway has of the account, as one JSON file',
    description:
      'Profile, keys, sessions, contact sync tokens, applications, access, connected hosts, connected MCP servers, logins, and files as the chat module lists them; without secrets. `filesMissing` says why files may be missing. Needs a login of the last 15 minutes.',
    docs: {
      answers: {
        200: {
          description: 'The file',
          type: 'application/json',
          schema: unknown({ description: 'A list for each kind of record', examples: [{ keys: [] }] }),
        },
      },
      sends: ['Content-Disposition', 'Cache-Control'],
    },
    group: 'auth',
    auth: 'session',
    ownPagesOnly: true,
    errors: ['FreshLoginRequired'],
    handle(context) {
      requireFresh(context);
      const pieces = exportOf(deps, context, accountCall(context));
      const headers = [
        ['Content-Disposition', `attachment; filename="account-${context.session.userId}.json"`],
        ['Cache-Control', 'no-store'],
      ] as const;
      const source = new PiecesSource(pieces, (error) => deps.onBug(error, context.requestId));
      return new StreamReply(200, source, { contentType: 'application/json', headers });
    },
  });
}

function removeRoute(staff: AccountDeps['staff']): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/account/remove',
    summary: 'Remove the account for good',
    description:
      'Keys, contacts, sessions, applications, uploads and drafts end at once; the id opens no other account. Modules with `accountEvents` are notified. The last admin is refused. Needs a login of the last 15 minutes.',
    docs: { sends: ['Set-Cookie'] },
    group: 'auth',
    auth: 'session',
    result: object({ userId: idText(), sessionsClosed: integer() }),
    errors: ['FreshLoginRequired', 'LastAdmin'],
    async handle(context) {
      requireFresh(context);
      const { actors, client, session, site } = context;
      const { userId, id: sessionId } = session;
      // The role goes first: an admin without an account would count as one.
      await staff.leave(userId, client.address);
      const command = { type: 'removeAccount', sessionId, origin: originOf(context) } as const;
      const removed = await actors.ask(user, userId, command);
      return Reply.result(removed, clearSid(site.secureCookies));
    },
  });
}
