/** People of a gateway who connect another MCP server, as their browser and their agent do. */
import {
  type Answer,
  expectOk,
  mcpLogin,
  newKey,
  type Person,
  request,
  rpc,
  type SoftwareKey,
  signUpAgent,
} from '../../../kit/agent.ts';
import type { OAuthUpstream } from './oauth.ts';

export interface Connecting extends Person {
  readonly bearer: string;
}

export async function newPerson(url: string, key: SoftwareKey = newKey()): Promise<Connecting> {
  const person = await signUpAgent(url, key);
  const login = expectOk('mcp_login', await mcpLogin(url, person.key, Date.now()));
  return { ...person, bearer: String(login.json['result']?.['sessionId']) };
}

/** POST to a route of upstreams; GET without a body. */
export function ask(
  url: string,
  { cookie }: Pick<Person, 'cookie'>,
  path: string,
  body?: object,
): Promise<Answer> {
  const headers = { Cookie: cookie };
  return request(`${url}/auth/v1/upstreams${path}`, body === undefined ? { headers } : { headers, body });
}

/** Returns the address to which the browser goes. */
export async function beginLogin(url: string, person: Connecting, server: string): Promise<string> {
  const answer = expectOk('connect', await ask(url, person, '/connect', { server }));
  return String(answer.json['result']?.['redirect']);
}

/** The browser comes back; resolves with where it goes then. `back` names the gateway by its base address. */
export async function comeBack(url: string, { cookie }: Pick<Person, 'cookie'>, back: URL): Promise<string> {
  const answer = await request(`${url}${back.pathname}${back.search}`, { headers: { Cookie: cookie } });
  if (answer.status !== 303) throw new Error(`HTTP ${answer.status} ${answer.text}`);
  return answer.headers.get('location') ?? '';
}

export async function connect(
  url: string,
  person: Connecting,
  upstream: OAuthUpstream,
  account: string,
  server = 'notes',
): Promise<void> {
  const back = upstream.allow(await beginLogin(url, person, server), account);
  const to = await comeBack(url, person, back);
  if (to !== `/#servers/${server}/connected`) throw new Error(to);
}

export async function ofTool(url: string, { bearer }: Connecting, name = 'notes_whose'): Promise<string> {
  const { text } = await rpc(url, bearer, {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name },
  });
  return text;
}

/** resources/read of what the person has there. It needs no list. */
export async function readMemo(url: string, { bearer }: Connecting): Promise<string> {
  const params = { uri: 'up+notes:memo://mine' };
  const { text } = await rpc(url, bearer, { jsonrpc: '2.0', id: 1, method: 'resources/read', params });
  return text;
}
