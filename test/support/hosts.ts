/**
 * A host and a person's browser as clients of /connect: register, ask for access, decide as the page does, exchange, refresh.
 * Only public endpoints.
 */
import { createHash, randomBytes } from 'node:crypto';
import { type Answer, expectOk, request } from '../../kit/agent.ts';

/** Redirect URI of a test host, which is never called. */
export const REDIRECT_URI = 'http://127.0.0.1:33418/callback';

export interface HostClient {
  readonly clientId: string;
  readonly redirectUri: string;
  /** PKCE. */
  readonly verifier: string;
}

export interface HostTokens {
  readonly access: string;
  readonly refresh: string;
}

export async function registerHost(
  url: string,
  name = 'Notebook',
  redirectUri = REDIRECT_URI,
): Promise<HostClient> {
  const body = { client_name: name, redirect_uris: [redirectUri] };
  const answer = await request(`${url}/connect/register`, { body });
  if (answer.status !== 201) expectOk('register', answer);
  return hostClient(String(answer.json['client_id']), redirectUri);
}

export function hostClient(clientId: string, redirectUri = REDIRECT_URI): HostClient {
  return { clientId, redirectUri, verifier: randomBytes(32).toString('base64url') };
}

/** The query of the page. `changes`: fields to add, replace, or leave out (undefined). */
export function authorizeQuery(
  host: HostClient,
  changes: Readonly<Record<string, string | undefined>> = {},
): string {
  const fields = {
    response_type: 'code',
    client_id: host.clientId,
    redirect_uri: host.redirectUri,
    code_challenge: createHash('sha256').update(host.verifier).digest('base64url'),
    code_challenge_method: 'S256',
    scope: 'tools',
    state: 'as it came',
    ...changes,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) query.set(name, value);
  return String(query);
}

/** Asks for the request that the page receives. */
export function askRequest(url: string, cookie: string | undefined, query: string): Promise<Answer> {
  const headers = { origin: url, ...(cookie === undefined ? {} : { cookie }) };
  return request(`${url}/connect/request?${query}`, { headers });
}

/** The part of a view that a decision repeats. */
export function challengeOfView({ json }: Answer): { challengeId: unknown; code: unknown } {
  const challenge = json['result']?.['challenge'];
  return { challengeId: challenge?.['challengeId'], code: challenge?.['code'] };
}

/** Decides as the page does; the answer has the address that the browser goes to. */
export async function decideRequest(
  url: string,
  cookie: string,
  query: string,
  allow = true,
  access?: string,
): Promise<Answer> {
  const shown = expectOk('request', await askRequest(url, cookie, query));
  const body = { request: query, ...challengeOfView(shown), allow, ...(access && { access }) };
  return request(`${url}/connect/decide`, { headers: { cookie, origin: url }, body });
}

/** Consents, and returns the code. `access`: what the person chooses; without it what was asked. */
export async function consent(url: string, cookie: string, query: string, access?: string): Promise<string> {
  const decided = expectOk('decide', await decideRequest(url, cookie, query, true, access));
  const redirect = new URL(String(decided.json['result']?.['redirect']));
  return redirect.searchParams.get('code') ?? '';
}

export function sendForm(address: string, fields: Readonly<Record<string, string>>): Promise<Answer> {
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  return request(address, { headers, body: String(new URLSearchParams(fields)) });
}

export function exchange(
  url: string,
  host: HostClient,
  code: string,
  changes: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return sendForm(`${url}/connect/token`, {
    grant_type: 'authorization_code',
    client_id: host.clientId,
    redirect_uri: host.redirectUri,
    code_verifier: host.verifier,
    code,
    ...changes,
  });
}

export function refreshTokens(
  url: string,
  host: HostClient,
  refresh: string,
  changes: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const fields = { grant_type: 'refresh_token', client_id: host.clientId, refresh_token: refresh };
  return sendForm(`${url}/connect/token`, { ...fields, ...changes });
}

export function tokensOf(answer: Answer): HostTokens {
  const { json } = expectOk('token', answer);
  return { access: String(json['access_token']), refresh: String(json['refresh_token']) };
}

/** From the registration to tokens. */
export async function connectHost(
  url: string,
  cookie: string,
  changes: Readonly<Record<string, string | undefined>> = {},
  access?: string,
): Promise<{ host: HostClient; tokens: HostTokens }> {
  const host = await registerHost(url);
  const code = await consent(url, cookie, authorizeQuery(host, changes), access);
  return { host, tokens: tokensOf(await exchange(url, host, code)) };
}

/** Names of the tools that the token lists at /connect/mcp. */
export async function listTools(url: string, token: string): Promise<string[]> {
  const { json } = expectOk('tools/list', await sendMcp(url, token, { method: 'tools/list' }));
  const tools = json['result']?.['tools'] as unknown as readonly { name: string }[];
  return tools.map(({ name }) => name);
}

/** One message to /connect/mcp, or to the address of a profile. */
export function sendMcp(url: string, token: string, message: object, path = '/connect/mcp'): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}` };
  return request(`${url}${path}`, { headers, body: { jsonrpc: '2.0', id: 1, ...message } });
}
