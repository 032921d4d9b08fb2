/** Alerting rules for Prometheus: what wakes an operator, and what can wait until morning. */
import { metric } from './panels.ts';

export interface Rule {
  readonly alert: string;
  /** What is compared; a number for every healthy gateway. */
  readonly value: string;
  /** The rule fires where the value is above it. */
  readonly above: number;
  /** For how long. */
  readonly for: string;
  readonly severity: 'page' | 'ticket';
  readonly summary: string;
  /** What to look at first. */
  readonly description: string;
}

export function exprOf({ value, above }: Rule): string {
  return `${value} > ${above}`;
}

const requests = metric('gatehouse_http_requests_total');
const duration = metric('gatehouse_http_request_duration_seconds');
const modules = metric('gatehouse_module_calls_finished_total');
const bounds = metric('gatehouse_bound_refusals_total');
const lines = metric('gatehouse_log_lines_total');
const spans = metric('gatehouse_trace_spans_total');
const storage = metric('gatehouse_storage_failures_total');
const rejected = metric('gatehouse_connections_rejected_total');

const increased = (series: string) => `sum (increase(${series}[10m]))`;

/** `up` is of Prometheus itself. Its job is the one of deploy/prometheus/prometheus.yml. */
const DOWN: Rule = {
  alert: 'GatehouseDown',
  value: '1 - min (up{job="gatehouse"})',
  above: 0,
  for: '1m',
  severity: 'page',
  summary: 'A gateway does not answer its scrape.',
  description:
    'Is the process running, and may Prometheus reach the internal listener? See Internal.allowHosts.',
};

const SERVING: readonly Rule[] = [
  {
    alert: 'GatehouseServerErrors',
    value: `sum (rate(${requests}{status=~"5.."}[5m]) or vector(0)) / sum (rate(${requests}[5m]))`,
    above: 0.01,
    for: '5m',
    severity: 'page',
    summary: 'More than one request in a hundred is answered with 5xx.',
    description:
      'The panels of modules, bounds and the journal show which part fails; the log names the error.',
  },
  {
    alert: 'GatehouseSlow',
    value: `histogram_quantile(0.99, sum by (le) (rate(${duration}_bucket[5m])))`,
    above: 1,
    for: '10m',
    severity: 'ticket',
    summary: 'One request in a hundred takes more than a second.',
    description:
      'Slow modules show in the module time of calls, a busy process in the delay of its event loop.',
  },
  {
    alert: 'GatehouseEventLoopBlocked',
    value: `max (${metric('gatehouse_nodejs_eventloop_lag_p99_seconds')})`,
    above: 0.25,
    for: '5m',
    severity: 'ticket',
    summary: 'The event loop is late by more than a quarter of a second.',
    description: 'The machine has too little processor time, or a request computes too long.',
  },
  {
    alert: 'GatehouseBoundReached',
    value: increased(`${bounds}{reason="maximum"}`),
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Requests were refused because a shared bound was at its maximum.',
    description:
      'The label bound of gatehouse_bound_refusals_total names it; docs/CONFIGURATION.md says what it holds.',
  },
  {
    alert: 'GatehouseConnectionsRefused',
    value: increased(metric('gatehouse_connections_refused_total')),
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Connections were closed at once because there were too many.',
    description:
      'ConnectionsMax, ConnectionsPerNetworkPercent and the descriptors of the process bound them.',
  },
  {
    alert: 'GatehouseSmuggling',
    value: increased(`${rejected}{reason="smuggling"}`),
    above: 10,
    for: '0m',
    severity: 'ticket',
    summary: 'Ambiguous requests arrive: a smuggling attempt, or a proxy that mends requests.',
    description: 'See docs/SECURITY.md.',
  },
];

const STORING: readonly Rule[] = [
  {
    alert: 'GatehouseJournalDamaged',
    value: `sum (${metric('gatehouse_journal_damaged_records')})`,
    above: 0,
    for: '0m',
    severity: 'page',
    summary: 'Records of the journal are not what was written.',
    description: 'Take a backup, then run gatehouse check; docs/storage.md says what follows.',
  },
  {
    alert: 'GatehouseJournalBehind',
    value: `max (${metric('gatehouse_journal_commit_backlog')})`,
    above: 5_000,
    for: '2m',
    severity: 'page',
    summary: 'Thousands of commands wait for the disk.',
    description: 'The disk of DataPath is slow or failing. At the bound commands are refused with 503.',
  },
  {
    alert: 'GatehouseStorageFull',
    value: increased(`${storage}{reason="full"}`),
    above: 0,
    for: '0m',
    severity: 'page',
    summary: 'The file storage has no room.',
    description: 'Uploads are refused until there is room in LocalFileStoragePath or on the storage server.',
  },
  {
    alert: 'GatehouseActorsFail',
    value: `${increased(metric('gatehouse_actor_bugs_total'))} + ${increased(metric('gatehouse_actor_quarantines_total'))}`,
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Turns of actors failed by a bug.',
    description: 'The log line "actor failed" has the stack; the admin panel lists actors in quarantine.',
  },
  {
    alert: 'GatehouseWorkersDie',
    value: increased(metric('gatehouse_worker_threads_lost_total')),
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Worker threads died and were replaced.',
    description: 'The log line "worker fault" has the reason; memory is the usual one.',
  },
];

const REACHING: readonly Rule[] = [
  {
    alert: 'GatehouseModulesFail',
    value: `sum (rate(${modules}{outcome!~"answered|Aborted|AccessRateLimit"}[5m])) / (sum (rate(${modules}[5m])) > 0 or vector(1))`,
    above: 0.05,
    for: '5m',
    severity: 'page',
    summary: 'More than one call of a module in twenty is not answered.',
    description: 'The label outcome names the failure. Open breakers refuse calls for ten seconds at a time.',
  },
  {
    alert: 'GatehouseBreakerOpen',
    value: `max (${metric('gatehouse_module_breakers_open')})`,
    above: 0,
    for: '5m',
    severity: 'ticket',
    summary: 'The circuit breaker of an endpoint stays open.',
    description: 'The full health of the internal listener names the endpoint.',
  },
  {
    alert: 'GatehouseEventFeedsFail',
    value: `max (${metric('gatehouse_event_feeds_failing')})`,
    above: 0,
    for: '10m',
    severity: 'ticket',
    summary: 'Events of a module cannot be polled.',
    description: 'The log line "event polling failed" names the module.',
  },
  {
    alert: 'GatehouseWebhooksLate',
    value: `max (${metric('gatehouse_webhook_oldest_pending_seconds')})`,
    above: 3_600,
    for: '10m',
    severity: 'ticket',
    summary: 'Events for a webhook have waited for an hour.',
    description:
      'The admin panel shows the applications whose webhook fails; their owners see the deliveries.',
  },
  {
    alert: 'GatehouseRecordsDropped',
    value: `${increased(`${lines}{outcome="dropped"}`)} + ${increased(metric('gatehouse_audit_records_dropped_total'))} + ${increased(`${spans}{outcome!="exported"}`)}`,
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Log lines, audit records or spans were dropped.',
    description: 'The reader of the log or the collector is too slow; requests are not delayed.',
  },
];

const turns = metric('gatehouse_cluster_turns_refused_total');
const append = metric('gatehouse_cluster_append_seconds');
const members = metric('gatehouse_cluster_members');

/** Silent for a gateway without `Cluster`, which has none of these metrics. */
export const CLUSTER_RULES: readonly Rule[] = [
  {
    alert: 'GatehouseNodeNotServing',
    value: `sum (${metric('gatehouse_cluster_lease_seconds')} == bool 0)`,
    above: 0,
    for: '30s',
    severity: 'page',
    summary: 'A node answers 503: its lease is over.',
    description: 'It does not reach the database, the database is slow, or the node is behind. See its log.',
  },
  {
    alert: 'GatehouseNodeBehind',
    value: `max (${metric('gatehouse_cluster_lag_seconds')})`,
    above: 0.25,
    for: '1m',
    severity: 'ticket',
    summary: 'A node applies the log too slowly.',
    description: 'Its disk or processor is too slow. Behind for half a lease it stops answering.',
  },
  {
    alert: 'GatehouseNodesExpelled',
    value: increased(metric('gatehouse_cluster_expulsions_total')),
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'A node was expelled: it had not renewed its lease.',
    description: 'It died, paused or did not reach the database. Often: raise Cluster.leaseMilliseconds.',
  },
  {
    alert: 'GatehouseNodeLinksDown',
    value: `max (${members} - 1 - ${metric('gatehouse_cluster_links')})`,
    above: 0,
    for: '1m',
    severity: 'ticket',
    summary: 'A node has no link to another one that is in.',
    description: 'Commands for accounts of that node are 503. The log line "link failed" has the reason.',
  },
  {
    alert: 'GatehouseTurnsRefused',
    value: increased(`${turns}{reason=~"refused|thrown"}`),
    above: 0,
    for: '0m',
    severity: 'page',
    summary: 'The nodes refused writes that no correct node makes.',
    description: 'A bug: the node that wrote them stops with exit code 70. Keep the log, and report it.',
  },
  {
    alert: 'GatehouseAppendsSlow',
    value: `histogram_quantile(0.99, sum by (le) (rate(${append}_bucket[5m])))`,
    above: 0.25,
    for: '5m',
    severity: 'ticket',
    summary: 'One write in a hundred takes more than a quarter of a second to reach the log.',
    description: 'PostgreSQL or its disk is slow, or its standbys are. See also the dead rows of the head.',
  },
  {
    alert: 'GatehouseHeadBloated',
    value: `max (${metric('gatehouse_cluster_head_dead_rows')})`,
    above: 10_000,
    for: '10m',
    severity: 'ticket',
    summary: 'Old versions of the row that orders the log pile up.',
    description: 'A long transaction or a replication slot keeps them: see pg_stat_activity of the database.',
  },
  {
    alert: 'GatehouseClockOff',
    value: `max (abs(${metric('gatehouse_cluster_clock_offset_seconds')}))`,
    above: 0.5,
    for: '1m',
    severity: 'ticket',
    summary: 'The clocks of a node and of the database differ by more than half a second.',
    description: 'Times of expiry differ between nodes. Check the time synchronisation of both machines.',
  },
  {
    alert: 'GatehouseConfigurationsDiffer',
    value: `max (${metric('gatehouse_cluster_other_configurations')})`,
    above: 0,
    for: '30m',
    severity: 'ticket',
    summary: 'Nodes have different configurations where all should agree.',
    description: 'cluster status names them. A rolling change should be over by now.',
  },
];

export const RULES: readonly Rule[] = [DOWN, ...SERVING, ...STORING, ...REACHING, ...CLUSTER_RULES];
