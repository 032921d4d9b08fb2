/** Alerting rules for Prometheus: what wakes an operator, and what can wait until morning. */
import { metric } from './series.ts';
import { LEVEL_RULES } from './service-levels.ts';

export interface Rule {
  readonly alert: string;
  /** Value that is compared; a number for every healthy gateway. */
  readonly value: string;
  /** The rule fires where the value is above it. */
  readonly above: number;
  /** For how long. */
  readonly for: string;
  readonly severity: 'page' | 'ticket';
  readonly summary: string;
  /** First place to look at. */
  readonly look: string;
  readonly act: string;
  /** A shorter window, which has to be above it as well: the alert ends soon after the cause. */
  readonly also?: string;
  /** Heading of the runbook; left out: the name of the alert. */
  readonly runbook?: string;
}

export function exprOf({ value, above, also }: Rule): string {
  return [value, ...(also === undefined ? [] : [also])].map((each) => `${each} > ${above}`).join(' and ');
}

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
  // `absent`: Prometheus has no such target any more.
  value: '(sum (absent(up{job="gatehouse"})) or 1 - min (up{job="gatehouse"}))',
  above: 0,
  for: '1m',
  severity: 'page',
  summary: 'A gateway does not answer its scrape.',
  look: 'Is the process running, and may Prometheus reach the internal listener? See Internal.allowHosts.',
  act: 'Start it again. Exit code 70 names a storage failure, 78 a faulty configuration; the last log line has the sentence.',
};

const SERVING: readonly Rule[] = [
  {
    alert: 'GatehouseEventLoopBlocked',
    value: `max (${metric('gatehouse_nodejs_eventloop_lag_p99_seconds')})`,
    above: 0.25,
    for: '5m',
    severity: 'ticket',
    summary: 'The event loop is late by more than a quarter of a second.',
    look: 'The machine has too little processor time, or a request computes too long.',
    act: 'Give the machine a core more, or find the caller whose requests compute: the log line "event loop blocked" names the route.',
  },
  {
    alert: 'GatehouseBoundReached',
    value: increased(`${bounds}{reason="maximum"}`),
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Requests were refused because a shared bound was at its maximum.',
    look: 'The label bound of gatehouse_bound_refusals_total names it; docs/reference/CONFIGURATION.md says what it holds.',
    act: 'Raise the setting that bounds it, where memory allows. One caller alone cannot reach a maximum: many do, so add a node or limit callers.',
  },
  {
    alert: 'GatehouseConnectionsRefused',
    value: increased(metric('gatehouse_connections_refused_total')),
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Connections were closed at once because there were too many.',
    look: 'ConnectionsMax, ConnectionsPerNetworkPercent and the descriptors of the process bound them.',
    act: 'Raise ConnectionsMax together with the descriptors of the process. Where one network opens them, lower ConnectionsPerNetworkPercent or block it in front.',
  },
  {
    alert: 'GatehouseSmuggling',
    value: increased(`${rejected}{reason="smuggling"}`),
    above: 10,
    for: '0m',
    severity: 'ticket',
    summary: 'Ambiguous requests arrive: a smuggling attempt, or a proxy that mends requests.',
    look: 'See docs/SECURITY.md.',
    act: 'Find the sender by the address in the log. A proxy of yours must pass requests on as they are; another sender is blocked in front.',
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
    look: 'Take a backup, then run gatehouse check; docs/storage.md says what follows.',
    act: 'Take a backup, run gatehouse check, and follow docs/storage.md. Do not delete the folder: the sound accounts still serve.',
  },
  {
    alert: 'GatehouseJournalBehind',
    value: `max (${metric('gatehouse_journal_commit_backlog')})`,
    above: 5_000,
    for: '2m',
    severity: 'page',
    summary: 'Thousands of commands wait for the disk.',
    look: 'The disk of DataPath is slow or failing. At the bound commands are refused with 503.',
    act: 'Move DataPath to a faster disk, or stop what else writes to it. Commands that were refused are safe to repeat.',
  },
  {
    alert: 'GatehouseStorageFull',
    value: increased(`${storage}{reason="full"}`),
    above: 0,
    for: '0m',
    severity: 'page',
    summary: 'The file storage has no room.',
    look: 'Uploads are refused until there is room in LocalFileStoragePath or on the storage server.',
    act: 'Make room or enlarge the volume. Uploads that were refused continue where they were.',
  },
  {
    alert: 'GatehouseActorsFail',
    value: `${increased(metric('gatehouse_actor_bugs_total'))} + ${increased(metric('gatehouse_actor_quarantines_total'))}`,
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Turns of actors failed by a bug.',
    look: 'The log line "actor failed" has the stack; the admin panel lists actors in quarantine.',
    act: 'Keep the stack and report it. An actor in quarantine is tried again from the admin panel after an update.',
  },
  {
    alert: 'GatehouseWorkersDie',
    value: increased(metric('gatehouse_worker_threads_lost_total')),
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Worker threads died and were replaced.',
    look: 'The log line "worker fault" has the reason; memory is the usual one.',
    act: 'Give the process more memory where the reason says so. Otherwise keep the reason and report it.',
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
    look: 'The label outcome names the failure. Open breakers refuse calls for ten seconds at a time.',
    act: 'Repair the module that the label names. Callers get 502 to 504 meanwhile; nothing has to be repeated by hand.',
  },
  {
    alert: 'GatehouseBreakerOpen',
    value: `max (${metric('gatehouse_module_breakers_open')})`,
    above: 0,
    for: '5m',
    severity: 'ticket',
    summary: 'The circuit breaker of an endpoint stays open.',
    look: 'The full health of the internal listener names the endpoint.',
    act: 'Repair the endpoint. The breaker closes by itself after one whole answer.',
  },
  {
    alert: 'GatehouseEventFeedsFail',
    value: `max (${metric('gatehouse_event_feeds_failing')})`,
    above: 0,
    for: '10m',
    severity: 'ticket',
    summary: 'Events of a module cannot be polled.',
    look: 'The log line "event polling failed" names the module.',
    act: 'Repair GET /events of the module. Polling continues from the last event that was taken, so nothing is lost.',
  },
  {
    alert: 'GatehouseWebhooksLate',
    value: `max (${metric('gatehouse_webhook_oldest_pending_seconds')})`,
    above: 3_600,
    for: '10m',
    severity: 'ticket',
    summary: 'Events for a webhook have waited for an hour.',
    look: 'The admin panel shows the applications whose webhook fails; their owners see the deliveries.',
    act: 'Ask the owner of the application. A webhook that fails for days is disabled by itself; its owner enables it again and resends.',
  },
  {
    alert: 'GatehouseRecordsDropped',
    value: `${increased(`${lines}{outcome="dropped"}`)} + ${increased(metric('gatehouse_audit_records_dropped_total'))} + ${increased(`${spans}{outcome!="exported"}`)}`,
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'Log lines, audit records or spans were dropped.',
    look: 'The reader of the log or the collector is too slow; requests are not delayed.',
    act: 'Make the reader of standard error or the collector faster, or write less: Log.requests, Log.level, Telemetry.sampleRatio.',
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
    look: 'It does not reach the database, the database is slow, or the node is behind. See its log.',
    act: 'Bring the database or the network to it back. The node joins by itself. Clients of other nodes are not affected.',
  },
  {
    alert: 'GatehouseNodeBehind',
    value: `max (${metric('gatehouse_cluster_lag_seconds')})`,
    above: 0.25,
    for: '1m',
    severity: 'ticket',
    summary: 'A node applies the log too slowly.',
    look: 'Its disk or processor is too slow. Behind for half a lease it stops answering.',
    act: 'Give the node a faster disk or more processor time, or take it out of the balancer.',
  },
  {
    alert: 'GatehouseNodesExpelled',
    value: increased(metric('gatehouse_cluster_expulsions_total')),
    above: 0,
    for: '0m',
    severity: 'ticket',
    summary: 'A node was expelled: it had not renewed its lease.',
    look: 'It died, paused or did not reach the database. Often: raise Cluster.leaseMilliseconds.',
    act: 'Read the last log lines of that node. Pauses longer than the lease need a larger Cluster.leaseMilliseconds.',
  },
  {
    alert: 'GatehouseNodeLinksDown',
    value: `max (${members} - 1 - ${metric('gatehouse_cluster_links')})`,
    above: 0,
    for: '1m',
    severity: 'ticket',
    summary: 'A node has no link to another one that is in.',
    look: 'Commands for accounts of that node are 503. The log line "link failed" has the reason.',
    act: 'Check Cluster.advertise, the firewall between the nodes and their certificates.',
  },
  {
    alert: 'GatehouseTurnsRefused',
    value: increased(`${turns}{reason=~"refused|thrown"}`),
    above: 0,
    for: '0m',
    severity: 'page',
    summary: 'The nodes refused writes that no correct node makes.',
    look: 'A bug: the node that wrote them stops with exit code 70. The log line "turn not judged" has the stack of a turn that threw.',
    act: 'Run the same version on all nodes, keep the logs of all, and report it. What was acknowledged is safe.',
  },
  {
    alert: 'GatehouseAppendsSlow',
    value: `histogram_quantile(0.99, sum by (le) (rate(${append}_bucket[5m])))`,
    above: 0.25,
    for: '5m',
    severity: 'ticket',
    summary: 'One write in a hundred takes more than a quarter of a second to reach the log.',
    look: 'PostgreSQL or its disk is slow, or its standbys are. See also the dead rows of the head.',
    act: 'Look at the disk and the synchronous standbys of PostgreSQL. Commands wait meanwhile; none is lost.',
  },
  {
    alert: 'GatehouseHeadBloated',
    value: `max (${metric('gatehouse_cluster_head_dead_rows')})`,
    above: 10_000,
    for: '10m',
    severity: 'ticket',
    summary: 'Old versions of the row that orders the log pile up.',
    look: 'A long transaction or a replication slot keeps them: see pg_stat_activity of the database.',
    act: 'End the transaction or drop the slot that keeps old rows; autovacuum then removes them.',
  },
  {
    alert: 'GatehouseDatabaseRefuses',
    value: `sum (increase(${metric('gatehouse_cluster_database_refusals_total')}[1m]))`,
    above: 0,
    for: '2m',
    severity: 'ticket',
    summary: 'PostgreSQL refuses connections or statements of a node.',
    look: 'The log line "database refused" has SQLSTATE and text: 28 password or role, 42 rights, 53 connections, 25 read-only.',
    act: 'Repair what the text names. The node tries again by itself; one that starts ends with 70 unless waiting helps.',
  },
  {
    alert: 'GatehouseClockOff',
    value: `max (abs(${metric('gatehouse_cluster_clock_offset_seconds')}))`,
    above: 0.5,
    for: '1m',
    severity: 'ticket',
    summary: 'The clocks of a node and of the database differ by more than half a second.',
    look: 'Times of expiry differ between nodes. Check the time synchronisation of both machines.',
    act: 'Repair the time synchronisation of the node, or of the database if all nodes differ from it.',
  },
  {
    alert: 'GatehouseNodeClockWrong',
    value: `max (${metric('gatehouse_cluster_out_for_clock')})`,
    above: 0,
    for: '0m',
    severity: 'page',
    summary: 'A node is out because its clock is wrong by more than 5 s.',
    look: 'The log line "clock of this node is wrong" has the offset. cluster status shows the clocks of the others.',
    act: 'Repair the time synchronisation of that machine. The node joins by itself within seconds.',
  },
  {
    alert: 'GatehouseFolderNotShared',
    value: `sum (${metric('gatehouse_cluster_folder_apart')})`,
    above: 0,
    for: '1m',
    severity: 'page',
    summary: 'A node has another folder of files than most nodes, and answers its routes of files with 503.',
    look: 'The log line "folder not shared" of that node. /health of its internal listener names the nodes whose markers are missing.',
    act: 'Mount the folder that all nodes share at that machine. Its node serves files again within seconds.',
  },
  {
    alert: 'GatehouseConfigurationsDiffer',
    value: `max (${metric('gatehouse_cluster_other_configurations')})`,
    above: 0,
    for: '30m',
    severity: 'ticket',
    summary: 'Nodes have different configurations where all should agree.',
    look: 'cluster status names them. A rolling change should be over by now.',
    act: 'Bring the configuration of the named nodes in line, and restart them one after the other.',
  },
];

export const RULES: readonly Rule[] = [
  DOWN,
  ...LEVEL_RULES,
  ...SERVING,
  ...STORING,
  ...REACHING,
  ...CLUSTER_RULES,
];
