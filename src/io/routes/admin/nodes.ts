/** Admin JSON of the nodes of a cluster. */
import { array, boolean, integer, named, nullable, object, oneOf, text } from '../../../domain/schema.ts';
import type { AdminNodes } from '../../admin/nodes.ts';
import { NODE_STATES } from '../../cluster/node-report.ts';
import { type AnyRoute, adminRoute } from '../../http/table/route.ts';

const node = named(
  'ClusterNode',
  object({
    name: text({ examples: ['a'] }),
    number: integer({ examples: [1] }),
    state: oneOf(NODE_STATES),
    version: text({ examples: ['0.2.0'] }),
    /** Rows of the log that it has not applied. */
    lag: integer(),
    renewedMsAgo: integer({ examples: [120] }),
    /** Milliseconds that it may still answer without a renewal. */
    leaseLeftMs: integer({ examples: [680] }),
    partitionsOwned: integer({ examples: [86] }),
    /** Clock of the database minus its own. */
    clockOffsetMs: integer(),
    /** Address at which other nodes reach it. */
    address: text({ examples: ['10.0.0.1:7001'] }),
    /** The beginning of a hash of what all configurations should say alike. */
    configuration: text({ examples: ['3f29c1a07be4'] }),
    /** True if it is that of the node that answers. */
    sameConfiguration: boolean(),
    /** Turns of all nodes that it has refused, and that it failed to apply, since its start. */
    turnsRefused: integer(),
    turnsThrown: integer(),
  }),
);

export function createAdminNodesRoute(nodes: Pick<AdminNodes, 'name' | 'report'>): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/nodes',
    summary: 'Nodes of the cluster as of their last renewals; none without `Cluster`',
    description:
      '`node` is the one that answers. A node that is `late` has not renewed its lease; one that is `out` has left or was expelled.',
    result: object({ node: nullable(text({ examples: ['a'] })), nodes: array(node) }),
    async handle() {
      const reports = await nodes.report();
      const own = reports.find(({ name }) => name === nodes.name);
      return {
        node: nodes.name === '' ? null : nodes.name,
        nodes: reports.map(({ applied: _, ...report }) => ({
          ...report,
          sameConfiguration: report.configuration === own?.configuration,
        })),
      };
    },
  });
}
