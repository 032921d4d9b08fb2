import t, { type Test } from 'tap';
import { bearerOf, expectOk, type Person, request, signUpAgent } from '../../kit/agent.ts';
import { stopAfter } from '../../kit/close-after.ts';
import { HIGH_LIMITS, launch, type RunningGateway } from '../../kit/launch.ts';
import { BUILT_IN } from '../../src/io/mcp/tools/built-in.ts';
import { HOSTS, INSPECTOR, startPeer, unavailable } from '../support/connect/peers.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';
import { type SlowModule, startSlowModule } from '../support/mcp-clients/slow-module.ts';
import { shared } from '../support/shared.ts';

t.setTimeout(180_000);

const AVAILABLE = /available\\*":\\*"1000\.00/;
const SESSION_CLOSED = /session not found or expired, log in again/;
const BALANCE = 'wallet_get_balance';
const RESOURCE = 'gatehouse://wallet/balance';
const SLOW = 'slow_tool';
/** By the name in test/e2e/peers/hosts.js: the revision of its requests; undefined where it cannot be seen. */
const CLIENTS: Readonly<Record<string, string | undefined>> = {
  client: '2026-07-28',
  'ai-sdk': '2026-07-28',
  langchain: undefined,
  'openai-agents': '2026-07-28',
};
/** Tools that are listed for a session; the others need a code. */
const TOOLS = Object.keys(BUILT_IN.tools).filter(
  (name) => BUILT_IN.tools[name]?.capabilityModule === undefined,
);

interface Setting {
  readonly gateway: RunningGateway;
  readonly person: Person;
  readonly slow: SlowModule;
  readonly home: string;
  logIn(): Promise<string>;
}

/** A gateway and a module behind it; each test has a person of its own. */
const standing = shared(start, async ({ gateway, slow }) => {
  await gateway.stop();
  slow.close();
});

async function start(): Promise<Pick<Setting, 'gateway' | 'slow'>> {
  const slow = await startSlowModule();
  const row = {
    method: 'GET',
    description: 'Never answers.',
    inputSchema: { type: 'object', properties: {} },
  };
  const McpTools = { [SLOW]: { ...row, endpoint: `${slow.url}/slow` } };
  const configuration = { Settings: HIGH_LIMITS, McpTools };
  return { slow, gateway: await launch({ configuration, args: ['--sandbox'] }) };
}

async function prepare(test: Test): Promise<Setting> {
  const { gateway, slow } = await standing(t);
  const home = temporaryFolder(test);
  const person = await signUpAgent(gateway.url);
  const logIn = async () => {
    return await bearerOf(gateway.url, person.key);
  };
  return { gateway, person, slow, home, logIn };
}

/** All sessions but the browser's. */
async function endSessions({ gateway, person }: Setting): Promise<void> {
  const headers = { Cookie: person.cookie };
  const answer = await request(`${gateway.url}/auth/v1/close_sessions`, { headers, body: { others: true } });
  expectOk('close_sessions', answer);
}

for (const [name, revision] of Object.entries(CLIENTS))
  t.test(
    `hosts, ${name}: lists, calls, reads, cancels a call, and works again after its session was closed`,
    { skip: unavailable },
    async (t) => {
      const setting = await prepare(t);
      const { gateway, slow, home, logIn } = setting;
      const peer = stopAfter(t, startPeer([HOSTS, name, `${gateway.url}/mcp`, await logIn()], home));
      const [, opened] = await peer.next(/open (.*)\n/);
      if (revision !== undefined) t.equal(opened, revision);
      const answered = async () => (await peer.next(/(?:result|failed) .*\n/))[0];
      peer.tell('list');
      t.strictSame(JSON.parse((await answered()).replace('result ', '')), [...TOOLS, SLOW]);
      peer.tell(`call ${BALANCE} {"currency":"DEMO"}`);
      t.match(await answered(), AVAILABLE);
      peer.tell(`read ${RESOURCE}`);
      t.match(await answered(), AVAILABLE);
      const arrived = slow.next();
      peer.tell(`call ${SLOW} {}`);
      const { closed } = await arrived;
      peer.tell('cancel');
      t.match(await answered(), /^failed .*abort/i);
      await closed;
      await endSessions(setting);
      peer.tell(`call ${BALANCE} {}`);
      t.match(await answered(), SESSION_CLOSED);
      peer.tell(`bearer ${await logIn()}`);
      peer.tell(`call ${BALANCE} {}`);
      t.match(await answered(), AVAILABLE);
    },
  );

t.test(
  'hosts, inspector of 2026-07-28: lists, calls, reads, cancels a call, and names a closed session',
  { skip: unavailable },
  async (t) => {
    const setting = await prepare(t);
    const { gateway, slow, home, logIn } = setting;
    const start = (bearer: string, method: string, ...further: string[]) => {
      const target = ['--cli', `${gateway.url}/mcp`, '--protocol-era', 'modern', '--format', 'json'];
      const header = ['--header', `Authorization: Bearer ${bearer}`];
      const peer = startPeer([INSPECTOR, ...target, ...header, '--method', method, ...further], home);
      t.teardown(() => peer.stop());
      return peer;
    };
    const run = async (bearer: string, method: string, ...further: string[]) => {
      const peer = start(bearer, method, ...further);
      return { code: await peer.exited, text: peer.text() };
    };
    const bearer = await logIn();
    t.match(await run(bearer, 'initialize'), { code: 0, text: /"protocolVersion":"2026-07-28"/ });
    t.match(await run(bearer, 'tools/list'), { code: 0, text: new RegExp(`"${SLOW}"`) });
    t.match((await run(bearer, 'tools/call', '--tool-name', BALANCE)).text, AVAILABLE);
    t.match((await run(bearer, 'resources/read', '--uri', RESOURCE)).text, AVAILABLE);
    const arrived = slow.next();
    const waiting = start(bearer, 'tools/call', '--tool-name', SLOW);
    const { closed } = await arrived;
    await waiting.stop();
    await closed;
    await endSessions(setting);
    const refused = await run(bearer, 'tools/call', '--tool-name', BALANCE);
    t.not(refused.code, 0);
    t.match(refused.text, SESSION_CLOSED);
    t.match((await run(await logIn(), 'tools/call', '--tool-name', BALANCE)).text, AVAILABLE);
  },
);
