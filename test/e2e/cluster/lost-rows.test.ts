/** Nodes over a database that has lost rows which they have applied: each stops with 70 and says why. */
import t, { type Test } from 'tap';
import { signUp, untilAvailable } from '../../../kit/agent.ts';
import type { NodeProcess, Nodes } from '../../../kit/cluster/nodes.ts';
import { type Postgres, startPostgres } from '../../../kit/cluster/postgres.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';
import { startedNodes } from '../../support/cluster/started-nodes.ts';

t.setTimeout(240_000);

async function failedStart(node: NodeProcess): Promise<string> {
  return node.start().then(
    () => 'it serves',
    (error: Error) => error.message,
  );
}

async function appliedBy({ records }: Nodes, { name }: NodeProcess): Promise<number> {
  return (await records()).find((each) => each.name === name)?.applied ?? 0;
}

async function stateOf({ gateway }: NodeProcess): Promise<{ readonly position: number }> {
  const answer = (await (await fetch(`${gateway.internal}/health`)).json()) as {
    readonly cluster: { readonly position: number };
  };
  return answer.cluster;
}

/** Two nodes over a database that goes back to the rows of before the last accounts. */
async function startedOver(t: Test, postgres: Postgres) {
  const options = { configuration: { Settings: NO_LIMITS }, cluster: { leaseMilliseconds: 10_000 } };
  const { cluster, a } = await startedNodes(t, 2, { ...options, postgres, sandbox: false });
  await untilAvailable(() => signUp(a.url));
  await postgres.save();
  await cluster.allServe();
  for (let person = 0; person < 3; person += 1) await untilAvailable(() => signUp(a.url));
  const { position } = await stateOf(a);
  await postgres.loseRows();
  return { cluster, a, position };
}

type Started = Awaited<ReturnType<typeof startedOver>>;

async function promoted(t: Test, { cluster, a }: Started): Promise<void> {
  for (const { name, gateway } of cluster.nodes) {
    t.match(await gateway.exited, { code: 70 }, name);
    t.match(
      gateway.output().stderr,
      /row \d+ of the log is gone: it was trimmed, or the database lost it/,
      name,
    );
  }
  t.match(await failedStart(a), /it ended with 70[\s\S]*(the log ends at \d+|row \d+ of the log is gone)/);
}

async function grownAgain(t: Test, { cluster, a, position }: Started): Promise<void> {
  const c = await cluster.add();
  for (const gone of cluster.nodes) if (gone !== c) await cluster.isOut(gone);
  while ((await appliedBy(cluster, c)) <= position) await untilAvailable(() => signUp(c.url));
  t.match(
    await failedStart(a),
    /it ended with 70[\s\S]*gatehouse: row \d+ of the log is another one than this node has applied: the database lost rows/,
  );
}

t.test('a database that lost rows', async (t) => {
  // A server of its own: the others of the suite lose nothing.
  const postgres = await startPostgres();
  if (typeof postgres === 'string') {
    t.comment(postgres);
    return;
  }
  t.teardown(() => postgres.stop());
  const started = await startedOver(t, postgres);
  await t.test('a standby is promoted: every node that has applied them stops and says why', (t) =>
    promoted(t, started),
  );
  await t.test('a log grew again with others: a node that starts stops and says why', (t) =>
    grownAgain(t, started),
  );
});
