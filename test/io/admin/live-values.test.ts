/** Settings and roles in memory follow their actors, whichever process has changed them. */
import t from 'tap';
import { user } from '../../../src/actors/accounts/user.ts';
import { SETTINGS_ID, settings } from '../../../src/actors/admin/settings.ts';
import { STAFF_ID, staff } from '../../../src/actors/admin/staff.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { Role } from '../../../src/domain/roles.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { LatestRead } from '../../../src/io/admin/latest-read.ts';
import { settingsReload } from '../../../src/io/admin/settings.ts';
import { LiveStaff } from '../../../src/io/admin/staff.ts';
import { createTestActors } from '../../support/actors/actors.ts';
import { rejectsWith } from '../../support/rejections.ts';

const BY = { by: '1', address: '192.0.2.1' };

t.test('settings: a reload takes over what another process has changed, and nothing else', async (t) => {
  const { system } = createTestActors({ kinds: [settings] });
  const live = new LiveSettings({ AuditDays: 30, ConnectionsMax: 500 });
  const reload = settingsReload(system, live);
  const change = (name: 'AuditDays' | 'EventDays', value: number) =>
    system.ask(settings, SETTINGS_ID, { type: 'change', name, value, ...BY });
  const values = () => (['AuditDays', 'EventDays', 'ConnectionsMax'] as const).map((name) => live.get(name));
  const before = values();
  await reload();
  t.same([values(), live.revision], [before, 0], 'nothing is stored');
  await change('AuditDays', 7);
  await change('EventDays', 3);
  t.same(values(), before);
  const reloading = reload();
  t.same(values(), [7, 3, 500], 'in the same turn of the event loop, where no commit is pending');
  await reloading;
  t.equal(live.revision, 2);
  await reload();
  t.equal(live.revision, 2, 'what readers have derived stays valid');
  await change('AuditDays', 7);
  await change('EventDays', 4);
  await reload();
  t.same([values(), live.revision], [[7, 4, 500], 3]);
});

t.test('staff: a reload takes over roles that another process has given and taken', async (t) => {
  const { system } = createTestActors({ kinds: [staff, user] });
  const none = new Set<string>();
  const [one, other] = [new LiveStaff(system, none), new LiveStaff(system, none)];
  const set = (userId: string, role: Role | null) =>
    system.ask(staff, STAFF_ID, { type: 'setRole', hasKeys: true, userId, role, ...BY });
  await set('7', 'admin');
  await one.set({ userId: '8', role: 'viewer', ...BY });
  t.same([one.list(), other.list()], [[{ userId: '8', role: 'viewer' }], []]);
  for (const each of [one, other]) {
    const reloading = each.reload();
    t.same([each.roleOf('7'), each.roleOf('8')], ['admin', 'viewer']);
    await reloading;
  }
  await set('8', null);
  await set('7', 'support');
  for (const each of [one, other]) {
    await each.reload();
    t.same(each.list(), [{ userId: '7', role: 'support' }]);
  }
});

t.test('reload: waits for a commit that is pending', async (t) => {
  const actors = createTestActors({ kinds: [settings] });
  const { system } = actors;
  const live = new LiveSettings({ AuditDays: 30 });
  const reload = settingsReload(system, live);
  const changed = system.ask(settings, SETTINGS_ID, { type: 'change', name: 'AuditDays', value: 7, ...BY });
  const reloading = reload();
  t.equal(live.get('AuditDays'), 30, 'not before it is on disk');
  await Promise.all([changed, reloading]);
  t.equal(live.get('AuditDays'), 7);
});

t.test('reload: a refused query rejects and changes nothing', async (t) => {
  const live = new LiveSettings({ AuditDays: 30 });
  const query = () => {
    throw new GatewayError('Quarantined');
  };
  await rejectsWith(t, settingsReload({ query }, live)(), 'Quarantined');
  t.same([live.get('AuditDays'), live.revision], [30, 0]);
});

t.test('reload: a result that a later read has overtaken is dropped', async (t) => {
  const waiting: ((value: number) => void)[] = [];
  const applied: number[] = [];
  let present: number | undefined;
  const read = new LatestRead(
    () => present ?? new Promise<number>((resolve) => waiting.push(resolve)),
    (value: number) => applied.push(value),
  );
  const first = read.run();
  const second = read.run();
  waiting[1]?.(2);
  await second;
  waiting[0]?.(1);
  await first;
  t.same(applied, [2]);
  const third = read.run();
  present = 4;
  const fourth = read.run();
  t.same(applied, [2, 4], 'one that needs no wait is applied at once');
  waiting[2]?.(3);
  await Promise.all([third, fourth]);
  t.same(applied, [2, 4]);
});
