/** Roles in the admin panel, and the set-up link that makes the first admin. */
import t from 'tap';
import { LiveStaff, SETUP_LINK_MS, SetupLink } from '../../../src/io/admin/staff.ts';
import { cookie } from '../../support/account.ts';
import { START_MS } from '../../support/actors/actors.ts';
import { startAdminOf } from '../../support/admin.ts';

const NO_KEYS: ReadonlySet<string> = new Set();
const TOKEN = 'the-token-of-the-link';

// covers R5
t.test('staff: a viewer reads, support also blocks, an admin does all, others nothing', async (t) => {
  const fixture = await startAdminOf(t);
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
  t.same((await ask('staff')).result, [{ userId: owner.userId, role: 'admin', nickname: null }]);
  t.equal((await role(owner.userId, null)).status, 200);
  t.same(await attempts(), { read: 403, block: 403, setting: 403, staff: 403 });
  const audited = (await ask('audit?after=0')).result as { event: string; userId: string; fields: object }[];
  const changes = audited.filter(({ event }) => event === 'roleChanged');
  const fields = { subject: owner.userId, before: 'viewer', after: 'support' };
  t.match(changes[1], { userId: admin.userId, fields });
});

t.test('staff: unknown accounts, unknown roles and the last admin are refused', async (t) => {
  const fixture = await startAdminOf(t, { noKeys: true });
  const { admin, owner, change } = fixture;
  const staff = new LiveStaff(fixture.actors.system, NO_KEYS, fixture.actors.system);
  await staff.set({ userId: admin.userId, role: 'admin', by: owner.userId, address: '::1' });
  const unseen = await change('staff', { userId: '12345', role: 'viewer' });
  t.equal(unseen.status, 403, 'the fixture did not see it');
  staff.reload();
  t.ok(await staff.hasAdmin());
  const set = (userId: string, role: 'admin' | 'viewer' | null) =>
    staff.set({ userId, role, by: admin.userId, address: '::1' });
  const byOwner = (userId: string, role: 'viewer' | null) =>
    staff.set({ userId, role, by: owner.userId, address: '::1' });
  await t.rejects(byOwner(admin.userId, null), /Invalid input/, 'no admin would be left');
  await t.rejects(byOwner(admin.userId, 'viewer'), /Invalid input/);
  await set(owner.userId, 'admin');
  await byOwner(admin.userId, null);
  t.equal(staff.roleOf(admin.userId), undefined);
  await fixture.actors.restart();
  const again = new LiveStaff(fixture.actors.system, NO_KEYS, fixture.actors.system);
  again.reload();
  t.same(again.list(), [{ userId: owner.userId, role: 'admin' }], 'roles survive a restart');
  const keyed = await startAdminOf(t);
  t.equal((await keyed.change('staff', { userId: '12345', role: 'viewer' })).status, 404);
  t.equal((await keyed.change('staff', { userId: keyed.owner.userId, role: 'root' })).status, 400);
});

// covers S118
t.test('staff: an admin cannot change the role of the own account, another admin can', async (t) => {
  const { ask, change, admin, owner } = await startAdminOf(t);
  const role = (account: typeof admin, userId: string, name: string | null) =>
    change('staff', { userId, role: name }, account);
  t.equal((await role(admin, owner.userId, 'admin')).status, 200);
  for (const name of [null, 'viewer', 'support', 'admin']) {
    const answer = await role(admin, admin.userId, name);
    t.equal(answer.status, 400, String(name));
    t.match(JSON.stringify(answer.error), /userId: your own role is for another admin to change/);
  }
  t.same((await ask('staff')).result, [{ userId: owner.userId, role: 'admin', nickname: null }]);
  t.equal((await role(owner, owner.userId, null)).status, 400);
  t.equal((await role(owner, admin.userId, 'viewer')).status, 200);
  t.equal((await role(admin, owner.userId, null)).status, 200);
});

t.test('staff: support cannot block the staff; blocked admins leave the way to the link open', async (t) => {
  const fixture = await startAdminOf(t);
  const { admin, owner, change } = fixture;
  const other = await fixture.signUp();
  const block = (userId: string, by = owner) => change('users/block', { userId, blocked: true }, by);
  await change('staff', { userId: owner.userId, role: 'support' });
  await change('staff', { userId: other.userId, role: 'viewer' });
  t.equal((await block(admin.userId)).status, 403, 'an admin by a key of the configuration');
  t.equal((await block(other.userId)).status, 403, 'a viewer');
  t.equal((await change('staff', { userId: other.userId, role: null })).status, 200);
  t.equal((await block(other.userId)).status, 200, 'no role any more');
  t.equal((await block(owner.userId, admin)).status, 200, 'an admin may');

  const staff = new LiveStaff(fixture.actors.system, NO_KEYS, fixture.actors.system);
  await staff.setFirst(admin.userId, '::1');
  t.ok(await staff.hasAdmin());
  await t.rejects(staff.setFirst(other.userId, '::1'), /Set-up link is over/);
  await fixture.setBlocked(admin.userId);
  t.notOk(await staff.hasAdmin(), 'no admin can log in: a start prints the link again');
  await staff.setFirst(owner.userId, '::1');
  t.equal(staff.roleOf(owner.userId), 'admin');
});

// covers S36
t.test(
  'set-up link: good once, for 30 minutes, for a passkey, and only while there is no admin',
  async (t) => {
    const link = new SetupLink(TOKEN, START_MS);
    const fixture = await startAdminOf(t, { noKeys: true, setupLink: link });
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
    const staff = new LiveStaff(fixture.actors.system, NO_KEYS, fixture.actors.system);
    await staff.setFirst(owner.userId, '::1');
    await t.rejects(staff.setFirst('7', '::1'), /Set-up link is over/, 'there is one');
    const without = await startAdminOf(t);
    const answer = await without.post('/ProxyAdmin/api/claim', { token: TOKEN }, cookie(without.owner.sid));
    t.equal(answer.status, 410, 'no link was given');
  },
);

t.test('set-up link: of a recovery makes one more admin, once', async (t) => {
  const link = new SetupLink(TOKEN, START_MS, true);
  const fixture = await startAdminOf(t, { noKeys: true, setupLink: link });
  const staff = new LiveStaff(fixture.actors.system, NO_KEYS, fixture.actors.system);
  await staff.setFirst(fixture.owner.userId, '::1');
  const other = await fixture.signUp();
  await staff.setFirst(other.userId, '::1', link.recovers);
  t.match(staff.list(), [
    { userId: fixture.owner.userId, role: 'admin' },
    { userId: other.userId, role: 'admin' },
  ]);
  link.check(TOKEN, START_MS);
  link.spend();
  t.throws(() => link.check(TOKEN, START_MS), /Set-up link is over/);
});
