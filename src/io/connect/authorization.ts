/**
 * Reads the request of a host for access (RFC 6749 4.1.1, with PKCE, resource indicators and client-id metadata). Until client
 * and redirect URI are good, a fault is shown and never sent anywhere; later ones go to the redirect URI.
 */
import { type ErrorName, errorRow, GatewayError } from '../../domain/errors.ts';
import { decodeBase64url } from '../../domain/ids.ts';
import {
  answerAddress,
  type Destination,
  isSameRedirect,
  judgeRedirect,
} from '../../domain/oauth/clients.ts';
import { readScopes } from '../../domain/oauth/scopes.ts';
import type { RouteContext } from '../http/table/route.ts';
import { CLIENT_ID_MAX, type OAuthClient, type OAuthClientRegistry } from './clients.ts';
import type { OAuthPolicy } from './policy.ts';
import { CONNECT_PATH, type Resource, type Resources, resourceOfAddress } from './resources.ts';

/** Bytes of a SHA-256, which is what an S256 challenge encodes. */
const CHALLENGE_BYTES = 32;
const STATE_LENGTH_MAX = 4_096;

export interface AuthorizationDeps {
  readonly clients: OAuthClientRegistry;
  readonly resources: Resources;
  readonly policy: OAuthPolicy;
}

/** A good request: a person may be asked. */
export interface AuthorizationRequest {
  readonly client: OAuthClient;
  readonly redirectUri: string;
  readonly destination: Destination;
  readonly resource: Resource;
  readonly scopes: readonly string[];
  readonly challenge: string;
  readonly state: string | undefined;
}

type AuthorizationResult =
  | { readonly step: 'ready'; readonly request: AuthorizationRequest }
  /** Client and redirect URI are good, something else is not: the host learns it there. */
  | { readonly step: 'redirect'; readonly redirect: string; readonly error: ErrorName }
  /**
   * A metadata document is not fetched before a login. No fault goes to a redirect URI that anybody registered either: a link
   * to the gateway would lead people elsewhere (RFC 9700 4.11.2).
   */
  | { readonly step: 'login'; readonly client: ShownClient };

export type ShownClient = Pick<OAuthClient, 'kind' | 'name' | 'host'>;

type Fields = ReadonlyMap<string, string>;
type Context = Pick<RouteContext, 'site' | 'header' | 'actors' | 'session' | 'holder'>;

/** Throws `OAuthInvalidRequest`, `OAuthInvalidClient` and `AccessRateLimit` for what no redirect may follow from. */
export async function readAuthorization(
  deps: AuthorizationDeps,
  context: Context,
  query: string,
): Promise<AuthorizationResult> {
  const fields = readFields(query);
  const clientId = required(fields, 'client_id', CLIENT_ID_MAX);
  const { session, actors, holder } = context;
  const named = deps.clients.named(actors, clientId);
  if (named.kind === 'document' && session === undefined)
    return loginFor({ kind: 'document', name: '', host: named.host });
  const client = await deps.clients.find(actors, clientId, holder);
  const redirectUri = required(fields, 'redirect_uri', STATE_LENGTH_MAX);
  // Again: a registration may be older than the rules.
  const judged = judgeRedirect(redirectUri, deps.policy.redirects[client.kind]);
  const isKnown = client.redirectUris.some((known) => isSameRedirect(known, redirectUri));
  if (!judged.ok || !isKnown)
    throw new GatewayError('OAuthInvalidRequest', 'redirect_uri is not one that the client registered');
  const state = fields.get('state');
  try {
    const asked = readAsked(deps, context, fields);
    return {
      step: 'ready',
      request: { client, redirectUri, destination: judged.destination, state, ...asked },
    };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    if (client.kind === 'registration' && session === undefined) return loginFor(client);
    const { oauth } = errorRow(error.row);
    const fault = { error: oauth ?? 'invalid_request', error_description: error.detail };
    return { step: 'redirect', redirect: answerTo(context, redirectUri, state, fault), error: error.row };
  }
}

function loginFor({ kind, name, host }: ShownClient): AuthorizationResult {
  return { step: 'login', client: { kind, name, host } };
}

/** The address of an answer, with `state` as it came and the issuer (RFC 9207). */
export function answerTo(
  { site }: Pick<RouteContext, 'site'>,
  redirectUri: string,
  state: string | undefined,
  fields: Readonly<Record<string, string | undefined>>,
): string {
  return answerAddress(redirectUri, { ...fields, state, iss: site.issuer });
}

function readAsked(
  { resources }: AuthorizationDeps,
  context: Context,
  fields: Fields,
): Pick<AuthorizationRequest, 'resource' | 'scopes' | 'challenge'> {
  if (fields.get('response_type') !== 'code') refuse('OAuthUnsupportedResponseType', 'response_type is code');
  if ((fields.get('response_mode') ?? 'query') !== 'query')
    refuse('OAuthInvalidRequest', 'response_mode is query');
  if (fields.has('request') || fields.has('request_uri'))
    refuse('OAuthInvalidRequest', 'request objects are not read');
  const challenge = fields.get('code_challenge') ?? '';
  if (
    fields.get('code_challenge_method') !== 'S256' ||
    decodeBase64url(challenge, CHALLENGE_BYTES) === undefined
  )
    refuse('OAuthInvalidRequest', 'PKCE with S256 is required');
  // A client can be impersonated, so the person is asked every time.
  if (fields.get('prompt')?.split(' ').includes('none'))
    refuse('OAuthConsentRequired', 'the person is asked every time');
  const address = fields.get('resource');
  const resource =
    address === undefined
      ? resources.find(CONNECT_PATH)
      : resourceOfAddress(context.site, resources, address);
  if (resource === undefined) return refuse('OAuthInvalidTarget', 'resource is no address of this gateway');
  const scopes = readScopes(fields.get('scope'));
  if (scopes === undefined) return refuse('OAuthInvalidScope', 'scopes are read, tools, full');
  return { resource, scopes, challenge };
}

function refuse(row: ErrorName, detail: string): never {
  throw new GatewayError(row, detail);
}

/** Parameters, each once (RFC 6749 3.1). */
function readFields(query: string): Fields {
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (fields.has(name)) refuse('OAuthInvalidRequest', `${name.slice(0, 64)} is sent twice`);
    if (value !== '') fields.set(name, value);
  }
  if ((fields.get('state')?.length ?? 0) > STATE_LENGTH_MAX)
    refuse('OAuthInvalidRequest', `state has more than ${STATE_LENGTH_MAX} characters`);
  return fields;
}

function required(fields: Fields, name: string, lengthMax: number): string {
  const value = fields.get(name);
  if (value === undefined) return refuse('OAuthInvalidRequest', `${name} is required`);
  if (value.length > lengthMax) return refuse('OAuthInvalidRequest', `${name} is too long`);
  return value;
}
