/**
 * Panels with their metrics: at most two units a panel, the second on the right. A metric of the table that no row
 * names does not compile.
 */
import type { MetricName } from '../../src/io/observability/metric-table.ts';

/** Without the word that all begin with. */
type ShortName = MetricName extends `gatehouse_${infer Short}` ? Short : never;

export interface PanelDefinition {
  readonly title: string;
  readonly metrics: readonly ShortName[];
  /** Series of each node: their sum says nothing. */
  readonly perNode?: true;
  /** The largest ones alone, by this label. */
  readonly top?: string;
}

export interface RowDefinition {
  readonly title: string;
  readonly panels: readonly PanelDefinition[];
}

function panel<const Metrics extends readonly ShortName[]>(
  title: string,
  metrics: Metrics,
  options: Pick<PanelDefinition, 'perNode' | 'top'> = {},
) {
  return { title, metrics, ...options };
}

const TABLE = [
  {
    title: 'HTTP',
    panels: [
      panel('Requests of the ten busiest routes', ['http_requests_total'], { top: 'route' }),
      panel('Requests, connections and bodies under way', [
        'http_requests_in_flight',
        'connections_open',
        'http_request_bodies_in_flight_bytes',
      ]),
      panel('Connections opened, refused and rejected', [
        'connections_opened_total',
        'connections_refused_total',
        'connections_rejected_total',
      ]),
      panel('Requests refused before their route', ['http_requests_refused_total']),
      panel('Log lines, audit records, spans and exports', [
        'log_lines_total',
        'audit_records_dropped_total',
        'trace_requests_total',
        'trace_spans_total',
        'trace_spans_waiting',
        'telemetry_lines_total',
        'telemetry_metrics_total',
      ]),
    ],
  },
  {
    title: 'Calls of tools and modules',
    panels: [
      panel('Time of a call in the gateway and in its module', [
        'call_gateway_duration_seconds',
        'call_module_duration_seconds',
      ]),
      panel('Calls of modules, and those under way', [
        'module_calls_total',
        'module_calls_finished_total',
        'module_retries_total',
        'module_calls_pending',
        'module_breakers_open',
      ]),
      panel('Reports of progress, and header fields that were dropped', [
        'call_progress_reports_total',
        'proxied_fields_dropped_total',
      ]),
      panel('Other MCP servers', [
        'mcp_server_calls_total',
        'mcp_server_up',
        'mcp_server_tools',
        'mcp_server_restarts_total',
      ]),
      panel('WebSockets', ['websockets_open', 'websockets_opened_total', 'websockets_ended_total']),
      panel('Messages of WebSockets', ['websocket_messages_total', 'websocket_bytes_total']),
    ],
  },
  {
    title: 'Sessions, actors and journal',
    panels: [
      panel('Sessions and connected hosts', [
        'sessions',
        'oauth_consents_total',
        'oauth_tokens_total',
        'oauth_registrations_total',
      ]),
      panel('Commands, messages and timers that wait', [
        'actor_commands_pending',
        'mailbox_messages_pending',
        'actor_timers_running',
        'journal_commit_backlog',
      ]),
      panel('Turns, messages and commits', [
        'actor_turns_total',
        'actor_messages_delivered_total',
        'journal_commits_total',
        'journal_commands_total',
      ]),
      panel('Commands and messages refused', [
        'actor_commands_refused_total',
        'actor_messages_refused_total',
        'actor_messages_dead_lettered_total',
        'account_notices_total',
      ]),
      panel('Actors in memory, and those that left or failed', [
        'actors_resident',
        'actor_passivations_total',
        'actor_bugs_total',
        'actor_quarantines_total',
      ]),
      panel('Size of the journal, and damaged records', ['journal_file_bytes', 'journal_damaged_records'], {
        perNode: true,
      }),
      panel('Reading of the journal after a start', ['journal_checked_bytes_total']),
      panel('Tasks and threads of workers', [
        'worker_tasks_total',
        'worker_threads_lost_total',
        'worker_threads_replaced_total',
        'worker_tasks_pending',
        'worker_stuck',
      ]),
    ],
  },
  {
    title: 'Files',
    panels: [
      panel('Bytes of uploads and of limited transfers', [
        'upload_received_bytes_total',
        'upload_overflow_bytes_total',
        'upload_prebuffered_file_bytes_total',
        'throttle_charged_bytes_total',
      ]),
      panel('Uploads under way, and those that were lost', [
        'uploads_active',
        'upload_v1_uploads_receiving',
        'upload_v1_chunks_receiving',
        'drafts_open',
        'draft_streams',
        'uploads_lost_total',
        'upload_buffers_missed_total',
      ]),
      panel('Buffers and room of transfers', [
        'upload_buffers_lent',
        'upload_buffers_allocated',
        'download_buffers',
        'download_answers_buffered',
        'upload_prebuffered_bytes',
        'storage_reserved_bytes',
      ]),
      panel('Downloads by outcome, and calls of the file system', [
        'downloads_total',
        'downloads_refused_total',
        'downloads_broken_total',
        'file_calls',
        'file_calls_unanswered_total',
      ]),
      panel('Files published and removed, operations that failed', [
        'storage_files_published_total',
        'storage_files_removed_total',
        'storage_failures_total',
      ]),
      panel('Open files, and the cache of descriptions', [
        'storage_files_open',
        'storage_leases',
        'file_cache_entries',
        'file_cache_hits_total',
        'file_cache_misses_total',
      ]),
      panel('Limits of bandwidth', [
        'throttle_streams',
        'throttle_streams_waiting',
        'throttle_quotas',
        'throttle_callers',
      ]),
    ],
  },
  {
    title: 'Limits',
    panels: [
      panel('What shared bounds hold', ['bound_held']),
      panel('Refusals by shared bounds', ['bound_refusals_total']),
      panel('Decisions of rate limits', ['limiter_decisions_total']),
    ],
  },
  {
    title: 'Events, streams and webhooks',
    panels: [
      panel('Events accepted, published and left out', [
        'events_accepted_total',
        'events_published_total',
        'events_duplicate_total',
        'events_late_total',
        'events_trimmed_total',
      ]),
      panel('Events kept and waiting, feeds that fail', [
        'event_log_events',
        'events_waiting',
        'event_feeds_failing',
        'stream_ring_frames',
        'event_log_bytes',
        'events_waiting_bytes',
        'stream_ring_bytes',
      ]),
      panel('Sequence number of the newest event', ['event_log_newest_sequence']),
      panel('Polls of modules, and events that were refused', [
        'event_polls_total',
        'event_poll_failures_total',
        'event_batches_refused_total',
        'event_pages_refused_total',
      ]),
      panel('Event streams', [
        'streams_open',
        'streams_blocked',
        'streams_behind',
        'streams_opened_total',
        'streams_resumed_total',
        'stream_resets_total',
        'streams_ended_total',
        'streams_refused_total',
      ]),
      panel('Events and bytes written to streams', [
        'stream_frames_total',
        'stream_writes_total',
        'stream_sent_bytes_total',
      ]),
      panel('Applications with webhooks, and the oldest event that waits', [
        'webhook_applications',
        'webhook_applications_pending',
        'webhook_applications_failing',
        'webhook_applications_disabled',
        'webhook_applications_waiting',
        'webhook_attempts_in_flight',
        'webhook_oldest_pending_seconds',
      ]),
      panel('Attempts of webhooks by outcome', [
        'webhook_attempts_total',
        'webhook_events_delivered_total',
        'webhook_turns_deferred_total',
      ]),
    ],
  },
  {
    title: 'Cluster',
    panels: [
      panel('Time until a write is in the log, and until its answer leaves', [
        'cluster_append_seconds',
        'cluster_gate_seconds',
      ]),
      panel(
        'Distance to the log, lease, and clock',
        ['cluster_lag_seconds', 'cluster_lease_seconds', 'cluster_clock_offset_seconds'],
        { perNode: true },
      ),
      panel(
        'Members, links, partitions and work that waits',
        [
          'cluster_members',
          'cluster_links',
          'cluster_partitions_owned',
          'cluster_other_configurations',
          'cluster_out_for_clock',
          'cluster_folder_apart',
          'cluster_markers_missing',
          'cluster_lag_entries',
          'cluster_answers_gated',
          'cluster_head_dead_rows',
        ],
        { perNode: true },
      ),
      panel(
        'Position in the log, and keys near a limit that other nodes were told',
        ['cluster_position', 'cluster_limit_keys'],
        { perNode: true },
      ),
      panel('Renewals, refusals and losses', [
        'cluster_renewals_total',
        'cluster_database_refusals_total',
        'cluster_turns_refused_total',
        'cluster_expulsions_total',
        'cluster_returns_total',
        'cluster_lost_answers_total',
        'cluster_links_refused_total',
        'cluster_pushed_rows_dropped_total',
        'cluster_limit_counts_left_out_total',
      ]),
      panel('Calls between nodes', ['cluster_calls_total']),
    ],
  },
  {
    title: 'Process',
    panels: [
      panel(
        'Processor time, and time of the start',
        [
          'process_cpu_seconds_total',
          'process_cpu_user_seconds_total',
          'process_cpu_system_seconds_total',
          'process_start_time_seconds',
        ],
        { perNode: true },
      ),
      panel(
        'Memory of the process',
        [
          'process_resident_memory_bytes',
          'process_heap_bytes',
          'nodejs_heap_size_total_bytes',
          'nodejs_heap_size_used_bytes',
          'nodejs_external_memory_bytes',
        ],
        { perNode: true },
      ),
      panel(
        'Address space and descriptors',
        ['process_virtual_memory_bytes', 'process_open_fds', 'process_max_fds'],
        { perNode: true },
      ),
      panel('Heap by space', [
        'nodejs_heap_space_size_total_bytes',
        'nodejs_heap_space_size_used_bytes',
        'nodejs_heap_space_size_available_bytes',
      ]),
      panel(
        'Delay of the event loop',
        [
          'nodejs_eventloop_lag_seconds',
          'nodejs_eventloop_lag_min_seconds',
          'nodejs_eventloop_lag_max_seconds',
          'nodejs_eventloop_lag_mean_seconds',
          'nodejs_eventloop_lag_stddev_seconds',
          'nodejs_eventloop_lag_p50_seconds',
          'nodejs_eventloop_lag_p90_seconds',
          'nodejs_eventloop_lag_p99_seconds',
        ],
        { perNode: true },
      ),
      panel('Garbage collection, and ticks above 100 ms', [
        'nodejs_gc_duration_seconds',
        'event_loop_long_ticks_total',
      ]),
      panel('Resources that are active, and the version of Node', [
        'nodejs_active_resources',
        'nodejs_active_handles',
        'nodejs_active_requests',
        'nodejs_version_info',
      ]),
    ],
  },
] as const satisfies readonly RowDefinition[];

/** Metrics of the overview, which has queries of its own. */
type InOverview = 'http_request_duration_seconds' | 'calls_total';
type Shown = (typeof TABLE)[number]['panels'][number]['metrics'][number] | InOverview;
type Missing = Exclude<ShortName, Shown>;

export const PANEL_TABLE: [Missing] extends [never] ? readonly RowDefinition[] : Missing = TABLE;
