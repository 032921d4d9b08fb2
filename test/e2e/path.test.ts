/** The whole path on the program: sign-up, MCP access, agent login, a tool call; and the same over kill -9. */
import t from 'tap';
import { callTool, expectOk, mcpLogin, newKey, request, rpc, signUp, signUpAgent } from '../../kit/agent.ts';
import { HIGH_LIMITS, launch } from '../../kit/launch.ts';

t.setTimeout(120_000);

const admin = newKey();
const configuration = { Settings: HIGH_LIMITS, Admin: { publicKeys: [admin.publicKey] } };
/** Each test kills it once, and leaves the next one. */
let gateway = await launch({ configuration, args: ['--sandbox'] });
t.teardown(() => gateway.stop());

async function killAndStart(): Promise<void> {
  await gateway.kill();
  gateway = await launch({ configuration, args: ['--sandbox'], dataPath: gateway.dataPath });
}

async function enrolAgent() {
  const person = await signUpAgent(gateway.url);
  const login = expectOk('mcp_login', await mcpLogin(gateway.url, person.key, Date.now()));
  return { person, login, bearer: String(login.json['result']?.['sessionId']) };
}

// covers R52
t.test(
  'whole path: an agent logs in with its key and calls a tool; all of it survives kill -9',
  async (t) => {
    const { person, login, bearer } = await enrolAgent();
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

    await killAndStart();
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
  },
);

// covers R5
t.test(
  'settings: an admin change takes effect at once and survives a restart; other users are refused',
  async (t) => {
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
    await killAndStart();
    const again = await request(`${gateway.url}/auth/v1/sessions`, { headers: { Cookie: outsider.cookie } });
    t.match(again.headers.get('x-ratelimit'), /^s=s;l=35;/, 'the change overrides the file after a restart');
  },
);
