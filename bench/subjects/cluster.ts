/** A cluster under load: nodes over a PostgreSQL of their own, so that its processor time is that of this cluster alone. */
import { startNodes } from '../../kit/cluster/nodes.ts';
import { startPostgres } from '../../kit/cluster/postgres.ts';
import { costOf, mainThreadMs } from '../measure/process-cost.ts';
import { childrenOf } from '../measure/processes.ts';
import type { Bench } from '../scenario.ts';
import { RAISED } from './gateway.ts';

/** Processor time so far, in milliseconds. */
interface ClusterCost {
  /** Of all nodes, all threads. */
  readonly nodesMs: number;
  readonly mainThreadsMs: number;
  readonly postgresMs: number;
}

export interface ClusterUnderLoad {
  readonly urls: readonly string[];
  readonly pids: readonly number[];
  cost(): ClusterCost;
}

export async function clusterUnderLoad(
  bench: Bench,
  count: number,
  modules: object,
): Promise<ClusterUnderLoad> {
  const postgres = await startPostgres();
  if (typeof postgres === 'string') throw new Error(postgres);
  bench.onTeardown(() => postgres.stop());
  const { profileFolder } = bench.options;
  const { nodes, stop } = await startNodes({
    postgres,
    nodes: count,
    sandbox: false,
    configuration: { Modules: modules, Settings: RAISED },
    launch: {
      nodeArgs: profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}/${count}`],
    },
  });
  bench.onTeardown(stop);
  const pids = nodes.map(({ gateway }) => gateway.process.pid ?? 0);
  const sum = (processes: readonly number[], of: (pid: number) => number | undefined) =>
    processes.reduce((total, pid) => total + (of(pid) ?? 0), 0);
  const cpuOf = (pid: number) => costOf(pid)?.cpuMs;
  return {
    urls: nodes.map(({ url }) => url),
    pids,
    cost: () => ({
      nodesMs: sum(pids, cpuOf),
      mainThreadsMs: sum(pids, mainThreadMs),
      postgresMs: sum(childrenOf(postgres.pid), cpuOf),
    }),
  };
}
