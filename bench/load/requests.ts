/** The small requests that several scenarios send, for each of their sessions, and what a good answer to them holds. */
import type { Person } from '../../kit/agent.ts';
import { rawRequest } from '../scenario.ts';
import { sessionOf } from '../subjects/gateway.ts';

const ACCEPT = 'application/json, text/event-stream';

/** One request in the generator's form for each session, and a text that is in every good answer and in no refusal. */
export interface RequestSet {
  readonly requests: readonly string[];
  readonly expect: string;
}

/** Verified MCP sessions, one for each person. */
export async function bearersOf(url: string, people: readonly Person[]): Promise<string[]> {
  const bearers: string[] = [];
  for (const person of people) bearers.push(await sessionOf(url, person));
  return bearers;
}

/** A JSON-RPC request to /mcp by each bearer. */
function rpcBy(url: string, bearers: readonly string[], method: string, params: object = {}): string[] {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return bearers.map((bearer) =>
    rawRequest('POST', `${url}/mcp`, { Authorization: `Bearer ${bearer}`, Accept: ACCEPT }, body),
  );
}

export function listTools(url: string, bearers: readonly string[]): RequestSet {
  return { requests: rpcBy(url, bearers, 'tools/list'), expect: '"wallet_get_balance"' };
}

export function callTool(url: string, bearers: readonly string[], name: string): RequestSet {
  // A refusal of any kind has no content, a tool's failure says isError.
  return { requests: rpcBy(url, bearers, 'tools/call', { name, arguments: {} }), expect: '"content"' };
}

/** Requests that check cookies. The answer names the user only when the cookie is that of a live session. */
export function checkCookies(url: string, cookies: readonly string[]): RequestSet {
  const requests = cookies.map((cookie) => rawRequest('GET', `${url}/auth/v1/info`, { Cookie: cookie }));
  return { requests, expect: '"session":{"userId":"' };
}

/** A method whose answer is a constant, and an error for a bearer that is not that of a live session. */
export function checkBearers(url: string, bearers: readonly string[]): RequestSet {
  return { requests: rpcBy(url, bearers, 'resources/templates/list'), expect: '{"resourceTemplates":[]}' };
}

/** A small answer for a session: project, version and time. */
export function getInfo(url: string, cookies: readonly string[]): RequestSet {
  const requests = cookies.map((cookie) => rawRequest('GET', `${url}/auth/v1/get_info`, { Cookie: cookie }));
  return { requests, expect: '"utcNow":"' };
}
