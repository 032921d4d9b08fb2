/** Clusters of the suite: accounts that a node writes into the log, and the loads of the scenario scale. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { mainThreadMs } from '../../bench/measure/process-cost.ts';
import { childrenOf } from '../../bench/measure/processes.ts';
import { loadsOf } from '../../bench/scenarios/scale.ts';
import { seedLog } from '../../bench/subjects/seeded-log.ts';
import { startNodes } from '../../kit/cluster/nodes.ts';
import { withPostgres } from '../support/cluster/postgres.ts';

t.setTimeout(120_000);

function testLoads(): void {
  t.test('scale: the nodes share the rate of each kind of work', async (t) => {
    const accounts = { internal: undefined, moduleKey: '', bearers: [], cookies: [], loginKeys: [] };
    const none = { uploadCookies: [], filePath: undefined, audience: [] };
    const fixtures = ['http://a', 'http://b'].map((url) => ({ url, ...accounts, ...none }));
    const loads = loadsOf(fixtures, 'mix', 1_000).map(({ fixture, kind, ratePerSecond }) => [
      fixture.url,
      kind.name,
      Math.round(ratePerSecond),
    ]);
    t.same(loads, [
      ['http://a', 'tools/call', 475],
      ['http://a', 'tools/list', 20],
      ['http://a', 'login', 5],
      ['http://b', 'tools/call', 475],
      ['http://b', 'tools/list', 20],
      ['http://b', 'login', 5],
    ]);
  });
}

await withPostgres(t, (postgres) => {
  testLoads();
  t.test('seeded log: a node that joins has every account, and the seeding one is out', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-seeded-log-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const nodes = await startNodes({ postgres, nodes: 0, sandbox: false });
    t.teardown(() => nodes.stop());
    const { databaseUrl: url, secret } = nodes;
    const secrets = [Buffer.from(secret, 'hex')];
    await seedLog({ url, secrets, dataPath: join(folder, 'seed'), accounts: 40 });
    const node = await nodes.add();
    const metrics = await (await fetch(`${node.gateway.internal}/metrics`)).text();
    t.match(metrics, /gatehouse_sessions\{scope="browser"\} 40\n/);
    t.same(
      (await nodes.records()).map(({ name, joined }) => [name, joined]),
      [
        ['seed', false],
        ['a', true],
      ],
    );
    t.ok(childrenOf(postgres.pid).length > 0, 'the sessions of PostgreSQL are its children');
    t.ok(Number(mainThreadMs(node.gateway.process.pid ?? 0)) > 0);
  });
});
