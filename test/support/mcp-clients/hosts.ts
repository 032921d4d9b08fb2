/**
 * The official clients at /connect/mcp, as a host runs them: from the address alone to a called tool, a refresh that the client
 * makes by itself, and a new consent after a revocation.
 */
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Test } from 'tap';
import type { Person } from '../../../kit/agent.ts';
import { closeAfter } from '../../../kit/close-after.ts';
import { agree, disconnect, endAccess, hostsOf } from '../../../kit/consent.ts';
import { modulePath } from '../connect/peers.ts';

export const BALANCE = { name: 'wallet_get_balance', arguments: {} };
export const AVAILABLE = { content: [{ type: 'text', text: /"available":"1000\.00"/ }] };
const CALLBACK = 'http://127.0.0.1:33418/callback';

interface Tokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly refresh_token?: string;
  readonly scope?: string;
}

/** Data that a host keeps between its runs. */
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
  /** Address to which the host sent the browser. */
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
  /** Without a tool: the balance. */
  readonly call: (tool?: typeof BALANCE) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

/** The parts of version 1 of the library, which all of its releases have. */
interface VersionOne {
  readonly Client: typeof Client;
  readonly StreamableHTTPClientTransport: typeof StreamableHTTPClientTransport;
}

const clientOne =
  (library: VersionOne) =>
  (url: URL, memory: HostMemory): HostClient => {
    const client = new library.Client({ name: 'test', version: '1.0.0' });
    const transport = new library.StreamableHTTPClientTransport(url, { authProvider: memory });
    return {
      connect: () => client.connect(transport as Parameters<Client['connect']>[0]),
      finish: (callback) => transport.finishAuth(String(callback.searchParams.get('code'))),
      call: (tool = BALANCE) => client.callTool(tool),
      close: () => client.close(),
    };
  };

/** A release of version 1 in test/e2e/peers, by its name there. */
export async function formerClient(name: string): Promise<ReturnType<typeof clientOne>> {
  const load = (file: string): Promise<object> => import(modulePath(`${name}/dist/esm/client/${file}.js`));
  const parts = await Promise.all(['index', 'streamableHttp'].map(load));
  return clientOne(Object.assign({}, ...parts) as VersionOne);
}

export function clientTwo(url: URL, memory: HostMemory): HostClient {
  const client = new Client2({ name: 'test', version: '2.0.0' });
  const transport = new Transport2(url, { authProvider: memory });
  return {
    connect: () => client.connect(transport),
    finish: (callback) => transport.finishAuth(callback.searchParams),
    call: (tool = BALANCE) => client.callTool(tool),
    close: () => client.close(),
  };
}

export const VERSIONS = {
  'client 1': clientOne({ Client, StreamableHTTPClientTransport }),
  'client 2': clientTwo,
};
export const UNAUTHORIZED = { message: /Unauthorized/ };

type ClientOf = (url: URL, memory: HostMemory) => HostClient;
/** `url`: where the person consents; `address`: what the host was given. */
interface Way {
  readonly url: string;
  readonly address: URL;
  readonly person: Person;
}

/** The host is sent to the page, the person agrees to what it asks, and the host connects. */
export async function connectedHost(
  t: Test,
  clientOf: ClientOf,
  memory: HostMemory,
  { url, address, person }: Way,
): Promise<HostClient> {
  const asking = clientOf(address, memory);
  await t.rejects(asking.connect(), UNAUTHORIZED);
  await asking.finish(await agree(url, person, memory.asked ?? ''));
  const client = closeAfter(t, clientOf(address, memory));
  await client.connect();
  return client;
}

export async function liveAsHost(t: Test, clientOf: ClientOf, { url, address, person }: Way): Promise<void> {
  const memory = new HostMemory();
  const consent = () => connectedHost(t, clientOf, memory, { url, address, person });
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
