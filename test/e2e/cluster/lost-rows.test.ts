/** Nodes over a database that has lost rows which they have applied: each stops with 70 and says why. */
import t, { type Test } from 'tap';
import { signUp, untilAvailable } from '../../../kit/agent.ts';
import { stopAfter } from '../../../kit/close-after.ts';
import { type NodeProcess, type Nodes, startNodes } from '../../../kit/cluster/nodes.ts';
import { type Postgres, startPostgres } from '../../../kit/cluster/postgres.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';

t.setTimeout(240_000);

/** A server of its own: it loses rows. Undefined where none can run. */
async function openCluster(
  t: Test,
  nodes: number,
  leaseMilliseconds: number,
): Promise<{ postgres: Postgres; cluster: Nodes } | undefined> {
  const postgres = await startPostgres();
  if (typeof postgres === 'string') {
    t.comment(postgres);
    return undefined;
  }
  t.teardown(() => postgres.stop());
  const options = {
    configuration: { Settings: NO_LIMITS },
    sandbox: false,
    cluster: { leaseMilliseconds },
  };
  const cluster = stopAfter(t, await startNodes({ postgres, nodes, ...options }));
  return { postgres, cluster };
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

t.test(
  'a standby that lost rows is promoted: every node that has applied them stops and says why',
  async (t) => {
    const opened = await openCluster(t, 3, 10_000);
    if (opened === undefined) return;
    const { postgres, cluster } = opened;
    const [a] = cluster.nodes;
    await untilAvailable(() => signUp(a?.url ?? ''));
    await postgres.save();
    await cluster.allServe();
    for (let person = 0; person < 3; person += 1) await untilAvailable(() => signUp(a?.url ?? ''));
    await postgres.loseRows();
    for (const { name, gateway } of cluster.nodes) {
      t.match(await gateway.exited, { code: 70 }, name);
      t.match(
        gateway.output().stderr,
        /row \d+ of the log is gone: it was trimmed, or the database lost it/,
        name,
      );
    }
    const [again] = cluster.nodes;
    if (again !== undefined)
      t.match(
        await failedStart(again),
        /it ended with 70[\s\S]*(the log ends at \d+|row \d+ of the log is gone)/,
      );
  },
);

t.test(
  'a log that lost rows and grew again with others: a node that starts stops and says why',
  async (t) => {
    const opened = await openCluster(t, 1, 1_000);
    if (opened === undefined) return;
    const { postgres, cluster } = opened;
    const [a] = cluster.nodes;
    if (a === undefined) return;
    await untilAvailable(() => signUp(a.url));
    await postgres.save();
    await cluster.allServe();
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
  },
);

async function stateOf({ gateway }: NodeProcess): Promise<{ readonly position: number }> {
  const answer = (await (await fetch(`${gateway.internal}/health`)).json()) as {
    readonly cluster: { readonly position: number };
  };
  return answer.cluster;
}
