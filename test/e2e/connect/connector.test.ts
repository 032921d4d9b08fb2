/** The connector as a program, with the clients of hosts before it and the real gateway behind it. */
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import t, { type Test } from 'tap';
import {
  callTool,
  challenge,
  expectOk,
  type Json,
  newKey,
  type Person,
  request,
  signUp,
  updateKey,
} from '../../../kit/agent.ts';
import { pickPort } from '../../../kit/free-port.ts';
import { launchFor, plainEnvironment, type RunningGateway } from '../../../kit/launch.ts';
import { outputOf } from '../../../kit/run-sync.ts';
import { gatehouseFetch, keyOf } from '../../../packages/connect/src/index.ts';
import { packConnector } from '../../../tools/packaging/pack-connector.ts';
import { INSPECTOR, startPeer, unavailable } from '../../support/connect/peers.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';

t.setTimeout(120_000);

const PROGRAM = fileURLToPath(new URL('../../../packages/connect/src/main.js', import.meta.url));
const BALANCE = { name: 'wallet_get_balance', arguments: {} };
const AVAILABLE = { content: [{ type: 'text', text: /"available":"1000\.00"/ }] };

interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function runTo(
  program: string,
  args: readonly string[],
  environment: Record<string, string>,
  cwd?: string,
): Promise<Finished> {
  const child = spawn(program, args, {
    env: plainEnvironment(environment),
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd,
  });
  const [stdout, stderr, code] = await Promise.all([
    child.stdout.toArray(),
    child.stderr.toArray(),
    new Promise<number | null>((resolve) => child.once('close', resolve)),
  ]);
  return { code, stdout: stdout.join(''), stderr: stderr.join('') };
}

const connector = (home: string, ...args: string[]) =>
  runTo(process.execPath, [PROGRAM, ...args], { XDG_CONFIG_HOME: home });

/** Acts as an owner on the page of the link: the key is claimed, and may only use MCP. */
async function allow(url: string, owner: Person, publicKey: string): Promise<string> {
  const { challengeId, code } = await challenge(url, 'register', owner.cookie);
  const headers = { Cookie: owner.cookie };
  const body = { challengeId, code, publicKey, browserLogin: false };
  const answer = expectOk(
    'register_key',
    await request(`${url}/auth/v1/keys/register_key`, { headers, body }),
  );
  const keyId = String(((answer.json['result'] as Json)['key'] as Json)['id']);
  expectOk('update_key', await updateKey(url, { ...owner, keyId }, { mcpAccess: true }));
  return keyId;
}

const linkedKey = (text: string) => /#agent-key=([A-Za-z0-9_-]{43})&/.exec(text)?.[1] ?? '';

async function stdioClient(t: Test, home: string, url: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' });
  const env = plainEnvironment({ XDG_CONFIG_HOME: home });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [PROGRAM, url],
    env,
    stderr: 'pipe',
  });
  t.teardown(() => client.close());
  await client.connect(transport);
  return client;
}

/** Serves all tests, in the process of the moment. */
const port = await pickPort();
const dataPath = temporaryFolder(t);
const start = () => launchFor(t, { args: ['--sandbox'], dataPath, port });
let standing = await start();

/** The owner, and a folder with the key of an agent that the owner allowed. */
async function prepare(t: Test) {
  const gateway = standing;
  const home = temporaryFolder(t);
  const { stdout } = await connector(home, 'doctor', gateway.url);
  const owner = await signUp(gateway.url);
  const keyId = await allow(gateway.url, owner, linkedKey(stdout));
  return { gateway, home, owner, keyId };
}

async function closeSessions(gateway: RunningGateway, owner: Person): Promise<void> {
  const headers = { Cookie: owner.cookie };
  const body = { others: true };
  expectOk('close_sessions', await request(`${gateway.url}/auth/v1/close_sessions`, { headers, body }));
}

t.test(
  'connector: a new key has a link and letters, and calls say so until its owner allows it',
  async (t) => {
    const gateway = standing;
    const home = temporaryFolder(t);
    const client = await stdioClient(t, home, gateway.url);
    t.ok((await client.listTools()).tools.length > 0, 'a list needs no key');
    const refused: unknown = await client.callTool(BALANCE).catch((error: unknown) => error);
    t.match(refused, { code: -32001, message: /open http:\S+ and type the letters [A-Z2-7]{6}/ });
    t.equal((await connector(home, 'header', gateway.url)).code, 1);
    const owner = await signUp(gateway.url);
    await allow(gateway.url, owner, linkedKey(String(refused)));
    const allowed = await stdioClient(t, home, `${gateway.url}/connect/mcp`);
    t.match(await allowed.callTool(BALANCE), AVAILABLE);
  },
);

t.test('connector: header prints a bearer that works; doctor finds nothing wrong', async (t) => {
  const { gateway, home } = await prepare(t);
  const { code, stdout } = await connector(home, 'header', gateway.url);
  t.equal(code, 0);
  const { Authorization } = JSON.parse(stdout) as { Authorization: string };
  const answer = await callTool(gateway.url, Authorization.replace('Bearer ', ''), BALANCE.name);
  t.match(answer.json, { result: AVAILABLE });
  const sound = await connector(home, 'doctor', gateway.url);
  t.strictSame([sound.code, sound.stdout.match(/^\w+ /gm)], [0, Array(5).fill('ok ')]);
});

t.test('connector: the host sees no closed session and no kill of the gateway', async (t) => {
  const { gateway, home, owner } = await prepare(t);
  const client = await stdioClient(t, home, gateway.url);
  t.match(await client.callTool(BALANCE), AVAILABLE);
  await closeSessions(gateway, owner);
  t.match(await client.callTool(BALANCE), AVAILABLE, 'after close_sessions');
  await gateway.kill();
  const during = client.callTool(BALANCE);
  standing = await start();
  t.match(await during, AVAILABLE, 'a call that began while the gateway was down');
  t.match(await client.callTool(BALANCE), AVAILABLE, 'after the restart');
});

t.test('connector: a removed key is explained to the next call', async (t) => {
  const { gateway, home, owner, keyId } = await prepare(t);
  const client = await stdioClient(t, home, gateway.url);
  t.match(await client.callTool(BALANCE), AVAILABLE);
  const remove = { headers: { Cookie: owner.cookie }, body: { keyId } };
  expectOk('remove_key', await request(`${gateway.url}/auth/v1/keys/remove_key`, remove));
  await t.rejects(client.callTool(BALANCE), { code: -32001, message: /not allowed yet/ });
});

t.test('connector: two that start at once make one key, and both work with it', async (t) => {
  const gateway = standing;
  const home = temporaryFolder(t);
  const [one, two] = await Promise.all([1, 2].map(() => connector(home, 'doctor', gateway.url)));
  const key = linkedKey(one?.stdout ?? '');
  t.match(key, /^.{43}$/);
  t.equal(linkedKey(two?.stdout ?? ''), key);
  t.equal(readdirSync(join(home, 'gatehouse-connect')).length, 1, 'no draft is left');
  await allow(gateway.url, await signUp(gateway.url), key);
  const clients = await Promise.all([1, 2].map(() => stdioClient(t, home, gateway.url)));
  const calls = clients.flatMap((client) => [client.callTool(BALANCE), client.callTool(BALANCE)]);
  t.match(await Promise.all(calls), Array(4).fill(AVAILABLE));
});

t.test('connector: both official clients use its fetch and see no closed session', async (t) => {
  const gateway = standing;
  const owner = await signUp(gateway.url);
  const agent = newKey();
  await allow(gateway.url, owner, agent.publicKey);
  const { d: secret = '' } = agent.privateKey.export({ format: 'jwk' });
  const url = new URL(`${gateway.url}/mcp`);
  const fetch = gatehouseFetch({ url, key: keyOf(secret) });
  const first = new Client({ name: 'test', version: '1.0.0' });
  const second = new Client2({ name: 'test', version: '2.0.0' });
  await first.connect(new StreamableHTTPClientTransport(url, { fetch }) as Parameters<Client['connect']>[0]);
  await second.connect(new Transport2(url, { fetch }));
  t.teardown(() => Promise.all([first.close(), second.close()]));
  const callBoth = () => Promise.all([first.callTool(BALANCE), second.callTool(BALANCE)]);
  t.match(await callBoth(), [AVAILABLE, AVAILABLE]);
  await closeSessions(gateway, owner);
  t.match(await callBoth(), [AVAILABLE, AVAILABLE], 'after close_sessions');
});

// covers R43
t.test('connector: npx runs what the gateway serves; the package has types and no sources', async (t) => {
  const path = packConnector();
  const listed = outputOf('tar', ['-tzf', path]).trim().split('\n');
  t.ok(listed.includes('package/dist/index.d.ts'));
  t.same(
    listed.filter((name) => /^package\/(?:src|test)\//.test(name)),
    [],
  );
  const gateway = standing;
  const folder = temporaryFolder(t);
  const environment = {
    npm_config_cache: join(folder, 'cache'),
    npm_config_update_notifier: 'false',
    XDG_CONFIG_HOME: folder,
  };
  const address = `${gateway.url}/connect/connector.tgz`;
  t.match(await runTo('npx', ['-y', address, 'doctor', gateway.url], environment, folder), {
    code: 1,
    stdout: /ok {3}Version: .*\n[\s\S]*type the letters [A-Z2-7]{6}/,
  });
  // The package that npx has installed starts without npm.
  const npx = join(folder, 'cache/_npx');
  const program = join(npx, readdirSync(npx)[0] ?? '', 'node_modules/.bin/gatehouse-connect');
  const run = (argument: string) => runTo(program, [argument], environment, folder);
  t.match(await run('--version'), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/ });
  t.match(await run('no address'), { code: 2, stderr: /no address of a gateway/ });
});

t.test('connector: the inspector lists and calls through it', { skip: unavailable }, async (t) => {
  const { gateway, home } = await prepare(t);
  const run = (...options: string[]) => {
    const environment = ['-e', `XDG_CONFIG_HOME=${home}`];
    const target = ['--', process.execPath, PROGRAM, gateway.url];
    return startPeer([INSPECTOR, '--cli', ...environment, ...options, ...target], home);
  };
  const list = run('--method', 'tools/list');
  t.equal(await list.exited, 0, list.text());
  t.match(list.text(), BALANCE.name);
  const call = run('--method', 'tools/call', '--tool-name', BALANCE.name);
  t.equal(await call.exited, 0, call.text());
  t.match(call.text(), /1000\.00/);
});
