/** The state of this node in its cluster, as health, metrics and the panel read it. */
import type { LimitExchange } from '../../actors/limits/limit-exchange.ts';
import type { ClusterNode } from '../../actors/runtime/replication/cluster-node.ts';
import type { FolderProof } from '../files/storage/folder-proof.ts';
import type { ClusterReadings } from '../observability/cluster-metrics.ts';
import type { DatabaseRefusals, NodeWatch } from './node-watch.ts';
import type { PeerLinks } from './peers.ts';
import type { PgLog } from './pg-log.ts';

export interface ClusterFacts {
  /** `Cluster.name`. */
  readonly name: string;
  readonly number: number;
  /** It answers from its copy of the state: its own join is applied, and its lease runs. */
  readonly serving: boolean;
  /** Newest row of the log that is applied here. */
  readonly position: number;
  /** Rows of the log that are known and not applied here. */
  readonly lagRows: number;
  /** Milliseconds for which the oldest of them has been known. */
  readonly lagMs: number;
  /** Milliseconds that it may still answer without a renewal. */
  readonly leaseLeftMs: number;
  /** Names of the nodes that are in, this one included. */
  readonly members: readonly string[];
  readonly partitionsOwned: number;
  /** Other nodes with a link in each direction. */
  readonly linksOut: readonly string[];
  readonly linksIn: readonly string[];
  /** Clock of the database minus that of this machine. */
  readonly clockOffsetMs: number;
  /** Names of nodes whose configuration differs, where all should be alike. */
  readonly otherConfigurations: readonly string[];
  /** The folder of files is that of most nodes. */
  readonly sharesFiles: boolean;
  /** Names of nodes whose markers are not in it. */
  readonly missingMarkers: readonly string[];
}

interface NodeParts extends Pick<ClusterNode, 'node' | 'replica'> {
  readonly links: PeerLinks;
  readonly pgLog: PgLog;
  readonly watch: NodeWatch;
  readonly refusals: DatabaseRefusals;
  readonly exchange: LimitExchange;
  readonly name: string;
  /** Old versions of the row that orders the log, as last read. */
  readonly headDeadRows: number;
  readonly proof: FolderProof | undefined;
}

const NONE_REFUSED = {
  closed: 0,
  format: 0,
  frame: 0,
  full: 0,
  incarnation: 0,
  late: 0,
  layout: 0,
  log: 0,
  node: 0,
  plain: 0,
  refused: 0,
  replaced: 0,
  secret: 0,
  silent: 0,
  stopped: 0,
};

function partitionsOwned({ node, replica }: NodeParts): number {
  return replica.members.owners.reduce((sum, owner) => sum + (owner === node.node ? 1 : 0), 0);
}

export function clusterFacts(parts: NodeParts): ClusterFacts {
  const { node, replica, links, pgLog, watch, name, proof } = parts;
  const namesOf = (nodes: Iterable<number>) => [...nodes].map((each) => watch.nameOf(each)).sort();
  return {
    name,
    number: node.node,
    serving: node.admits,
    position: replica.position,
    lagRows: node.behindRows,
    lagMs: Math.round(node.behindMs),
    leaseLeftMs: Math.round(node.leaseLeftMs),
    members: namesOf(replica.members.nodes()),
    partitionsOwned: partitionsOwned(parts),
    linksOut: namesOf(links.linked.outgoing),
    linksIn: namesOf(links.linked.incoming),
    clockOffsetMs: Math.round(pgLog.clock.offsetMs),
    otherConfigurations: watch.otherConfigurations,
    sharesFiles: proof?.isShared !== false,
    missingMarkers: namesOf(proof?.missing ?? []),
  };
}

export function clusterReadings(parts: NodeParts): ClusterReadings {
  const { node, replica, links, pgLog, watch, refusals, exchange, headDeadRows, proof } = parts;
  const { expelled, returned, resolved, renewals, renewalsSkipped } = node.counts;
  const { calls, rowsDropped, refused } = links.counts;
  return {
    gatehouse_cluster_position: replica.position,
    gatehouse_cluster_lag_entries: node.behindRows,
    gatehouse_cluster_lag_seconds: node.behindMs / 1000,
    gatehouse_cluster_lease_seconds: node.leaseLeftMs / 1000,
    gatehouse_cluster_renewals_total: { renewed: renewals, skipped: renewalsSkipped },
    gatehouse_cluster_members: [...replica.members.nodes()].length,
    gatehouse_cluster_partitions_owned: partitionsOwned(parts),
    gatehouse_cluster_turns_refused_total: replica.turnsRefused,
    gatehouse_cluster_expulsions_total: expelled,
    gatehouse_cluster_returns_total: returned,
    gatehouse_cluster_lost_answers_total: resolved,
    gatehouse_cluster_answers_gated: node.gated,
    gatehouse_cluster_links: links.linked.outgoing.length,
    gatehouse_cluster_links_refused_total: { ...NONE_REFUSED, ...refused },
    gatehouse_cluster_calls_total: {
      answered: calls.answered,
      timed_out: calls.timedOut,
      lost: calls.lost,
      full: calls.full,
      unreachable: calls.unreachable,
    },
    gatehouse_cluster_pushed_rows_dropped_total: rowsDropped,
    gatehouse_cluster_limit_keys: exchange.counters.keys,
    gatehouse_cluster_limit_counts_left_out_total: exchange.counters.leftOut,
    gatehouse_cluster_database_refusals_total: refusals.counts,
    gatehouse_cluster_clock_offset_seconds: pgLog.clock.offsetMs / 1000,
    gatehouse_cluster_out_for_clock: node.isClockOff ? 1 : 0,
    gatehouse_cluster_head_dead_rows: headDeadRows,
    gatehouse_cluster_other_configurations: watch.otherConfigurations.length,
    gatehouse_cluster_folder_apart: proof?.isShared === false ? 1 : 0,
    gatehouse_cluster_markers_missing: proof?.missing.length ?? 0,
  };
}
