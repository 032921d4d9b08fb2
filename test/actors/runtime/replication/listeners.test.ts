/** Listeners of a kind: what a query of their node shows when they are called, at the owner and at the others. */
import t from 'tap';
import { SETTINGS_ID, settings } from '../../../../src/actors/admin/settings.ts';
import { LiveSettings } from '../../../../src/domain/settings/settings.ts';
import { settingsReload } from '../../../../src/io/admin/settings.ts';
import { TestCluster } from '../../../support/actors/cluster.ts';

// covers C6
t.test('listeners: a change is in force at every node, the owner too, before its answer', async (t) => {
  const cluster = new TestCluster([settings]);
  for (const name of ['a', 'b', 'c']) await cluster.add(name);
  const nodes = cluster.members.map(({ system }) => {
    const live = new LiveSettings();
    const reload = settingsReload(system, live);
    system.onApplied(settings, reload);
    return live;
  });
  const owner = cluster.ownerOf(settings, SETTINGS_ID);
  for (const value of [5_000, 6_000, 7_000]) {
    const change = { name: 'McpSessionSeconds', value, by: '1', address: '127.0.0.1' };
    await owner.system.ask(settings, SETTINGS_ID, { type: 'change', ...change });
    t.strictSame(
      nodes.map((live) => live.get('McpSessionSeconds')),
      [value, value, value],
    );
  }
});
