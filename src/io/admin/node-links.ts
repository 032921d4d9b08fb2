/** The other nodes by name, for what the admin panel asks of them. */
import { atOwner, type RemoteReply, type Routing } from '../../actors/routed-system.ts';
import type { NodeReport } from '../cluster/node-report.ts';
import type { NodeLinks } from './nodes.ts';

interface NodeLinksOptions {
  readonly name: string;
  readonly routing: Routing;
  /** Numbers of the nodes that are in. */
  readonly members: () => Iterable<number>;
  readonly nameOf: (node: number) => string;
  readonly report: () => Promise<readonly NodeReport[]>;
  readonly call: (node: number, verb: string, ...args: readonly unknown[]) => Promise<RemoteReply>;
}

export function createNodeLinks(options: NodeLinksOptions): NodeLinks {
  const { name, routing, members, nameOf, report, call } = options;
  const byName = () => {
    const others = [...members()].filter((node) => node !== routing.node);
    return new Map(others.map((node) => [nameOf(node), node]));
  };
  return {
    name,
    report,
    others: () => [...byName().keys()].sort(),
    async call(other, verb, ...args) {
      // Number 0 is that of no node: there is no link to it.
      const reply = await call(byName().get(other) ?? 0, verb, ...args);
      if ('error' in reply) throw reply.error;
      return reply.value;
    },
    atOwner: (kind, id, here, verb) =>
      atOwner(routing, kind, id, { here, there: (node) => call(node, verb, kind, id), waits: true }),
  };
}
