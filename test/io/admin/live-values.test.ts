/** Settings and roles in memory follow their actors, whichever process has changed them. */
import t from 'tap';
import { user } from '../../../src/actors/accounts/user.ts';
import { SETTINGS_ID, settings } from '../../../src/actors/admin/settings.ts';
import { STAFF_ID, staff } from '../../../src/actors/admin/staff.ts';
import type { ActorSystem } from '../../../src/actors/runtime/actor.ts';
import type { Role } from '../../../src/domain/roles.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { toIso } from '../../../src/domain/time.ts';
import { changeSetting, settingsReload, viewSettings } from '../../../src/io/admin/settings.ts';
import { LiveStaff } from '../../../src/io/admin/staff.ts';
import { createTestActors } from '../../support/actors/actors.ts';

const BY = { by: '1', address: '192.0.2.1' };

t.test('settings: a reload takes over what another process has changed, and nothing else', async (t) => {
  const { system } = createTestActors({ kinds: [settings] });
  const live = new LiveSettings({ AuditDays: 30, ConnectionsMax: 500 });
  const reload = settingsReload(system, live);
  const change = (name: 'AuditDays' | 'EventDays', value: number) =>
    system.ask(settings, SETTINGS_ID, { type: 'change', name, value, ...BY });
  const values = () => (['AuditDays', 'EventDays', 'ConnectionsMax'] as const).map((name) => live.get(name));
  const before = values();
  reload();
  t.same([values(), live.revision], [before, 0], 'nothing is stored');
  await change('AuditDays', 7);
  await change('EventDays', 3);
  t.same(values(), before);
  reload();
  t.same(values(), [7, 3, 500]);
  t.equal(live.revision, 2);
  reload();
  t.equal(live.revision, 2, 'what readers have derived stays valid');
  await change('AuditDays', 7);
  await change('EventDays', 4);
  reload();
  t.same([values(), live.revision], [[7, 4, 500], 3]);
});

t.test('staff: a reload takes over roles that another process has given and taken', async (t) => {
  const { system } = createTestActors({ kinds: [staff, user] });
  const none = new Set<string>();
  const [one, other] = [new LiveStaff(system, none, system), new LiveStaff(system, none, system)];
  const set = (userId: string, role: Role | null) =>
    system.ask(staff, STAFF_ID, { type: 'setRole', hasKeys: true, userId, role, ...BY });
  await set('7', 'admin');
  await one.set({ userId: '8', role: 'viewer', ...BY });
  const both = [
    { userId: '7', role: 'admin' },
    { userId: '8', role: 'viewer' },
  ];
  t.same([one.list(), other.list()], [both, []], 'a change of its own shows the others too');
  for (const each of [one, other]) {
    each.reload();
    t.same([each.roleOf('7'), each.roleOf('8')], ['admin', 'viewer']);
  }
  await set('8', null);
  await set('7', 'support');
  for (const each of [one, other]) {
    each.reload();
    t.same(each.list(), [{ userId: '7', role: 'support' }]);
  }
});

t.test('reload: shows what is on disk, and nothing of a commit that is pending', async (t) => {
  const { system } = createTestActors({ kinds: [settings] });
  const live = new LiveSettings({ AuditDays: 30 });
  const reload = settingsReload(system, live);
  const changed = system.ask(settings, SETTINGS_ID, { type: 'change', name: 'AuditDays', value: 7, ...BY });
  reload();
  t.equal(live.get('AuditDays'), 30, 'not before it is on disk');
  await changed;
  reload();
  t.equal(live.get('AuditDays'), 7);
});

t.test('changeSetting: an answer that comes late does not bring a former value back', async (t) => {
  const { system } = createTestActors({ kinds: [settings] });
  const live = new LiveSettings({ AuditDays: 30 });
  const reload = settingsReload(system, live);
  const change = (value: number) =>
    system.ask(settings, SETTINGS_ID, { type: 'change', name: 'AuditDays', value, ...BY });
  let answer: (() => void) | undefined;
  const slow = {
    ask: async () => {
      const accepted = await change(7);
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return accepted;
    },
  } as unknown as ActorSystem;
  const node = { settings: live, stored: system, reload };
  const changed = changeSetting(slow, node, { name: 'AuditDays', value: 7, ...BY });
  await change(9);
  reload();
  t.equal(live.get('AuditDays'), 9, 'the change of another node');
  answer?.();
  t.equal((await changed).value, 9);
  t.equal(live.get('AuditDays'), 9);
});

t.test(
  'settings: the last change is shown with its admin and time, also when the value was the same',
  async (t) => {
    const { system, clock } = createTestActors({ kinds: [settings, user] });
    const live = new LiveSettings({ AuditDays: 30 });
    const node = { settings: live, stored: system, reload: settingsReload(system, live) };
    const shown = () => viewSettings(node).find(({ name }) => name === 'AuditDays');
    t.equal(shown()?.changed, null, 'a value of the file has no admin');
    await changeSetting(system, node, { name: 'AuditDays', value: 7, ...BY });
    const { title, group, value, changed } = shown() ?? {};
    t.strictSame(
      { title, group, value, changed },
      {
        title: 'Records are kept',
        group: 'Audit log',
        value: 7,
        changed: { userId: '1', nickname: null, utc: toIso(clock.nowMs) },
      },
    );
    clock.nowMs += 1_000;
    const again = await changeSetting(system, node, {
      name: 'AuditDays',
      value: 7,
      by: '2',
      address: BY.address,
    });
    t.strictSame(again.changed, { userId: '2', nickname: null, utc: toIso(clock.nowMs) });
  },
);

t.test('settings: rows and snapshots without the admin of a change show none', (t) => {
  const before = settings.evolve({ values: {} }, { type: 'changed', name: 'AuditDays', value: 7 });
  const query = (state: typeof before) =>
    settings.query(state, { type: 'changes' }, undefined, { nowMs: 0, settings: new LiveSettings() });
  t.same(query(before), {});
  t.same(query({ values: { AuditDays: 7 } }), {});
  t.end();
});
