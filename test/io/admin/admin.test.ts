/** Admin JSON of accounts, applications, audit and overview: who gets in, what is shown, what is refused. */
import t from 'tap';
import { CALLER_CLASSES } from '../../../src/domain/access.ts';
import { BOUND_NAMES } from '../../../src/domain/limits/bounds.ts';
import { toIso } from '../../../src/domain/time.ts';
import type { WebhookNotice } from '../../../src/domain/webhooks/types.ts';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';
import { cookie, makeKey, mcpProof, refused, sidOf } from '../../support/account.ts';
import { START_MS } from '../../support/actors/actors.ts';
import { rowsOf, SHOP, startAdminOf as start } from '../../support/admin.ts';
import { routeTable } from '../../support/route-table.ts';

const FRESH_MS = 15 * 60 * 1000;

const idsOf = (rows: readonly Record<string, unknown>[]) => rows.map(({ id }) => id);

function byNumber(one: string, other: string): number {
  return BigInt(one) < BigInt(other) ? -1 : 1;
}

// covers R5
t.test('admin: every route is 403 for other accounts', async (t) => {
  const { owner, get, post } = await start(t);
  const routes = routeTable().filter(({ path }) => path.startsWith('/ProxyAdmin/'));
  const guarded = routes.filter(({ path }) => path !== '/ProxyAdmin/api/claim');
  t.ok(guarded.length > 40, `${guarded.length} routes`);
  const differing: unknown[] = [];
  for (const { method, path, auth } of guarded) {
    const send = method === 'GET' ? get : (at: string, headers = {}) => post(at, {}, headers);
    const { status, error } = await send(path, cookie(owner.sid));
    const seen = [auth, status, error?.message];
    if (seen.join() !== 'admin,403,Access denied') differing.push([path, ...seen]);
  }
  t.same(differing, []);
});

t.test('admin: a claimed admin key makes no admin, an agent session opens nothing', async (t) => {
  const key = makeKey();
  const site = { adminPublicKeys: new Set([key.publicKey]) };
  const { owner, ask, allowAgent, mcpLogin, get } = await start(t, { site });
  await allowAgent(owner, key);
  refused(t, await ask('overview', owner), 403, /Access denied/, 'the key was claimed, not proven');
  const session = (await mcpLogin(mcpProof(key))).result as { sessionId: string };
  const bearer = { Authorization: `Bearer ${session.sessionId}` };
  refused(t, await get('/ProxyAdmin/api/overview', bearer), 401, /Session not found/);
});

// covers R5
t.test('admin: changes need a login of the last 15 minutes, reading does not', async (t) => {
  const { actors, ask, change, owner, register } = await start(t);
  const appId = await register();
  actors.clock.nowMs += FRESH_MS;
  t.equal((await change('users/block', { userId: owner.userId, blocked: false })).status, 200);
  actors.clock.nowMs += 1;
  const changes: [string, object][] = [
    ['users/block', { userId: owner.userId, blocked: true }],
    ['apps/update', { appId, approved: true }],
    ['settings', { name: 'ApiRPSLimit', value: 1 }],
    ['sessions/end', { userId: owner.userId }],
  ];
  for (const [path, body] of changes) refused(t, await change(path, body), 403, /Fresh login required/, path);
  t.match(rowsOf(await ask('apps')), [{ id: appId, approved: false }]);
});

t.test('admin: WebhookPorts that are no ports are 400 and change nothing', async (t) => {
  const { change } = await start(t);
  for (const value of ['8443;x', '0', '70000', '8443,9443'])
    refused(t, await change('settings', { name: 'WebhookPorts', value }), 400, /ports from 1 to 65535/);
  t.equal((await change('settings', { name: 'WebhookPorts', value: '8443; 9443' })).status, 200);
});

t.test('admin: the bounds with their shares, what is held and refused', async (t) => {
  const { ask } = await start(t);
  const rows = rowsOf(await ask('bounds'));
  const summary = 'Requests that are not answered yet.';
  const shares = { maximum: 20_000, session: null, user: 5_000, network: 10_000 };
  const counted = { held: 1, refused: { maximum: 0, session: 0, user: 0, network: 0 } };
  t.strictSame(
    rows.find(({ name }) => name === 'requests'),
    { name: 'requests', unit: 'requests', summary, ...shares, ...counted },
  );
  t.equal(rows.length, BOUND_NAMES.length);
});

t.test('admin: users come in pages, in the order of their ids', async (t) => {
  const { ask, admin, owner, signUp, register } = await start(t);
  const others = [await signUp(), await signUp(), await signUp()];
  await register();
  // Ids of one second have no order of creation.
  const ids = [admin, owner, ...others].map(({ userId }) => userId).sort(byNumber);
  const all = rowsOf(await ask('users'));
  t.same(idsOf(all), ids);
  const ofOwner = all.find(({ id }) => id === owner.userId);
  t.match(ofOwner, { createdUtc: /Z$/, blocked: false, keys: 1, sessions: 1, apps: 1 });
  const first = rowsOf(await ask('users?limit=2'));
  const second = rowsOf(await ask(`users?limit=2&after=${first[1]?.['id']}`));
  const third = rowsOf(await ask(`users?limit=2&after=${second[1]?.['id']}`));
  t.same(idsOf([...first, ...second, ...third]), ids);
  t.equal(third.length, 1);
  t.same(rowsOf(await ask('users?after=9223372036854775807')), []);
  const bad = 'limit=0 limit=1001 limit=x after=x after=-1 after=9223372036854775808'.split(' ');
  for (const query of bad) refused(t, await ask(`users?${query}`), 400, /Invalid input format/, query);
});

t.test(
  'admin: a block ends every session before it is answered and is audited with its author',
  async (t) => {
    const { ask, change, owner, admin, get, login } = await start(t);
    const body = { userId: owner.userId, blocked: true };
    t.same((await change('users/block', body)).result, { ...body, sessionsClosed: 1 });
    refused(t, await get('/auth/v1/sessions', cookie(owner.sid)), 401, /Session not found/);
    refused(t, await login(owner.key), 401, /Access denied/);
    t.same((await change('users/block', body)).result, { ...body, sessionsClosed: 0 }, 'again');
    const ofOwner = rowsOf(await ask('users')).find(({ id }) => id === owner.userId);
    t.match(ofOwner, { blocked: true, sessions: 0 });
    t.match((await change('users/block', { ...body, blocked: false })).result, { blocked: false });
    t.equal((await login(owner.key)).status, 200);
    const all = rowsOf(await ask('audit?after=0&limit=1000'));
    const records = all.filter(({ event }) => /blocked/.test(String(event)));
    const fields = { by: admin.userId, ip: '127.0.0.1', blockedBefore: false, blocked: true };
    t.match(records, [
      { event: 'user_blocked', userId: owner.userId, fields },
      { event: 'user_unblocked', fields: { blockedBefore: true, blocked: false } },
    ]);
    t.equal(records.length, 2, 'what changed nothing leaves no record');
  },
);

t.test('admin: a block without an account, of oneself, or without its fields is refused', async (t) => {
  const { change, admin, ask } = await start(t);
  refused(t, await change('users/block', { userId: '1', blocked: true }), 404, /Not found/);
  refused(t, await change('users/block', { userId: admin.userId, blocked: true }), 400, /lock you out/);
  const incomplete = [{}, { userId: '1' }, { userId: '1', blocked: 'yes' }];
  for (const body of [...incomplete, { userId: 'x', blocked: true }, { userId: null, blocked: true }])
    refused(t, await change('users/block', body), 400, /Invalid input format/, JSON.stringify(body));
  t.match(rowsOf(await ask('users')), [{ blocked: false }, { blocked: false }]);
});

t.test('admin: keys and sessions of any account, 404 for one that is not there', async (t) => {
  const { ask, owner, admin, allowAgent, mcpLogin } = await start(t);
  const agent = makeKey();
  const keyId = await allowAgent(owner, agent);
  await mcpLogin({ 'X-PublicKey': agent.publicKey });
  t.match(rowsOf(await ask(`user_keys?userId=${owner.userId}`)), [
    { id: owner.keyId, current: false, keyType: 'UserKey' },
    { id: keyId, publicKey: agent.publicKey, mcpAccess: true },
  ]);
  t.match(rowsOf(await ask(`user_keys?userId=${admin.userId}`)), [{ current: true }]);
  const sessions = rowsOf(await ask(`sessions?userId=${owner.userId}`));
  t.match(sessions, [
    { kind: 'browser', current: false },
    { kind: 'mcp', loginType: 'McpBasic', keyId },
  ]);
  t.notOk(JSON.stringify(sessions).includes(owner.sid));
  for (const path of ['user_keys', 'sessions']) {
    refused(t, await ask(`${path}?userId=1`), 404, /Not found/);
    refused(t, await ask(`${path}?userId=x`), 400, /userId/);
  }
  refused(t, await ask('sessions'), 400, /userId/);
});

t.test('admin: applications of all owners are listed in pages, removed ones are not', async (t) => {
  const { ask, register, post, owner, admin } = await start(t);
  const one = await register();
  const two = await register({ name: 'Two', url: 'https://two.example' });
  const three = await register({ name: 'Three', url: 'https://three.example' }, admin);
  const mine = { ...SHOP, id: one, ownerId: owner.userId };
  t.match(rowsOf(await ask('apps')), [mine, { id: two }, { id: three, ownerId: admin.userId }]);
  await post('/auth/v1/app/remove', { id: two }, cookie(owner.sid));
  t.same(idsOf(rowsOf(await ask('apps?limit=1'))), [one]);
  t.same(idsOf(rowsOf(await ask(`apps?limit=1&after=${one}`))), [three], 'filled from behind');
  t.notOk(JSON.stringify(rowsOf(await ask('apps'))).includes('ghk_'));
});

t.test('admin: an application is approved, enabled, disabled and given a key, each audited', async (t) => {
  const { ask, change, register, admin } = await start(t);
  const appId = await register();
  const mcpPublicKey = makeKey().publicKey;
  const steps = [
    { approved: true },
    { mcpEnabled: true, mcpPublicKey },
    { disabled: true },
    { mcpPublicKey: null },
  ];
  for (const flags of steps)
    t.match((await change('apps/update', { appId, ...flags })).result, { id: appId, ...flags });
  const all = { approved: true, mcpEnabled: true, disabled: true, mcpPublicKey: null };
  t.match((await change('apps/update', { appId })).result, all);
  const records = rowsOf(await ask('audit?after=0')).filter(({ event }) => event === 'app_administered');
  t.equal(records.length, 4);
  const fields = { appId, address: '127.0.0.1', approvedBefore: false, approvedAfter: true };
  t.match(records[0], { userId: admin.userId, fields });
  t.match(records[3]?.['fields'], { mcpPublicKeyBefore: mcpPublicKey, mcpPublicKeyAfter: null });
});

t.test('admin: an update of no application, or with values that do not fit, changes nothing', async (t) => {
  const { ask, change, register } = await start(t);
  const appId = await register();
  for (const id of ['1', '9223372036854775807'])
    refused(t, await change('apps/update', { appId: id, approved: true }), 404, /Not found/);
  const flags = [{ approved: 'yes' }, { approved: null }, { mcpEnabled: 1 }, { disabled: [] }];
  const keys = ['short', '', `${'A'.repeat(42)}B`, 7].map((mcpPublicKey) => ({
    approved: true,
    mcpPublicKey,
  }));
  for (const body of [{}, { appId: 'x' }, ...[...flags, ...keys].map((each) => ({ appId, ...each }))])
    refused(t, await change('apps/update', body), 400, /Invalid input format/, JSON.stringify(body));
  const closed = { approved: false, mcpEnabled: false, disabled: false, mcpPublicKey: null };
  t.match(rowsOf(await ask('apps')), [closed]);
});

t.test('admin: the audit log is read from any position to its end', async (t) => {
  const { ask, register } = await start(t);
  await register();
  const all = rowsOf(await ask('audit?after=0'));
  t.match(all[0], { seq: 1, event: 'sign_up', ring: 'logins', utc: /Z$/, fields: {} });
  t.ok(all.some(({ event }) => event === 'app_created'));
  const page = await ask('audit?after=1&limit=1');
  t.same(rowsOf(page), all.slice(1, 2));
  t.equal(page.headers['link'], '</ProxyAdmin/api/audit?after=2&limit=1>; rel="next"');
  const end = await ask(`audit?after=${all.at(-1)?.['seq']}`);
  t.same(rowsOf(end), []);
  t.equal(end.headers['link'], undefined);
});

t.test('admin: the audit log is the newest first, and filtered', async (t) => {
  const { ask, register, actors, owner, admin } = await start(t);
  await register();
  actors.clock.nowMs += 60_000;
  await register({ name: 'Second', url: 'https://second.example' });
  const all = rowsOf(await ask('audit?after=0')).reverse();
  t.same(rowsOf(await ask('audit')), all);
  t.same(rowsOf(await ask('audit?before=3&limit=1')), all.slice(-2, -1));
  const first = await ask(`audit?userId=${owner.userId}&event=app_created&limit=1`);
  t.match(rowsOf(first), [{ event: 'app_created', ring: 'accounts', userId: owner.userId, fields: {} }]);
  const [, next] = /^<(.+)>; rel="next"$/.exec(first.headers['link'] ?? '') ?? [];
  t.match(next, /userId=.*event=app_created.*limit=1/);
  const second = await ask((next ?? '').replace('/ProxyAdmin/api/', ''));
  t.match(rowsOf(second), [{ event: 'app_created', seq: Number }]);
  t.not(rowsOf(second)[0]?.['seq'], rowsOf(first)[0]?.['seq']);
  t.same(rowsOf(await ask(`audit?userId=${admin.userId}&event=app_created`)), []);
  const between = (from: number, to: number) =>
    ask(`audit?from=${toIso(START_MS + from)}&to=${toIso(START_MS + to)}`);
  t.match(rowsOf(await between(60_000, 60_000)), [{ event: 'app_created' }]);
  t.same(rowsOf(await between(0, 59_999)), all.slice(1));
  t.match(rowsOf(await ask('audit?ring=accounts')), [{ event: 'app_created' }, { event: 'app_created' }]);
  t.same(rowsOf(await ask('audit?ring=accounts&event=sign_up')), []);
  t.same(rowsOf(await ask(`audit?after=1&userId=${admin.userId}`)), [], 'a lower end');
});

t.test('admin: a bad filter of the audit log is 400 and names the field', async (t) => {
  const { ask } = await start(t);
  for (const [field, values] of Object.entries({
    after: ['-1', 'x', '1.5'],
    before: ['0', 'x', '9007199254740993'],
    limit: ['0', '1001', 'all'],
    userId: ['x', '-1', '9223372036854775808'],
    event: ['', 'nothing', 'login;'],
    ring: ['', 'old'],
    from: ['yesterday', '2026-01-01', '2026-13-01T00:00:00Z'],
    to: ['now', '2026-01-01T00:00:00', '2026-02-01T00:00:00Z&from=2026-03-01T00:00:00Z'],
  }))
    for (const value of values)
      refused(t, await ask(`audit?${field}=${value}`), 400, new RegExp(`Invalid input format.*${field}`));
});

t.test('admin: the events of the audit log are those that it takes as a filter', async (t) => {
  const { ask } = await start(t);
  const events = rowsOf(await ask('audit/events'));
  t.ok(events.some(({ event, ring }) => event === 'roleChanged' && ring === 'admin'));
  t.ok(events.some(({ event, ring }) => event === 'mcp.tool' && ring === 'calls'));
  const refusedEvents: unknown[] = [];
  for (const { event } of events)
    if ((await ask(`audit?event=${event}`)).status !== 200) refusedEvents.push(event);
  t.same(refusedEvents, []);
});

t.test('admin: the overview counts sessions, keys and applications', async (t) => {
  const { ask, register } = await start(t);
  await register();
  t.match((await ask('overview')).result, {
    version: '0.0.1',
    utcNow: /Z$/,
    databaseConnected: true,
    sessions: { browser: 2, mcp: 0 },
    softwareKeys: 2,
    apps: 1,
    failingActors: [],
    deadLetters: 0,
    auditDropped: 0,
  });
});

// covers R24
t.test('admin: a reload says what is served, and is audited', async (t) => {
  const { change, ask } = await start(t);
  const answer = await change('reload', {});
  t.match(answer, { status: 200, result: { tools: Object.keys(BUILT_IN.tools).length, resources: Number } });
  t.match(rowsOf(await ask('audit'))[0], { event: 'admin.reload', fields: { outcome: 'ok' } });
});

t.test('admin: the catalog shows the size of each list of tools', async (t) => {
  const { ask } = await start(t);
  const { status, result } = await ask('catalog');
  t.equal(status, 200);
  t.same(
    (result as { caller: string }[]).map(({ caller }) => caller),
    CALLER_CLASSES,
  );
  const [anonymous] = result as Record<string, unknown>[];
  const sizeBytes = Number(anonymous?.['sizeBytes']);
  t.match(anonymous, { profile: null, caller: 'anonymous', tools: Object.keys(BUILT_IN.tools).length });
  t.ok(sizeBytes > 50_000);
  t.equal(anonymous?.['estimatedTokens'], Math.ceil(sizeBytes / 4));
});

// covers R24
t.test('admin: a refused reload names every fault, and is audited', async (t) => {
  const faults = [
    { path: 'McpTools.a.method', message: 'must be GET or POST' },
    { path: 'McpResources.b', message: 'is no URI' },
  ];
  const { change, ask } = await start(t, { reload: () => faults });
  const answer = await change('reload', {});
  t.match(answer, { status: 409, error: { code: 1017, message: 'Configuration refused', faults } });
  t.match(rowsOf(await ask('audit'))[0], { event: 'admin.reload', fields: { outcome: 'refused' } });
});

t.test('admin: a reload needs a login of the last 15 minutes', async (t) => {
  const reload = () => t.fail('it was done') as never;
  const { actors, change } = await start(t, { reload });
  actors.clock.nowMs += FRESH_MS + 1;
  refused(t, await change('reload', {}), 403, /Fresh login required/);
});

t.test('admin: sessions of an account end without a block, one or all', async (t) => {
  const { admin, owner, change, login, get, ask, alive } = await start(t);
  await login(owner.key);
  await login(owner.key);
  const listed = rowsOf(await ask(`sessions?userId=${owner.userId}`));
  t.equal(listed.length, 3);
  const { userId } = owner;
  const sessionIds = [String(listed[1]?.['id'])];
  t.match((await change('sessions/end', { userId, sessionIds })).result, { sessionsClosed: 1 });
  refused(t, await change('sessions/end', { userId, sessionIds }), 404, /no such session/, 'it has ended');
  t.equal(await alive(owner.sid), true, 'the others go on');
  t.match((await change('sessions/end', { userId })).result, { sessionsClosed: 2 });
  t.equal(await alive(owner.sid), false);
  const again = await login(owner.key);
  t.equal(again.status, 200, 'the account is not blocked');
  const log = rowsOf(await get('/auth/v1/login_log', cookie(sidOf(again))));
  t.match(log[1], { event: 'sessions_ended_by_admin', ip: '' });
  const audit = rowsOf(await ask('audit?event=sessions_ended_by_admin'));
  t.match(audit[0], { event: 'sessions_ended_by_admin', userId, fields: { by: admin.userId, count: 2 } });
  refused(t, await change('sessions/end', { userId: '5' }), 404, /no such user/);
});

t.test('admin: support ends sessions, but none of an account with a role', async (t) => {
  const { admin, owner, change, signUp } = await start(t);
  const helper = await signUp();
  await change('staff', { userId: helper.userId, role: 'support' });
  t.match((await change('sessions/end', { userId: owner.userId }, helper)).result, { sessionsClosed: 1 });
  refused(t, await change('sessions/end', { userId: admin.userId }, helper), 403, /Access denied/);
  t.match((await change('sessions/end', { userId: helper.userId }, helper)).status, 200, 'their own');
});

t.test(
  'admin: approved=false lists applications that wait, and their owner is notified of a decision',
  async (t) => {
    const notices: WebhookNotice[] = [];
    const webhookPort = {
      changed: () => undefined,
      tell: async (notice: WebhookNotice) => {
        notices.push(notice);
        return { ok: true, value: null } as const;
      },
    };
    const { actors, ask, administer, owner, register } = await start(t, { webhookPort });
    const first = await register();
    const second = await register({ name: 'Other', url: 'https://other.example' });
    const waiting = async () => idsOf(rowsOf(await ask('apps?approved=false')));
    t.same(await waiting(), [first, second]);
    await administer(first, { approved: true });
    t.same(await waiting(), [second]);
    t.same(idsOf(rowsOf(await ask('apps?approved=true'))), [first]);
    await administer(first, { mcpEnabled: true });
    await administer(second, { disabled: true });
    await administer(first, { approved: false });
    await actors.settle();
    const about = (appId: string, name: string, flags: object) => ({
      type: 'AppApprovalChanged',
      ownerId: owner.userId,
      data: { appId, name, ...flags },
    });
    t.same(notices, [
      about(first, 'Shop', { approved: true, disabled: false }),
      about(second, 'Other', { approved: false, disabled: true }),
      about(first, 'Shop', { approved: false, disabled: false }),
    ]);
  },
);
