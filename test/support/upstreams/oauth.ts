/**
 * Another MCP server whose people log in (OAuth 2.1), with its authorization server at the same address. What each of its
 * accounts may see says whose it is.
 */
import { createHash, randomBytes } from 'node:crypto';
import type http from 'node:http';
import { json, resultOf, startUpstream, type UpstreamFixture } from './server.ts';

interface Grant {
  readonly account: string;
  refresh: string;
}

interface Code {
  readonly account: string;
  readonly challenge: string;
  readonly redirectUri: string;
}

export interface OAuthUpstream extends UpstreamFixture {
  readonly origin: string;
  /** Accounts by access token. Tests add personal tokens. */
  readonly tokens: Map<string, string>;
  /** Requests of the token endpoint: their parameters. */
  readonly askedTokens: URLSearchParams[];
  readonly registered: Record<string, unknown>[];
  /** Members that replace those of the metadata of the authorization server. */
  metadata: Record<string, unknown>;
  /** The same of the resource; undefined: it has none. */
  resourceMetadata: Record<string, unknown> | undefined;
  expiresInSeconds: number;
  /** Answers a refresh in place of the rotation. */
  onRefresh: ((answer: () => void, response: http.ServerResponse) => void) | undefined;
  /** Acts as the browser there: the person allows it. Resolves with the address it goes back to. */
  allow(address: string, account: string): URL;
  /** All access tokens are over. */
  expireTokens(): void;
  /** All refresh tokens are too. */
  endGrants(): void;
}

const random = () => randomBytes(16).toString('hex');

export async function startOAuthUpstream(tools: unknown[]): Promise<OAuthUpstream> {
  const upstream = await startUpstream(tools);
  const { origin } = new URL(upstream.url);
  const codes = new Map<string, Code>();
  const grants: Grant[] = [];
  const fixture: OAuthUpstream = Object.assign(upstream, {
    origin,
    tokens: new Map<string, string>(),
    askedTokens: [],
    registered: [],
    metadata: {},
    resourceMetadata: {},
    expiresInSeconds: 3600,
    onRefresh: undefined,
    allow: (address: string, account: string) => allowed(codes, origin, address, account),
    expireTokens: () => fixture.tokens.clear(),
    endGrants: () => void grants.splice(0),
  });
  const isRefused = guardOf(fixture);
  fixture.lists = { 'prompts/list': {}, 'resources/list': {} };
  upstream.onRequest = (request, response, body) => {
    const path = request.url ?? '';
    if (path === '/mcp') return isRefused(request, response, body);
    if (path.startsWith('/authorize?')) {
      const { href } = fixture.allow(origin + path, 'visitor');
      response.writeHead(302, { location: href }).end();
    } else if (path === '/token') answerToken(fixture, codes, grants, new URLSearchParams(body), response);
    else if (path === '/register') {
      const asked = JSON.parse(body) as Record<string, unknown>;
      fixture.registered.push(asked);
      json(response, JSON.stringify({ ...asked, client_id: `c${fixture.registered.length}` }), 201);
    } else {
      const document = documentOf(fixture, path);
      json(response, JSON.stringify(document ?? {}), document === undefined ? 404 : 200);
    }
    return true;
  };
  return fixture;
}

function allowed(codes: Map<string, Code>, origin: string, address: string, account: string): URL {
  const { searchParams: asked } = new URL(address);
  const code = random();
  const redirectUri = asked.get('redirect_uri') ?? '';
  codes.set(code, { account, challenge: asked.get('code_challenge') ?? '', redirectUri });
  const back = new URL(redirectUri);
  back.searchParams.set('code', code);
  back.searchParams.set('state', asked.get('state') ?? '');
  back.searchParams.set('iss', origin);
  return back;
}

function documentOf(fixture: OAuthUpstream, path: string): Record<string, unknown> | undefined {
  const { origin, url, metadata, resourceMetadata } = fixture;
  if (path === '/.well-known/oauth-protected-resource/mcp')
    return (
      resourceMetadata && {
        resource: url,
        authorization_servers: [origin],
        scopes_supported: ['read'],
        ...resourceMetadata,
      }
    );
  if (path !== '/.well-known/oauth-authorization-server') return undefined;
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    ...metadata,
  };
}

function answerToken(
  fixture: OAuthUpstream,
  codes: Map<string, Code>,
  grants: Grant[],
  asked: URLSearchParams,
  response: http.ServerResponse,
): void {
  fixture.askedTokens.push(asked);
  const issue = (grant: Grant | undefined) => {
    if (grant === undefined) return json(response, '{"error":"invalid_grant"}', 400);
    const access = random();
    fixture.tokens.set(access, grant.account);
    const answer = {
      access_token: access,
      token_type: 'Bearer',
      expires_in: fixture.expiresInSeconds,
      refresh_token: grant.refresh,
    };
    json(response, JSON.stringify(answer));
  };
  if (asked.get('grant_type') === 'refresh_token') {
    const answer = () => {
      const grant = grants.find(({ refresh }) => refresh === asked.get('refresh_token'));
      if (grant !== undefined) grant.refresh = random();
      issue(grant);
    };
    if (fixture.onRefresh === undefined) answer();
    else fixture.onRefresh(answer, response);
    return;
  }
  const code = codes.get(asked.get('code') ?? '');
  codes.delete(asked.get('code') ?? '');
  const proof = createHash('sha256')
    .update(asked.get('code_verifier') ?? '')
    .digest('base64url');
  const isGood = code?.challenge === proof && code.redirectUri === asked.get('redirect_uri');
  const grant = isGood ? { account: code.account, refresh: random() } : undefined;
  if (grant !== undefined) grants.push(grant);
  issue(grant);
}

const ANSWERS: Readonly<Record<string, (account: string) => object>> = {
  'tools/call': (account) => ({ content: [{ type: 'text', text: account }] }),
  'resources/read': (account) => ({ contents: [{ uri: 'memo://mine', text: account }] }),
  'prompts/get': (account) => ({ messages: [{ role: 'user', content: { type: 'text', text: account } }] }),
  'prompts/list': (account) => ({ prompts: [{ name: `of-${account}` }] }),
  'resources/list': (account) => ({ resources: [{ uri: `memo://${account}`, name: account }] }),
};

/** A token is good for the sessions of its account alone. */
function guardOf({ tokens }: OAuthUpstream) {
  const sessions = new Map<string, string>();
  return (request: http.IncomingMessage, response: http.ServerResponse, body: string): boolean => {
    const account = tokens.get(request.headers.authorization?.replace(/^Bearer /, '') ?? '');
    if (account === undefined) {
      response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' });
      response.end();
      return true;
    }
    const session = request.headers['mcp-session-id'];
    if (typeof session === 'string') {
      const owner = sessions.get(session) ?? account;
      sessions.set(session, owner);
      if (owner !== account) throw new Error(`session of ${owner} with the token of ${account}`);
    }
    if (request.method !== 'POST') return false;
    const message = JSON.parse(body) as { id?: unknown; method?: string };
    const answer = ANSWERS[message.method ?? ''];
    if (answer === undefined) return false;
    json(response, resultOf(JSON.stringify(message.id), JSON.stringify(answer(account))));
    return true;
  };
}
