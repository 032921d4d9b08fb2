/**
 * Login at another MCP server with OAuth 2.1, by the official client library: its authorization server is found, the gateway is a
 * client there, and a person's code becomes tokens. Every address that the server names goes through `Outside`.
 */
import type { AuthorizationServerMetadata, OAuthTokens } from '@modelcontextprotocol/client';
import type { McpServerLogin } from '../../../domain/config/mcp-servers.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import { CLIENT_DOCUMENT_PATH, clientDocument, type GatewayClient } from './client-document.ts';
import { type Outside, OutsideFailure } from './outside-fetch.ts';
import type { LoginClient, LoginFlow, LoginServer, OAuthSecret } from './secrets.ts';

/** Characters of one token: a header of 8 KiB is what servers take. */
const TOKEN_MAX = 8 * 1024;
const TOKEN = /^[\x21-\x7e]+$/;
/** Errors of a token request that say that the grant or the client is over (RFC 6749 5.2). */
const OVER: ReadonlySet<string> = new Set(['invalid_grant', 'invalid_client', 'unauthorized_client']);

/** One sentence for the person. */
export class LoginFailure extends Error {}

/** The grant is over: the person has to log in again. */
export class GrantOver extends Error {}

interface IssuedTokens {
  readonly secret: OAuthSecret;
  readonly expiresMs: number | null;
}

const library = () => import('@modelcontextprotocol/client');

/** Returns the address to which the browser goes, and the values that the answer needs. `state`: of this login. */
export async function beginLogin(
  outside: Outside,
  { url, client: given }: McpServerLogin,
  gateway: GatewayClient,
  state: string,
): Promise<{ readonly address: string; readonly flow: LoginFlow }> {
  return explained(async () => {
    const { startAuthorization } = await library();
    const { server, resource, scope, metadata } = await discover(outside, url);
    const client = given ? clientOf(given) : await ownClient(outside, metadata, server, gateway, scope);
    const { authorizationUrl, codeVerifier } = await startAuthorization(server.address, {
      metadata,
      clientInformation: client,
      redirectUrl: gateway.redirectUri,
      ...(scope === undefined ? {} : { scope }),
      ...(resource === null ? {} : { resource }),
      state,
    });
    await outside.check(authorizationUrl.href);
    return { address: authorizationUrl.href, flow: { verifier: codeVerifier, client, server, resource } };
  });
}

function clientOf({ id, secret }: { readonly id: string; readonly secret?: string }): LoginClient {
  return { client_id: id, ...(secret === undefined ? {} : { client_secret: secret }) };
}

/** The challenge of a request without a token, metadata of the resource, then that of its authorization server. */
async function discover(outside: Outside, url: string) {
  const {
    discoverAuthorizationServerMetadata,
    discoverOAuthProtectedResourceMetadata,
    extractWWWAuthenticateParams,
    selectResourceURL,
  } = await library();
  const challenge = extractWWWAuthenticateParams(await outside.fetch(url, PROBE));
  const { resourceMetadataUrl } = challenge;
  const named = resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl };
  const resourceMetadata = await discoverOAuthProtectedResourceMetadata(url, named, outside.fetch).catch(
    // Servers of 2025-03-26 have none. An address that is not allowed ends the login.
    (error: unknown) => {
      if (error instanceof OutsideFailure) throw error;
      return undefined;
    },
  );
  const address = resourceMetadata?.authorization_servers?.[0] ?? new URL('/', url).href;
  const metadata = await discoverAuthorizationServerMetadata(address, { fetchFn: outside.fetch });
  if (metadata === undefined) throw new LoginFailure('the server offers no login; a personal token may work');
  const resource = await selectResourceURL(url, WITHOUT_RULES, resourceMetadata);
  const scope = scopeOf(challenge.scope ?? resourceMetadata?.scopes_supported?.join(' '), metadata);
  return {
    server: { address, metadata: keptOf(metadata) },
    resource: resource?.href ?? null,
    scope,
    metadata,
  };
}

/** `selectResourceURL` asks a provider only for a rule of its own. */
const WITHOUT_RULES = {} as Parameters<Awaited<ReturnType<typeof library>>['selectResourceURL']>[1];

/** Any request shows the challenge; this one a server understands. */
const PROBE: RequestInit = {
  method: 'POST',
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'gatehouse', version: '0' },
    },
  }),
};

/** Without `offline_access` some servers give no refresh token. */
function scopeOf(
  asked: string | undefined,
  { scopes_supported }: AuthorizationServerMetadata,
): string | undefined {
  if (asked === undefined || asked === '') return undefined;
  const wants = scopes_supported?.includes('offline_access') === true;
  return wants && !asked.split(' ').includes('offline_access') ? `${asked} offline_access` : asked;
}

/** Members that a token request needs later. */
function keptOf(metadata: AuthorizationServerMetadata): LoginServer['metadata'] {
  const kept = [
    'issuer',
    'authorization_endpoint',
    'token_endpoint',
    'response_types_supported',
    'token_endpoint_auth_methods_supported',
    'authorization_response_iss_parameter_supported',
  ];
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => kept.includes(key)));
}

/** The own metadata document where the server fetches one, else a registration. */
async function ownClient(
  outside: Outside,
  metadata: AuthorizationServerMetadata,
  server: LoginServer,
  gateway: GatewayClient,
  scope: string | undefined,
): Promise<LoginClient> {
  const takesDocuments = metadata['client_id_metadata_document_supported'] === true;
  if (takesDocuments && gateway.baseUrl.startsWith('https:'))
    return { client_id: `${gateway.baseUrl}${CLIENT_DOCUMENT_PATH}` };
  if (metadata.registration_endpoint === undefined)
    throw new LoginFailure('the server takes no new clients; a personal token may work');
  const { registerClient } = await library();
  const { client_id: _, ...clientMetadata } = clientDocument(gateway);
  const registered = await registerClient(server.address, {
    metadata,
    clientMetadata: { ...clientMetadata, ...(scope === undefined ? {} : { scope }) },
    fetchFn: outside.fetch,
  });
  return { client_id: registered.client_id, client_secret: registered.client_secret };
}

/** `iss` of the answer is compared with the issuer (RFC 9207) before the code is sent anywhere. */
export async function exchangeCode(
  outside: Outside,
  { verifier, client, server, resource }: LoginFlow,
  { code, iss }: { readonly code: string; readonly iss: string | undefined },
  redirectUri: string,
  nowMs: number,
): Promise<IssuedTokens> {
  return explained(async () => {
    const { exchangeAuthorization } = await library();
    const tokens = await exchangeAuthorization(server.address, {
      metadata: server.metadata as AuthorizationServerMetadata,
      clientInformation: client,
      authorizationCode: code,
      ...(iss === undefined ? {} : { iss }),
      codeVerifier: verifier,
      redirectUri,
      ...(resource === null ? {} : { resource }),
      fetchFn: outside.fetch,
    });
    return issued(tokens, { client, server, resource }, null, nowMs);
  });
}

/** Rejects with `GrantOver`, or with any other failure after which the refresh token may still work. */
export async function refreshTokens(
  outside: Outside,
  secret: OAuthSecret,
  nowMs: number,
): Promise<IssuedTokens> {
  const { OAuthError, refreshAuthorization } = await library();
  const { client, server, resource, refresh } = secret;
  if (refresh === null) throw new GrantOver();
  try {
    const tokens = await refreshAuthorization(server.address, {
      metadata: server.metadata as AuthorizationServerMetadata,
      clientInformation: client,
      refreshToken: refresh,
      ...(resource === null ? {} : { resource }),
      fetchFn: outside.fetch,
    });
    return issued(tokens, { client, server, resource }, refresh, nowMs);
  } catch (error) {
    if (error instanceof OAuthError && OVER.has(error.code)) throw new GrantOver();
    throw error;
  }
}

function issued(
  { access_token: access, refresh_token, token_type, expires_in }: OAuthTokens,
  part: Pick<OAuthSecret, 'client' | 'server' | 'resource'>,
  formerRefresh: string | null,
  nowMs: number,
): IssuedTokens {
  const refresh = refresh_token ?? formerRefresh;
  const isGood = isToken(access) && (refresh === null || refresh.length <= TOKEN_MAX);
  if (!isGood || token_type.toLowerCase() !== 'bearer')
    throw new LoginFailure('the server gave a token of another form');
  const seconds = expires_in === undefined || !Number.isFinite(expires_in) ? null : Math.max(0, expires_in);
  return {
    secret: { access, refresh, ...part },
    expiresMs: seconds === null ? null : nowMs + Math.min(seconds, EXPIRES_MAX_SECONDS) * SECOND_MS,
  };
}

/** A hundred years: a time stays a safe integer. */
const EXPIRES_MAX_SECONDS = 100 * 366 * 86_400;

/** True if the text can be part of a header. */
export function isToken(text: string): boolean {
  return text.length <= TOKEN_MAX && TOKEN.test(text);
}

/** Errors of the library and of the other side become one sentence: their texts are those of the server. */
async function explained<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof LoginFailure) throw error;
    if (error instanceof OutsideFailure) throw new LoginFailure(error.message);
    const { IssuerMismatchError, OAuthError, RegistrationRejectedError } = await library();
    if (error instanceof IssuerMismatchError)
      throw new LoginFailure('the answer is of another authorization server');
    if (error instanceof RegistrationRejectedError)
      throw new LoginFailure('the server did not register this gateway; a personal token may work');
    if (error instanceof OAuthError) throw new LoginFailure('the server refused the login');
    if (error instanceof Error && !(error instanceof ReferenceError))
      throw new LoginFailure('the login of the server has a fault', { cause: error });
    throw error;
  }
}
