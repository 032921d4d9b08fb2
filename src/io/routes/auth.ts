/** Challenges and browser login (spec 4.4, 5.3). A sign-up is register_key without a session (keys.ts). */

import { user } from '../../actors/accounts/user.ts';
import type { CodeLoggedIn } from '../../actors/accounts/user-codes.ts';
import type { LoggedIn, Login } from '../../actors/accounts/user-login.ts';
import type { Challenge } from '../../domain/challenges.ts';
import { GatewayError } from '../../domain/errors.ts';
import { ID_EXAMPLE, KEY_EXAMPLE, SIGNATURE_EXAMPLE } from '../../domain/examples.ts';
import { browserMessage } from '../../domain/proofs.ts';
import {
  array,
  boolean,
  idText,
  nameText,
  nullable,
  object,
  optional,
  type Static,
  text,
  unknown,
  utcText,
} from '../../domain/schema.ts';
import { SECOND_MS, toIso } from '../../domain/time.ts';
import {
  type ChallengeDeps,
  challengeFields,
  challengeIdSchema,
  challengePrefix,
  challengeView,
  circumstances,
  countingUnknownKeys,
  credentialHolderOf,
  holderOf,
  openChallenge,
  PUBLIC_KEY_BYTES,
  requireBytes,
  SIGNATURE_BYTES,
  usedOf,
  usingChallenge,
} from '../accounts/login-parts.ts';
import { codeLogin } from '../accounts/one-time-codes.ts';
import {
  type AssertionJson,
  assertionExample,
  assertionSchema,
  ceremonyOf,
  checkAssertion,
  checkCredentialIds,
  creationOptions,
  credentialIdsSchema,
  readAssertion,
  requestOptions,
} from '../accounts/passkeys.ts';
import type { SignUpDeps } from '../accounts/sign-ups.ts';
import { setSid } from '../http/checks/sid-cookie.ts';
import { type AnyRoute, defineRoute, Reply, type RouteContext } from '../http/table/route.ts';

const NAME_LENGTH_MAX = 64;
/** For `navigator.credentials.create` and `.get`: WebAuthn Level 3, 5.1.8 and 5.1.9, describes them. */
const creationOptionsShape = unknown({
  description: 'PublicKeyCredentialCreationOptionsJSON',
  examples: [
    { challenge: 'AQIDBAUGBwg', rp: { name: 'Gatehouse', id: 'gate.example' }, attestation: 'none' },
  ],
});
const requestOptionsShape = unknown({
  description: 'PublicKeyCredentialRequestOptionsJSON',
  examples: [{ challenge: 'AQIDBAUGBwg', rpId: 'gate.example', userVerification: 'required' }],
});

export type LoginDeps = ChallengeDeps & SignUpDeps;

export function createAuthRoutes(deps: LoginDeps): AnyRoute[] {
  return [registerOptionsRoute(deps), loginOptionsRoute(deps), loginOptionsForRoute(deps), loginRoute(deps)];
}

function registerOptionsRoute(deps: ChallengeDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/register_options',
    summary: 'A challenge for a new key: for the account with a session, for a sign-up without',
    spec: '4.4',
    description:
      'With a session the new key joins its account, without one `register_key` creates an account. The challenge is good for one answer, for `challengeSeconds` of `info`. `options` go to `navigator.credentials.create`.',
    group: 'auth',
    auth: 'optional',
    strictSession: true,
    limits: ['CheckPubKey'],
    query: object({ name: optional(nameText(NAME_LENGTH_MAX)) }),
    result: object({ ...challengeFields, options: creationOptionsShape }),
    async handle(context) {
      const { site, session, settings, query, actors } = context;
      const opened = openChallenge(deps, context, 'register');
      const account =
        session === undefined ? undefined : await actors.query(user, session.userId, { type: 'account' });
      const options = creationOptions(site, opened, settings.get('ChallengeSeconds') * SECOND_MS, {
        handle: account?.handle ?? opened.newHandle,
        name: query.name,
        keys: account?.keys ?? [],
      });
      return { ...challengeView(context, opened), options };
    },
  });
}

const loginOptionsBody = object({ credentialIds: optional(credentialIdsSchema) });
const loginOptionsResult = object({
  ...challengeFields,
  methods: array(text({ examples: ['passkey'] })),
  options: requestOptionsShape,
});

/** Looks up no account, so callers cannot enumerate accounts. */
function openLogin(deps: ChallengeDeps, context: RouteContext, credentialIds: readonly string[] | undefined) {
  checkCredentialIds(credentialIds);
  const { site, settings } = context;
  const opened = openChallenge(deps, context, 'login');
  const timeoutMs = settings.get('ChallengeSeconds') * SECOND_MS;
  const options = requestOptions(site, opened, timeoutMs, credentialIds);
  return { ...challengeView(context, opened), methods: site.authMethods, options };
}

function loginOptionsRoute(deps: ChallengeDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/login_options',
    summary: 'A challenge for a login',
    spec: '4.4',
    description:
      'Looks no account up, so the answer is the same for everybody. `options` go to `navigator.credentials.get`; a software key signs `signPrefix` followed by its public key in base64url, as UTF-8.',
    group: 'auth',
    auth: 'optional',
    limits: ['CheckPubKey'],
    result: loginOptionsResult,
    handle: (context) => openLogin(deps, context, undefined),
  });
}

function loginOptionsForRoute(deps: ChallengeDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/login_options',
    summary: 'A challenge for a login with one of the credentials that the client remembers',
    spec: '4.4',
    description:
      'As the GET, with `credentialIds` echoed in `options` so that the browser offers these passkeys alone.',
    docs: { examples: { usual: { body: { credentialIds: ['AQIDBAUGBwg'] } } } },
    group: 'auth',
    auth: 'optional',
    limits: ['CheckPubKey'],
    body: loginOptionsBody,
    bodyOptional: true,
    result: loginOptionsResult,
    handle: (context) => openLogin(deps, context, context.body.credentialIds),
  });
}

const loginBody = object({
  challengeId: challengeIdSchema,
  publicKey: optional(text({ maxLength: 64, examples: [KEY_EXAMPLE] })),
  code: optional(
    text({
      maxLength: 128,
      description: 'A signature, or a one-time code of eight digits',
      examples: [SIGNATURE_EXAMPLE],
    }),
  ),
  credential: optional(assertionSchema),
});

function loginRoute(deps: LoginDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/login',
    summary: 'Log a browser in: the answer to a challenge of login_options',
    spec: '4.4',
    description:
      'Send one of three: `credential` of a passkey; `publicKey` with its signature as `code`; or the one-time code alone as `code`. The challenge is used up, whatever follows. The session that came with the request ends.',
    docs: {
      sends: ['Set-Cookie'],
      examples: {
        key: {
          body: { challengeId: ID_EXAMPLE, publicKey: KEY_EXAMPLE, code: SIGNATURE_EXAMPLE },
        },
        oneTimeCode: { body: { challengeId: ID_EXAMPLE, code: '31415926' } },
        passkey: { body: { challengeId: ID_EXAMPLE, credential: assertionExample } },
      },
    },
    group: 'auth',
    auth: 'optional',
    limits: ['CheckPubKey'],
    body: loginBody,
    result: object({
      userId: idText(),
      keyId: nullable(idText()),
      keyType: text({ examples: ['UserKey'] }),
      newAccount: boolean(),
      expiresUtc: utcText(),
    }),
    errors: [
      'SessionNotFound',
      'AccountNotFound',
      'AccessDenied',
      'ChallengeExpired',
      'InvalidSignature',
      'TaskTimedOut',
      'InvalidCode',
    ],
    async handle(context) {
      const { site } = context;
      const { userId, keyId, keyType, newAccount, token, createdMs, expiresMs } = await run(deps, context);
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
}

/** A login by key, or by one-time code, which has no key and may create the account. */
type BrowserLogin = Pick<LoggedIn, 'token' | 'userId' | 'createdMs' | 'expiresMs'> &
  Partial<Pick<LoggedIn, 'keyId' | 'keyType'> & Pick<CodeLoggedIn, 'newAccount'>>;

/** Checks the shape, then uses the challenge up (decision 0014), then checks the key. */
async function run(
  deps: LoginDeps,
  context: RouteContext<unknown, Static<typeof loginBody>>,
): Promise<BrowserLogin> {
  const { challengeId, publicKey, code, credential } = context.body;
  if (credential !== undefined) {
    if (publicKey !== undefined || code !== undefined)
      throw new GatewayError('InvalidInput', 'credential excludes publicKey and code');
    return passkeyLogin(deps, context, challengeId, credential);
  }
  if (code === undefined) throw new GatewayError('InvalidInput', 'code: is required');
  if (publicKey === undefined) return codeLogin(deps, context, challengeId, code);
  requireBytes(publicKey, PUBLIC_KEY_BYTES, 'publicKey');
  const signature = requireBytes(code, SIGNATURE_BYTES, 'code');
  return answering(deps, context, challengeId, (challenge) => {
    const holder = holderOf(context.actors, publicKey);
    if (holder === undefined) throw new GatewayError('SessionNotFound');
    const command: Login = {
      type: 'login',
      keyId: holder.keyId,
      publicKey,
      proof: { message: browserMessage(challengePrefix(context, challenge), publicKey), signature },
      challenge: usedOf(context, challenge),
      ...circumstances(context),
    };
    return context.actors.ask(user, holder.userId, command);
  });
}

/** The same for a passkey. An unknown credential counts as an unknown key. */
async function passkeyLogin(
  deps: ChallengeDeps,
  context: RouteContext,
  challengeId: string | number,
  credential: AssertionJson,
): Promise<LoggedIn> {
  checkAssertion(credential);
  return answering(deps, context, challengeId, (challenge) => {
    const holder = credentialHolderOf(context.actors, credential.id);
    if (holder === undefined) throw new GatewayError('SessionNotFound');
    const command: Login = {
      type: 'login',
      keyId: holder.keyId,
      publicKey: credential.id,
      assertion: readAssertion(ceremonyOf(context.site, challenge), credential),
      challenge: usedOf(context, challenge),
      ...circumstances(context),
    };
    return context.actors.ask(user, holder.userId, command);
  });
}

async function answering(
  deps: ChallengeDeps,
  context: RouteContext,
  challengeId: string | number,
  login: (challenge: Challenge) => Promise<LoggedIn>,
): Promise<LoggedIn> {
  context.limiter.checkUnknownKeys();
  return usingChallenge(deps, context, { challengeId, kinds: ['login'], orAnonymous: true }, (challenge) =>
    countingUnknownKeys(context, null, async () => login(challenge)),
  );
}
