/** Key management (spec 4.3; shapes in auth.md): register_key, user_keys, update_key, remove_key. */

import { user } from '../../actors/user.ts';
import type { RemovedKey, UpdatedKey } from '../../actors/user-keys.ts';
import { GatewayError } from '../../domain/errors.ts';
import {
  array,
  boolean,
  int64,
  integer,
  nameText,
  object,
  optional,
  readId,
  text,
} from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import { toIso } from '../../domain/time.ts';
import { askOptions, listKeys, userKeyItem, userKeySchema } from '../account.ts';
import { register } from '../enrolment.ts';
import { defineRoute, Reply, type RouteContext } from '../http/route.ts';
import { clearSid, setSid } from '../http/sid-cookie.ts';
import { auditingKeyRefusals, challengeIdSchema, originOf } from '../login-parts.ts';
import { attestationSchema } from '../passkeys.ts';
import { countingSignUps } from '../sign-ups.ts';
import { accountCall } from './sessions.ts';

const keyIdSchema = int64('Key id: decimal string');

export const registerKey = defineRoute({
  method: 'POST',
  path: '/auth/v1/keys/register_key',
  summary: 'Add a key to the account; without a session, create the account',
  group: 'keys',
  auth: 'optional',
  strictSession: true,
  limits: ['CheckPubKey'],
  body: object({
    challengeId: challengeIdSchema,
    code: text({ maxLength: 128 }),
    credential: optional(attestationSchema),
    publicKey: optional(text({ maxLength: 64 })),
    passKeyFlag: optional(boolean()),
    name: optional(nameText(64)),
  }),
  result: object({
    key: userKeySchema,
    userId: text(),
    newAccount: boolean(),
    replaced: array(text()),
    expiresUtc: text(),
  }),
  errors: [
    'InvalidInput',
    'SessionNotFound',
    'ChallengeExpired',
    'InvalidSignature',
    'KeyLimitReached',
    'KeyAlreadyRegistered',
    'FreshLoginRequired',
    'AccessRateLimit',
  ],
  idempotent: true,
  async handle(context) {
    const run = () => register(context, context.body);
    const registered = await auditingKeyRefusals(context, 'register_key', () =>
      context.session === undefined ? countingSignUps(context, run) : run(),
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

export const userKeys = defineRoute({
  method: 'GET',
  path: '/auth/v1/keys/user_keys',
  summary: 'Active keys of the account',
  group: 'keys',
  auth: 'session',
  limits: [],
  result: array(userKeySchema),
  errors: ['SessionNotFound'],
  handle: (context) => listKeys(accountCall(context)),
});

export const updateKey = defineRoute({
  method: 'POST',
  path: '/auth/v1/keys/update_key',
  summary: 'Allow or forbid a key for MCP and for contact sync; omitted flags stay as they are',
  group: 'keys',
  auth: 'session',
  limits: [],
  body: object({
    keyId: keyIdSchema,
    mcpAccess: optional(boolean()),
    cardDavAccess: optional(boolean()),
  }),
  result: userKeySchema,
  errors: ['InvalidInput', 'SessionNotFound', 'KeyNotFound', 'FreshLoginRequired'],
  idempotent: true,
  async handle(context) {
    const { mcpAccess, cardDavAccess } = context.body;
    const { key, current } = await change<UpdatedKey>(context, context.body.keyId, {
      type: 'updateKey',
      ...(mcpAccess === undefined ? {} : { mcpAccess }),
      ...(cardDavAccess === undefined ? {} : { cardDavAccess }),
    });
    return userKeyItem(key, current ? key.id : null);
  },
});

export const removeKey = defineRoute({
  method: 'POST',
  path: '/auth/v1/keys/remove_key',
  summary: 'Remove a key and end its sessions',
  group: 'keys',
  auth: 'session',
  limits: [],
  body: object({ keyId: keyIdSchema }),
  result: object({ keyId: text(), sessionsClosed: integer() }),
  errors: ['InvalidInput', 'SessionNotFound', 'KeyNotFound', 'FreshLoginRequired', 'Forbidden'],
  idempotent: true,
  async handle(context) {
    const removed = await change<RemovedKey>(context, context.body.keyId, { type: 'removeKey' });
    const { keyId, sessionsClosed, currentClosed } = removed;
    return Reply.result({ keyId, sessionsClosed }, currentClosed ? clearSid(context.site.secureCookies) : []);
  },
});

/** A foreign, removed or unknown key is the same `KeyNotFound` (auth.md). */
function change<Result>(
  context: RouteContext<unknown, unknown, SessionContext>,
  sentKeyId: string | number,
  command: { readonly type: 'updateKey' | 'removeKey' },
): Promise<Result> {
  const { actors, session } = context;
  return auditingKeyRefusals(context, command.type, async () => {
    const keyId = readId(sentKeyId);
    if (keyId === undefined) throw new GatewayError('KeyNotFound');
    const full = { ...command, keyId, sessionId: session.id, origin: originOf(context) };
    return actors.ask<Result>(user, session.userId, full, askOptions(command.type, context));
  });
}
