/** Key management (spec 4.3): register_key, user_keys, update_key, remove_key. */

import { ID_EXAMPLE, KEY_EXAMPLE, SIGNATURE_EXAMPLE } from '../../domain/examples.ts';
import {
  array,
  boolean,
  idText,
  int64,
  integer,
  nameText,
  object,
  optional,
  text,
  utcText,
} from '../../domain/schema.ts';
import { toIso } from '../../domain/time.ts';
import { listKeys, userKeyItem, userKeySchema } from '../accounts/account.ts';
import { register } from '../accounts/enrollment.ts';
import { removeUserKey, setKeyAccess } from '../accounts/key-changes.ts';
import { auditingKeyRefusals, type ChallengeDeps, challengeIdSchema } from '../accounts/login-parts.ts';
import { attestationExample, attestationSchema } from '../accounts/passkeys.ts';
import { countingSignUps, type SignUpDeps } from '../accounts/sign-ups.ts';
import { clearSid, setSid } from '../http/checks/sid-cookie.ts';
import { type AnyRoute, defineRoute, Reply } from '../http/table/route.ts';
import { accountCall } from './sessions.ts';

const keyIdSchema = int64('Key id: decimal string');

export function createKeyRoutes(deps: ChallengeDeps & SignUpDeps): AnyRoute[] {
  return [registerRoute(deps), userKeys, updateKey, removeKey];
}

function registerRoute(deps: ChallengeDeps & SignUpDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/keys/register_key',
    summary: 'Add a key to the account; without a session, create the account',
    spec: '4.3',
    description:
      'A software key is sent as `publicKey`, a passkey as `credential`. `code` of a software key is either the code of the challenge (a claim: nothing is proved) or a signature (a proof). Without a session the answer carries the cookie of the new account. `passKeyFlag` marks a key derived from a password; it replaces the former one. With `browserLogin` false the key of an agent joins the account of the session and never logs in to a browser.',
    docs: {
      sends: ['Set-Cookie'],
      examples: {
        softwareKey: {
          body: {
            challengeId: ID_EXAMPLE,
            code: SIGNATURE_EXAMPLE,
            publicKey: KEY_EXAMPLE,
            name: 'Laptop',
          },
        },
        passkey: {
          body: {
            challengeId: ID_EXAMPLE,
            code: KEY_EXAMPLE,
            credential: attestationExample,
          },
        },
      },
    },
    group: 'keys',
    auth: 'optional',
    strictSession: true,
    limits: ['CheckPubKey'],
    body: object({
      challengeId: challengeIdSchema,
      code: text({
        maxLength: 128,
        description: 'The code of the challenge (a claim), or a signature of the key (a proof)',
        examples: [SIGNATURE_EXAMPLE],
      }),
      credential: optional(attestationSchema),
      publicKey: optional(text({ maxLength: 64, examples: [KEY_EXAMPLE] })),
      passKeyFlag: optional(boolean()),
      browserLogin: optional(boolean({ description: 'False: the key may only use MCP; true unless given' })),
      name: optional(nameText(64)),
    }),
    result: object({
      key: userKeySchema,
      userId: idText(),
      newAccount: boolean(),
      replaced: array(idText()),
      expiresUtc: utcText(),
    }),
    errors: [
      'ChallengeExpired',
      'InvalidSignature',
      'TaskTimedOut',
      'KeyLimitReached',
      'KeyAlreadyRegistered',
      'FreshLoginRequired',
    ],
    idempotent: true,
    async handle(context) {
      const run = () => register(deps, context, context.body);
      const registered = await auditingKeyRefusals(context, 'register_key', () =>
        context.session === undefined ? countingSignUps(deps, context, run) : run(),
      );
      const { key, current, userId, newAccount, replaced, expiresMs, opened } = registered;
      const result = {
        key: userKeyItem(key, current ? key.id : null),
        userId,
        newAccount,
        replaced,
        expiresUtc: toIso(expiresMs),
      };
      const cookie =
        opened === undefined
          ? []
          : setSid(opened.token, opened.createdMs, expiresMs, context.site.secureCookies);
      return Reply.result(result, cookie);
    },
  });
}

const userKeys = defineRoute({
  method: 'GET',
  path: '/auth/v1/keys/user_keys',
  summary: 'Active keys of the account',
  spec: '4.3',
  description:
    'Removed keys are not listed. `current` marks the key of the calling session; `proven` says that its holder signed with it here.',
  group: 'keys',
  auth: 'session',
  result: array(userKeySchema),
  handle: (context) => listKeys(accountCall(context)),
});

const updateKey = defineRoute({
  method: 'POST',
  path: '/auth/v1/keys/update_key',
  summary: 'Allow or forbid a key for MCP, contact sync and browsers; omitted flags stay as they are',
  spec: '4.3',
  description:
    '`mcpAccess` lets the key log in with `mcp_login`; a passkey keeps it as sent, and it opens nothing. `cardDavAccess` is for contact sync. `browserLogin` false ends the browser sessions of the key, the calling one included; its change needs a login of at most 15 minutes. Needs a recent login.',
  docs: { sends: ['Set-Cookie'] },
  group: 'keys',
  auth: 'session',
  body: object({
    keyId: keyIdSchema,
    mcpAccess: optional(boolean()),
    cardDavAccess: optional(boolean()),
    browserLogin: optional(boolean()),
  }),
  result: userKeySchema,
  errors: ['KeyNotFound', 'FreshLoginRequired'],
  idempotent: true,
  async handle(context) {
    const { key, current, currentClosed } = await setKeyAccess(context, context.body.keyId, context.body);
    const cookie = currentClosed ? clearSid(context.site.secureCookies) : [];
    return Reply.result(userKeyItem(key, current ? key.id : null), cookie);
  },
});

const removeKey = defineRoute({
  method: 'POST',
  path: '/auth/v1/keys/remove_key',
  summary: 'Remove a key and end its sessions',
  spec: '4.3',
  description:
    'The record stays, marked as removed. Sessions of the key end; where the calling one is among them, its cookie is taken back. Needs a recent login.',
  docs: { sends: ['Set-Cookie'] },
  group: 'keys',
  auth: 'session',
  body: object({ keyId: keyIdSchema }),
  result: object({ keyId: idText(), sessionsClosed: integer() }),
  errors: ['KeyNotFound', 'FreshLoginRequired'],
  idempotent: true,
  async handle(context) {
    const { keyId, sessionsClosed, currentClosed } = await removeUserKey(context, context.body.keyId);
    return Reply.result({ keyId, sessionsClosed }, currentClosed ? clearSid(context.site.secureCookies) : []);
  },
});
