/** A person in front of the page of a request for access, without the page: what it asks and what it sends. */
import { expectOk, type Json, type Person, request } from '../agent.ts';

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
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const body = new URLSearchParams({ token, client_id: clientId }).toString();
  expectOk('revoke', await request(`${url}/connect/revoke`, { headers, body }));
}
