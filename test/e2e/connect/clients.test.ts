/**
 * The official clients at /connect/mcp: from the address alone to a called tool, a refresh that the client makes by itself,
 * and a new consent after a revocation. A client with a header at /mcp beside them sees no change.
 */
import t, { type Test } from 'tap';
import { callTool, expectOk, mcpLogin, type Person, signUp, updateKey } from '../../../tools/agent.ts';
import { agree, disconnect } from '../../../tools/connect/consent.ts';
import { launch } from '../../../tools/launch.ts';
import {
  AVAILABLE,
  BALANCE,
  clientTwo,
  HostMemory,
  liveAsHost,
  UNAUTHORIZED,
  VERSIONS,
} from '../../support/mcp-clients/hosts.ts';

t.setTimeout(120_000);

/** The clients ask for all metadata again at each step. */
const Settings = { ApiRPSLimit: 1000, IpRPSLimit: 1000, PubKeyApiRPSLimit: 1000 };
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
      await liveAsHost(t, clientOf, { url, address: new URL(`${url}/connect/mcp`), person });
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
