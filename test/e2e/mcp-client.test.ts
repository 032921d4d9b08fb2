/**
 * The official client against the program: a user signs up and enables the key, an agent logs in by signature and
 * uses every tool of the catalog on the sandbox, moves money, loses its session, and gets a custom tool by reload.
 */
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import t, { type Test } from 'tap';
import { BUILT_IN } from '../../src/io/mcp/tools/built-in.ts';
import {
  basicLogin,
  expectOk,
  mcpLogin,
  newKey,
  type Person,
  request,
  signUp,
  updateKey,
} from '../../tools/agent.ts';
import { launch, type RunningGateway } from '../../tools/launch.ts';

t.setTimeout(120_000);

/** Limits are raised for the test, never bypassed. */
const Settings = {
  ApiRPSLimit: 1000,
  IpRPSLimit: 1000,
  SessionApiRPSLimit: 1000,
  UserApiRPSLimit: 1000,
  PubKeyApiRPSLimit: 1000,
  McpApiRPSLimit: 1000,
};

async function newPerson(gateway: RunningGateway): Promise<Person> {
  const person = await signUp(gateway.url);
  expectOk('update_key', await updateKey(gateway.url, person, { mcpAccess: true }));
  return person;
}

async function verifiedBearer(gateway: RunningGateway, person: Person): Promise<string> {
  const login = expectOk('mcp_login', await mcpLogin(gateway.url, person.key, Date.now()));
  return String(login.json['result']?.['sessionId']);
}

async function basicBearer(gateway: RunningGateway, person: Person): Promise<string> {
  const login = await basicLogin(gateway.url, person.key);
  return String(expectOk('mcp_login', login).json['result']?.['sessionId']);
}

async function connect(t: Test, gateway: RunningGateway, bearer: string): Promise<Client> {
  const client = new Client({ name: 'e2e', version: '1.0.0' });
  const requestInit = { headers: { Authorization: `Bearer ${bearer}` } };
  t.teardown(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }));
  return client;
}

/** The parsed text of a tool result; fails the test if it is an error. */
async function resultOf(t: Test, client: Client, name: string, values: object = {}) {
  const answer = (await client.callTool({ name, arguments: { ...values } })) as CallToolResult;
  const [item] = answer.content;
  const text = item?.type === 'text' ? item.text : '';
  t.equal(answer.isError, undefined, `${name}: ${text}`);
  return JSON.parse(text).result;
}

/** The error of a call that is expected to fail. */
async function errorOf(t: Test, client: Client, name: string, values: object = {}) {
  const answer = (await client.callTool({ name, arguments: { ...values } })) as CallToolResult;
  const [item] = answer.content;
  const text = item?.type === 'text' ? item.text : '';
  t.equal(answer.isError, true, `${name}: ${text}`);
  return JSON.parse(text).error;
}

/** Calls every wallet tool once, and the refused calls that must move no money. */
async function moveMoney(t: Test, client: Client, receiver: Client, toUserId: string): Promise<void> {
  const wallet = await resultOf(t, client, 'wallet_get_info');
  const { currency, withdrawMin } = wallet.currencies[0];
  t.match(await resultOf(t, receiver, 'wallet_get_balance', { currency }), {
    balances: [{ available: '1000.00' }],
  });
  const sending = {
    toUserId,
    currency,
    amount: '12.50',
    tag: 'lunch',
    externalId: '20261120001',
  };
  const sent = await resultOf(t, client, 'wallet_internal_transfer', sending);
  t.strictSame(
    await resultOf(t, client, 'wallet_internal_transfer', sending),
    sent,
    'sent twice, moved once',
  );
  t.match(await resultOf(t, client, 'wallet_get_balance', { currency }), {
    balances: [{ available: '987.50' }],
  });
  t.match(await resultOf(t, receiver, 'wallet_get_balance', { currency }), {
    balances: [{ available: '1012.50' }],
  });
  const tooMuch = { ...sending, amount: '5000', externalId: '20261120002' };
  t.match(await errorOf(t, client, 'wallet_internal_transfer', tooMuch), { message: /Insufficient funds/ });
  t.match(await errorOf(t, client, 'wallet_internal_transfer', { ...sending, amount: 12.5 }), {
    code: 1001,
    detail: /amount must be string/,
  });
  const { transactions } = await resultOf(t, client, 'wallet_get_history_transactions', {
    currency,
    limit: 1,
  });
  t.equal(transactions.length, 1);
  t.match(await resultOf(t, client, 'wallet_get_tx_info', { id: transactions[0].id }), { currency });
  t.match(
    await errorOf(t, receiver, 'wallet_get_tx_info', { id: transactions[0].id }),
    {},
    'transactions of other users are not readable',
  );
  t.ok((await resultOf(t, client, 'wallet_list_addresses', { currency })).addresses.length > 0);
  const address = { currency, amount: withdrawMin, address: 'DE89370400440532013000' };
  t.ok(await resultOf(t, client, 'wallet_create_withdraw', address));
}

t.test('official client: every gateway and wallet tool on the real program, as McpVerified', async (t) => {
  const gateway = await launch({ configuration: { Settings }, args: ['--sandbox'] });
  t.teardown(() => gateway.stop());
  const [person, other] = [await newPerson(gateway), await newPerson(gateway)];
  const bearer = await verifiedBearer(gateway, person);
  const client = await connect(t, gateway, bearer);
  const receiver = await connect(t, gateway, await verifiedBearer(gateway, other));
  const info = await request(`${gateway.url}/auth/v1/get_info`);
  t.equal(client.getServerVersion()?.version, String(info.json['result']?.['version']));
  t.strictSame(await client.ping(), {});
  const open = Object.values(BUILT_IN.tools).filter((row) => row.capabilityModule === undefined);
  t.equal((await client.listTools()).tools.length, open.length);

  const twins: [string, string][] = [
    ['sessions', 'sessions'],
    ['login_log', 'login_log'],
    ['user_keys', 'keys/user_keys'],
  ];
  for (const [tool, path] of twins) {
    const result = await resultOf(t, client, tool);
    const twin = await request(`${gateway.url}/auth/v1/${path}`, { headers: { Cookie: person.cookie } });
    const ids = (list: { id: string }[]) => list.map(({ id }) => id);
    t.strictSame(ids(result), ids(twin.json['result'] as unknown as { id: string }[]), tool);
  }
  t.strictSame(await resultOf(t, client, 'get_usr_apps'), []);
  t.strictSame(await resultOf(t, client, 'list_app_access'), []);
  t.match(await errorOf(t, client, 'get_app_info', { id: '1' }), { code: 1004 });
  t.match(await errorOf(t, client, 'revoke_app_access', { appId: '1' }), { code: 1004 });
  t.match(await errorOf(t, client, 'close_sessions', { sessionIds: ['1'] }), { code: 1004 });

  await moveMoney(t, client, receiver, other.userId);
  const { resources } = await client.listResources();
  for (const { uri } of resources) {
    const { contents } = await client.readResource({ uri });
    t.match(contents, [{ uri, mimeType: 'application/json', text: /^\{"result":/ }], uri);
  }
  t.ok(await resultOf(t, client, 'close_sessions', { others: true }));
  t.ok(await resultOf(t, client, 'user_keys'), 'the requesting session stays open');
  t.ok(await resultOf(t, client, 'close_sessions'));
  await t.rejects(client.callTool({ name: 'user_keys' }), { code: -32001 }, 'and is closed by the last call');
});

t.test('official client: McpBasic reads the curated tools and moves no money', async (t) => {
  const gateway = await launch({ configuration: { Settings }, args: ['--sandbox'] });
  t.teardown(() => gateway.stop());
  const client = await connect(t, gateway, await basicBearer(gateway, await newPerson(gateway)));
  const { tools } = await client.listTools();
  t.ok(tools.every(({ annotations }) => annotations?.readOnlyHint === true));
  t.ok(tools.some(({ name }) => name === 'wallet_get_balance'));
  t.ok((await resultOf(t, client, 'wallet_get_balance')).balances.length > 0);
  for (const name of ['wallet_internal_transfer', 'wallet_create_withdraw', 'close_sessions', 'sessions'])
    await t.rejects(client.callTool({ name }), { code: -32001 }, name);
});

/** Results of the reloads in the audit log, oldest first. */
async function reloadsOf(gateway: RunningGateway, admin: Person): Promise<string[]> {
  const headers = { Cookie: admin.cookie };
  const answer = await request(`${gateway.url}/ProxyAdmin/api/audit?after=0&limit=1000`, { headers });
  const rows = answer.json['result'] as unknown as { event: string; fields: { outcome: string } }[];
  return rows.filter(({ event }) => event === 'admin.reload').map(({ fields }) => fields.outcome);
}

t.test(
  'custom tools: loaded from the configuration, swapped by SIGHUP and by an admin, kept if the new file has faults',
  async (t) => {
    const asked: string[] = [];
    const adminKey = newKey();
    const backend = http.createServer((incoming, response) => {
      asked.push(`${incoming.method} ${incoming.url} ${incoming.headers['x-scopes']}`);
      response.end('{"n":9007199254740993}');
    });
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve));
    t.teardown(() => backend.close());
    const address = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
    const row = {
      endpoint: `${address}/x`,
      method: 'GET',
      description: 'A tool',
      inputSchema: { type: 'object' },
    };
    const configuration = {
      Settings,
      Admin: { publicKeys: [adminKey.publicKey] },
      McpTools: { first: row },
      McpResources: {
        'test://static-text': { endpoint: `${address}/text`, name: 'Text', mimeType: 'text/plain' },
      },
    };
    const gateway = await launch({ configuration, args: ['--sandbox'] });
    t.teardown(() => gateway.stop());
    const client = await connect(t, gateway, await verifiedBearer(gateway, await newPerson(gateway)));
    const answer = await client.callTool({ name: 'first', arguments: { a: '1' } });
    t.match(answer.content, [{ text: '{"n":9007199254740993}' }]);
    const { contents } = await client.readResource({ uri: 'test://static-text' });
    t.match(contents, [{ uri: 'test://static-text', mimeType: 'text/plain' }]);
    t.strictSame(asked, ['GET /x?a=1 McpVerified', 'GET /text McpVerified']);

    const file = join(gateway.dataPath, '..', 'gatehouse.json');
    const reloaded = async (change: object, logged: RegExp) => {
      const before = gateway.output().stderr.length;
      writeFileSync(file, JSON.stringify({ ...configuration, ...change }));
      const said = new Promise<void>((resolve) => {
        gateway.process.stderr?.on(
          'data',
          () => logged.test(gateway.output().stderr.slice(before)) && resolve(),
        );
      });
      gateway.process.kill('SIGHUP');
      await said;
      return (await client.listTools()).tools
        .map(({ name }) => name)
        .filter((name) => BUILT_IN.tools[name] === undefined);
    };
    t.strictSame(
      await reloaded({ McpTools: { second: { ...row, method: 'TRACE' } } }, /McpTools\.second\.method/),
      ['first'],
    );
    t.strictSame(await reloaded({ McpTools: { second: row } }, /reload/), ['second']);

    const admin = await signUp(gateway.url, adminKey);
    const byAdmin = async (change: object) => {
      writeFileSync(file, JSON.stringify({ ...configuration, ...change }));
      return request(`${gateway.url}/ProxyAdmin/api/reload`, {
        headers: { Cookie: admin.cookie },
        body: {},
      });
    };
    const broken = await byAdmin({ McpTools: { third: { ...row, method: 'TRACE' }, 'bad name': row } });
    t.equal(broken.status, 409);
    t.match(broken.json, {
      error: { code: 1017, faults: [{ path: 'McpTools.third.method' }, { path: 'McpTools.bad name' }] },
    });
    t.ok((await client.listTools()).tools.some(({ name }) => name === 'second'));
    const mended = await byAdmin({ McpTools: { third: row, fourth: row } });
    t.match(mended, { status: 200, json: { result: { tools: Object.keys(BUILT_IN.tools).length + 2 } } });
    const names = (await client.listTools()).tools.map(({ name }) => name);
    t.ok(names.includes('third') && names.includes('fourth') && !names.includes('second'));
    t.strictSame(await reloadsOf(gateway, admin), ['refused', 'ok']);
  },
);
