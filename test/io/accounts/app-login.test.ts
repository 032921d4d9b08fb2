/** McpApp: logins for an application, what its sessions may do and for whom, and everything that ends them. */
import http from 'node:http';
import t, { type Test } from 'tap';
import { listenOnLoopback } from '../../../kit/http.ts';
import { nodeSchedule } from '../../../src/actors/runtime/runtime-context.ts';
import { CapabilityCodes } from '../../../src/io/mcp/capability.ts';
import { LiveCatalog, loadCatalog } from '../../../src/io/mcp/catalog.ts';
import { ListChanges } from '../../../src/io/mcp/list-changes.ts';
import { NodeSignals } from '../../../src/io/mcp/node-signals.ts';
import { McpSessionIds } from '../../../src/io/mcp/session-ids.ts';
import { ToolLimits } from '../../../src/io/mcp/tool-limits.ts';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';
import { GATEWAY_SERVICES } from '../../../src/io/mcp/tools/gateway.ts';
import { createModuleClient } from '../../../src/io/modules/client.ts';
import { createMcpRoutes } from '../../../src/io/routes/mcp.ts';
import {
  type Account,
  type Answer,
  cookie,
  type Key,
  makeKey,
  mcpProof,
  refused,
  signText,
} from '../../support/account.ts';
import { START_MS } from '../../support/actors/actors.ts';
import { freshBounds } from '../../support/actors/bounds.ts';
import { CIPHER, startAdmin } from '../../support/admin.ts';

const NOW_SECONDS = START_MS / 1000;
const OPEN = { approved: true, mcpEnabled: true };
const DENIED = [401, /"code":1103,"message":"Access denied"/] as const;

interface Rpc {
  readonly result?: { tools?: { name: string }[]; content?: { text: string }[]; isError?: boolean };
  readonly error?: { code: number };
}
type Item = Record<string, unknown>;

/** An owner with an agent's key, an application that is open, and /mcp in front of a wallet that keeps what it receives. */
async function start(t: Test, personalReads = true) {
  const heard: http.IncomingHttpHeaders[] = [];
  const wallet = http.createServer((request, response) => {
    heard.push(request.headers);
    response.setHeader('content-type', 'application/json').end('{"result":{"balances":[]}}');
  });
  const { url } = await listenOnLoopback(wallet);
  const loaded = loadCatalog(BUILT_IN, { tools: {}, resources: {} }, new Map([['wallet', url]]), {
    personalReads,
  });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));
  const catalog = new LiveCatalog(loaded.catalog);
  const modules = createModuleClient({ clock: () => START_MS, bounds: freshBounds() });
  const codes = new CapabilityCodes({ modules, moduleAddresses: new Map() });
  const listChanges = new ListChanges({
    catalog,
    bounds: freshBounds(),
    clock: () => START_MS,
    schedule: nodeSchedule,
    isSessionAlive: () => true,
  });
  const fixture = await startAdmin({
    routes: (_actors, _bounds, sessions) =>
      createMcpRoutes({
        sessions,
        catalog,
        modules,
        gateway: GATEWAY_SERVICES,
        codes,
        listChanges,
        signals: new NodeSignals(),
        sessionIds: new McpSessionIds(CIPHER),
        toolLimits: new ToolLimits(() => START_MS),
      }),
  });
  t.teardown(async () => {
    await modules.close();
    wallet.closeAllConnections();
    wallet.close();
    await fixture.stop();
  });
  const { owner, post, get, http: front } = fixture;
  const agent = makeKey();
  const agentId = await fixture.allowAgent(owner, agent);
  const appId = await fixture.register();
  await fixture.administer(appId, OPEN);
  const login = (key: Key, id = appId, more: Record<string, string> = {}) =>
    fixture.mcpLogin({ 'X-PublicKey': key.publicKey, 'X-App-Id': id, ...more });
  const rpc = async (token: string, method: string, params: object = {}) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    return (await (await fetch(`${front.url}/mcp`, { method: 'POST', headers, body })).json()) as Rpc;
  };
  const isAlive = async (token: string) => (await rpc(token, 'tools/list')).error?.code !== -32001;
  /** Another account with the key of an agent. */
  const helperWithKey = async () => {
    const [helper, key] = [await fixture.signUp(), makeKey()];
    return { helper, key, keyId: await fixture.allowAgent(helper, key) };
  };
  const call = (token: string, name: string, args: object = {}) =>
    rpc(token, 'tools/call', { name, arguments: args });
  const asPerson = (account: Account, path: string, body: object) =>
    post(`/auth/v1/app/${path}`, body, cookie(account.sid));
  const access = async (account: Account) =>
    (await get('/auth/v1/app/access', cookie(account.sid))).result as Item[];
  return {
    ...fixture,
    heard,
    catalog,
    agent,
    agentId,
    appId,
    login,
    rpc,
    call,
    helperWithKey,
    isAlive,
    asPerson,
    access,
  };
}

function tokenOf(answer: Answer): string {
  if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.error)}`);
  return (answer.result as { sessionId: string }).sessionId;
}

// covers R50
t.test(
  'McpApp: the answer names the application; with a proof and without the login type is McpApp',
  async (t) => {
    const { login, agent, appId } = await start(t);
    const expected = { loginType: 'McpApp', appId, sessionId: /^[A-Za-z0-9_-]{46}$/, expiresUtc: /Z$/ };
    t.match((await login(agent)).result, expected);
    t.match((await login(agent, appId, mcpProof(agent))).result, expected);
  },
);

// covers R76 R95
t.test('McpApp: every flag of the application must be right', async (t) => {
  const { login, agent, appId, administer, register } = await start(t);
  for (const [flag, wrong] of [
    ['approved', false],
    ['mcpEnabled', false],
    ['disabled', true],
  ] as const) {
    await administer(appId, { [flag]: wrong });
    refused(t, await login(agent), ...DENIED, `${flag} ${wrong}`);
    await administer(appId, { [flag]: !wrong });
    t.equal((await login(agent)).status, 200);
  }
  const fresh = await register({ name: 'Fresh', url: 'https://fresh.example' });
  refused(t, await login(agent, fresh), ...DENIED, 'neither approved nor enabled');
  await administer(fresh, { mcpEnabled: true });
  refused(t, await login(agent, fresh), ...DENIED, 'not approved');
});

// covers R95
t.test('McpApp: the rows of spec 7.2 are checked in their order', async (t) => {
  const { login, agent, owner, appId, administer, change } = await start(t);
  const forged = { ...mcpProof(agent), 'X-Signature': signText(agent, 'nothing') };
  const late = mcpProof(agent, NOW_SECONDS - 301);
  refused(t, await login(agent, '12x', late), 400, /Invalid input format/);
  refused(t, await login(agent, '9223372036854775808'), 400, /Invalid input format/);
  refused(t, await login(agent, appId, { 'X-Timestamp': '1' }), 400, /Invalid input format/, 'half a proof');
  refused(t, await login(agent, '1', late), 401, /Challenge expired/, 'the time before the application');
  refused(t, await login(makeKey(), '1'), 401, /Session not found/, 'the key before the application');
  refused(t, await login(owner.key), ...DENIED, 'no McpAccess');
  refused(t, await login(agent, '1', forged), ...DENIED, 'the application before the signature');
  refused(t, await login(agent, appId, forged), 401, /Invalid signature/);
  await administer(appId, { disabled: true });
  refused(t, await login(agent, appId, forged), ...DENIED);
  await administer(appId, { disabled: false });
  await change('users/block', { userId: owner.userId, blocked: true });
  refused(t, await login(agent, appId, forged), ...DENIED, 'blocked');
});

// covers R95
t.test('McpApp: unknown, foreign and removed applications are Access denied, alike', async (t) => {
  const { login, agent, signUp, register, administer, appId, asPerson, owner } = await start(t);
  const outsider = await signUp();
  const foreign = await register({ name: 'Other', url: 'https://other.example' }, outsider);
  await administer(foreign, OPEN);
  await asPerson(owner, 'remove', { id: appId });
  const errors = await Promise.all(
    [foreign, appId, '1', '9223372036854775807'].map((id) => login(agent, id)),
  );
  for (const answer of errors) {
    refused(t, answer, ...DENIED);
    t.same(answer.error, errors[0]?.error);
  }
});

// covers R76
t.test('McpApp: the explicit key of another account logs in, and acts for that account alone', async (t) => {
  const fixture = await start(t);
  const { login, appId, administer, signUp, allowAgent, heard, owner, agent, changeKey, call, mcpLogin } =
    fixture;
  const helper = await signUp();
  const key = makeKey();
  await administer(appId, { mcpPublicKey: key.publicKey });
  refused(t, await login(key), 401, /Session not found/, 'configured, but no account has it');
  const keyId = await allowAgent(helper, key);
  await changeKey('update_key', helper.sid, { keyId, mcpAccess: false });
  refused(t, await login(key), ...DENIED, 'without McpAccess');
  await changeKey('update_key', helper.sid, { keyId, mcpAccess: true });
  const other = makeKey();
  await allowAgent(helper, other);
  refused(t, await login(other), ...DENIED, 'another key of the same account');
  await call(tokenOf(await login(key)), 'wallet_get_balance');
  await call(tokenOf(await login(agent)), 'wallet_get_balance');
  await call(tokenOf(await mcpLogin(mcpProof(agent))), 'wallet_get_balance');
  t.match(heard, [
    { 'x-crm': helper.userId, 'x-scopes': 'McpApp', 'x-mcp-app-id': appId },
    { 'x-crm': owner.userId, 'x-scopes': 'McpApp', 'x-mcp-app-id': appId },
    {},
  ]);
  t.notOk(Object.hasOwn(heard[2] ?? {}, 'x-mcp-app-id'), 'for sessions of applications alone');
});

// covers R76
t.test('McpApp: list and call agree over the whole catalog', async (t) => {
  const { login, agent, rpc, catalog, call } = await start(t);
  const token = tokenOf(await login(agent));
  const listed = new Set((await rpc(token, 'tools/list')).result?.tools?.map(({ name }) => name));
  const { tools } = catalog.current;
  t.ok(listed.size > 0 && listed.size < tools.size);
  const differing: string[] = [];
  for (const [name, { row }] of tools) {
    const open =
      row.appScope === true &&
      row.capabilityModule === undefined &&
      row.proof !== 'always' &&
      !row.restricted?.includes('McpApp');
    const { error } = await call(token, name);
    if (listed.has(name) !== open || (error?.code !== -32001) !== open) differing.push(name);
  }
  t.same(differing, []);
  t.equal((await rpc(token, 'tools/call', { name: 'nothing' })).error?.code, -32602);
});

// covers R76 S99
t.test('McpApp: payorder_create is for a signed login alone, also over a restart', async (t) => {
  const { login, agent, appId, rpc, actors, call } = await start(t);
  const bare = tokenOf(await login(agent));
  const signed = tokenOf(await login(agent, appId, mcpProof(agent)));
  const seen = async (token: string) => {
    const listed = (await rpc(token, 'tools/list')).result?.tools?.some(
      ({ name }) => name === 'payorder_create',
    );
    const { error } = await call(token, 'payorder_create');
    return [listed, error?.code === -32001];
  };
  for (const when of ['before', 'after a restart']) {
    t.same(await seen(bare), [false, true], when);
    t.same(await seen(signed), [true, false], when);
    await actors.restart();
  }
});

// covers S99
t.test('McpApp: without a signature personal reads follow McpBasicPersonalReads', async (t) => {
  const { login, agent, appId, heard, call } = await start(t, false);
  const bare = tokenOf(await login(agent));
  t.equal((await call(bare, 'wallet_get_balance')).error?.code, -32001);
  t.same(heard, [], 'the wallet receives nothing of it');
  const signed = tokenOf(await login(agent, appId, mcpProof(agent)));
  t.equal((await call(signed, 'wallet_get_balance')).error, undefined);
  t.equal(heard.length, 1);
});

// covers S101
t.test('user_keys: a session without proof sees its own key, without name and last use', async (t) => {
  const { mcpLogin, agent, agentId, owner, call } = await start(t, false);
  const keys = async (token: string) => {
    const { result } = await call(token, 'user_keys');
    return (JSON.parse(result?.content?.[0]?.text ?? '{}') as { result: Item[] }).result;
  };
  const all = await keys(tokenOf(await mcpLogin(mcpProof(agent))));
  t.same(new Set(all.map(({ id }) => id)), new Set([owner.keyId, agentId]));
  const own = all.find(({ id }) => id === agentId) ?? {};
  t.type(own['lastUsedUtc'], 'string');
  const { name: _, lastUsedUtc: __, ...shown } = own;
  const seen = await keys(tokenOf(await mcpLogin({ 'X-PublicKey': agent.publicKey })));
  t.same(seen, [{ ...shown, current: true }]);
});

// covers S100
t.test(
  'McpApp: 100 sessions of a key, the oldest ends; those without a signature neither push out signed ones nor spend their window',
  async (t) => {
    const { login, agent, appId, isAlive, rpc, settings, mcpLogin } = await start(t);
    const signed = tokenOf(await login(agent, appId, mcpProof(agent)));
    const verified = tokenOf(await mcpLogin(mcpProof(agent)));
    const [first, second] = [tokenOf(await login(agent)), tokenOf(await login(agent))];
    let bare = '';
    for (let count = 2; count < 101; count += 1) bare = tokenOf(await login(agent));
    t.same([await isAlive(first), await isAlive(second)], [false, true]);
    t.same([await isAlive(signed), await isAlive(verified)], [true, true], 'other login types keep theirs');
    settings.set('PubKeyApiRPSLimit', 1);
    settings.set('RateLimitWindowSeconds', 5);
    const statuses: (number | undefined)[] = [];
    for (let count = 0; count < 6; count += 1) statuses.push((await rpc(bare, 'tools/list')).error?.code);
    t.same(statuses, [undefined, undefined, undefined, undefined, undefined, 1002]);
    t.equal((await rpc(signed, 'tools/list')).error, undefined);
  },
);

// covers R78
t.test('McpApp: unapproving, disabling and removing end its sessions and no others at once', async (t) => {
  const { login, mcpLogin, agent, appId, administer, isAlive, register, asPerson, owner, actors } =
    await start(t);
  const otherApp = await register({ name: 'Two', url: 'https://two.example' });
  await administer(otherApp, OPEN);
  const bystander = tokenOf(await login(agent, otherApp));
  const verified = tokenOf(await mcpLogin(mcpProof(agent)));
  for (const flags of [{ approved: false }, { mcpEnabled: false }, { disabled: true }]) {
    const token = tokenOf(await login(agent));
    t.equal(await isAlive(token), true);
    await administer(appId, flags);
    t.equal(await isAlive(token), false, JSON.stringify(flags));
    await administer(appId, { ...OPEN, disabled: false });
    t.equal(await isAlive(token), false, 'opening again does not bring it back');
    await actors.settle();
    t.equal(await isAlive(token), false);
  }
  const last = tokenOf(await login(agent));
  const removed = await asPerson(owner, 'remove', { id: appId });
  t.match(removed, { status: 200, result: { appId, sessionsClosed: 1 } });
  t.equal(await isAlive(last), false, 'removed');
  t.equal(await isAlive(bystander), true);
  t.equal(await isAlive(verified), true);
});

t.test('McpApp: closed sessions leave the lists and the index of every account', async (t) => {
  const { login, agent, appId, administer, sessions, owner, actors, helperWithKey } = await start(t);
  const { helper, key } = await helperWithKey();
  for (const flags of [{ disabled: true }, { mcpPublicKey: null }]) {
    await administer(appId, { disabled: false, mcpPublicKey: key.publicKey });
    tokenOf(await login(agent));
    tokenOf(await login(key));
    t.equal(actors.system.count('sessionHash'), 2);
    await administer(appId, flags);
    await actors.settle();
    const kept = 'disabled' in flags ? 0 : 1;
    t.equal(actors.system.count('sessionHash'), kept, JSON.stringify(flags));
    t.equal((await sessions(owner.sid)).length, 1 + kept);
    t.equal((await sessions(helper.sid)).length, 1);
  }
});

// covers R78
t.test(
  'McpApp: another explicit key ends the sessions of the former one, not those of the owner',
  async (t) => {
    const { login, agent, appId, administer, isAlive, allowAgent, actors, helperWithKey } = await start(t);
    const { helper, key: one } = await helperWithKey();
    const two = makeKey();
    await allowAgent(helper, two);
    await administer(appId, { mcpPublicKey: one.publicKey });
    const former = tokenOf(await login(one));
    const own = tokenOf(await login(agent));
    await administer(appId, { mcpPublicKey: two.publicKey });
    t.same([await isAlive(former), await isAlive(own)], [false, true]);
    await administer(appId, { mcpPublicKey: one.publicKey });
    t.equal(await isAlive(former), false, 'the key back again does not bring it back');
    refused(t, await login(two), ...DENIED);
    const last = tokenOf(await login(one));
    await actors.settle();
    t.equal(await isAlive(last), true, 'what was opened since lives');
    await administer(appId, { mcpPublicKey: null });
    t.equal(await isAlive(last), false);
  },
);

t.test('McpApp: clearing mcpAccess, removing the key and closing sessions end them too', async (t) => {
  const { login, agent, agentId, isAlive, post, owner } = await start(t);
  const ends: [string, object][] = [
    ['close_sessions', { others: true }],
    ['keys/update_key', { keyId: agentId, mcpAccess: false }],
    ['keys/update_key', { keyId: agentId, mcpAccess: true }],
    ['keys/remove_key', { keyId: agentId }],
  ];
  for (const [path, body] of ends) {
    const opening = await login(agent);
    await post(`/auth/v1/${path}`, body, cookie(owner.sid));
    if (opening.status === 200) t.equal(await isAlive(tokenOf(opening)), false, path);
    else refused(t, opening, ...DENIED);
  }
  refused(t, await login(agent), 401, /Session not found/);
});

t.test('McpApp: a login that is under way while its application closes opens nothing', async (t) => {
  const { login, agent, appId, administer, hold, asPerson, owner, actors } = await start(t);
  const ways: [string, () => Promise<unknown>][] = [
    ['disabled', () => administer(appId, { disabled: true })],
    ['revoked', () => asPerson(owner, 'revoke_access', { appId })],
    ['removed', () => asPerson(owner, 'remove', { id: appId })],
  ];
  for (const [note, close] of ways) {
    await administer(appId, { ...OPEN, disabled: false });
    await asPerson(owner, 'grant_access', { appId });
    const { reached, open } = hold();
    const answer = login(agent, appId, mcpProof(agent));
    await reached;
    await close();
    open();
    refused(t, await answer, ...DENIED, note);
    await actors.settle();
  }
});

t.test('McpApp: logins and closings at the same time leave no session behind', async (t) => {
  const { login, agent, appId, administer, isAlive } = await start(t);
  for (let round = 0; round < 5; round += 1) {
    const answers = await Promise.all([
      ...Array.from({ length: round }, () => login(agent)),
      administer(appId, { disabled: true }),
      ...Array.from({ length: 5 }, () => login(agent)),
    ]);
    const opened = answers.filter((answer) => answer !== undefined && answer.status === 200);
    for (const answer of opened) t.equal(await isAlive(tokenOf(answer as Answer)), false, `round ${round}`);
    await administer(appId, { disabled: false });
    for (const answer of opened) t.equal(await isAlive(tokenOf(answer as Answer)), false, 'nor later');
  }
});

// covers R64
t.test(
  'app access: the owner has it from the start; revoked, it ends the sessions until it is granted again',
  async (t) => {
    const { login, agent, appId, isAlive, owner, access, asPerson } = await start(t);
    t.match(await access(owner), [{ appId, name: 'Shop', source: 'registration', grantedUtc: /Z$/ }]);
    const token = tokenOf(await login(agent));
    t.same((await asPerson(owner, 'revoke_access', { appId })).result, { appId, sessionsClosed: 1 });
    t.equal(await isAlive(token), false);
    refused(t, await login(agent), ...DENIED);
    t.same(await access(owner), []);
    const twice = await asPerson(owner, 'revoke_access', { appId });
    refused(t, twice, 404, /no such application/, 'a second time');
    const granted = await asPerson(owner, 'grant_access', { appId });
    t.match(granted, { status: 200, result: { appId, source: 'registration' } });
    t.equal((await login(agent)).status, 200);
    t.equal(await isAlive(token), false);
  },
);

// covers R64
t.test(
  'app access: another account is on the list from its first login, and its consent counts for more',
  async (t) => {
    const { login, appId, administer, access, asPerson, owner, actors, helperWithKey } = await start(t);
    const { helper, key } = await helperWithKey();
    t.same(await access(helper), []);
    await administer(appId, { mcpPublicKey: key.publicKey });
    tokenOf(await login(key));
    t.match(await access(helper), [{ appId, source: 'login' }]);
    t.match((await asPerson(helper, 'grant_access', { appId })).result, { source: 'consent' });
    tokenOf(await login(key));
    t.match(await access(helper), [{ appId, source: 'consent' }], 'a login does not take it down again');
    await asPerson(helper, 'revoke_access', { appId });
    refused(t, await login(key), ...DENIED);
    t.match(await access(owner), [{ appId }], 'each account decides for itself');
    await asPerson(helper, 'grant_access', { appId });
    await asPerson(owner, 'remove', { id: appId });
    t.same([await access(helper), await access(owner)], [[], []], 'a removed application is on no list');
    await actors.settle();
    refused(t, await asPerson(helper, 'revoke_access', { appId }), 404, /no such application/);
  },
);

// covers R64
t.test('app access: only an application that takes sessions can be granted', async (t) => {
  const { register, signUp, asPerson, administer, owner, access } = await start(t);
  const helper = await signUp();
  const closed = await register({ name: 'Closed', url: 'https://closed.example' });
  for (const appId of [closed, '1', '9223372036854775807'])
    refused(t, await asPerson(helper, 'grant_access', { appId }), 404, /no such application/, appId);
  t.same(await access(helper), []);
  await administer(closed, OPEN);
  t.equal((await asPerson(helper, 'grant_access', { appId: closed })).status, 200);
  t.equal((await asPerson(helper, 'grant_access', { appId: closed })).status, 200, 'again');
  t.equal((await access(helper)).length, 1);
  for (const body of [{}, { appId: 'x' }, { appId: null }]) {
    refused(t, await asPerson(owner, 'grant_access', body), 400, /appId/);
    refused(t, await asPerson(owner, 'revoke_access', body), 400, /appId/);
  }
});

// covers R14
t.test(
  'app tools: they answer what their REST twins answer; McpBasic sees no address of webhooks',
  async (t) => {
    const { mcpLogin, agent, call, get, owner, appId, asPerson } = await start(t);
    await asPerson(owner, 'upsert_usr_app', { webhookUrl: 'https://shop.example/hook?token=abc' });
    const verified = tokenOf(await mcpLogin(mcpProof(agent)));
    const basic = tokenOf(await mcpLogin({ 'X-PublicKey': agent.publicKey }));
    const read = async (token: string, name: string, args: object = {}) => {
      const { result } = await call(token, name, args);
      return JSON.parse(result?.content?.[0]?.text ?? 'null') as {
        result?: unknown;
        error?: { code: number; detail?: string };
      };
    };
    const twins: [string, string, object][] = [
      ['get_usr_apps', 'list', {}],
      ['get_app_info', `info?appId=${appId}`, { appId }],
      ['get_app_info', `info?id=${appId}`, { id: appId }],
      ['list_app_access', 'access', {}],
    ];
    for (const [name, path, args] of twins) {
      const { result } = await get(`/auth/v1/app/${path}`, cookie(owner.sid));
      t.same((await read(verified, name, args)).result, result, name);
      t.notOk(JSON.stringify(await read(basic, name, args)).includes('token=abc'), `${name} for McpBasic`);
    }
    t.equal((await read(verified, 'get_app_info', { appId: '1' })).error?.code, 1004);
    for (const args of [{ appId, id: '1' }, {}, { id: 'x' }])
      t.match((await read(verified, 'get_app_info', args)).error, { code: 1001, detail: /appId/ });
    t.match((await read(verified, 'revoke_app_access', { appId })).result, { appId, sessionsClosed: 0 });
    t.equal((await read(verified, 'revoke_app_access', { appId })).error?.code, 1004);
    t.same((await read(verified, 'list_app_access')).result, []);
  },
);

t.test('McpApp: sessions and what ended them survive a restart', async (t) => {
  const { login, agent, appId, administer, isAlive, actors, asPerson, owner } = await start(t);
  const token = tokenOf(await login(agent));
  await actors.restart();
  t.equal(await isAlive(token), true);
  await administer(appId, { disabled: true });
  await actors.restart();
  t.equal(await isAlive(token), false);
  await administer(appId, { disabled: false });
  await actors.restart();
  t.equal(await isAlive(token), false);
  t.equal((await login(agent)).status, 200);
  await asPerson(owner, 'remove', { id: appId });
  await actors.restart();
  refused(t, await login(agent), ...DENIED);
});
