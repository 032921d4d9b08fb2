/**
 * The official client of version 1 on the real program: connects with a bearer, and uses every gateway tool and every wallet
 * tool, resources, and the end of its session.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { Test } from 'tap';
import { type Person, request } from '../../../kit/agent.ts';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';

export async function connectClient(t: Test, url: string, bearer: string): Promise<Client> {
  const client = new Client({ name: 'e2e', version: '1.0.0' });
  const requestInit = { headers: { Authorization: `Bearer ${bearer}` } };
  t.teardown(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
  return client;
}

/** The parsed text of a tool result; fails the test if it is an error. */
export async function toolResult(t: Test, client: Client, name: string, values: object = {}) {
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
  const wallet = await toolResult(t, client, 'wallet_get_info');
  const { currency, withdrawMin } = wallet.currencies[0];
  t.match(await toolResult(t, receiver, 'wallet_get_balance', { currency }), {
    balances: [{ available: '1000.00' }],
  });
  const sending = {
    toUserId,
    currency,
    amount: '12.50',
    tag: 'lunch',
    externalId: '20261120001',
  };
  const sent = await toolResult(t, client, 'wallet_internal_transfer', sending);
  t.strictSame(
    await toolResult(t, client, 'wallet_internal_transfer', sending),
    sent,
    'sent twice, moved once',
  );
  t.match(await toolResult(t, client, 'wallet_get_balance', { currency }), {
    balances: [{ available: '987.50' }],
  });
  t.match(await toolResult(t, receiver, 'wallet_get_balance', { currency }), {
    balances: [{ available: '1012.50' }],
  });
  const tooMuch = { ...sending, amount: '5000', externalId: '20261120002' };
  t.match(await errorOf(t, client, 'wallet_internal_transfer', tooMuch), { message: /Insufficient funds/ });
  t.match(await errorOf(t, client, 'wallet_internal_transfer', { ...sending, amount: 12.5 }), {
    code: 1001,
    detail: /amount must be string/,
  });
  const { transactions } = await toolResult(t, client, 'wallet_get_history_transactions', {
    currency,
    limit: 1,
  });
  t.equal(transactions.length, 1);
  t.match(await toolResult(t, client, 'wallet_get_tx_info', { id: transactions[0].id }), { currency });
  t.match(
    await errorOf(t, receiver, 'wallet_get_tx_info', { id: transactions[0].id }),
    {},
    'transactions of other users are not readable',
  );
  t.ok((await toolResult(t, client, 'wallet_list_addresses', { currency })).addresses.length > 0);
  const address = { currency, amount: withdrawMin, address: 'DE89370400440532013000' };
  t.ok(await toolResult(t, client, 'wallet_create_withdraw', address));
}

export interface ToolUser {
  readonly person: Person;
  /** Bearer of a McpVerified session. */
  readonly bearer: string;
}

/** `configured`: tools of the configuration, beside those of the program. The session of `user` is closed at the end. */
export async function useEveryTool(
  t: Test,
  url: string,
  {
    user,
    receiver: { person: other, bearer: otherBearer },
    configured = 0,
  }: { user: ToolUser; receiver: ToolUser; configured?: number },
): Promise<void> {
  const { person, bearer } = user;
  const client = await connectClient(t, url, bearer);
  const receiver = await connectClient(t, url, otherBearer);
  const info = await request(`${url}/auth/v1/get_info`);
  t.equal(client.getServerVersion()?.version, String(info.json['result']?.['version']));
  t.strictSame(await client.ping(), {});
  const open = Object.values(BUILT_IN.tools).filter((row) => row.capabilityModule === undefined);
  t.equal((await client.listTools()).tools.length, open.length + configured);

  const twins: [string, string][] = [
    ['sessions', 'sessions'],
    ['login_log', 'login_log'],
    ['user_keys', 'keys/user_keys'],
  ];
  for (const [tool, path] of twins) {
    const result = await toolResult(t, client, tool);
    const twin = await request(`${url}/auth/v1/${path}`, { headers: { Cookie: person.cookie } });
    const ids = (list: { id: string }[]) => list.map(({ id }) => id);
    t.strictSame(ids(result), ids(twin.json['result'] as unknown as { id: string }[]), tool);
  }
  t.strictSame(await toolResult(t, client, 'get_usr_apps'), []);
  t.strictSame(await toolResult(t, client, 'list_app_access'), []);
  t.match(await errorOf(t, client, 'get_app_info', { id: '1' }), { code: 1004 });
  t.match(await errorOf(t, client, 'revoke_app_access', { appId: '1' }), { code: 1004 });
  t.match(await errorOf(t, client, 'close_sessions', { sessionIds: ['1'] }), { code: 1004 });

  await moveMoney(t, client, receiver, other.userId);
  const { resources } = await client.listResources();
  for (const { uri } of resources) {
    const { contents } = await client.readResource({ uri });
    t.match(contents, [{ uri, mimeType: 'application/json', text: /^\{"result":/ }], uri);
  }
  t.ok(await toolResult(t, client, 'close_sessions', { others: true }));
  t.ok(await toolResult(t, client, 'user_keys'), 'the requesting session stays open');
  t.ok(await toolResult(t, client, 'close_sessions'));
  await t.rejects(client.callTool({ name: 'user_keys' }), { code: -32001 }, 'and is closed by the last call');
}
