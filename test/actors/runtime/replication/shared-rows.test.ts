/** Rows of a cluster that are of no actor: who writes them, and what happens when two nodes do at once. */
import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { stopAfter } from '../../../../kit/close-after.ts';
import type { Operation } from '../../../../src/actors/runtime/journal/port.ts';
import { homeOf } from '../../../../src/domain/partitions.ts';
import { openApiKeyCipher } from '../../../../src/io/apps/api-keys.ts';
import { TestCluster, type TestMember } from '../../../support/actors/cluster.ts';
import { rejectsWith } from '../../../support/rejections.ts';

function withTwoNodes(
  name: string,
  test: (t: Test, cluster: TestCluster, nodes: readonly [TestMember, TestMember]) => Promise<void>,
): void {
  t.test(`shared rows: ${name}`, async (t) => {
    const cluster = stopAfter(t, new TestCluster([]));
    const nodes = [await cluster.add('a'), await cluster.add('b')] as const;
    await test(t, cluster, nodes);
    t.same(
      nodes.flatMap(({ fatal }) => fatal),
      [],
    );
  });
}

// covers C8
withTwoNodes('of two nodes that seal data keys anew at once both use those of one', async (t, _, [a, b]) => {
  const open = (sealKeys: readonly string[], { system }: TestMember) =>
    openApiKeyCipher(system.administration, { sealKeys, sealKeyLost: false });
  const newKey = () => randomBytes(32).toString('base64url');
  const [first, second] = [newKey(), newKey()];
  for (const sealKeys of [[first], [second, first]]) {
    const [atA, atB] = await Promise.all([open(sealKeys, a), open(sealKeys, b)]);
    for (const [issuer, reader] of [
      [atA, atB],
      [atB, atA],
    ] as const) {
      const { apiKey, sealed } = issuer.issue();
      t.equal(reader.open(sealed), apiKey);
    }
  }
});

// covers C19
withTwoNodes('a value of a partition is written by its owner alone', async (t, cluster, [a, b]) => {
  const partition = homeOf('user', '1');
  const [owner, other] = a.view.owns('user', '1') ? [a, b] : [b, a];
  await owner.system.administration.metaPut('webhooks.1', 5, partition);
  await rejectsWith(t, other.system.administration.metaPut('webhooks.1', 4, partition), 'Overloaded');
  await cluster.settle();
  for (const { system } of [a, b]) t.equal(system.administration.metaGet('webhooks.1'), 5);
});

const RECORD = { utcMs: 5, event: 'login', userId: '1', fields: {} };

/** Records of turns, as both nodes have applied them. */
async function record(nodes: readonly TestMember[], count: number): Promise<void> {
  for (const { replica, store } of nodes) {
    const operation: Operation = { op: 'audit', ring: 'logins', row: store.pack(RECORD) };
    await replica.writeLocal(Array.from({ length: count }, () => operation));
  }
}

const rowsOf = (nodes: readonly TestMember[]) => nodes.map(({ journal }) => journal.auditRows('logins'));

// covers C15
withTwoNodes('audit records of turns are trimmed by one node, at both', async (t, cluster, nodes) => {
  await record(nodes, 4);
  const tidied = nodes.map(({ system }) => system.administration.tidyAudit(6));
  t.same(tidied.sort(), [false, true]);
  await cluster.settle();
  t.same(rowsOf(nodes), [1, 1], 'the newest stays');
});

// covers C15
withTwoNodes('a trim that was waiting while another node trimmed does nothing', async (t, cluster, nodes) => {
  await record(nodes, 9);
  const [a] = nodes;
  const partition = homeOf('auditLog', 'all');
  const owner = nodes.find(({ view }) => view.owns('auditLog', 'all')) ?? a;
  const trim: Operation = { op: 'auditTrim', ring: 'logins', rows: 3, trim: 1 };
  await owner.system.administration.write([trim], 0, partition);
  await owner.system.administration.write([trim], 0, partition);
  await cluster.settle();
  t.same(rowsOf(nodes), [6, 6]);
  await owner.system.administration.write([{ ...trim, trim: 2 }], 0, partition);
  await cluster.settle();
  t.same(rowsOf(nodes), [3, 3], 'the next one follows');
});
