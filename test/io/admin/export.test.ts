/** Exports of the panel over HTTP, one account with its applications, and names beside ids in every list. */
import t, { type Test } from 'tap';
import { request } from 'undici';
import { cookie } from '../../support/account.ts';
import { SHOP, type startAdmin, startAdminOf } from '../../support/admin.ts';

async function start(t: Test, options: Parameters<typeof startAdmin>[0] = {}) {
  const fixture = await startAdminOf(t, options);
  const csv = async (path: string) => {
    const { statusCode, headers, body } = await request(`${fixture.http.url}/ProxyAdmin/api/export/${path}`, {
      headers: cookie(fixture.admin.sid),
    });
    return { status: statusCode, headers, text: await body.text() };
  };
  return { ...fixture, csv };
}

const linesOf = (text: string) => text.replace('\uFEFF', '').trimEnd().split('\r\n');

t.test('admin: accounts, keys and applications are exported as CSV, a formula as a text', async (t) => {
  const { csv, admin, owner, register } = await start(t);
  const appId = await register({ ...SHOP, name: '=1+1' });
  const accounts = await csv('accounts');
  t.equal(accounts.status, 200);
  t.match(accounts.headers['content-type'], /^text\/csv; charset=utf-8/);
  t.equal(accounts.headers['content-disposition'], 'attachment; filename="accounts.csv"');
  t.equal(accounts.headers['cache-control'], 'no-store');
  const [head, ...rows] = linesOf(accounts.text);
  t.equal(head, 'id,nickname,created,blocked,role,keys,sessions,applications');
  t.same(rows.map((row) => row.split(',')[0]).sort(), [admin.userId, owner.userId].sort());
  t.match(
    rows.find((row) => row.startsWith(owner.userId)),
    /Z,false,,1,1,1$/,
  );
  const apps = linesOf((await csv('applications')).text);
  t.match(
    apps.find((row) => row.startsWith(appId)),
    new RegExp(`^${appId},'=1\\+1,`),
  );
  const keys = linesOf((await csv(`keys?userId=${owner.userId}`)).text);
  t.equal(keys.length, 2, 'the keys of this account alone');
  t.equal(keys[1]?.split(',')[0], owner.userId);
});

t.test('admin: the audit log is exported with its filters, and has the export itself', async (t) => {
  const { csv, admin } = await start(t);
  t.equal((await csv('accounts')).status, 200);
  const [head, ...rows] = linesOf((await csv('audit?event=list_exported')).text);
  t.equal(head, 'time,event,ring,account,nickname,node,details');
  t.equal(rows.length, 1, 'the export before this one');
  t.match(rows[0], new RegExp(`,list_exported,admin,${admin.userId},,,"\\{.*""list"":""accounts""`));
});

t.test('admin: an export with an invalid filter is refused before the file begins', async (t) => {
  const { csv } = await start(t);
  t.equal((await csv('keys?userId=99')).status, 404);
  t.equal((await csv('keys?publicKey=%21')).status, 400);
  t.equal((await csv('audit?from=2026-02-02T00:00:00Z&to=2026-01-01T00:00:00Z')).status, 400);
});

t.test('admin: one account has its role and counts, and its applications are a list', async (t) => {
  const { ask, admin, owner, register } = await start(t);
  const appId = await register();
  const { result } = await ask(`account?userId=${owner.userId}`);
  const counts = { keys: 1, sessions: 1, apps: 1, hosts: 0 };
  const shown = { blocked: false, lastSeenUtc: String, role: null, nickname: null };
  t.match(result, { id: owner.userId, ...counts, ...shown });
  t.match((await ask(`account?userId=${admin.userId}`)).result, { role: 'admin' });
  t.equal((await ask('account?userId=99')).status, 404);
  t.match((await ask(`apps?userId=${owner.userId}`)).result, [{ id: appId, ownerId: owner.userId }]);
  t.same((await ask(`apps?userId=${owner.userId}&after=${appId}`)).result, [], 'after the last one');
  t.same((await ask(`apps?userId=${admin.userId}`)).result, []);
  t.equal((await ask('apps?userId=99')).status, 404);
});

t.test(
  'admin: every list of rows with an account has its nickname, the audit log that of who acted too',
  async (t) => {
    let userId = '';
    const content = { module: 'core', tick: '1', type: 'Tried', jsonText: Buffer.alloc(2) };
    const event = { sequence: 1, ...content, acceptedMs: 0 };
    const eventLog = { newest: 1, page: () => [{ ...event, userId }] };
    const { ask, change, admin, owner, post, register } = await start(t, { eventLog: eventLog as never });
    userId = owner.userId;
    t.equal((await post('/auth/v1/account', { nickname: 'Ada' }, cookie(owner.sid))).status, 200);
    t.equal((await post('/auth/v1/account', { nickname: 'Root' }, cookie(admin.sid))).status, 200);
    await register();
    await change('users/block', { userId, blocked: true, reason: 'A stolen key' });
    await change('staff', { userId, role: 'viewer' });
    const first = async (path: string) => ((await ask(path)).result as Record<string, unknown>[])[0];
    for (const path of [
      `user_keys?userId=${userId}`,
      'apps?newest=true',
      'events',
      'audit?event=app_created',
      'users?search=ADA',
    ])
      t.match(await first(path), { nickname: 'Ada' }, path);
    t.match(await first('audit?event=user_blocked'), {
      userId,
      nickname: 'Ada',
      otherNickname: 'Root',
      fields: { reason: 'A stolen key' },
    });
    t.match(await first('audit?event=roleChanged'), { nickname: 'Root', otherNickname: 'Ada' });
    t.match(await first('staff'), { userId, nickname: 'Ada' });
  },
);

t.test(
  'admin: accounts are listed the newest first, by a part of the nickname or the id, and by their block',
  async (t) => {
    const { ask, csv, admin, owner, signUp, change } = await start(t);
    const third = await signUp();
    const idsOf = async (query: string) =>
      ((await ask(`users?${query}`)).result as { id: string }[]).map(({ id }) => id);
    const oldest = [admin, owner, third].map(({ userId }) => userId).sort();
    t.same(await idsOf(''), oldest);
    t.same(await idsOf('newest=true'), oldest.toReversed());
    t.same(await idsOf(`newest=true&limit=1&after=${oldest[2]}`), [oldest[1]]);
    t.same(await idsOf(`search=${owner.userId.slice(-9)}`), [owner.userId]);
    t.same(await idsOf('search=zoe'), []);
    await change('users/block', { userId: third.userId, blocked: true });
    t.same(await idsOf('blocked=true'), [third.userId]);
    t.match((await csv('accounts?blocked=true')).text.split('\r\n')[1], new RegExp(`^${third.userId},`));
    t.equal(linesOf((await csv('accounts?blocked=true')).text).length, 2);
  },
);
