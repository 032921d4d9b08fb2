/** Connects the limits of this node with those of the other nodes of its cluster. */
import { randomUUID } from 'node:crypto';
import type { LimitExchange } from '../../actors/limits/limit-exchange.ts';
import type { ClusterNode } from '../../actors/runtime/replication/cluster-node.ts';
import type { Members } from '../../actors/runtime/replication/members.ts';
import { nodeSchedule } from '../../actors/runtime/runtime-context.ts';
import type { PeerLinks } from '../../io/cluster/peers.ts';
import { LimitLinks } from '../../io/limits/limit-links.ts';

export function linkLimits(
  exchange: LimitExchange,
  { node, replica, links }: Pick<ClusterNode, 'node' | 'replica'> & { readonly links: PeerLinks },
): LimitLinks {
  const follow = (members: Members) => exchange.setNodes(new Set(members.nodes()));
  replica.follow({ applied: () => undefined, membersChanged: (_before, now) => follow(now) });
  follow(replica.members);
  return new LimitLinks({
    exchange,
    schedule: nodeSchedule,
    clock: Date.now,
    node: () => node.node,
    process: randomUUID(),
    callAll: links.callAll,
  });
}
