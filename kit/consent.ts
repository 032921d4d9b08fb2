/** A person in front of the page of a request for access, without the page: what it asks and what it sends. */
import { createHash, randomBytes } from 'node:crypto';
import { type Answer, expectOk, type Json, type Person, request } from './agent.ts';

/** Agrees, and returns where the browser goes. */
export async function agree(url: string, person: Person, authorizeUrl: string | URL): Promise<URL> {
  const query = new URL(authorizeUrl).search.slice(1);
  const headers = { Cookie: person.cookie, Origin: new URL(url).origin };
  const shown = expectOk('request', await request(`${url}/connect/request?${query}`, { headers }));
  const view = shown.json['result'] as Json;
  const { challengeId, code } = (view['challenge'] ?? {}) as Json;
  if (challengeId === undefined) throw new Error(`no consent is asked for: ${shown.text}`);
  const body = { request: query, challengeId, code, allow: true };
  const decided = expectOk('decide', await request(`${url}/connect/decide`, { headers, body }));
  return new URL(String((decided.json['result'] as Json)['redirect']));
}

export interface ConnectedHost {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly sessions: number;
}

export async function hostsOf(url: string, person: Person): Promise<ConnectedHost[]> {
  const headers = { Cookie: person.cookie };
  const answer = expectOk('connected_hosts', await request(`${url}/auth/v1/connected_hosts`, { headers }));
  return answer.json['result'] as unknown as ConnectedHost[];
}

export async function disconnect(url: string, person: Person): Promise<void> {
  const headers = { Cookie: person.cookie };
  for (const { id } of await hostsOf(url, person)) {
    const body = { id };
    expectOk('revoke', await request(`${url}/auth/v1/connected_hosts/revoke`, { headers, body }));
  }
}

/** Ends an access token and not its grant, as its hour does (RFC 7009). */
export async function endAccess(url: string, clientId: string, token: string): Promise<void> {
  expectOk('revoke', await postForm(`${url}/connect/revoke`, { token, client_id: clientId }));
}

/** Never opened: the tests read where the browser would go. */
const CALLBACK = 'http://127.0.0.1:33418/callback';

/** A host that the person agreed to: its access token, for one address alone. */
export async function connectHost(url: string, person: Person, path = '/connect/mcp'): Promise<string> {
  const clientId = await registerClient(url, 'Test host', CALLBACK);
  const verifier = randomBytes(32).toString('base64url');
  const asked = new URL('/connect/authorize', url);
  asked.search = new URLSearchParams({
    client_id: clientId,
    redirect_uri: CALLBACK,
    response_type: 'code',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    scope: 'tools',
    resource: `${url}${path}`,
  }).toString();
  const callback = await agree(url, person, asked);
  const answer = await postForm(`${url}/connect/token`, {
    grant_type: 'authorization_code',
    client_id: clientId,
    redirect_uri: CALLBACK,
    code: callback.searchParams.get('code') ?? '',
    code_verifier: verifier,
  });
  return String(expectOk('token', answer).json['access_token']);
}

/** Registers a public client (RFC 7591); its id. */
export async function registerClient(url: string, name: string, redirectUri: string): Promise<string> {
  const body = { client_name: name, redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' };
  const answer = await request(`${url}/connect/register`, { body });
  if (answer.status !== 201) expectOk('register', answer);
  return String(answer.json['client_id']);
}

function postForm(url: string, fields: Readonly<Record<string, string>>): Promise<Answer> {
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  return request(url, { headers, body: new URLSearchParams(fields).toString() });
}
