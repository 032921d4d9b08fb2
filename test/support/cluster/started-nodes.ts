/** Nodes of a test, which end with it. */
import type { Test } from 'tap';
import { stopAfter } from '../../../kit/close-after.ts';
import { type NodeProcess, type Nodes, type NodesOptions, startNodes } from '../../../kit/cluster/nodes.ts';

interface Named {
  readonly 2: Readonly<Record<'a' | 'b', NodeProcess>>;
  readonly 3: Readonly<Record<'a' | 'b' | 'c', NodeProcess>>;
}

export async function startedNodes<Count extends 2 | 3>(
  t: Test,
  count: Count,
  options: Omit<NodesOptions, 'nodes'>,
): Promise<{ readonly cluster: Nodes } & Named[Count]> {
  const cluster = stopAfter(t, await startNodes({ ...options, nodes: count }));
  const [a, b, c] = cluster.nodes;
  return { cluster, a, b, c } as unknown as { readonly cluster: Nodes } & Named[Count];
}
