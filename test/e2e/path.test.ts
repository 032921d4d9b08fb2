/** The whole path on the program: sign-up, MCP access, agent login, a tool call; and the same over kill -9. */
import t from 'tap';
import {
  callTool,
  expectOk,
  mcpLogin,
  newKey,
  request,
  rpc,
  signUp,
  signUpAgent,
  updateKey,
} from '../../kit/agent.ts';
import { HIGH_LIMITS, launch, launchFor, type RunningGateway } from '../../kit/launch.ts';

t.setTimeout(120_000);

const OPTIONS = { configuration: { Settings: HIGH_LIMITS }, args: ['--sandbox'] };
/** Serves the tests that neither stop it nor ask for other settings. */
const gateway = await launchFor(t, OPTIONS);

async function agentOf(gateway: RunningGateway) {
  const person = await signUpAgent(gateway.url);
  const login = expectOk('mcp_login', await mcpLogin(gateway.url, person.key, Date.now()));
  return { person, login, bearer: String(login.json['result']?.['sessionId']) };
}

// covers R52
t.test(
  'whole path: an agent logs in with its key and calls a tool; all of it survives kill -9',
  async (t) => {
    let gateway = await launch(OPTIONS);
    const { person, login, bearer } = await agentOf(gateway);
    t.match(login.json, {
      result: { loginType: 'McpVerified', appId: null, sessionId: /^[A-Za-z0-9_-]{46}$/ },
    });
    t.equal(login.headers.get('set-cookie'), null, 'mcp_login sets no cookie');

    const initialize = {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    };
    const hello = await rpc(gateway.url, undefined, initialize);
    const info = await request(`${gateway.url}/auth/v1/get_info`);
    t.match(hello.json, {
      result: {
        protocolVersion: '2024-11-05',
        serverInfo: { version: String(info.json['result']?.['version']) },
      },
    });
    t.ok(hello.headers.get('mcp-session-id'));

    const before = await callTool(gateway.url, bearer, 'wallet_get_balance');
    t.equal(before.json['result']?.['isError'], undefined, before.text);
    t.match(before.text, /1000\.00/);

    await gateway.kill();
    gateway = await launch({ ...OPTIONS, dataPath: gateway.dataPath });
    const after = await callTool(gateway.url, bearer, 'wallet_get_balance');
    t.same(after.json['result'], before.json['result'], 'the MCP session and the balance are unchanged');
    const keys = await request(`${gateway.url}/auth/v1/keys/user_keys`, {
      headers: { Cookie: person.cookie },
    });
    t.match(keys.json, {
      result: [
        { id: person.keyId, mcpAccess: true, cardDavAccess: false, current: true, keyType: 'UserKey' },
      ],
    });
    await gateway.stop();
  },
);

// covers R1
t.test(
  'whole path: REST calls reach the wallet with a session cookie or a bearer, and not without',
  async (t) => {
    const { person, bearer } = await agentOf(gateway);
    const url = `${gateway.url}/wallet/v1/balance/get?currency=DEMO`;
    const text =
      '{"result":{"balances":[{"currency":"DEMO","balance":"1000.00","available":"1000.00","locked":"0.00","precision":2}]}}';
    for (const headers of [{ Cookie: person.cookie }, { Authorization: `Bearer ${bearer}` }]) {
      const answer = expectOk('balance', await request(url, { headers }));
      t.equal(answer.text, text);
      t.match(answer.headers.get('x-ratelimit'), /^s=s;/);
    }
    t.match((await request(url)).json, { error: { code: 1101 } });
    const lie = { Cookie: person.cookie, 'X-Crm': '1', X_Crm: '1' };
    t.equal(
      (await request(url, { headers: lie })).text,
      text,
      'the session decides the wallet, not the client’s headers',
    );
    const { text: metrics } = await request(`${gateway.internal}/metrics`);
    t.match(metrics, /^gatehouse_calls_total\{event="rest.call",name="wallet",outcome="ok"\} 3$/m);
    const tool = await callTool(gateway.url, bearer, 'wallet_get_balance', { currency: 'DEMO' });
    t.equal(String(tool.json['result']?.['content']?.['0']?.['text']), text, 'the tool returns the same');
  },
);

// covers R79
t.test(
  'whole path: the code of a payment order opens the tools of the payer without a login, and no other tools',
  async (t) => {
    const { bearer } = await agentOf(gateway);
    const order = { currency: 'DEMO', amount: '12.50', description: 'lunch' };
    const made = await callTool(gateway.url, bearer, 'payorder_create', order);
    const code = /\\"code\\":\\"([^"\\]+)/.exec(made.text)?.[1] ?? '';
    t.not(code, '', made.text);
    const ask = async (method: string, params: object, given = code) => {
      const body = { jsonrpc: '2.0', id: 1, method, params };
      return await request(`${gateway.url}/mcp`, { headers: { 'X-MCP-Code': given }, body });
    };
    const list = (await ask('tools/list', {})).text;
    t.match(list, /"payment_order_info"/);
    t.notMatch(list, /"(?:wallet_get_balance|payorder_create|chat_list)"/);
    t.match((await ask('tools/call', { name: 'payment_order_info' })).text, /12\.50/);
    t.match((await ask('tools/call', { name: 'wallet_get_balance' })).json, { error: { code: -32001 } });
    const wrong = await ask('tools/list', {}, `${code.slice(0, -1)}${code.endsWith('A') ? 'B' : 'A'}`);
    t.match(wrong.json, { error: { code: -32602, message: 'Invalid params: invalid capability code' } });
  },
);

// covers R79
t.test(
  'whole path: an invite code opens its chat to a device without a login, and the owner reads its message',
  async (t) => {
    const { bearer } = await agentOf(gateway);
    const made = await callTool(gateway.url, bearer, 'chat_create', { name: 'lunch' });
    const invites = await callTool(gateway.url, bearer, 'chat_invites');
    const code = /\\"code\\":\\"([^"\\]+)/.exec(invites.text)?.[1] ?? '';
    t.not(code, '', `${made.text} ${invites.text}`);
    const write = async (headers: Record<string, string>) => {
      const params = { name: 'chat_anon_send_message', arguments: { text: 'soup at noon', code } };
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      return await request(`${gateway.url}/mcp`, { headers, body });
    };
    t.match((await write({})).json, { error: { code: -32602, message: /device id/ } });
    const sent = await write({ 'X-Device-Guid': '6f1c2b8e-0d53-4a07-9a51-3f6a0c9d2e10' });
    t.equal(sent.json['result']?.['isError'], undefined, sent.text);
    const chatId = /\\"id\\":\\"(\d+)/.exec(made.text)?.[1] ?? '';
    const read = await callTool(gateway.url, bearer, 'chat_messages', { chatId });
    t.match(read.text, /soup at noon/);
  },
);

// covers R28 R33
t.test(
  'whole path: closing a session, clearing mcpAccess and removing the key each end the agent at once',
  async (t) => {
    const headersOf = (cookie: string) => ({ Cookie: cookie });
    const ended = async (bearer: string, why: string) => {
      const answer = await callTool(gateway.url, bearer, 'wallet_get_balance');
      t.match(answer.json, { error: { code: -32001 }, id: 1 }, why);
      t.equal(answer.status, 200, 'never a 401 on /mcp');
    };
    const closed = await agentOf(gateway);
    expectOk(
      'close',
      await request(`${gateway.url}/auth/v1/close_sessions`, {
        headers: headersOf(closed.person.cookie),
        body: { others: true },
      }),
    );
    await ended(closed.bearer, 'closed by its owner');

    const cleared = await agentOf(gateway);
    expectOk('clear', await updateKey(gateway.url, cleared.person, { mcpAccess: false }));
    await ended(cleared.bearer, 'mcpAccess cleared');
    t.match((await mcpLogin(gateway.url, cleared.person.key, Date.now())).json, {
      error: { message: 'Access denied' },
    });

    const removed = await agentOf(gateway);
    const remove = { headers: headersOf(removed.person.cookie), body: { keyId: removed.person.keyId } };
    expectOk('remove', await request(`${gateway.url}/auth/v1/keys/remove_key`, remove));
    await ended(removed.bearer, 'key removed');
    t.equal(
      (await request(`${gateway.url}/auth/v1/sessions`, { headers: headersOf(removed.person.cookie) }))
        .status,
      401,
    );
  },
);

t.test(
  'limits: with the default settings the eleventh mcp_login of a key in a window is refused with Retry-After',
  async (t) => {
    const gateway = await launchFor(t, { configuration: { Settings: { ApiRPSLimit: 0, IpRPSLimit: 0 } } });
    const key = newKey();
    const statuses: number[] = [];
    let refused = await mcpLogin(gateway.url, key, Date.now());
    for (let tried = 1; tried < 25 && refused.status !== 429; tried += 1) {
      statuses.push(refused.status);
      refused = await mcpLogin(gateway.url, key, Date.now());
    }
    t.ok(
      statuses.every((status) => status === 401),
      'an unknown key is 401 before the limit',
    );
    t.equal(refused.status, 429);
    t.match(refused.json, { error: { code: 1002, message: 'Access rate limit' } });
    const wait = Number(refused.headers.get('retry-after'));
    t.ok(wait >= 1 && wait <= 5);
    t.equal(refused.headers.get('x-ratelimit'), `s=m;l=10;r=0;t=${wait}`);
  },
);

// covers R5
t.test(
  'settings: an admin change takes effect at once and survives a restart; other users are refused',
  async (t) => {
    const admin = newKey();
    const configuration = { Settings: HIGH_LIMITS, Admin: { publicKeys: [admin.publicKey] } };
    let gateway = await launch({ configuration });
    const person = await signUp(gateway.url, admin);
    const outsider = await signUp(gateway.url);
    const url = () => `${gateway.url}/ProxyAdmin/api/settings`;
    const change = { name: 'SessionApiRPSLimit', value: 7 };
    t.equal((await request(url(), { body: change })).status, 401);
    t.equal((await request(url(), { headers: { Cookie: outsider.cookie }, body: change })).status, 403);
    const headers = { Cookie: person.cookie };
    t.equal((await request(url(), { headers, body: { name: 'NoSuch', value: 7 } })).status, 400);
    t.equal((await request(url(), { headers, body: { ...change, value: -1 } })).status, 400);
    const done = expectOk('settings', await request(url(), { headers, body: change }));
    t.match(done.json, { result: { id: 11, name: 'SessionApiRPSLimit', value: 7, default: 3 } });
    const next = await request(`${gateway.url}/auth/v1/sessions`, { headers: { Cookie: outsider.cookie } });
    t.match(next.headers.get('x-ratelimit'), /^s=s;l=35;r=\d+;t=[1-5]$/, 'effective at once');
    await gateway.kill();
    gateway = await launch({ dataPath: gateway.dataPath, configuration });
    const again = await request(`${gateway.url}/auth/v1/sessions`, { headers: { Cookie: outsider.cookie } });
    t.match(again.headers.get('x-ratelimit'), /^s=s;l=35;/, 'the change overrides the file after a restart');
    await gateway.stop();
  },
);
