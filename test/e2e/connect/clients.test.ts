/**
 * The official clients at /connect/mcp: from the address alone to a called tool, a refresh that the client makes by itself,
 * and a new consent after a revocation. A client with a header at /mcp beside them sees no change.
 */
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import t, { type Test } from 'tap';
import { callTool, expectOk, mcpLogin, type Person, signUp, updateKey } from '../../../tools/agent.ts';
import { agree, disconnect, endAccess, hostsOf } from '../../../tools/connect/consent.ts';
import { launch } from '../../../tools/launch.ts';

t.setTimeout(120_000);

const BALANCE = { name: 'wallet_get_balance', arguments: {} };
const AVAILABLE = { content: [{ type: 'text', text: /"available":"1000\.00"/ }] };
/** The clients ask for all metadata again at each step. */
const Settings = { ApiRPSLimit: 1000, IpRPSLimit: 1000, PubKeyApiRPSLimit: 1000 };
const CALLBACK = 'http://127.0.0.1:33418/callback';

interface Tokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly refresh_token?: string;
}

/** What a host keeps between its runs. */
class HostMemory {
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
interface HostClient {
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

function clientTwo(url: URL, memory: HostMemory): HostClient {
  const client = new Client2({ name: 'test', version: '2.0.0' });
  const transport = new Transport2(url, { authProvider: memory });
  return {
    connect: () => client.connect(transport),
    finish: (callback) => transport.finishAuth(callback.searchParams),
    call: () => client.callTool(BALANCE),
    close: () => client.close(),
  };
}

const VERSIONS = { 'client 1': clientOne, 'client 2': clientTwo };
const UNAUTHORIZED = { message: /Unauthorized/ };

async function startHosts(t: Test): Promise<{ url: string; person: Person }> {
  const gateway = await launch({ args: ['--sandbox'], configuration: { Settings } });
  t.teardown(() => gateway.stop());
  return { url: gateway.url, person: await signUp(gateway.url) };
}

for (const [name, clientOf] of Object.entries(VERSIONS)) {
  t.test(
    `connect, ${name}: from the address to a tool, a refresh, a revocation, a new consent`,
    async (t) => {
      const { url, person } = await startHosts(t);
      const address = new URL(`${url}/connect/mcp`);
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
    },
  );
}

t.test('connect: a client with a header at /mcp is as before beside a connected host', async (t) => {
  const { url, person } = await startHosts(t);
  expectOk('update_key', await updateKey(url, person, { mcpAccess: true }));
  const login = expectOk('mcp_login', await mcpLogin(url, person.key, Date.now()));
  const bearer = String(login.json['result']?.['sessionId']);
  const memory = new HostMemory();
  const asking = clientTwo(new URL(`${url}/connect/mcp`), memory);
  await t.rejects(asking.connect(), UNAUTHORIZED);
  await asking.finish(await agree(url, person, memory.asked ?? ''));
  t.match((await callTool(url, bearer, BALANCE.name)).json, { result: AVAILABLE });
  await disconnect(url, person);
  t.match((await callTool(url, bearer, BALANCE.name)).json, { result: AVAILABLE }, 'after the revocation');
  const foreign = await callTool(url, String(memory.saved[0]?.access_token), BALANCE.name);
  t.match(foreign.json, { error: { code: -32001 } }, 'a token of /connect/mcp opens nothing at /mcp');
});
