/** Routes of the authorization server under /connect: the page's questions, tokens, revocation, registration. */

import { GatewayError } from '../../domain/errors.ts';
import {
  array,
  boolean,
  idText,
  integer,
  named,
  nullable,
  object,
  oneOf,
  optional,
  text,
  utcText,
} from '../../domain/schema.ts';
import { challengeIdSchema } from '../accounts/login-parts.ts';
import { nicknameSchema } from '../accounts/nicknames.ts';
import { type ConsentDeps, decide, viewConsent } from '../connect/consent.ts';
import { FORM_MAX_BYTES, oauthError, readForm } from '../connect/form.ts';
import { type OAuthPolicy, takesRegistrations } from '../connect/policy.ts';
import { register } from '../connect/registration.ts';
import { CONNECT_PROFILE_PATH } from '../connect/resources.ts';
import { issueToken, revokeToken, type TokenDeps } from '../connect/tokens.ts';
import { type AnyRoute, defineRoute, Reply } from '../http/table/route.ts';
import { resourceMetadataRoute, serverMetadataRoutes } from './connect-metadata.ts';

export interface ConnectDeps extends ConsentDeps, TokenDeps {
  readonly policy: OAuthPolicy;
}

const QUERY_LENGTH_MAX = 16 * 1024;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const REGISTRATION_MAX_BYTES = 16 * 1024;
/** RFC 6749 5.2. */
const failure = named(
  'OAuthError',
  object({
    error: text({ examples: ['invalid_grant'] }),
    error_description: optional(text({ examples: ['the code is over'] })),
  }),
);
/** Requests of hosts: no cookie is read, and pages of every origin may send them. */
const open = {
  group: 'connect',
  auth: 'none',
  anyOrigin: true,
  body: 'raw',
  refusal: oauthError,
} as const;

export function createConnectRoutes(deps: ConnectDeps): AnyRoute[] {
  return [
    resourceMetadataRoute(deps.resources),
    resourceMetadataRoute(deps.resources, CONNECT_PROFILE_PATH),
    ...serverMetadataRoutes(deps.policy),
    requestRoute(deps),
    decideRoute(deps),
    tokenRoute(deps),
    revokeRoute(deps),
    registerRoute(deps),
  ];
}

const uri = text({ examples: ['https://host.example/callback'] });
const access = oneOf(['read', 'tools', 'full']);
const consentView = object({
  step: oneOf(['login', 'consent', 'error', 'redirect']),
  error: nullable(
    object({
      code: text({ examples: ['invalid_client'] }),
      message: text({ examples: ['the client is not known'] }),
    }),
  ),
  redirect: nullable(
    text({
      description: 'Where the browser goes at once',
      examples: ['https://host.example/callback?error=invalid_scope'],
    }),
  ),
  client: nullable(
    object({
      kind: oneOf(['application', 'document', 'registration']),
      name: text({ description: 'The claim of the client', examples: ['Notebook'] }),
      host: nullable(text({ examples: ['host.example'] })),
    }),
  ),
  destination: nullable(
    object({
      kind: oneOf(['web', 'computer', 'program']),
      host: text({ description: 'Host, or the scheme of a program', examples: ['host.example'] }),
      program: nullable(text({ description: 'Name of a known program', examples: ['Cursor'] })),
    }),
  ),
  resource: nullable(object({ address: uri, name: text({ examples: ['demo'] }) })),
  scopes: array(text({ examples: ['tools'] })),
  access: nullable(access),
  fullNeedsLogin: boolean(),
  tools: array(
    object({
      name: text({ examples: ['wallet_get_balance'] }),
      title: nullable(text({ examples: ['Balance'] })),
      description: text({ examples: ['Balances of the wallet'] }),
      destructive: boolean(),
      readOnly: boolean(),
      access: array(access),
    }),
  ),
  account: nullable(
    object({
      userId: idText(),
      nickname: nicknameSchema,
      keyName: nullable(text({ examples: ['Laptop'] })),
      keyType: text({ examples: ['FIDO2'] }),
      loginUtc: utcText(),
    }),
  ),
  challenge: nullable(
    object({
      challengeId: integer(),
      code: text({ examples: ['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'] }),
      expiresUtc: utcText(),
    }),
  ),
});

function requestRoute(deps: ConnectDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/connect/request',
    summary: 'What the page of a request for access shows',
    description:
      'The query is that of `/connect/authorize`, unchanged. Step `error`: client or redirect URI are not good, so nothing is sent there. Step `redirect`: another fault, which the client learns. A metadata document is fetched only with a session.',
    docs: {
      query: object({
        client_id: text({ examples: ['https://host.example/client.json'] }),
        redirect_uri: uri,
        response_type: text({ examples: ['code'] }),
        code_challenge: text({ examples: ['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'] }),
        code_challenge_method: text({ examples: ['S256'] }),
        scope: optional(text({ examples: ['tools'] })),
        state: optional(text({ examples: ['af0ifjsldkj'] })),
        resource: optional(text({ examples: ['https://gate.example/connect/mcp'] })),
      }),
    },
    group: 'connect',
    auth: 'optional',
    ownPagesOnly: true,
    result: consentView,
    handle: (context) => viewConsent(deps, context),
  });
}

function decideRoute(deps: ConnectDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/connect/decide',
    summary: "The person's answer to a request for access",
    description:
      'Taken from pages of the gateway itself alone, with the challenge that `/connect/request` gave for this request, once. The answer is the address that the browser goes to. `access` is what the person chose, narrower or wider than what was asked, and what was asked without it; `full` needs a login of the last 15 minutes.',
    docs: { reads: { Origin: 'required' } },
    group: 'connect',
    auth: 'session',
    body: object({
      request: text({
        maxLength: QUERY_LENGTH_MAX,
        description: 'The query of the page, without `?`',
        examples: ['client_id=…&redirect_uri=…&response_type=code&code_challenge=…'],
      }),
      challengeId: challengeIdSchema,
      code: text({ maxLength: 64, examples: ['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'] }),
      allow: boolean(),
      access: optional(access),
    }),
    result: object({ redirect: text({ examples: ['https://host.example/callback?code=…'] }) }),
    errors: ['ChallengeExpired', 'FreshLoginRequired', 'OAuthInvalidRequest', 'OAuthInvalidClient'],
    handle: async (context) => ({ redirect: await decide(deps, context) }),
  });
}

const tokenAnswer = object({
  access_token: text({ examples: ['kQ0WmYxZJ3v8Tc1Pzq5N2b7Rf4Ls9Dg6Ha0Ue3Iw'] }),
  token_type: text({ examples: ['Bearer'] }),
  expires_in: integer({ examples: [3600] }),
  refresh_token: text({ examples: ['refresh.kQ0WmYxZJ3v8Tc1Pzq5N2b7Rf4Ls9Dg6Ha0Ue3Iw'] }),
  scope: text({ examples: ['tools'] }),
});

function tokenRoute(deps: ConnectDeps): AnyRoute {
  return defineRoute({
    ...open,
    method: 'POST',
    path: '/connect/token',
    summary: 'Exchange a code or a refresh token (RFC 6749 3.2)',
    description:
      'A code is good once for 60 s; used twice, it ends what it gave. A refresh token is rotated at each use. For 60 s after its own replacement a former one still works: the answer has a fresh access token and the newest refresh token. Later it ends the grant.',
    docs: {
      failure,
      body: {
        type: 'application/x-www-form-urlencoded',
        schema: object({
          grant_type: oneOf(['authorization_code', 'refresh_token']),
          client_id: text({ examples: ['https://host.example/client.json'] }),
          code: optional(text({ examples: ['code.kQ0WmYxZJ3v8Tc1'] })),
          code_verifier: optional(text({ examples: ['dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'] })),
          redirect_uri: optional(uri),
          refresh_token: optional(text({ examples: ['refresh.kQ0WmYxZJ3v8Tc1'] })),
          resource: optional(text({ examples: ['https://gate.example/connect/mcp'] })),
          scope: optional(text({ examples: ['tools'] })),
        }),
      },
      answers: { 200: { description: 'The tokens', type: 'application/json', schema: tokenAnswer } },
    },
    bodyMaxBytes: FORM_MAX_BYTES,
    errors: [
      'OAuthInvalidRequest',
      'OAuthInvalidClient',
      'OAuthInvalidGrant',
      'OAuthInvalidScope',
      'OAuthInvalidTarget',
      'OAuthUnsupportedGrantType',
      'AppLimitReached',
      'AccessDenied',
    ],
    handle: async (context) => Reply.json(200, await issueToken(deps, context, readForm(context))),
  });
}

function revokeRoute(deps: ConnectDeps): AnyRoute {
  return defineRoute({
    ...open,
    method: 'POST',
    path: '/connect/revoke',
    summary: 'Give a token back (RFC 7009)',
    description:
      'A refresh token ends its grant and all sessions of it, an access token its own session. Unknown tokens are 200 too.',
    docs: {
      failure,
      body: {
        type: 'application/x-www-form-urlencoded',
        schema: object({
          token: text({ examples: ['refresh.kQ0WmYxZJ3v8Tc1'] }),
          client_id: text({ examples: ['https://host.example/client.json'] }),
          token_type_hint: optional(text({ examples: ['refresh_token'] })),
        }),
      },
      answers: { 200: { description: 'It is good for nothing now' } },
    },
    bodyMaxBytes: FORM_MAX_BYTES,
    errors: ['OAuthInvalidRequest', 'OAuthInvalidClient'],
    async handle(context) {
      await revokeToken(deps, context, readForm(context));
      return Reply.empty();
    },
  });
}

function registerRoute({ policy, sealers, counters }: ConnectDeps): AnyRoute {
  return defineRoute({
    ...open,
    method: 'POST',
    path: '/connect/register',
    summary: 'Register a client (RFC 7591)',
    description:
      'Nothing is stored: the id is the registration, sealed. Redirect URIs that are not allowed are left out, and the answer names the others; 400 where none is left. 403 where `OAuthClients` does not take registrations.',
    docs: {
      failure,
      body: {
        type: 'application/json',
        schema: object({
          redirect_uris: array(uri),
          client_name: optional(text({ examples: ['Notebook'] })),
        }),
      },
      answers: {
        201: {
          description: 'The client',
          type: 'application/json',
          schema: object({
            client_id: text({ examples: ['dcr.kQ0WmYxZJ3v8Tc1'] }),
            client_id_issued_at: integer(),
            client_name: text({ examples: ['Notebook'] }),
            redirect_uris: array(uri),
            token_endpoint_auth_method: text({ examples: ['none'] }),
          }),
        },
      },
    },
    bodyMaxBytes: REGISTRATION_MAX_BYTES,
    errors: ['OAuthInvalidRedirectUri', 'OAuthInvalidClientMetadata', 'OAuthRegistrationOff'],
    handle({ header, rawBody, nowMs }) {
      if (!takesRegistrations(policy))
        throw new GatewayError(
          'OAuthRegistrationOff',
          'use a client-id metadata document, or a registered one',
        );
      if (!JSON_TYPE.test(header('content-type') ?? ''))
        throw new GatewayError('OAuthInvalidClientMetadata', 'Content-Type is application/json');
      const registered = register(sealers, policy.redirects.registration, rawBody, nowMs);
      counters.registered();
      return Reply.json(201, registered);
    },
  });
}
