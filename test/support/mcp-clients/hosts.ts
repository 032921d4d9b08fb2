/**
 * The official clients at /connect/mcp, as a host runs them: from the address alone to a called tool, a refresh that the client
 * makes by itself, and a new consent after a revocation.
 */
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Test } from 'tap';
import type { Person } from '../../../tools/agent.ts';
import { agree, disconnect, endAccess, hostsOf } from '../../../tools/connect/consent.ts';

export const BALANCE = { name: 'wallet_get_balance', arguments: {} };
export const AVAILABLE = { content: [{ type: 'text', text: /"available":"1000\.00"/ }] };
const CALLBACK = 'http://127.0.0.1:33418/callback';

interface Tokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly refresh_token?: string;
}

/** What a host keeps between its runs. */
export class HostMemory {
  readonly redirectUrl = CALLBACK;
  readonly clientMetadata = {
    client_name: 'Test host',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  readonly saved: Tokens[] = [];
  readonly #kept: { client?: { client_id: string }; verifier?: string; tokens?: Tokens | undefined } = {};
  /** Where the host sent the browser. */
  asked: URL | undefined;
  registrations = 0;

  clientInformation(): { client_id: string } | undefined {
    return this.#kept.client;
  }

  get clientId(): string {
    return this.#kept.client?.client_id ?? '';
  }

  saveClientInformation(client: { client_id: string }): void {
    this.registrations += 1;
    this.#kept.client = client;
  }

  tokens(): Tokens | undefined {
    return this.#kept.tokens;
  }

  saveTokens(tokens: Tokens): void {
    this.saved.push(tokens);
    this.#kept.tokens = tokens;
  }

  redirectToAuthorization(url: URL): void {
    this.asked = url;
  }

  saveCodeVerifier(verifier: string): void {
    this.#kept.verifier = verifier;
  }

  codeVerifier(): string {
    return this.#kept.verifier ?? '';
  }

  invalidateCredentials(scope: string): void {
    if (scope === 'all' || scope === 'tokens') this.#kept.tokens = undefined;
    if (scope === 'all' || scope === 'client') delete this.#kept.client;
  }
}

/** One client of a host: the parts that both versions of the library have. */
export interface HostClient {
  readonly connect: () => Promise<void>;
  readonly finish: (callback: URL) => Promise<void>;
  readonly call: () => Promise<unknown>;
  readonly close: () => Promise<void>;
}

function clientOne(url: URL, memory: HostMemory): HostClient {
  const client = new Client1({ name: 'test', version: '1.0.0' });
  const transport = new Transport1(url, { authProvider: memory });
  return {
    connect: () => client.connect(transport as Parameters<Client1['connect']>[0]),
    finish: (callback) => transport.finishAuth(String(callback.searchParams.get('code'))),
    call: () => client.callTool(BALANCE),
    close: () => client.close(),
  };
}

export function clientTwo(url: URL, memory: HostMemory): HostClient {
  const client = new Client2({ name: 'test', version: '2.0.0' });
  const transport = new Transport2(url, { authProvider: memory });
  return {
    connect: () => client.connect(transport),
    finish: (callback) => transport.finishAuth(callback.searchParams),
    call: () => client.callTool(BALANCE),
    close: () => client.close(),
  };
}

export const VERSIONS = { 'client 1': clientOne, 'client 2': clientTwo };
export const UNAUTHORIZED = { message: /Unauthorized/ };

/** `url`: where the person consents; `address`: what the host was given. */
export async function liveAsHost(
  t: Test,
  clientOf: (url: URL, memory: HostMemory) => HostClient,
  { url, address, person }: { url: string; address: URL; person: Person },
): Promise<void> {
  const memory = new HostMemory();
  const consent = async () => {
    const asking = clientOf(address, memory);
    await t.rejects(asking.connect(), UNAUTHORIZED);
    await asking.finish(await agree(url, person, memory.asked ?? ''));
    const client = clientOf(address, memory);
    t.teardown(() => client.close());
    await client.connect();
    return client;
  };

  const client = await consent();
  t.equal(memory.registrations, 1);
  t.match(await client.call(), AVAILABLE);
  t.match(await hostsOf(url, person), [{ name: 'Test host', sessions: 1 }]);

  await endAccess(url, memory.clientId, String(memory.tokens()?.access_token));
  t.match(await client.call(), AVAILABLE, 'the client refreshes and repeats the call by itself');
  const [first, second] = memory.saved;
  t.equal(memory.saved.length, 2);
  t.not(second?.access_token, first?.access_token);
  t.not(second?.refresh_token, first?.refresh_token, 'the refresh token is rotated');

  memory.asked = undefined;
  await disconnect(url, person);
  await t.rejects(client.call(), UNAUTHORIZED, 'a revoked host is sent to the page again');
  t.type(memory.asked, URL);
  t.match(await (await consent()).call(), AVAILABLE);
}
