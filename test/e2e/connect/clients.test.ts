/**
 * The official clients at /connect/mcp: from the address alone to a called tool, a refresh that the client makes by itself,
 * and a new consent after a revocation. A client with a header at /mcp beside them sees no change.
 */
import t, { type Test } from 'tap';
import { bearerOf, callTool, expectOk, type Person, signUp, updateKey } from '../../../kit/agent.ts';
import { agree, disconnect, hostsOf } from '../../../kit/consent.ts';
import { HIGH_LIMITS, launchFor } from '../../../kit/launch.ts';
import { unavailable } from '../../support/connect/peers.ts';
import {
  AVAILABLE,
  BALANCE,
  clientTwo,
  connectedHost,
  formerClient,
  HostMemory,
  liveAsHost,
  UNAUTHORIZED,
  VERSIONS,
} from '../../support/mcp-clients/hosts.ts';

t.setTimeout(120_000);

/** The clients ask for all metadata again at each step. */
const start = (t: Test, further: object = {}) =>
  launchFor(t, { args: ['--sandbox'], configuration: { Settings: HIGH_LIMITS, ...further } });
const { url: standing } = await start(t);

async function newHost(url = standing): Promise<{ url: string; person: Person }> {
  return { url, person: await signUp(url) };
}

for (const [name, clientOf] of Object.entries(VERSIONS)) {
  t.test(
    `connect, ${name}: from the address to a tool, a refresh, a revocation, a new consent`,
    async (t) => {
      const { url, person } = await newHost();
      await liveAsHost(t, clientOf, { url, address: new URL(`${url}/connect/mcp`), person });
    },
  );
}

/** By their names in test/e2e/peers. Hosts are built on these releases; before 1.16 they look for metadata at the root alone. */
for (const name of ['sdk-1.11', 'sdk-1.15', 'sdk-1.17']) {
  t.test(
    `connect, ${name}: from the address to a tool, a refresh, a revocation, a new consent`,
    { skip: unavailable },
    async (t) => {
      const { url, person } = await newHost();
      await liveAsHost(t, await formerClient(name), { url, address: new URL(`${url}/connect/mcp`), person });
    },
  );
}

t.test(
  'connect, sdk-1.15: without the metadata at the root it finds no login, and sdk-1.17 does',
  { skip: unavailable },
  async (t) => {
    const { url, person } = await newHost((await start(t, { OAuthRootMetadata: false })).url);
    const address = new URL(`${url}/connect/mcp`);
    const client = (await formerClient('sdk-1.15'))(address, new HostMemory());
    await t.rejects(client.connect(), { message: /registration failed/ });
    await connectedHost(t, await formerClient('sdk-1.17'), new HostMemory(), { url, address, person });
  },
);

const SESSIONS = { name: 'sessions', arguments: {} };

t.test(
  'connect, client 2: a call beyond its scope leads to the consent for the wider one, and then works',
  async (t) => {
    const { url, person } = await newHost();
    const memory = new HostMemory();
    const address = new URL(`${url}/connect/mcp`);
    const client = await connectedHost(t, clientTwo, memory, { url, address, person });
    t.equal(memory.tokens()?.scope, 'tools offline_access');
    memory.asked = undefined;
    await t.rejects(client.call(SESSIONS), UNAUTHORIZED);
    const asked = memory.asked ?? new URL(url);
    t.equal(asked.searchParams.get('scope'), 'tools offline_access full');
    t.match(await client.call(), AVAILABLE, 'the connection is as before until then');
    await client.finish(await agree(url, person, asked));
    t.match(memory.tokens()?.scope, /\bfull\b/);
    t.match(await client.call(SESSIONS), { content: [{ type: 'text', text: /sessionId|created/ }] });
    t.equal(memory.registrations, 1, 'the host is the same client');
    const connections = await hostsOf(url, person);
    t.same(
      connections.map(({ scopes }) => scopes.includes('full')),
      [true, false],
      'the narrow connection stays listed',
    );
  },
);

t.test(
  'connect, client 1: a call beyond its scope is refreshed once, refused, and leaves the connection as it is',
  async (t) => {
    const { url, person } = await newHost();
    const memory = new HostMemory();
    const address = new URL(`${url}/connect/mcp`);
    const client = await connectedHost(t, VERSIONS['client 1'], memory, { url, address, person });
    memory.asked = undefined;
    await t.rejects(client.call(SESSIONS), { message: /403 after trying upscoping/ });
    t.equal(memory.asked, undefined, 'it has a refresh token, so it does not ask the person');
    t.strictSame(
      memory.saved.map(({ scope }) => scope),
      ['tools', 'tools'],
    );
    t.match(await client.call(), AVAILABLE);
  },
);

t.test('connect: a client with a header at /mcp is as before beside a connected host', async (t) => {
  const { url, person } = await newHost();
  expectOk('update_key', await updateKey(url, person, { mcpAccess: true }));
  const bearer = await bearerOf(url, person.key);
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

// covers S82
t.test('connect: no code, verifier or token of a connection is in a log line', async (t) => {
  const gateway = await start(t);
  const { url, person } = await newHost(gateway.url);
  const memory = new HostMemory();
  const host = VERSIONS['client 1'](new URL(`${url}/connect/mcp`), memory);
  await t.rejects(host.connect(), UNAUTHORIZED);
  const callback = await agree(url, person, memory.asked ?? '');
  await host.finish(callback);
  await host.close();
  // A stop writes the last lines.
  await gateway.stop();
  const { stdout, stderr } = gateway.output();
  t.match(stderr, /connect\/token/, 'the requests are logged');
  const issued = memory.saved.flatMap(({ access_token, refresh_token = access_token }) => [
    access_token,
    refresh_token,
  ]);
  const secrets = [callback.searchParams.get('code') ?? '', memory.codeVerifier(), ...issued];
  t.equal(secrets.length, 4);
  t.strictSame(
    secrets.filter((each) => (stdout + stderr).includes(each)),
    [],
  );
});
