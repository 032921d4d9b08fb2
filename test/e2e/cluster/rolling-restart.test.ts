/** A node that is restarted with SIGTERM under load, behind one address: what clients are answered meanwhile. */
import t from 'tap';
import { startRolling } from '../../../tools/cluster/rolling.ts';
import { withPostgres } from '../../support/cluster/postgres.ts';

t.setTimeout(240_000);

await withPostgres(t, (postgres) => {
  t.test('rolling restart: a node leaves and comes back, and clients see success or 503 alone', async (t) => {
    const rolling = await startRolling({ postgres, nodes: 3, clients: 6, pauseMs: 20 });
    t.teardown(() => rolling.stop());
    const { cluster, restart, under } = rolling;
    const [node] = cluster.nodes;
    if (node === undefined) throw new Error('no node');
    const before = await cluster.records();
    let exit: unknown;
    const report = await under(async () => {
      exit = await restart(node);
    });
    t.same(exit, { code: 0, signal: null }, 'the node ends by itself');
    t.same(report.faults, [], 'success, or 503 with Retry-After');
    t.ok(report.requests > report.unavailable, `${report.requests} answers`);
    const nodeOf = (records: typeof before) => records.find((each) => each.name === node.name);
    const [old, now] = [nodeOf(before), nodeOf(await cluster.records())];
    t.equal(now?.joined, true, 'it is in again');
    t.equal(
      (now?.incarnation ?? 0) - (old?.incarnation ?? 0),
      2,
      'it left by itself: no other node expelled it',
    );
  });

  t.test('rolling restart: a node without its database ends within its time all the same', async (t) => {
    const rolling = await startRolling({ postgres, nodes: 2, clients: 1, pauseMs: 20 });
    t.teardown(() => rolling.stop());
    const [, node] = rolling.cluster.nodes;
    if (node === undefined) throw new Error('no node');
    node.database.hold();
    node.gateway.process.kill('SIGTERM');
    t.same(await node.gateway.exited, { code: 0, signal: null });
    await rolling.cluster.isOut(node);
  });
});
