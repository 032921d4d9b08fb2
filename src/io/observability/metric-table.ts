/**
 * The table of all metrics. The exporter, the dashboard, bench and the tests read it, and docs/reference/METRICS.md is generated
 * from it. A reading that is missing here, or has another label, does not compile.
 */
import { BOUND_NAMES } from '../../domain/limits/bounds.ts';
import { CLUSTER_METRICS, type ClusterReadings } from './cluster-metrics.ts';
import { TRAFFIC_MESSAGES } from './log-lines.ts';
import {
  counter,
  gauge,
  histogram,
  type LabelsOf,
  label,
  openLabel,
  type ReadingsOf,
} from './metric-definition.ts';
import { MODULE_METRICS } from './module-metrics.ts';
import { PROCESS_METRICS } from './process-metrics.ts';
import { WEB_SOCKET_METRICS } from './web-socket-metrics.ts';

const version = label('version', ['v1', 'v2']);
const pool = label('scope', ['gateway', 'files']);

/** Counted as it happens: a counter or histogram of its own for each series. */
export const OBSERVED_METRICS = {
  gatehouse_http_requests_total: counter(
    'requests',
    'Requests by route, method and status.',
    openLabel('route'),
    openLabel('method'),
    openLabel('status'),
  ),
  gatehouse_http_request_duration_seconds: histogram(
    'seconds',
    'Time from the last byte of the request to the answer.',
    openLabel('route'),
    openLabel('method'),
  ),
  gatehouse_calls_total: counter(
    'calls',
    'Tool calls, prompts, resource reads and proxied REST calls by name and outcome.',
    openLabel('event'),
    openLabel('name'),
    openLabel('outcome'),
  ),
  gatehouse_call_gateway_duration_seconds: histogram(
    'seconds',
    'Time of a call without the time of its module.',
    openLabel('event'),
  ),
  gatehouse_call_module_duration_seconds: histogram(
    'seconds',
    'Time that the module took for a call.',
    openLabel('event'),
  ),
  gatehouse_event_loop_long_ticks_total: counter(
    'ticks',
    'Ticks of the event loop that took more than 100 ms, by the route and tool that held it longest.',
    openLabel('route'),
    openLabel('tool'),
  ),
  gatehouse_call_progress_reports_total: counter(
    'reports',
    'Reports of progress by modules, of calls whose client asked for them.',
    label('outcome', ['sent', 'dropped']),
  ),
  gatehouse_proxied_fields_dropped_total: counter(
    'fields',
    'Header fields of proxied requests that no module received, for a character of their name.',
  ),
};

const actors = {
  gatehouse_sessions: gauge('sessions', 'Open sessions.', label('scope', ['browser', 'mcp'])),
  gatehouse_actor_commands_pending: gauge('commands', 'Commands that are not answered yet.'),
  gatehouse_actor_turns_total: counter('turns', 'Actor turns.'),
  gatehouse_actor_commands_refused_total: counter(
    'commands',
    'Commands refused before a turn, by the bound that they met.',
    label('reason', ['stopping', 'pending', 'storage', 'quarantine', 'mailbox', 'lease']),
  ),
  gatehouse_actor_messages_delivered_total: counter(
    'messages',
    'Messages between actors that were delivered.',
  ),
  gatehouse_actor_messages_refused_total: counter('messages', 'Messages that their receiver refused.'),
  gatehouse_actor_messages_dead_lettered_total: counter('messages', 'Messages that became dead letters.'),
  gatehouse_mailbox_messages_pending: gauge(
    'messages',
    'Messages between actors that are not delivered yet.',
  ),
  gatehouse_actor_timers_running: gauge('timers', 'Timers that are due and under way.'),
  gatehouse_actors_resident: gauge('actors', 'Actors in memory by kind.', openLabel('actor')),
  gatehouse_actor_passivations_total: counter('actors', 'Idle actors that left memory.'),
  gatehouse_actor_bugs_total: counter('bugs', 'Turns that failed by a bug.'),
  gatehouse_actor_quarantines_total: counter('actors', 'Actors that were quarantined.'),
  gatehouse_audit_records_dropped_total: counter('records', 'Audit records that were dropped.'),
};

const journal = {
  gatehouse_journal_file_bytes: gauge('bytes', 'Size of the journal file, with the room made ahead of need.'),
  gatehouse_journal_commit_backlog: gauge('commands', 'Commands that wait for a commit.'),
  gatehouse_journal_commits_total: counter('commits', 'Group commits.'),
  gatehouse_journal_commands_total: counter('commands', 'Commands that were committed.'),
  gatehouse_journal_damaged_records: gauge('records', 'Records and pages that are not what was written.'),
  gatehouse_journal_checked_bytes_total: counter(
    'bytes',
    'Bytes of the journal that were read since the start to find damage.',
  ),
};

const workers = {
  gatehouse_worker_tasks_total: counter(
    'tasks',
    'Tasks of worker threads by outcome; overloaded: refused by a full queue; timedOut: their caller got 503.',
    pool,
    label('outcome', ['completed', 'failed', 'overloaded', 'timedOut']),
  ),
  gatehouse_worker_threads_lost_total: counter('threads', 'Worker threads that died.', pool),
  gatehouse_worker_threads_replaced_total: counter(
    'threads',
    'Worker threads that were replaced because they showed no sign of life.',
    pool,
  ),
  gatehouse_worker_stuck: gauge(
    'tasks and threads',
    'Tasks past their time, threads without a sign of life, and replaced threads that have not ended.',
    pool,
  ),
  gatehouse_worker_tasks_pending: gauge('tasks', 'Tasks that wait or run.', pool),
};

const storage = {
  gatehouse_storage_leases: gauge('leases', 'Open leases of the file storage.'),
  gatehouse_storage_reserved_bytes: gauge('bytes', 'Room that is reserved for uploads.'),
  gatehouse_storage_files_published_total: counter('files', 'Files that were published.'),
  gatehouse_storage_files_removed_total: counter('files', 'Files that were removed.'),
  gatehouse_storage_failures_total: counter(
    'operations',
    'Operations of the file storage that failed: for want of room, or by another fault.',
    label('reason', ['failed', 'full']),
  ),
  gatehouse_storage_files_open: gauge('files', 'Files that are open for reading.'),
  gatehouse_file_calls: gauge(
    'calls',
    'File system calls, and tasks of worker threads that may sync: running, eight at most; waiting for these; stuck: running and past their time.',
    label('state', ['running', 'waiting', 'stuck']),
  ),
  gatehouse_file_calls_unanswered_total: counter(
    'calls',
    'File system calls whose caller got 503: refused before they began, or not done in their time.',
    label('reason', ['refused', 'timed_out']),
  ),
  gatehouse_file_cache_entries: gauge('files', 'Files whose description by the chat module is cached.'),
  gatehouse_file_cache_hits_total: counter('files', 'Descriptions of files that were in the cache.'),
  gatehouse_file_cache_misses_total: counter(
    'files',
    'Descriptions of files that were requested from the chat module.',
  ),
};

const transfers = {
  gatehouse_throttle_streams: gauge('streams', 'Transfers under a bandwidth limit.'),
  gatehouse_throttle_streams_waiting: gauge('streams', 'Transfers that wait for bandwidth.'),
  gatehouse_throttle_quotas: gauge('quotas', 'Bandwidth quotas in use.'),
  gatehouse_throttle_callers: gauge('callers', 'Users and networks with a transfer, counted in each quota.'),
  gatehouse_throttle_charged_bytes_total: counter('bytes', 'Bytes that were charged to a bandwidth quota.'),
  gatehouse_uploads_active: gauge('bodies', 'Upload bodies that are being received.'),
  gatehouse_upload_received_bytes_total: counter('bytes', 'Bytes of uploads that were received.'),
  gatehouse_upload_overflow_bytes_total: counter(
    'bytes',
    'Bytes written without a shared buffer: none was free.',
  ),
  gatehouse_uploads_lost_total: counter('bodies', 'Upload bodies that broke off.'),
  gatehouse_upload_buffers_lent: gauge('buffers', 'Shared buffers in use.'),
  gatehouse_upload_buffers_allocated: gauge('buffers', 'Shared buffers, in use or idle.'),
  gatehouse_upload_buffers_missed_total: counter(
    'buffers',
    'Requests for a shared buffer when none was free.',
  ),
  gatehouse_upload_prebuffered_bytes: gauge(
    'bytes',
    'Bytes of bodies that arrived before they may be stored.',
    label('scope', ['memory', 'file']),
  ),
  gatehouse_upload_prebuffered_file_bytes_total: counter('bytes', 'Prebuffered bytes that went to a file.'),
  gatehouse_upload_v1_uploads_receiving: gauge('uploads', 'Uploads of v1 whose chunks arrive or wait.'),
  gatehouse_upload_v1_chunks_receiving: gauge('chunks', 'Chunks of v1 that arrive or wait.'),
  gatehouse_drafts_open: gauge('drafts', 'Open drafts of v2.'),
  gatehouse_draft_streams: gauge('streams', 'Upload streams of v2 that run.'),
  gatehouse_download_buffers: gauge(
    'buffers',
    'Send buffers in use.',
    version,
    label('size', ['large', 'small']),
  ),
  gatehouse_download_answers_buffered: gauge('answers', 'Downloads that hold send buffers.', version),
  gatehouse_downloads_refused_total: counter(
    'answers',
    'Downloads refused for want of send buffers.',
    version,
  ),
  gatehouse_downloads_total: counter(
    'answers',
    'Downloads sent: whole at once, streamed, handed over to the proxy in front, or redirected to an object storage.',
    version,
    label('outcome', ['whole', 'streamed', 'handed_over', 'redirected']),
  ),
  gatehouse_downloads_broken_total: counter('answers', 'Downloads that the gateway broke off.', version),
};

const limits = {
  gatehouse_bound_held: gauge(
    'units of the bound',
    'What is held of each shared bound.',
    label('bound', BOUND_NAMES),
  ),
  gatehouse_bound_refusals_total: counter(
    'refusals',
    'Refusals of each shared bound: at its maximum, or at a share of it.',
    label('bound', BOUND_NAMES),
    label('reason', ['maximum', 'session', 'user', 'network']),
  ),
  gatehouse_limiter_decisions_total: counter(
    'requests',
    'Decisions of the rate limiter; near_limit: allowed with at least 80 % of the quota used; shadowed: allowed in shadow mode only.',
    label('scope', [
      'connection',
      'address',
      'key',
      'login',
      'session',
      'proven_key',
      'unknown_key',
      'key_proof',
      'sign_up',
    ]),
    label('outcome', ['allowed', 'near_limit', 'limited', 'shadowed', 'untracked']),
  ),
};

const http = {
  gatehouse_connections_open: gauge('connections', 'Open connections of the public listener.'),
  gatehouse_connections_opened_total: counter('connections', 'Connections that were accepted.'),
  gatehouse_connections_refused_total: counter(
    'connections',
    'Connections that were closed at once: too many.',
  ),
  gatehouse_connections_rejected_total: counter(
    'connections',
    'Connections closed for what arrived: a smuggled request, or a PROXY header of an untrusted peer.',
    label('reason', ['smuggling', 'proxy_header']),
  ),
  gatehouse_http_requests_in_flight: gauge('requests', 'Requests that are not answered yet.'),
  gatehouse_http_request_bodies_in_flight_bytes: gauge('bytes', 'Bytes of their bodies.'),
  gatehouse_http_requests_refused_total: counter(
    'requests',
    'Requests refused: too many, too many bytes of bodies, or the gateway stops.',
    label('reason', ['requests', 'body_bytes', 'stopping']),
  ),
  gatehouse_log_lines_total: counter(
    'lines',
    `Lines ${TRAFFIC_MESSAGES}; dropped: the reader was behind.`,
    label('outcome', ['written', 'dropped']),
  ),
};

const events = {
  gatehouse_event_log_events: gauge('events', 'Events in the log.'),
  gatehouse_event_log_bytes: gauge('bytes', 'Size of the event log.'),
  gatehouse_event_log_newest_sequence: gauge('sequence number', 'Sequence number of the newest event.'),
  gatehouse_events_accepted_total: counter('events', 'Events that modules delivered.'),
  gatehouse_events_published_total: counter('events', "The gateway's own events."),
  gatehouse_events_duplicate_total: counter('events', 'Events that were known already.'),
  gatehouse_events_late_total: counter('events', 'Events that arrived after newer ones were released.'),
  gatehouse_events_trimmed_total: counter('events', 'Events that retention removed.'),
  gatehouse_events_waiting: gauge('events', 'Events that wait to be ordered.'),
  gatehouse_events_waiting_bytes: gauge('bytes', 'Bytes of the events that wait to be ordered.'),
  gatehouse_event_batches_refused_total: counter(
    'batches',
    'Batches of events that were refused.',
    label('reason', ['overloaded', 'storage_full', 'module_key', 'input']),
  ),
  gatehouse_event_polls_total: counter('polls', 'Polls of the event feeds of modules.'),
  gatehouse_event_poll_failures_total: counter('polls', 'Polls that failed.'),
  gatehouse_event_pages_refused_total: counter('pages', 'Pages of event feeds that were refused.'),
  gatehouse_event_feeds_failing: gauge('feeds', 'Event feeds whose last poll failed.'),
};

const streams = {
  gatehouse_streams_open: gauge('streams', 'Open event streams.'),
  gatehouse_streams_blocked: gauge('streams', 'Event streams whose socket takes nothing.'),
  gatehouse_streams_behind: gauge('streams', 'Event streams that wait to read the log.'),
  gatehouse_streams_opened_total: counter('streams', 'Event streams that were opened.'),
  gatehouse_streams_resumed_total: counter(
    'streams',
    'Event streams opened after an event that is in the log.',
  ),
  gatehouse_stream_resets_total: counter(
    'streams',
    'Event streams that got a `reset` because events are missing.',
  ),
  gatehouse_streams_ended_total: counter(
    'streams',
    'Event streams that the gateway ended.',
    label('reason', ['evicted', 'session', 'lifetime', 'drain', 'lag', 'stall']),
  ),
  gatehouse_streams_refused_total: counter(
    'streams',
    'Event streams that were refused.',
    label('reason', ['node', 'user', 'address', 'connects', 'stopping']),
  ),
  gatehouse_stream_frames_total: counter('events', 'Events that were sent to streams.'),
  gatehouse_stream_writes_total: counter('writes', 'Writes to the sockets of streams.'),
  gatehouse_stream_sent_bytes_total: counter('bytes', 'Bytes that were sent to streams.'),
  gatehouse_stream_ring_frames: gauge('events', 'Events in the ring that streams read from.'),
  gatehouse_stream_ring_bytes: gauge('bytes', 'Bytes of the events in the ring.'),
};

const NOTICES = 'Modules told of a removed account; `dead`: not confirmed for a week.';
const webhooks = {
  gatehouse_webhook_applications: gauge('applications', 'Applications with a webhook.'),
  gatehouse_webhook_applications_pending: gauge('applications', 'Applications with events to deliver.'),
  gatehouse_webhook_applications_failing: gauge('applications', 'Applications whose webhook fails.'),
  gatehouse_webhook_applications_disabled: gauge('applications', 'Applications whose webhook is disabled.'),
  gatehouse_webhook_applications_waiting: gauge('applications', 'Applications that wait for a connection.'),
  gatehouse_webhook_attempts_in_flight: gauge('attempts', 'Attempts under way.'),
  gatehouse_webhook_attempts_total: counter(
    'attempts',
    'Attempts by outcome; `ended`: the node lost its lease or the application, and the owner repeats it.',
    label('outcome', ['delivered', 'failed', 'ended']),
  ),
  gatehouse_webhook_events_delivered_total: counter('events', 'Events that were delivered.'),
  gatehouse_webhook_turns_deferred_total: counter('turns', 'Actor turns that were refused and repeated.'),
  gatehouse_webhook_oldest_pending_seconds: gauge('seconds', 'Age of the oldest event that waits, or 0.'),
  gatehouse_account_notices_total: counter('calls', NOTICES, label('outcome', ['told', 'failed', 'dead'])),
};

/** Read from the parts of the gateway at each scrape. */
const connect = {
  gatehouse_oauth_consents_total: counter(
    'requests',
    'Requests of hosts for access that a person decided.',
    label('outcome', ['allowed', 'refused']),
  ),
  gatehouse_oauth_tokens_total: counter(
    'requests',
    'Requests for tokens by outcome; opened: a code was exchanged.',
    label('outcome', ['opened', 'refreshed', 'refused']),
  ),
  gatehouse_oauth_registrations_total: counter('clients', 'Clients that registered themselves.'),
};

const traces = {
  gatehouse_trace_requests_total: counter('requests', 'Requests that were sampled for a trace.'),
  gatehouse_trace_spans_total: counter(
    'spans',
    'Spans by outcome; refused: by the collector; unreachable: it did not answer; overflowed: the queue was full; oversized: too many of one request.',
    label('outcome', ['exported', 'refused', 'unreachable', 'overflowed', 'oversized']),
  ),
  gatehouse_trace_spans_waiting: gauge('spans', 'Spans that wait for the collector or are under way.'),
  gatehouse_telemetry_lines_total: counter(
    'lines',
    'Log lines for the collector by outcome, as those of spans.',
    label('outcome', ['exported', 'refused', 'unreachable', 'overflowed']),
  ),
  gatehouse_telemetry_metrics_total: counter(
    'exports',
    'Exports of all metrics by outcome. One that failed is not repeated: the next one has the same counters.',
    label('outcome', ['exported', 'failed']),
  ),
};

export const SAMPLED_METRICS = {
  ...actors,
  ...journal,
  ...workers,
  ...MODULE_METRICS,
  ...storage,
  ...transfers,
  ...limits,
  ...http,
  ...events,
  ...streams,
  ...WEB_SOCKET_METRICS,
  ...webhooks,
  ...connect,
  ...traces,
};

export const METRICS = { ...OBSERVED_METRICS, ...SAMPLED_METRICS, ...CLUSTER_METRICS, ...PROCESS_METRICS };

export type MetricName = keyof typeof METRICS;

/** The values of all sampled metrics at one scrape; those of a cluster all or none. */
export type MetricReadings = ReadingsOf<typeof SAMPLED_METRICS> & (ClusterReadings | object);

export type MetricLabels<Name extends MetricName> = LabelsOf<(typeof METRICS)[Name]>;
