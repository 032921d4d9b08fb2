/** An MCP host as the connect page sees it: registration, request, the answer that comes back, tokens, tools. */
import { createHash, randomBytes } from 'node:crypto';
import type { Browser } from 'playwright-core';
import type { Test } from 'tap';
import { type OpenPage, openPage } from './pages.ts';

export const CLAUDE = 'https://claude.ai/api/mcp/auth_callback';
export const LOOPBACK = 'http://127.0.0.1:33418/callback';
const VERIFIER = randomBytes(32).toString('base64url');

interface OpenRequest extends OpenPage {
  readonly clientId: string;
  /** The query that came back to the host. */
  landed(): Promise<URLSearchParams>;
}

type Fields = Readonly<Record<string, string>>;

interface ConnectHost {
  /** A dynamic registration: its client id. */
  register(redirectUri: string, name?: string): Promise<string>;
  authorizeUrl(clientId: string, redirectUri: string, more?: Fields): string;
  /** The page on a request of a new registration. The host's page is answered here: nothing leaves the machine. */
  openRequest(
    t: Test,
    browser: Browser,
    redirectUri: string,
    more?: Fields,
    name?: string,
  ): Promise<OpenRequest>;
  /** The scope that the 401 at the address asks for, found as hosts do: challenge, resource, server. */
  discover(): Promise<string>;
  /** The access token of a code. */
  exchange(clientId: string, redirectUri: string, code: string): Promise<string>;
  /** The access token of a code, and the scopes that the answer names. */
  redeem(clientId: string, redirectUri: string, code: string): Promise<{ token: string; scope: string }>;
  call(accessToken: string, tool: string): Promise<Response>;
  /** Names of the tools at /connect/mcp; the status where they are refused. */
  tools(accessToken: string): Promise<readonly string[] | number>;
}

/** `home`: BaseUrl. */
export function connectHost(home: string): ConnectHost {
  const resource = `${home}/connect/mcp`;
  const authorizeUrl: ConnectHost['authorizeUrl'] = (clientId, redirectUri, more = {}) => {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
      code_challenge_method: 'S256',
      state: 'a state & more',
      resource,
      scope: 'tools',
      ...more,
    });
    return `${home}/connect/authorize?${query}`;
  };
  const register: ConnectHost['register'] = async (redirectUri, name = 'Claude') => {
    const client = { client_name: name, redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' };
    const { client_id: clientId } = await answered(`${home}/connect/register`, 201, {
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(client),
    });
    return String(clientId);
  };
  const redeem: ConnectHost['redeem'] = async (clientId, redirectUri, code) => {
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      redirect_uri: redirectUri,
      code,
      code_verifier: VERIFIER,
      resource,
    });
    const { access_token: token, scope } = await answered(`${home}/connect/token`, 200, { body });
    return { token: String(token), scope: String(scope) };
  };
  return {
    register,
    authorizeUrl,
    async openRequest(t, browser, redirectUri, more, name) {
      const clientId = await register(redirectUri, name);
      const opened = await openPage(t, browser, 'about:blank', { passkeys: true });
      const { page } = opened;
      await page.context().route(`${redirectUri}**`, (route) => route.fulfill({ body: 'host' }));
      await page.goto(authorizeUrl(clientId, redirectUri, more));
      const landed = async () => {
        await page.waitForURL(`${redirectUri}?**`);
        return new URL(page.url()).searchParams;
      };
      return { ...opened, clientId, landed };
    },
    discover: () => discover(home),
    async exchange(...code) {
      return (await redeem(...code)).token;
    },
    redeem,
    call: (accessToken, name) =>
      fetch(resource, {
        method: 'POST',
        headers: { Authorization: `Bearer ${accessToken}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } }),
      }),
    async tools(accessToken) {
      const answer = await fetch(resource, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${accessToken}`,
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      });
      const text = await answer.text();
      if (answer.status !== 200) return answer.status;
      const { result } = JSON.parse(text) as { result: { tools: { name: string }[] } };
      return result.tools.map(({ name }) => name).sort();
    },
  };
}

async function discover(home: string): Promise<string> {
  const refused = await fetch(`${home}/connect/mcp`, { method: 'POST' });
  const challenge = refused.headers.get('www-authenticate') ?? '';
  const field = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(challenge)?.[1] ?? '';
  const { authorization_servers: servers } = await json(field('resource_metadata'));
  const [issuer] = servers as string[];
  const { authorization_endpoint: found } = await json(`${issuer}/.well-known/oauth-authorization-server`);
  if (found !== `${home}/connect/authorize`) throw new Error(`another page: ${found}`);
  return field('scope');
}

async function json(url: string): Promise<Record<string, unknown>> {
  return (await (await fetch(url)).json()) as Record<string, unknown>;
}

/** The JSON of a POST with this status. */
async function answered(url: string, status: number, init: RequestInit): Promise<Record<string, unknown>> {
  const answer = await fetch(url, { method: 'POST', ...init });
  const text = await answer.text();
  if (answer.status !== status) throw new Error(`${url}: ${answer.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}
