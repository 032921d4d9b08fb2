/**
 * MCP at any node: the official clients at a node that owns none of their accounts and spread over all, every type of
 * log-in, codes, the proxy, and what one message does to a call or stream at another node.
 */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  type Answer,
  callTool,
  expectOk,
  type Json,
  type Person,
  request,
  rpc,
  signUpAgent,
  verifiedHeaders,
} from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import { nodesTest, resultOf, type ThreeNodes, verifiedBearer } from '../../support/cluster/three-nodes.ts';
import { useEveryMode } from '../../support/mcp-clients/client-modes.ts';
import { type ToolUser, useEveryTool } from '../../support/mcp-clients/every-tool.ts';

/** Tools of the configuration of the nodes. */
const CONFIGURED = 1;
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const BALANCE = '/wallet/v1/balance/get';
const SLOW = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'slow_tool', arguments: {} } };

t.setTimeout(240_000);

async function newUser(node: NodeProcess): Promise<ToolUser> {
  const person = await signUpAgent(node.url);
  return { person, bearer: await verifiedBearer(node, person) };
}

/** A node that owns neither of two accounts. */
async function otherThanOwners(
  { cluster, nodes }: ThreeNodes,
  users: readonly ToolUser[],
): Promise<NodeProcess> {
  const owners = await Promise.all(users.map(({ person }) => cluster.ownerOf('user', person.userId)));
  const other = nodes.find((node) => !owners.includes(node));
  if (other === undefined) throw new Error('every node owns one of the accounts');
  return other;
}

nodesTest('official client 1: every tool at a node that owns neither account', async (t, three) => {
  const users = { user: await newUser(three.nodes[0]), receiver: await newUser(three.nodes[1]) };
  const { url } = await otherThanOwners(three, Object.values(users));
  await useEveryTool(t, url, { ...users, configured: CONFIGURED });
});

nodesTest('official client 1: every tool, each request at the next node', async (t, three) => {
  const users = { user: await newUser(three.nodes[0]), receiver: await newUser(three.nodes[1]) };
  await useEveryTool(t, three.baseUrl, { ...users, configured: CONFIGURED });
});

nodesTest(
  'official client 2: every mode at a node that owns the account not, and spread over all',
  async (t, three) => {
    const user = await newUser(three.nodes[0]);
    const { url } = await otherThanOwners(three, [user]);
    await useEveryMode(t, url, user.bearer, CONFIGURED);
    await useEveryMode(t, three.baseUrl, user.bearer, CONFIGURED);
  },
);

async function newApp(three: ThreeNodes, owner: Person): Promise<string> {
  const [a, b, c] = three.nodes;
  const shop = { name: 'Shop', url: 'https://shop.example' };
  const { id } = await resultOf(b, owner.cookie, '/auth/v1/app/upsert_usr_app', shop);
  const change = { appId: id, approved: true, mcpEnabled: true };
  await resultOf(c, await three.adminOf(a), '/ProxyAdmin/api/apps/update', change);
  return String(id);
}

nodesTest('every type of log-in holds at each node, by tool and by proxy', async (t, three) => {
  const person = await signUpAgent(three.nodes[0].url);
  const appId = await newApp(three, person);
  const logIn = (node: NodeProcess, headers: Record<string, string>) =>
    request(`${node.url}/auth/v1/mcp_login`, { method: 'POST', headers });
  const publicKey = { 'X-PublicKey': person.key.publicKey };
  const signature = () => verifiedHeaders(person.key, Math.floor(Date.now() / 1_000));
  const ways: readonly (readonly [type: string, headers: () => Record<string, string>, sessions: number])[] =
    [
      ['McpBasic', () => publicKey, -32001],
      ['McpVerified', signature, 200],
      ['McpApp', () => ({ ...publicKey, 'X-App-Id': appId }), -32001],
      ['McpApp', () => ({ ...signature(), 'X-App-Id': appId }), -32001],
    ];
  for (const [loginType, headers, sessions] of ways)
    for (const at of three.nodes) {
      const login = expectOk('mcp_login', await logIn(at, headers())).json['result'];
      t.match(login, { loginType });
      const bearer = String(login?.['sessionId']);
      for (const node of three.nodes) {
        const where = `${loginType} of ${at.name} at ${node.name}`;
        t.match((await callTool(node.url, bearer, 'wallet_get_balance')).text, /1000\.00/, where);
        const { json } = await callTool(node.url, bearer, 'sessions');
        t.equal(Number(json['error']?.['code'] ?? 200), sessions, `sessions: ${where}`);
        const proxied = await request(`${node.url}${BALANCE}`, {
          headers: { Authorization: `Bearer ${bearer}` },
        });
        t.match(expectOk(where, proxied).text, /1000\.00/, `the proxy: ${where}`);
      }
    }
  for (const node of three.nodes) {
    const proxied = await request(`${node.url}${BALANCE}`, { headers: { Cookie: person.cookie } });
    t.match(expectOk('proxy', proxied).text, /1000\.00/, `the proxy with a cookie at ${node.name}`);
  }
});

function textOf(answer: Answer): Json {
  const { result } = expectOk('tool', answer).json;
  if (result === undefined || result['isError'] !== undefined) throw new Error(answer.text);
  const [item] = result['content'] as unknown as { text: string }[];
  return JSON.parse(item?.text ?? '').result;
}

// covers C5
nodesTest('capability codes of one node open the same at all', async (t, three) => {
  const [a, b, c] = three.nodes;
  const { bearer } = await newUser(a);
  const withCode = (node: NodeProcess, headers: Record<string, string>, name: string, args: object = {}) =>
    request(`${node.url}/mcp`, {
      headers,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
    });
  const asked = { currency: 'DEMO', amount: '3.00', description: 'tea' };
  const order = textOf(await callTool(b.url, bearer, 'payorder_create', asked));
  const code = { 'X-MCP-Code': String(order['code']) };
  for (const node of [c, a, b]) textOf(await withCode(node, code, 'payment_order_info'));
  const card = { cardNumber: '4242 4242 4242 4242', expiry: '09/31', cvc: '123' };
  t.equal(textOf(await withCode(c, code, 'payment_pay_card', card))['state'], 'completed');
  const wrong = { 'X-MCP-Code': 'no such code' };
  for (const node of three.nodes)
    t.match((await withCode(node, wrong, 'payment_order_info')).json, { error: {} });

  const chat = textOf(await callTool(c.url, bearer, 'chat_create', { name: 'Tea' }));
  const invites = textOf(await callTool(a.url, bearer, 'chat_invites'))['invites'] as unknown as Json[];
  const guest = { 'X-MCP-Code': String(invites[0]?.['code']), 'X-Device-Guid': randomUUID() };
  for (const node of three.nodes)
    textOf(
      await withCode(node, guest, 'chat_anon_send_message', { text: `from ${node.name}`, name: 'Guest' }),
    );
  const seen = textOf(await callTool(b.url, bearer, 'chat_messages', { chatId: chat['id'] }));
  const texts = (seen['messages'] as unknown as Json[]).map((message) => String(message['text']));
  t.strictSame(texts.sort(), ['from a', 'from b', 'from c']);
});

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

// covers S74
nodesTest('an Mcp-Session-Id of one node holds at all, and is over at all', async (t, three) => {
  const [a, b, c] = three.nodes;
  const { bearer } = await newUser(a);
  const begun = expectOk('initialize', await rpc(a.url, bearer, initialize));
  const sessionId = begun.headers.get('mcp-session-id') ?? '';
  t.match(sessionId, /^[\w-]{40}$/);
  const headers = { Authorization: `Bearer ${bearer}`, 'Mcp-Session-Id': sessionId };
  const listAt = ({ url }: NodeProcess) => request(`${url}/mcp`, { headers, body: LIST });
  for (const node of three.nodes)
    t.equal((await listAt(node)).status, 200, `opened at a, used at ${node.name}`);
  const other = { ...headers, Authorization: `Bearer ${(await newUser(c)).bearer}` };
  t.equal(
    (await request(`${b.url}/mcp`, { method: 'DELETE', headers: other })).status,
    404,
    'another account',
  );
  t.equal((await request(`${b.url}/mcp`, { method: 'DELETE', headers })).status, 204);
  for (const node of [c, a, b]) t.equal((await listAt(node)).status, 404, `ended at b, over at ${node.name}`);
  t.equal((await rpc(c.url, bearer, LIST)).status, 200, 'the bearer lives on');
});

// covers C14
nodesTest('a call at one node is cancelled by a message to another', async (t, three) => {
  const { bearer } = await newUser(three.nodes[0]);
  const [a, b, c] = three.nodes;
  for (const [runsAt, cancelledAt] of [
    [a, b],
    [b, c],
    [c, c],
  ] as const) {
    const arrival = three.slow.next();
    const call = rpc(runsAt.url, bearer, SLOW);
    const { closed } = await arrival;
    const notification = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: SLOW.id },
    };
    await rpc(cancelledAt.url, bearer, notification);
    await closed;
    t.match(
      (await call).json,
      { error: { code: -32000, message: /cancelled/ } },
      `at ${runsAt.name}, cancelled at ${cancelledAt.name}`,
    );
  }
});

/** Streams of changed lists, which end with the session. */
async function listening({ url }: NodeProcess, bearer: string): Promise<{ ended: Promise<string> }> {
  const answer = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Mcp-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'subscriptions/listen',
      Authorization: `Bearer ${bearer}`,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 'a1',
      method: 'subscriptions/listen',
      params: {
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {},
        },
        notifications: { toolsListChanged: true },
      },
    }),
  });
  return { ended: answer.text() };
}

nodesTest('streams at every node end with a session that is closed at one', async (t, three) => {
  const person = await signUpAgent(three.nodes[0].url);
  for (const at of three.nodes) {
    const bearer = await verifiedBearer(at, person);
    const streams = await Promise.all(three.nodes.map((node) => listening(node, bearer)));
    await resultOf(at, person.cookie, '/auth/v1/close_sessions', { others: true });
    for (const { ended } of streams) t.match(await ended, /"resultType":"complete"/, `closed at ${at.name}`);
  }
});
