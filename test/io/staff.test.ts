/** Roles in the admin panel, and the set-up link that makes the first admin. */
import t from 'tap';
import { LiveStaff, SETUP_LINK_MS, SetupLink } from '../../src/io/staff.ts';
import { cookie } from '../support/account.ts';
import { START_MS } from '../support/actors.ts';
import { startAdmin } from '../support/admin.ts';

const TOKEN = 'the-token-of-the-link';

t.test('staff: a viewer reads, support also blocks, an admin does all, others nothing', async (t) => {
  const fixture = await startAdmin();
  t.teardown(() => fixture.stop());
  const { admin, owner, ask, change } = fixture;
  const other = await fixture.signUp();
  const attempts = async () => ({
    read: (await ask('users', owner)).status,
    block: (await change('users/block', { userId: other.userId, blocked: false }, owner)).status,
    setting: (await change('settings', { name: 'ApiRPSLimit', value: 5 }, owner)).status,
    staff: (await change('staff', { userId: other.userId, role: null }, owner)).status,
  });
  const role = (userId: string, name: string | null) => change('staff', { userId, role: name });
  t.same(await attempts(), { read: 403, block: 403, setting: 403, staff: 403 });
  t.equal((await role(owner.userId, 'viewer')).status, 200);
  t.same(await attempts(), { read: 200, block: 403, setting: 403, staff: 403 });
  t.equal((await role(owner.userId, 'support')).status, 200);
  t.same(await attempts(), { read: 200, block: 200, setting: 403, staff: 403 });
  t.equal((await role(owner.userId, 'admin')).status, 200);
  t.same(await attempts(), { read: 200, block: 200, setting: 200, staff: 200 });
  t.same((await ask('staff')).result, [{ userId: owner.userId, role: 'admin' }]);
  t.equal((await role(owner.userId, null)).status, 200);
  t.same(await attempts(), { read: 403, block: 403, setting: 403, staff: 403 });
  const audited = (await ask('audit')).result as { event: string; userId: string; fields: object }[];
  const changes = audited.filter(({ event }) => event === 'roleChanged');
  t.match(changes[1], {
    userId: admin.userId,
    fields: { subject: owner.userId, before: 'viewer', after: 'support' },
  });
});

t.test('staff: unknown accounts, unknown roles and the last admin are refused', async (t) => {
  const fixture = await startAdmin({ noKeys: true });
  t.teardown(() => fixture.stop());
  const { admin, owner, change } = fixture;
  const staff = new LiveStaff(fixture.actors.system, false);
  await staff.set({ userId: admin.userId, role: 'admin', by: admin.userId, address: '::1' });
  t.equal(
    (await change('staff', { userId: '12345', role: 'viewer' })).status,
    403,
    'the fixture did not see it',
  );
  await staff.restore();
  t.ok(staff.hasAdmin);
  const set = (userId: string, role: 'admin' | 'viewer' | null) =>
    staff.set({ userId, role, by: admin.userId, address: '::1' });
  await t.rejects(set(admin.userId, null), /Invalid input/, 'nobody would be left');
  await t.rejects(set(admin.userId, 'viewer'), /Invalid input/);
  await set(owner.userId, 'admin');
  await set(admin.userId, null);
  t.equal(staff.roleOf(admin.userId), undefined);
  await fixture.actors.restart();
  const again = new LiveStaff(fixture.actors.system, false);
  await again.restore();
  t.same(again.list(), [{ userId: owner.userId, role: 'admin' }], 'roles survive a restart');
  const keyed = await startAdmin();
  t.teardown(() => keyed.stop());
  t.equal((await keyed.change('staff', { userId: '12345', role: 'viewer' })).status, 404);
  t.equal((await keyed.change('staff', { userId: keyed.owner.userId, role: 'root' })).status, 400);
});

t.test(
  'set-up link: good once, for 30 minutes, for a passkey, and only while there is no admin',
  async (t) => {
    const link = new SetupLink(TOKEN, START_MS);
    const fixture = await startAdmin({ noKeys: true, setupLink: link });
    t.teardown(() => fixture.stop());
    const { owner } = fixture;
    const claim = (token: string, sid = owner.sid) =>
      fixture.post('/ProxyAdmin/api/claim', { token }, cookie(sid));
    t.equal((await fixture.post('/ProxyAdmin/api/claim', { token: TOKEN })).status, 401, 'without a session');
    t.equal((await claim('another')).status, 410);
    t.equal((await claim(TOKEN)).status, 403, 'a software key is not enough');
    t.throws(() => link.check(TOKEN, START_MS + SETUP_LINK_MS), /Set-up link is over/, 'too late');
    link.check(TOKEN, START_MS + SETUP_LINK_MS - 1);
    link.spend();
    t.equal((await claim(TOKEN)).status, 410, 'used');
    const staff = new LiveStaff(fixture.actors.system, false);
    const first = { role: 'admin', address: '::1', first: true } as const;
    await staff.set({ ...first, userId: owner.userId, by: owner.userId });
    await t.rejects(staff.set({ ...first, userId: '7', by: '7' }), /Set-up link is over/, 'there is one');
    const without = await startAdmin();
    t.teardown(() => without.stop());
    const answer = await without.post('/ProxyAdmin/api/claim', { token: TOKEN }, cookie(without.owner.sid));
    t.equal(answer.status, 410, 'no link was given');
  },
);
