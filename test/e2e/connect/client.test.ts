/**
 * Hosts that connect by URL, against the program: the official client from the address alone to a called tool, then the life
 * of what a consent gave. The person logs in with a software key and decides as the page does.
 */
import { auth, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';
import t, { type Test } from 'tap';
import { type Person, signUp } from '../../../kit/agent.ts';
import { closeAfter } from '../../../kit/close-after.ts';
import { HIGH_LIMITS, launchFor, type RunningGateway } from '../../../kit/launch.ts';
import { consent, REDIRECT_URI } from '../../support/hosts.ts';

t.setTimeout(120_000);

async function start(t: Test): Promise<RunningGateway> {
  const gateway = await launchFor(t, { configuration: { Settings: HIGH_LIMITS }, args: ['--sandbox'] });
  return gateway;
}

/** A host with a store in memory; the person answers at once. */
class Host implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT_URI;
  readonly clientMetadata = { client_name: 'Official client', redirect_uris: [REDIRECT_URI] };
  tokensNow: OAuthTokens | undefined;
  code = '';
  #client: OAuthClientInformationMixed | undefined;
  verifierNow = '';
  readonly #decide: (query: string) => Promise<string>;

  constructor(decide: (query: string) => Promise<string>) {
    this.#decide = decide;
  }

  clientInformation() {
    return this.#client;
  }
  saveClientInformation(client: OAuthClientInformationMixed) {
    this.#client = client;
  }
  tokens() {
    return this.tokensNow;
  }
  saveTokens(tokens: OAuthTokens) {
    this.tokensNow = tokens;
  }
  async redirectToAuthorization(address: URL) {
    this.code = await this.#decide(address.search.slice(1));
  }
  saveCodeVerifier(verifier: string) {
    this.verifierNow = verifier;
  }
  codeVerifier() {
    return this.verifierNow;
  }
}

async function connected(t: Test, gateway: RunningGateway, person: Person, host: Host): Promise<Client> {
  const client = closeAfter(t, new Client({ name: 'e2e', version: '1.0.0' }));
  const serverUrl = new URL(`${gateway.url}/connect/mcp`);
  const first = new StreamableHTTPClientTransport(serverUrl, { authProvider: host });
  await t.rejects(client.connect(first), { name: /./ }, `${person.userId} is asked first`);
  await auth(host, { serverUrl, authorizationCode: host.code });
  await client.connect(new StreamableHTTPClientTransport(serverUrl, { authProvider: host }));
  return client;
}

// covers R42
t.test('connect: the official client gets from the address alone to a called tool', async (t) => {
  const gateway = await start(t);
  const person = await signUp(gateway.url);
  const host = new Host((query) => consent(gateway.url, person.cookie, query));
  const client = await connected(t, gateway, person, host);
  const { tools } = await client.listTools();
  t.ok(tools.some(({ name }) => name === 'payorder_create'));
  const answer = await client.callTool({ name: 'wallet_get_balance', arguments: {} });
  t.equal(answer.isError, undefined, JSON.stringify(answer.content));
  t.equal(host.tokensNow?.scope, 'tools');
});

// covers S82
t.test('connect: a dead token is refreshed and the call repeated by the client itself', async (t) => {
  const gateway = await start(t);
  const person = await signUp(gateway.url);
  const host = new Host((query) => consent(gateway.url, person.cookie, query));
  const client = await connected(t, gateway, person, host);
  const before = host.tokensNow;
  if (before === undefined) throw new Error('no tokens');
  host.tokensNow = { ...before, access_token: 'A'.repeat(46) };
  const answer = await client.callTool({ name: 'wallet_get_balance', arguments: {} });
  t.equal(answer.isError, undefined);
  t.not(host.tokensNow.refresh_token, before.refresh_token, 'the refresh token was rotated');
  await client.close();
  // A stop writes the last lines.
  await gateway.stop();
  const { stdout, stderr } = gateway.output();
  t.match(stderr, /connect\/token/, 'the requests are logged');
  const issued = [before, host.tokensNow].flatMap((tokens) => [
    tokens.access_token,
    tokens.refresh_token ?? '',
  ]);
  const shown = [host.code, host.verifierNow, ...issued].filter((each) => (stdout + stderr).includes(each));
  t.strictSame(shown, [], 'no code, verifier or token in a log line');
});
