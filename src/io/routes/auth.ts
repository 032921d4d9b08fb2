/** Challenges and browser login (spec 4.4; shapes in auth.md). Sign-up is register_key without a session (keys.ts). */

import { type AccountView, user } from '../../actors/user.ts';
import type { CodeLoggedIn } from '../../actors/user-codes.ts';
import type { LoggedIn, Login } from '../../actors/user-login.ts';
import { GatewayError } from '../../domain/errors.ts';
import { browserMessage } from '../../domain/proofs.ts';
import {
  array,
  boolean,
  nameText,
  nullable,
  object,
  optional,
  type Static,
  text,
  unknown,
} from '../../domain/schema.ts';
import { SECOND_MS, toIso } from '../../domain/time.ts';
import { defineRoute, Reply, type RouteContext } from '../http/route.ts';
import { setSid } from '../http/sid-cookie.ts';
import {
  auditRefusal,
  challengeFields,
  challengeIdSchema,
  challengePrefix,
  challengeView,
  circumstances,
  consumeChallenge,
  countingUnknownKeys,
  credentialHolderOf,
  holderOf,
  openChallenge,
  PUBLIC_KEY_BYTES,
  requireBytes,
  SIGNATURE_BYTES,
} from '../login-parts.ts';
import { codeLogin } from '../one-time-codes.ts';
import {
  type AssertionJson,
  assertionSchema,
  ceremonyOf,
  checkAssertion,
  checkCredentialIds,
  creationOptions,
  credentialIdsSchema,
  readAssertion,
  requestOptions,
} from '../passkeys.ts';

const NAME_LENGTH_MAX = 64;

export const registerOptions = defineRoute({
  method: 'GET',
  path: '/auth/v1/register_options',
  summary: 'A challenge for a new key: for the account with a session, for a sign-up without',
  group: 'auth',
  auth: 'optional',
  strictSession: true,
  limits: ['CheckPubKey'],
  query: object({ name: optional(nameText(NAME_LENGTH_MAX)) }),
  result: object({ ...challengeFields, options: unknown() }),
  errors: ['InvalidInput', 'SessionNotFound'],
  async handle(context) {
    const { site, session, settings, query, actors } = context;
    const opened = openChallenge(context, 'register');
    const account =
      session === undefined
        ? undefined
        : await actors.query<AccountView>(user, session.userId, { type: 'account' });
    const options = creationOptions(site, opened, settings.get('ChallengeSeconds') * SECOND_MS, {
      handle: account?.handle ?? opened.newHandle,
      name: query.name,
      keys: account?.keys ?? [],
    });
    return { ...challengeView(context, opened), options };
  },
});

const loginOptionsBody = object({ credentialIds: optional(credentialIdsSchema) });
const loginOptionsResult = object({ ...challengeFields, methods: array(text()), options: unknown() });

/** No look-up of any user, so there is nothing to enumerate. */
function openLogin(context: RouteContext, credentialIds: readonly string[] | undefined) {
  checkCredentialIds(credentialIds);
  const { site, settings } = context;
  const opened = openChallenge(context, 'login');
  const timeoutMs = settings.get('ChallengeSeconds') * SECOND_MS;
  const options = requestOptions(site, opened, timeoutMs, credentialIds);
  return { ...challengeView(context, opened), methods: site.authMethods, options };
}

export const loginOptions = defineRoute({
  method: 'GET',
  path: '/auth/v1/login_options',
  summary: 'A challenge for a login',
  group: 'auth',
  auth: 'optional',
  limits: ['CheckPubKey'],
  result: loginOptionsResult,
  errors: ['InvalidInput'],
  handle: (context) => openLogin(context, undefined),
});

export const loginOptionsFor = defineRoute({
  method: 'POST',
  path: '/auth/v1/login_options',
  summary: 'A challenge for a login with one of the credentials that the client remembers',
  group: 'auth',
  auth: 'optional',
  limits: ['CheckPubKey'],
  body: loginOptionsBody,
  bodyOptional: true,
  result: loginOptionsResult,
  errors: ['InvalidInput'],
  handle: (context) => openLogin(context, context.body.credentialIds),
});

const loginBody = object({
  challengeId: challengeIdSchema,
  publicKey: optional(text({ maxLength: 64 })),
  code: optional(text({ maxLength: 128 })),
  credential: optional(assertionSchema),
});

export const login = defineRoute({
  method: 'POST',
  path: '/auth/v1/login',
  summary: 'Log a browser in: the answer to a challenge of login_options',
  group: 'auth',
  auth: 'optional',
  limits: ['CheckPubKey'],
  body: loginBody,
  result: object({
    userId: text(),
    keyId: nullable(text()),
    keyType: text(),
    newAccount: boolean(),
    expiresUtc: text(),
  }),
  errors: [
    'InvalidInput',
    'SessionNotFound',
    'AccountNotFound',
    'AccessDenied',
    'ChallengeExpired',
    'InvalidSignature',
    'InvalidCode',
    'AccessRateLimit',
  ],
  async handle(context) {
    const { site } = context;
    const { userId, keyId, keyType, newAccount, token, createdMs, expiresMs } = await run(context);
    const result = {
      userId,
      keyId: keyId ?? null,
      keyType: keyType ?? 'Unknown',
      newAccount: newAccount === true,
      expiresUtc: toIso(expiresMs),
    };
    return Reply.result(result, setSid(token, createdMs, expiresMs, site.secureCookies));
  },
});

/** Of a key, or of a one-time code: then there is no key, and the account may be new. */
type BrowserLogin = Pick<LoggedIn, 'token' | 'userId' | 'createdMs' | 'expiresMs'> &
  Partial<Pick<LoggedIn, 'keyId' | 'keyType'> & Pick<CodeLoggedIn, 'newAccount'>>;

/** Shape first, then the challenge, which is used up whatever follows, then the key (auth.md A4). */
async function run(context: RouteContext<unknown, Static<typeof loginBody>>): Promise<BrowserLogin> {
  const { challengeId, publicKey, code, credential } = context.body;
  if (credential !== undefined) {
    if (publicKey !== undefined || code !== undefined)
      throw new GatewayError('InvalidInput', 'credential excludes publicKey and code');
    return passkeyLogin(context, challengeId, credential);
  }
  if (code === undefined) throw new GatewayError('InvalidInput', 'code: is required');
  if (publicKey === undefined) return codeLogin(context, challengeId, code);
  requireBytes(publicKey, PUBLIC_KEY_BYTES, 'publicKey');
  const signature = requireBytes(code, SIGNATURE_BYTES, 'code');
  const challenge = takeChallenge(context, challengeId);
  return countingUnknownKeys(context, null, async () => {
    const holder = holderOf(context.actors, publicKey);
    if (holder === undefined) throw new GatewayError('SessionNotFound');
    const command: Login = {
      type: 'login',
      keyId: holder.keyId,
      publicKey,
      proof: { message: browserMessage(challengePrefix(context, challenge), publicKey), signature },
      ...circumstances(context),
    };
    return context.actors.ask<LoggedIn>(user, holder.userId, command);
  });
}

/** The same with the answer of an authenticator. A credential that nobody has counts as an unknown key. */
async function passkeyLogin(
  context: RouteContext,
  challengeId: string | number,
  credential: AssertionJson,
): Promise<LoggedIn> {
  checkAssertion(credential);
  const assertion = readAssertion(ceremonyOf(context.site, takeChallenge(context, challengeId)), credential);
  return countingUnknownKeys(context, null, async () => {
    const holder = credentialHolderOf(context.actors, credential.id);
    if (holder === undefined) throw new GatewayError('SessionNotFound');
    const command: Login = {
      type: 'login',
      keyId: holder.keyId,
      publicKey: credential.id,
      assertion,
      ...circumstances(context),
    };
    return context.actors.ask<LoggedIn>(user, holder.userId, command);
  });
}

function takeChallenge(context: RouteContext, challengeId: string | number) {
  context.limiter.checkUnknownKeys();
  try {
    return consumeChallenge(context, challengeId, ['login'], { orAnonymous: true });
  } catch (error) {
    if (error instanceof GatewayError && error.row === 'ChallengeExpired')
      auditRefusal(context, null, 'ChallengeExpired');
    throw error;
  }
}
