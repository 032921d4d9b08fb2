/** Tokens of connected hosts: the exchange of a code, the refresh, and the revocation (RFC 6749, 7636, 7009, 8707). */
import { hash } from 'node:crypto';
import { user } from '../../actors/accounts/user.ts';
import type { IssuedAccess } from '../../actors/accounts/user-grants.ts';
import { GatewayError } from '../../domain/errors.ts';
import { isWithin, readScopes } from '../../domain/oauth/scopes.ts';
import { originOf } from '../accounts/login-parts.ts';
import { indexEntryOf, ownerOf } from '../http/checks/session-lookup.ts';
import type { RouteContext } from '../http/table/route.ts';
import type { OAuthClientRegistry } from './clients.ts';
import type { ConnectCounters } from './counters.ts';
import { type Form, requireField } from './form.ts';
import { type Resources, resourceOfAddress } from './resources.ts';
import { digest, type Sealers } from './sealed.ts';

/** RFC 7636 4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

export interface TokenDeps {
  readonly clients: OAuthClientRegistry;
  readonly resources: Resources;
  readonly sealers: Sealers;
  readonly counters: ConnectCounters;
}

type Context = RouteContext<unknown, unknown>;

/** RFC 6749 5.1. */
interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: 'Bearer';
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly scope: string;
}

export async function issueToken(deps: TokenDeps, context: Context, form: Form): Promise<TokenAnswer> {
  const grantType = requireField(form, 'grant_type');
  try {
    requirePublic(context, form);
    if (grantType === 'authorization_code') return await exchangeCode(deps, context, form);
    if (grantType === 'refresh_token') return await refresh(deps, context, form);
    throw new GatewayError('OAuthUnsupportedGrantType', 'grant types are authorization_code, refresh_token');
  } catch (error) {
    if (error instanceof GatewayError) deps.counters.token('refused');
    throw error;
  }
}

/** Clients have no secret, so one that sends one is not the client that was registered here. */
function requirePublic({ header }: Context, form: Form): void {
  const sent =
    header('authorization') !== undefined || form.has('client_secret') || form.has('client_assertion');
  if (sent) throw new GatewayError('OAuthInvalidClient', 'client authentication is not offered');
}

async function exchangeCode(deps: TokenDeps, context: Context, form: Form): Promise<TokenAnswer> {
  const { actors } = context;
  const clientId = requireField(form, 'client_id');
  const sealed = requireField(form, 'code');
  const verifier = requireField(form, 'code_verifier');
  deps.clients.named(actors, clientId);
  const code = deps.sealers.codes.open(sealed);
  if (code === undefined) throw new GatewayError('OAuthInvalidGrant', 'the code is not known');
  const { host } = code;
  if (host.clientKey !== digest(clientId))
    throw new GatewayError('OAuthInvalidGrant', 'the code was issued to another client');
  if ((form.get('redirect_uri') ?? code.redirectUri) !== code.redirectUri)
    throw new GatewayError('OAuthInvalidGrant', 'redirect_uri is not that of the request');
  if (!VERIFIER.test(verifier) || hash('sha256', verifier, 'base64url') !== code.challenge)
    throw new GatewayError('OAuthInvalidGrant', 'code_verifier does not fit');
  requireResource(deps, context, form, host.audience);
  const grant = { userId: code.userId, codeId: code.id, appId: host.appId };
  const refreshToken = deps.sealers.refreshTokens.fresh(grant);
  const issued = await actors.ask(user, code.userId, {
    type: 'openGrant',
    codeId: code.id,
    endsMs: code.endsMs,
    host,
    sessionId: code.sessionId,
    keyId: code.keyId,
    refreshHash: digest(refreshToken),
    indexEntry: indexEntryOf(actors, host.appId),
    origin: originOf(context),
  });
  deps.counters.token('opened');
  return answerOf(issued, refreshToken);
}

async function refresh(deps: TokenDeps, context: Context, form: Form): Promise<TokenAnswer> {
  const { actors } = context;
  const clientId = requireField(form, 'client_id');
  const presented = requireField(form, 'refresh_token');
  deps.clients.named(actors, clientId);
  const token = deps.sealers.refreshTokens.open(presented);
  if (token === undefined) throw new GatewayError('OAuthInvalidGrant', 'the refresh token is not known');
  const { userId, codeId, appId } = token;
  const grants = await actors.query(user, userId, { type: 'grants' });
  const grant = grants.find((each) => each.codeId === codeId);
  if (grant !== undefined) requireResource(deps, context, form, grant.audience);
  const scopes = grant === undefined ? undefined : narrowed(form, grant.scopes);
  const next = new Map(deps.sealers.refreshTokens.successors(token).map((each) => [digest(each), each]));
  const [nextHash = ''] = next.keys();
  const issued = await actors.ask(user, userId, {
    type: 'refreshGrant',
    codeId,
    clientKey: digest(clientId),
    presentedHash: digest(presented),
    nextHash,
    nextHashes: [...next.keys()],
    ...(scopes === undefined ? {} : { scopes }),
    indexEntry: indexEntryOf(actors, appId),
    origin: originOf(context),
  });
  const refreshToken = next.get(issued.refreshHash ?? nextHash);
  if (refreshToken === undefined) throw new Error('the newest refresh token does not follow from this one');
  deps.counters.token('refreshed');
  return answerOf(issued, refreshToken);
}

/** A token is never issued for another resource than the one that was consented to (RFC 8707 2.2). */
function requireResource({ resources }: TokenDeps, context: Context, form: Form, audience: string): void {
  const address = form.get('resource');
  if (address !== undefined && resourceOfAddress(context.site, resources, address)?.path !== audience)
    throw new GatewayError('OAuthInvalidTarget', 'resource is not that of the grant');
}

/** RFC 6749 6: at most what was granted. Undefined: all of it. */
function narrowed(form: Form, granted: readonly string[]): readonly string[] | undefined {
  if (!form.has('scope')) return undefined;
  const scopes = readScopes(form.get('scope'));
  if (scopes === undefined || !isWithin(scopes, granted))
    throw new GatewayError('OAuthInvalidScope', 'scope is wider than what was granted');
  return scopes;
}

function answerOf({ token, expiresInSeconds, scopes }: IssuedAccess, refreshToken: string): TokenAnswer {
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in: expiresInSeconds,
    refresh_token: refreshToken,
    scope: scopes.join(' '),
  };
}

/** Ends the grant of a refresh token, or the session of an access token. Unknown tokens are no error (RFC 7009 2.2). */
export async function revokeToken(deps: TokenDeps, context: Context, form: Form): Promise<void> {
  const { actors } = context;
  requirePublic(context, form);
  const sent = requireField(form, 'token');
  const clientKey = digest(requireField(form, 'client_id'));
  const origin = originOf(context);
  const token = deps.sealers.refreshTokens.open(sent);
  if (token !== undefined) {
    const grant = { codeId: token.codeId, clientKey };
    await actors.ask(user, token.userId, { type: 'endGrant', grant, origin }).catch(unlessGone);
    return;
  }
  const owner = ownerOf(actors, 'mcp', sent);
  if (owner === undefined) return;
  const { userId, sessionId } = owner;
  const grants = await actors.query(user, userId, { type: 'grants' });
  const isOwn = grants.some((grant) => grant.clientKey === clientKey && grant.sessionIds.includes(sessionId));
  if (isOwn) await actors.ask(user, userId, { type: 'endSession', sessionId, origin });
}

function unlessGone(error: unknown): void {
  if (!(error instanceof GatewayError) || error.row !== 'NotFound') throw error;
}
