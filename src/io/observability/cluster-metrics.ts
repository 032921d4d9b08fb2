/** The part of the metric table that only a node of a cluster has. */
import { REFUSAL_CLASSES } from '../cluster/node-watch.ts';
import { counter, gauge, histogram, label, type ReadingsOf } from './metric-definition.ts';

/** Counted as it happens. */
export const CLUSTER_HISTOGRAMS = {
  gatehouse_cluster_append_seconds: histogram(
    'seconds',
    'Time from the order to append a group of writes until it is in the log; waits behind earlier groups and repeats included.',
  ),
  gatehouse_cluster_gate_seconds: histogram(
    'seconds',
    'Time that answers were held back until they were in effect on every node.',
  ),
};

/** Read at each scrape. */
export const CLUSTER_SAMPLED_METRICS = {
  gatehouse_cluster_position: gauge('position', 'Newest row of the log that is applied here.'),
  gatehouse_cluster_lag_entries: gauge('rows', 'Rows of the log that are known and not applied here.'),
  gatehouse_cluster_lag_seconds: gauge('seconds', 'How long the oldest of these rows has been known.'),
  gatehouse_cluster_lease_seconds: gauge(
    'seconds',
    'How long the node may still answer without a renewal; 0: it answers 503.',
  ),
  gatehouse_cluster_renewals_total: counter(
    'renewals',
    'Renewals of the lease; skipped: the node was behind, or out.',
    label('outcome', ['renewed', 'skipped']),
  ),
  gatehouse_cluster_members: gauge('nodes', 'Nodes that are in, as of the position.'),
  gatehouse_cluster_partitions_owned: gauge('partitions', 'Partitions that this node owns, of 256.'),
  gatehouse_cluster_turns_refused_total: counter(
    'turns',
    'Turns of all nodes that were refused when this node applied them; refused: they break a rule that no correct node breaks; thrown: they could not be judged or applied.',
    label('reason', ['fenced', 'stale', 'conflict', 'refused', 'thrown']),
  ),
  gatehouse_cluster_expulsions_total: counter('nodes', 'Nodes that this one has expelled.'),
  gatehouse_cluster_returns_total: counter('returns', 'Returns of this node after it was expelled.'),
  gatehouse_cluster_lost_answers_total: counter(
    'answers',
    'Answers of the database to a write that were lost; the outcome was found out afterwards.',
  ),
  gatehouse_cluster_answers_gated: gauge(
    'answers',
    'Answers that are held back until they are in effect on every node.',
  ),
  gatehouse_cluster_links: gauge('links', 'Links to other nodes that this node has opened.'),
  gatehouse_cluster_links_refused_total: counter(
    'connections',
    'Connections to `Cluster.listen` that became no link.',
    label('reason', [
      'closed',
      'format',
      'frame',
      'full',
      'incarnation',
      'late',
      'layout',
      'log',
      'node',
      'plain',
      'refused',
      'replaced',
      'secret',
      'silent',
      'stopped',
    ]),
  ),
  gatehouse_cluster_calls_total: counter(
    'calls',
    'Calls of other nodes; lost: with their link; full: the link was at its bound; unreachable: there was no link.',
    label('outcome', ['answered', 'timed_out', 'lost', 'full', 'unreachable']),
  ),
  gatehouse_cluster_pushed_rows_dropped_total: counter(
    'rows',
    'Rows that were not pushed to a node because its link was full; it reads them from the database.',
  ),
  gatehouse_cluster_limit_keys: gauge(
    'keys',
    'Sessions, addresses, keys and so on that are near a limit, whose counts this node tells the others.',
  ),
  gatehouse_cluster_limit_counts_left_out_total: counter(
    'counts',
    'Counts near a limit that were not told or not taken because there were too many: they hold at their node alone.',
  ),
  gatehouse_cluster_database_refusals_total: counter(
    'refusals',
    'Connections and statements that PostgreSQL refused, by the class of the SQLSTATE; 25: the server is read-only.',
    label('class', REFUSAL_CLASSES),
  ),
  gatehouse_cluster_clock_offset_seconds: gauge(
    'seconds',
    'Clock of the database minus that of this machine, at the last renewal.',
  ),
  gatehouse_cluster_out_for_clock: gauge(
    'nodes',
    '1 while this node is out because its clock differs from that of the database and from those of most nodes.',
  ),
  gatehouse_cluster_head_dead_rows: gauge(
    'rows',
    'Old versions of the row that orders the log. Many: a long transaction or replication slot keeps them.',
  ),
  gatehouse_cluster_other_configurations: gauge(
    'nodes',
    'Nodes that are in and whose configuration differs from this one, where all should be alike.',
  ),
  gatehouse_cluster_folder_apart: gauge(
    'nodes',
    '1 while the folder of files of this node is not that of most nodes: its routes of files answer 503.',
  ),
  gatehouse_cluster_markers_missing: gauge(
    'nodes',
    'Other nodes whose markers are not in the folder of files of this one.',
  ),
};

export const CLUSTER_METRICS = { ...CLUSTER_HISTOGRAMS, ...CLUSTER_SAMPLED_METRICS };

/** The values of all sampled metrics of a cluster at one scrape. */
export type ClusterReadings = ReadingsOf<typeof CLUSTER_SAMPLED_METRICS>;
