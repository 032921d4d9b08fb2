/** Keeps links to the other nodes of the cluster, and what the table of nodes says of them. */
import type { LimitExchange } from '../../actors/limits/limit-exchange.ts';
import { ownerUnavailable } from '../../actors/routed-system.ts';
import type { ClusterNode } from '../../actors/runtime/replication/cluster-node.ts';
import { nodeSchedule } from '../../actors/runtime/runtime-context.ts';
import { type HostPort, parseHostPort } from '../../domain/host-port.ts';
import { NodeFollower } from '../../io/cluster/node-follower.ts';
import { type NodeReport, reportNodes } from '../../io/cluster/node-report.ts';
import type { NodeRecord } from '../../io/cluster/node-table.ts';
import type { DatabaseRefusals, NodeWatch } from '../../io/cluster/node-watch.ts';
import type { PeerLinks } from '../../io/cluster/peers.ts';
import type { PgLog } from '../../io/cluster/pg-log.ts';
import type { FolderProof } from '../../io/files/storage/folder-proof.ts';
import type { LimitLinks } from '../../io/limits/limit-links.ts';
import type { OwnedWork } from './owned-work.ts';

/** Values that hold before the table of nodes has been read. */
export const NOTHING_READ = { headDeadRows: 0, addresses: [], isStarted: false, proof: undefined };

export interface KnownNodes extends ClusterNode {
  readonly links: PeerLinks;
  readonly pgLog: PgLog;
  readonly watch: NodeWatch;
  readonly work: OwnedWork;
  readonly refusals: DatabaseRefusals;
  readonly exchange: LimitExchange;
  readonly limits: LimitLinks;
  readonly name: string;
  readonly leaseMs: number;
  /** Addresses of the other nodes that are in or near, as the last reading found them. */
  addresses: readonly (readonly [node: number, address: HostPort])[];
  headDeadRows: number;
  isStarted: boolean;
  /** Proof of the folder of files, once it is open. */
  proof: FolderProof | undefined;
}

/** Keeps links to every other node that is in, and warns. A database that does not answer changes nothing. */
export function followNodes(known: KnownNodes): NodeFollower {
  const { node, replica, pgLog, watch } = known;
  const follower = new NodeFollower({
    nodes: () => pgLog.nodes(),
    onNodes: (nodes) => takeNodes(known, nodes),
    onTurn() {
      if (node.isClockOff) watch.isOutForClock(pgLog.clock);
      // A stop has lines of its own.
      if (!node.isLeaving) watch.serves(node.admits && node.keepsUp);
    },
    schedule: nodeSchedule,
  });
  replica.follow({
    applied: () => undefined,
    membersChanged(before, now, { type }) {
      // A change that a start catches up with is no news.
      if (known.isStarted) watch.membersChanged([...before.nodes()], [...now.nodes()], type === 'leave');
      follower.readNow();
    },
  });
  return follower;
}

/** Calls and rows reach this node from its join on. A node that cannot be linked delays the join by a lease at most. */
export async function openLinks(known: KnownNodes): Promise<void> {
  const { pgLog, links, work, leaseMs } = known;
  try {
    await takeNodes(known, await pgLog.nodes());
  } catch {
    // The join waits for the database, as do later readings.
  }
  await work.wasRead();
  await links.linkedWith(
    known.addresses.map(([node]) => node),
    leaseMs,
  );
}

async function takeNodes(known: KnownNodes, nodes: readonly NodeRecord[]): Promise<void> {
  const { node, links, pgLog, watch, work } = known;
  watch.read(nodes, pgLog.clock);
  work.read(nodes);
  known.proof?.read(node.node, nodes);
  // One that has a link to this node is about to join, or has just left.
  const isNear = (each: NodeRecord) => each.joined || links.isFedBy(each.node);
  const others = nodes.filter((each) => each.node !== node.node && isNear(each));
  const addresses = others.flatMap((each): [number, HostPort][] => {
    const address = parseHostPort(each.address);
    return address === undefined ? [] : [[each.node, address]];
  });
  // A node that has just left still answers what it was asked: its link is kept until the next reading.
  if (node.node !== 0) links.follow(new Map([...known.addresses, ...addresses]));
  known.addresses = addresses;
  known.headDeadRows = await pgLog.headDeadRows();
}

/** The table of nodes. Without an answer of the database this node serves nothing soon. */
export async function reportOf({
  pgLog,
  node,
  replica,
  leaseMs,
}: KnownNodes): Promise<readonly NodeReport[]> {
  const nodes = await pgLog.nodes().catch(() => Promise.reject(ownerUnavailable()));
  const known = replica.position + node.behindRows;
  return reportNodes(nodes, Math.max(known, ...nodes.map(({ applied }) => applied)), leaseMs);
}
