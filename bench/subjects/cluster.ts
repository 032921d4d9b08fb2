/** A cluster under load: nodes over a PostgreSQL of their own, so that its processor time is that of this cluster alone. */
import { setTimeout as wait } from 'node:timers/promises';
import { type NodeProcess, startNodes } from '../../kit/cluster/nodes.ts';
import { type Postgres, startPostgres } from '../../kit/cluster/postgres.ts';
import { SECOND_MS } from '../../src/domain/time.ts';
import { costOf, mainThreadMs } from '../measure/process-cost.ts';
import { childrenOf } from '../measure/processes.ts';
import type { Bench } from '../scenario.ts';
import { RAISED } from './gateway.ts';

const IDLE_MS = 3_000;

/** Processor time so far, in milliseconds. */
interface ClusterCost {
  /** Processor time of all nodes, all threads. */
  readonly nodesMs: number;
  readonly mainThreadsMs: number;
  readonly postgresMs: number;
}

export interface ClusterUnderLoad {
  readonly urls: readonly string[];
  /** The internal listener of the first node. */
  readonly internal: string;
  readonly pids: readonly number[];
  cost(): ClusterCost;
  /** Processor time of all nodes without load, in milliseconds of a second. */
  idleMs(): Promise<number>;
}

export async function clusterUnderLoad(
  bench: Bench,
  count: number,
  modules: object,
  settings: object = {},
): Promise<ClusterUnderLoad> {
  const postgres = await startPostgres();
  if (typeof postgres === 'string') throw new Error(postgres);
  bench.onTeardown(() => postgres.stop());
  const { profileFolder } = bench.options;
  const { nodes, stop } = await startNodes({
    postgres,
    nodes: count,
    sandbox: false,
    configuration: { Modules: modules, Settings: { ...RAISED, ...settings } },
    launch: {
      nodeArgs: profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}/${count}`],
    },
  });
  bench.onTeardown(stop);
  return loadOfNodes(nodes, postgres);
}

/** `postgres`: of these nodes alone, where its time is asked for. */
export function loadOfNodes(nodes: readonly NodeProcess[], postgres: Postgres): ClusterUnderLoad {
  const pids = nodes.map(({ gateway }) => gateway.process.pid ?? 0);
  const sum = (processes: readonly number[], of: (pid: number) => number | undefined) =>
    processes.reduce((total, pid) => total + (of(pid) ?? 0), 0);
  const cpuOf = (pid: number) => costOf(pid)?.cpuMs;
  return {
    urls: nodes.map(({ url }) => url),
    internal: nodes[0]?.gateway.internal ?? '',
    pids,
    cost: () => ({
      nodesMs: sum(pids, cpuOf),
      mainThreadsMs: sum(pids, mainThreadMs),
      postgresMs: sum(childrenOf(postgres.pid), cpuOf),
    }),
    async idleMs() {
      const before = sum(pids, cpuOf);
      await wait(IDLE_MS);
      return ((sum(pids, cpuOf) - before) / IDLE_MS) * SECOND_MS;
    },
  };
}
