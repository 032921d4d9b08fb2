/** A profile at /connect on the real program: its token lists and calls the tools of the profile, and is valid there alone. */
import t from 'tap';
import { type Answer, request, signUp } from '../../../kit/agent.ts';
import { connectHost } from '../../../kit/consent.ts';
import { launchFor } from '../../../kit/launch.ts';

t.setTimeout(60_000);

const PROFILE = '/connect/p/shop/mcp';
const gateway = await launchFor(t, {
  args: ['--sandbox'],
  configuration: { McpProfiles: { shop: { tools: ['wallet_get_*'], title: 'Shop' } } },
});

const ask = (path: string, token: string, method: string, params: object = {}): Promise<Answer> =>
  request(`${gateway.url}${path}`, {
    headers: { Authorization: `Bearer ${token}` },
    body: { jsonrpc: '2.0', id: 1, method, params },
  });

t.test('connect profile: a token of it lists and calls its tools, and is refused elsewhere', async (t) => {
  const person = await signUp(gateway.url);
  const token = await connectHost(gateway.url, person, PROFILE);
  const { json } = await ask(PROFILE, token, 'tools/list');
  const { tools } = json['result'] as unknown as { tools: { name: string }[] };
  const names = tools.map(({ name }) => name);
  t.ok(names.length > 0 && names.every((name) => name.startsWith('wallet_get_')), names.join());
  const balance = await ask(PROFILE, token, 'tools/call', { name: 'wallet_get_balance' });
  t.match(balance.text, /"available/);
  const outside = await ask(PROFILE, token, 'tools/call', { name: 'market_get_rates' });
  t.match(outside.json, { error: { code: -32001 } });
  t.match(await ask(PROFILE, token, 'initialize'), {
    json: { result: { serverInfo: { title: 'Shop' } } },
  });
  t.equal((await ask('/connect/mcp', token, 'tools/list')).status, 401);
  t.match((await ask('/mcp', token, 'tools/call', { name: 'wallet_get_balance' })).json, {
    error: { code: -32001 },
  });
});

t.test('connect profile: a page lists the addresses, for users alone', async (t) => {
  const { cookie } = await signUp(gateway.url);
  const at = `${gateway.url}/auth/v1/mcp_profiles`;
  const { json } = await request(at, { headers: { Cookie: cookie } });
  const { result } = json as unknown as { result: { name: string; title: string; address: string }[] };
  t.match(result, [{ name: 'shop', title: 'Shop', address: new RegExp(`${PROFILE}$`) }]);
  t.equal((await request(at)).status, 401);
});
