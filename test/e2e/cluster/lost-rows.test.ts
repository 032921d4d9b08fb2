/** Nodes over a database that has lost rows which they have applied: each stops with 70 and says why. */
import t, { type Test } from 'tap';
import { signUp, untilAvailable } from '../../../kit/agent.ts';
import { stopAfter } from '../../../kit/close-after.ts';
import { type NodeProcess, type Nodes, startNodes } from '../../../kit/cluster/nodes.ts';
import { type Postgres, startPostgres } from '../../../kit/cluster/postgres.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';

t.setTimeout(240_000);

async function openCluster(
  t: Test,
  postgres: Postgres,
  nodes: number,
  leaseMilliseconds: number,
): Promise<Nodes> {
  const options = {
    configuration: { Settings: NO_LIMITS },
    sandbox: false,
    cluster: { leaseMilliseconds },
  };
  return stopAfter(t, await startNodes({ postgres, nodes, ...options }));
}

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

/** A cluster over a database whose rows of now are kept: later ones can be lost. */
async function saved(t: Test, postgres: Postgres, nodes: number, leaseMs: number) {
  const cluster = await openCluster(t, postgres, nodes, leaseMs);
  const [a] = cluster.nodes;
  if (a === undefined) throw new Error('no node');
  await untilAvailable(() => signUp(a.url));
  await postgres.save();
  await cluster.allServe();
  return { cluster, a };
}

async function promoted(t: Test, postgres: Postgres): Promise<void> {
  const { cluster, a } = await saved(t, postgres, 2, 10_000);
  for (let person = 0; person < 3; person += 1) await untilAvailable(() => signUp(a.url));
  await postgres.loseRows();
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

async function grownAgain(t: Test, postgres: Postgres): Promise<void> {
  const { cluster, a } = await saved(t, postgres, 1, 1_000);
  await untilAvailable(() => signUp(a.url));
  const { position } = await stateOf(a);
  await a.gateway.kill();
  await postgres.loseRows();
  const b = await cluster.add();
  await cluster.isOut(a);
  while ((await appliedBy(cluster, b)) <= position) await untilAvailable(() => signUp(b.url));
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
  await t.test('a standby is promoted: every node that has applied them stops and says why', (t) =>
    promoted(t, postgres),
  );
  await t.test('a log grew again with others: a node that starts stops and says why', (t) =>
    grownAgain(t, postgres),
  );
});
