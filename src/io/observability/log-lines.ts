/**
 * The table of log lines: message, level, meaning and fields of each, declared once. The log, its types, the metric's
 * help text and docs/reference/LOGS.md are made from it.
 */
import type { FieldTypes, LOG_FIELDS } from './log-fields.ts';

type FieldName = keyof typeof LOG_FIELDS;
type LogLevel = 'info' | 'warn' | 'error' | 'fatal';

export interface LogLineDefinition {
  readonly level: LogLevel;
  readonly message: string;
  readonly help: string;
  /** A field that ends in `?` may be absent. */
  readonly fields: readonly (FieldName | `${FieldName}?`)[];
}

const define =
  <const Level extends LogLevel>(level: Level) =>
  <const Fields extends LogLineDefinition['fields']>(message: string, help: string, ...fields: Fields) => ({
    level,
    message,
    help,
    fields,
  });
const info = define('info');
const warn = define('warn');
const error = define('error');
const fatal = define('fatal');

/** Lines about the process, written at once. */
export const PROGRAM_LINES = {
  httpLibrary: info(
    'http library loaded',
    'The build of uWebSockets.js that serves: the newest that this machine can load.',
    'version',
  ),
  stopping: info('stopping', 'A signal stops the process.', 'signal'),
  stopCut: fatal('stop cut off', 'It did not end in time, and the process ends with 70.', 'parts', 'limitMs'),
  stopFailed: fatal('stop failed', 'The process ends with 70.', 'err'),
  requestsCut: warn(
    'requests cut off',
    'They were open when the stop reached its deadline.',
    'requests',
    'drainMs',
  ),
  nodeEnded: fatal(
    'node ended',
    'The process ends with 70: the log of the cluster, or the state of this node, is another one. `docs/cluster.md` says what to do.',
    'err',
  ),
  journalFailed: fatal('journal failed', 'The process ends; a restart reads what is on disk.', 'err'),
  journalDamaged: error('journal damaged', 'Run the command `check`.', 'table', 'key', 'detail'),
  journalRead: info('journal read', 'All rows were read in the background.', 'rows', 'findings'),
  journalChecked: warn('journal checked', 'The run before did not end by a stop; all pages are good.'),
  diskFull: error('disk full', 'Writes are refused until there is space.', 'err'),
  diskRecovered: info('disk recovered', 'There is space again.'),
  folderUnlocked: warn('data folder not locked', 'The journal itself refuses a second writer.', 'detail'),
  folderUnmarked: warn(
    'data folder not marked',
    'No space for its marker files; a later start writes them.',
    'err',
  ),
  unsafeDeployment: warn('unsafe deployment', 'Legal, but rarely meant.', 'detail', 'host?', 'webhookAllow?'),
  sendfileUnused: warn(
    'sendfile unused',
    '`SendfileBehind` is set and the gateway sends all files: by a quota or by `FileServers`.',
    'detail',
  ),
  personalReads: warn(
    'personal reads without signature',
    'A public key alone reads personal data.',
    'detail',
  ),
  mcpServerUp: info('mcp server up', 'Another MCP server listed its tools.', 'server', 'tools'),
  mcpServerDown: warn(
    'mcp server down',
    'Another MCP server could not be opened, or did not list its tools. It is tried again, and calls to its tools may fail.',
    'server',
    'detail',
  ),
  mcpServerSaid: info(
    'mcp server said',
    'A line that a server by command wrote beside its messages, as a rule to its standard error. At most 60 a minute.',
    'server',
    'detail',
  ),
  mcpToolsWait: warn(
    'mcp tools wait for approval',
    'Tools of another MCP server that are new, or whose definition is another one. They are hidden until an admin approves them.',
    'server',
    'detail',
  ),
  mcpToolsLeftOut: warn(
    'mcp tools left out',
    'Tools of another MCP server that are not served, each with the reason.',
    'server',
    'detail',
  ),
  adminRecovery: warn('admin recovery', 'The command `admin recover` got a new set-up link.'),
  adminRecoveryRefused: warn(
    'admin recovery refused',
    'A request file of the data folder does not count.',
    'detail',
  ),
  profileTaken: info('profile taken', 'The command `profile` has a profile.', 'profile'),
  profileRefused: warn(
    'profile refused',
    'A request file of the command `profile` does not count, or the profile failed.',
    'detail',
  ),
  mcpServersRefused: warn(
    'mcp-servers refused',
    'A request file of the command `mcp-servers` does not count.',
    'detail',
  ),
  untrustedProxy: warn(
    'untrusted proxy',
    'An admin request had `X-Forwarded-For` from an address outside `TrustedProxies`; refused. Once a run.',
    'clientAddress',
  ),
  descriptorsShort: warn(
    'too few file descriptors',
    'Raise `ulimit -n` or lower `ConnectionsMax`.',
    'connectionsMax',
    'descriptorLimit',
  ),
  receiveBufferUnbounded: warn(
    'receive buffers not bounded',
    'Fast uploads can delay other requests.',
    'detail',
  ),
  certificateRenewed: info('certificate renewed', 'New connections get it.'),
  certificateRefused: error('certificate refused', 'The one before stays in use.', 'faults'),
  certificateFailed: error('certificate renewal failed', 'The one before stays in use.', 'err'),
  certificateUnsteered: warn(
    'connections not steered',
    'Connections that open during a renewal of the certificate may be reset.',
    'detail',
  ),
  catalogReloaded: info('catalog reloaded', 'Tools and routes are those of the file.'),
  catalogRefused: error('catalog refused', 'The one before stays in use.', 'faults'),
  restartNeeded: warn('restart needed', 'Changed keys that a reload does not apply.', 'keys'),
  actorFailed: error(
    'actor failed',
    'A bug: the actor restarts from the journal.',
    'kind',
    'id',
    'command',
    'err',
  ),
  turnNotJudged: error('turn not judged', 'A bug: every node refuses the turn.', 'kind', 'id', 'err'),
  requestFailed: error('request failed', 'A bug: answered with 500.', 'err', 'requestId'),
  sessionUnwritten: error('session use not written', 'Its last use stays that of before.', 'err'),
  workerFault: error(
    'worker fault',
    'A worker thread ended or showed no sign of life; another one replaces it.',
    'detail',
  ),
  fileWorkerFault: error(
    'file worker fault',
    'A worker thread for files ended or showed no sign of life; another one replaces it.',
    'detail',
  ),
  storageFault: error('file storage fault', 'Folder or storage server of files.', 'detail'),
  storageFull: warn('file storage full', 'Uploads are refused.', 'detail'),
  downloadFailed: error('download failed', 'The connection was closed.', 'detail', 'err'),
  uploadsNotRecovered: warn(
    'uploads not recovered',
    'Of a node: parts that no upload uses stay until its next start.',
    'err',
  ),
  transfersEnded: info(
    'transfers ended',
    'Transfers to a bucket that were begun more than a day ago and never finished.',
    'transfers',
  ),
  uploadsRecovered: info(
    'uploads recovered',
    'Uploads of an earlier run.',
    'clean',
    'uploads',
    'chunksLost',
    'chunksFound',
    'partsSwept',
  ),
  pollingFailed: warn(
    'event polling failed',
    'Polled again with back-off; only the first failure in a row is logged.',
    'module',
    'cursor',
    'error',
    'detail?',
  ),
  loopHeld: warn('event loop held', 'A tick of more than 100 ms.', 'route', 'tool', 'durationMs'),
  pollingRecovered: info('event polling recovered', 'After failures.', 'module', 'failures'),
  linkOpened: info('link opened', 'Two nodes of the cluster are connected.', 'node', 'direction'),
  linkClosed: warn(
    'link closed',
    'The node that opened it tries again. Calls that were under way are answered with 503.',
    'node',
    'direction',
    'reason',
  ),
  linkFailed: warn(
    'link failed',
    'A node cannot be reached; it is tried again. Logged once until the reason changes or a link opens.',
    'node',
    'reason',
  ),
  linkRefused: warn(
    'link refused',
    'A connection to `Cluster.listen` that is no link. Logged once a minute for each reason; the metric counts all.',
    'clientAddress',
    'reason',
  ),
  nodeJoined: info('node joined', 'It is in, by the rows that are applied here; perhaps this one.', 'node'),
  nodeLeft: info('node left', 'It stops.', 'node'),
  nodeOut: warn('node expelled', 'Its lease is over; perhaps this one, which then comes back.', 'node'),
  nodeServes: info('node serves', 'Its lease runs and its copy of the state is up to date.'),
  nodeRefuses: warn(
    'node does not serve',
    '`/health` is 503: its lease is over, it was expelled, or it is far behind. The database or the machine was slow or away.',
  ),
  configurationDiffers: warn(
    'configuration differs',
    'Between this node and others, in keys that all nodes should have alike (`docs/cluster.md`). At a start, and when it changes.',
    'nodes',
  ),
  configurationAgrees: info('configuration agrees', 'That of the nodes that are in, after a difference.'),
  folderNotShared: error(
    'folder not shared',
    'Markers of the named nodes are not in the folder of files of this one, and of too few others: routes of files answer 503 with 1036. Mount the folder that all nodes share (`docs/cluster.md`).',
    'nodes',
  ),
  markersMissing: warn(
    'markers missing',
    'The named nodes do not write into the folder of files of this one, which has those of most nodes: they have another folder.',
    'nodes',
  ),
  folderShared: info('folder shared', 'The markers of all nodes are in the folder of files again.'),
  markerFailed: warn(
    'marker failed',
    'The marker of this node was not written, or another one not looked for; tried again each second. Logged once a minute.',
    'err',
  ),
  clockOff: warn(
    'clock is off',
    'By more than half a second, compared with the clock of the database. Times of expiry depend on it; above 5 s see `clock of this node is wrong`.',
    'clockOffsetMs',
  ),
  nodeClockWrong: error(
    'clock of this node is wrong',
    'By more than 5 s, compared with the database and with most nodes. This node is out, answers 503, and joins when its clock is right. Logged once a minute.',
    'clockOffsetMs',
  ),
  clockRight: info('clock is right', 'After it was off.', 'clockOffsetMs'),
  databaseRefused: warn(
    'database refused',
    'PostgreSQL refuses a connection or a statement of this node; tried again. Logged once a minute for each `sqlState`; the metric counts all.',
    'sqlState',
    'detail',
  ),
  checkpointFetched: info(
    'checkpoint fetched',
    'The node begins with the state of this position of the log.',
    'position',
  ),
  checkpointWrong: error(
    'checkpoint differs',
    'Most nodes have another state at its position. The node in charge replaces it.',
    'position',
  ),
  journalSetAside: warn(
    'journal set aside',
    'The node fetches the state anew. Audit records of calls may be in that folder alone; see `docs/cluster.md`.',
    'folder',
    'cause',
  ),
  checkpointStored: info('checkpoint stored', 'Nodes that join begin with it.', 'position'),
  upkeepFailed: warn(
    'cluster upkeep failed',
    'Partitions or checkpoints of the log, or bounds of audit records; tried again a minute later.',
    'err',
  ),
  auditTableAway: warn(
    'audit records not stored',
    'The database does not take them: they wait in memory within a bound, and what must leave a record first is refused.',
    'err',
  ),
  auditTableBack: info('audit records stored', 'The database takes them again.'),
  nodeCallFailed: error(
    'call of a node failed',
    'A bug: the other node got an internal error.',
    'command',
    'err',
  ),
  sampledRouteUnknown: warn(
    'sampled route unknown',
    'Once at a start: `Log.sample` names no route of this gateway, and has no effect for it.',
    'route',
  ),
  sandboxEnded: error('sandbox ended', 'Its modules are down until it is started again.', 'err', 'waitMs'),
  sandboxRestarted: info('sandbox restarted', 'Its modules serve again.'),
  spansLost: warn(
    'spans lost',
    'The collector did not take them. Logged once until it takes a batch again; the metric counts all.',
    'spans',
    'detail',
  ),
  telemetryLost: warn(
    'telemetry lost',
    'Metrics or log lines that the collector did not take. Logged once until it takes some again; metrics count all.',
    'kind',
    'detail',
  ),
  webhookFailed: error('webhook delivery failed', 'A bug: retried later.', 'err', 'appId'),
  webhooksFailed: error('webhooks failed to start', 'Nothing is delivered until a restart.', 'err'),
  accountRemovalUntold: error(
    'module not told of a removed account',
    'A module with `accountEvents` did not confirm the removal for a week, and is not asked again. Remove what it has of the account by hand.',
    'userId',
    'module',
  ),
  webhookEventLost: warn(
    'webhook event not published',
    'An event about the state of a webhook.',
    'err',
    'type',
  ),
} as const satisfies Readonly<Record<string, LogLineDefinition>>;

/** Lines about traffic, written in batches; `Log.requests` selects them, and lines are dropped for a slow reader. */
export const TRAFFIC_LINES = {
  request: info(
    'request',
    'A finished request. Level `error`: a failure of the gateway.',
    'method',
    'route',
    'path',
    'status',
    'error?',
    'durationMs',
    'responseBytes',
    'clientAddress',
    'userAgent',
    'userId?',
    'requestId',
    'clientRequestId?',
    'traceparent?',
  ),
  webhookAttempt: info(
    'webhook attempt',
    'A delivery, a resend or a test of a webhook. Level `warn`: not delivered.',
    'appId',
    'webhookId',
    'source',
    'attempt',
    'events',
    'firstEventId?',
    'lastEventId?',
    'host',
    'outcome',
    'status?',
    'failure?',
    'durationMs',
    'state?',
    'nextTry?',
  ),
} as const satisfies Readonly<Record<string, LogLineDefinition>>;

/** Their messages as a text of other tables shows them. */
export const TRAFFIC_MESSAGES = Object.values(TRAFFIC_LINES)
  .map(({ message }) => `"${message}"`)
  .join(' and ');

type ValueOf<Name> = Name extends FieldName ? FieldTypes[(typeof LOG_FIELDS)[Name]['type']] : never;

/** The fields of a line by their names. */
export type LogFieldsOf<Line extends LogLineDefinition> = {
  readonly [Name in Line['fields'][number] as Name extends `${string}?` ? never : Name]: ValueOf<Name>;
} & {
  readonly [Name in Line['fields'][number] as Name extends `${infer Plain}?` ? Plain : never]?:
    | (Name extends `${infer Plain}?` ? ValueOf<Plain> : never)
    | undefined;
};

export type ProgramLine = keyof typeof PROGRAM_LINES;

/** None for a line without fields. */
export type ProgramFields<Name extends ProgramLine> =
  (typeof PROGRAM_LINES)[Name]['fields'] extends readonly []
    ? []
    : [fields: LogFieldsOf<(typeof PROGRAM_LINES)[Name]>];
