/** Reads the metrics of all parts of the gateway, and records finished requests. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { GatewayActors } from '../actors/gateway-actors.ts';
import type { Limiter } from '../actors/limits/limiter.ts';
import type { ScopeCounters } from '../actors/limits/limiter-counters.ts';
import { DATA_FILE } from '../actors/runtime/journal/file.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { BoundName } from '../domain/limits/bounds.ts';
import type { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { ConnectCounters } from '../io/connect/counters.ts';
import type { DownloadCounters } from '../io/files/download/downloads.ts';
import type { Server } from '../io/http/listen/server.ts';
import type { FinishedRequest, Pipeline } from '../io/http/pipeline.ts';
import type { ServerLink } from '../io/mcp/upstreams/link.ts';
import type { UpstreamServers } from '../io/mcp/upstreams/servers.ts';
import type { AccountEvents } from '../io/modules/account-events.ts';
import type { ModuleClient } from '../io/modules/client.ts';
import { type LineSink, openLineSink } from '../io/observability/log.ts';
import type { MetricReadings } from '../io/observability/metric-table.ts';
import type { Metrics } from '../io/observability/metrics.ts';
import { followedSink, styledSink } from '../io/observability/pretty.ts';
import { createRequestLog } from '../io/observability/request-log.ts';
import type { WebSockets } from '../io/proxy/web-sockets.ts';
import type { DraftDeps } from '../io/routes/files-v2.ts';
import type { WebhookCounters } from '../io/webhooks/metrics.ts';
import type { WorkerPool } from '../workers/pool.ts';
import type { OpenedCluster } from './cluster/open.ts';
import type { EventDelivery } from './events.ts';
import type { FileTransport } from './files.ts';
import type { Telemetry } from './telemetry.ts';

export interface MetricSources {
  readonly configuration: Configuration;
  readonly actors: GatewayActors;
  readonly workers: WorkerPool;
  readonly modules: ModuleClient;
  readonly limiter: Limiter;
  readonly bounds: SharedBounds;
  readonly files: FileTransport;
  readonly drafts: DraftDeps;
  readonly publicServer: Server;
  readonly events: Pick<EventDelivery, 'streams' | 'counters'>;
  readonly accountEvents: Pick<AccountEvents, 'counters'>;
  readonly webhooks: { counters(): WebhookCounters };
  readonly sockets: Pick<WebSockets, 'counters'>;
  readonly served: { readonly servers: Pick<UpstreamServers, 'links'> };
  readonly requests: FinishedRequests;
  readonly connect: { readonly counters: ConnectCounters };
  readonly telemetry: Pick<Telemetry, 'counters'>;
  readonly cluster: Pick<OpenedCluster, 'readings'> | undefined;
}

/** One snapshot of all parts. A missing or undeclared metric does not compile. */
export function readMetrics(sources: MetricSources, pipeline: Pipeline): MetricReadings {
  return {
    ...actorReadings(sources),
    ...workerReadings(sources),
    ...moduleReadings(sources),
    ...upstreamReadings(sources),
    ...storageReadings(sources),
    ...uploadReadings(sources),
    ...downloadReadings(sources),
    ...limitReadings(sources),
    ...httpReadings(sources, pipeline),
    ...eventReadings(sources),
    ...streamReadings(sources),
    ...socketReadings(sources),
    ...webhookReadings(sources),
    ...connectReadings(sources),
    ...traceReadings(sources),
    ...sources.cluster?.readings(),
  };
}

/** Size of the journal file, with the space that is allocated ahead. */
export function journalFileBytes({ dataPath }: Configuration): number {
  return statSync(join(dataPath, DATA_FILE), { throwIfNoEntry: false })?.size ?? 0;
}

function actorReadings({ actors, configuration }: MetricSources) {
  const counters = actors.counters();
  return {
    gatehouse_sessions: { browser: actors.count('sidHash'), mcp: actors.count('sessionHash') },
    gatehouse_actor_commands_pending: counters.pending,
    gatehouse_actor_turns_total: counters.turns,
    gatehouse_actor_commands_refused_total: counters.refused,
    gatehouse_actor_messages_delivered_total: counters.delivered,
    gatehouse_actor_messages_refused_total: counters.messagesRefused,
    gatehouse_actor_messages_dead_lettered_total: counters.deadLettered,
    gatehouse_mailbox_messages_pending: counters.mailboxPending,
    gatehouse_actor_timers_running: counters.timersUnderWay,
    gatehouse_actors_resident: counters.live,
    gatehouse_actor_passivations_total: counters.passivated,
    gatehouse_actor_bugs_total: counters.bugs,
    gatehouse_actor_quarantines_total: counters.quarantines,
    gatehouse_audit_records_dropped_total: counters.auditDropped,
    gatehouse_journal_file_bytes: journalFileBytes(configuration),
    gatehouse_journal_commit_backlog: counters.backlog,
    gatehouse_journal_commits_total: counters.groups,
    gatehouse_journal_commands_total: counters.commands,
    gatehouse_journal_damaged_records: counters.damagedRows,
    gatehouse_journal_checked_bytes_total: counters.walkedBytes,
  } satisfies Partial<MetricReadings>;
}

function connectReadings({ connect }: MetricSources) {
  const { consents, tokens, registrations } = connect.counters.readings();
  return {
    gatehouse_oauth_consents_total: consents,
    gatehouse_oauth_tokens_total: tokens,
    gatehouse_oauth_registrations_total: registrations,
  } satisfies Partial<MetricReadings>;
}

function workerReadings({ workers, files }: MetricSources) {
  const gateway = workers.counters();
  const hashing = files.counters().workers;
  const tasks = ({ completed, failed, overloaded, timedOut }: typeof gateway) => ({
    completed,
    failed,
    overloaded,
    timedOut,
  });
  return {
    gatehouse_worker_tasks_total: { gateway: tasks(gateway), files: tasks(hashing) },
    gatehouse_worker_threads_lost_total: { gateway: gateway.threadsLost, files: hashing.threadsLost },
    gatehouse_worker_threads_replaced_total: {
      gateway: gateway.threadsReplaced,
      files: hashing.threadsReplaced,
    },
    gatehouse_worker_stuck: { gateway: gateway.stuck, files: hashing.stuck },
    gatehouse_worker_tasks_pending: { gateway: gateway.pending, files: hashing.pending },
  } satisfies Partial<MetricReadings>;
}

function moduleReadings({ modules }: MetricSources) {
  const { calls, answered, failed, retried, pending, breakersOpen } = modules.counters();
  return {
    gatehouse_module_calls_total: calls,
    gatehouse_module_calls_finished_total: { answered, ...failed },
    gatehouse_module_retries_total: retried,
    gatehouse_module_calls_pending: pending,
    gatehouse_module_breakers_open: breakersOpen.length,
  } satisfies Partial<MetricReadings>;
}

function upstreamReadings({ served: { servers } }: MetricSources) {
  const byServer = <Value>(of: (link: ServerLink) => Value, links = servers.links) =>
    Object.fromEntries(links.map((link) => [link.name, of(link)]));
  const byCommand = servers.links.filter(({ pipe }) => pipe !== undefined);
  return {
    gatehouse_mcp_server_up: byServer(({ state }) => (state === 'up' ? 1 : 0)),
    gatehouse_mcp_server_tools: byServer(({ settled }) => ({
      served: settled.served.length,
      hidden: settled.hidden.length,
      leftOut: settled.leftOut.length,
    })),
    gatehouse_mcp_server_calls_total: byServer(({ outcomes }) => outcomes),
    gatehouse_mcp_server_restarts_total: byServer(({ restarts }) => restarts, byCommand),
  } satisfies Partial<MetricReadings>;
}

function storageReadings({ files }: MetricSources) {
  const { storage, fileCache } = files.counters();
  return {
    gatehouse_storage_leases: storage.leases,
    gatehouse_storage_reserved_bytes: storage.reservedBytes,
    gatehouse_storage_files_published_total: storage.published,
    gatehouse_storage_files_removed_total: storage.removed,
    gatehouse_storage_failures_total: { failed: storage.failed, full: storage.full },
    gatehouse_storage_files_open: storage.open,
    gatehouse_file_calls: {
      running: storage.calls.running,
      waiting: storage.calls.waiting,
      stuck: storage.calls.stuck,
    },
    gatehouse_file_calls_unanswered_total: {
      refused: storage.calls.refused,
      timed_out: storage.calls.timedOut,
    },
    gatehouse_file_cache_entries: fileCache.entries,
    gatehouse_file_cache_hits_total: fileCache.remembered,
    gatehouse_file_cache_misses_total: fileCache.asked,
  } satisfies Partial<MetricReadings>;
}

function uploadReadings({ files, drafts }: MetricSources) {
  const { bandwidth, uploads, v1Parts } = files.counters();
  const { streams, open } = drafts.uploads.counters();
  return {
    gatehouse_throttle_streams: bandwidth.streams,
    gatehouse_throttle_streams_waiting: bandwidth.waiting,
    gatehouse_throttle_quotas: bandwidth.quotas,
    gatehouse_throttle_callers: bandwidth.persons,
    gatehouse_throttle_charged_bytes_total: bandwidth.chargedBytes,
    gatehouse_uploads_active: uploads.active,
    gatehouse_upload_received_bytes_total: uploads.receivedBytes,
    gatehouse_upload_overflow_bytes_total: uploads.overflowBytes,
    gatehouse_uploads_lost_total: uploads.lost,
    gatehouse_upload_buffers_lent: uploads.sharedBuffers.lent,
    gatehouse_upload_buffers_allocated: uploads.sharedBuffers.made,
    gatehouse_upload_buffers_missed_total: uploads.sharedBuffers.missed,
    gatehouse_upload_prebuffered_bytes: {
      memory: uploads.prebuffered.memoryBytes,
      file: uploads.prebuffered.fileBytes,
    },
    gatehouse_upload_prebuffered_file_bytes_total: uploads.prebuffered.overflowBytes,
    gatehouse_upload_v1_uploads_receiving: v1Parts.uploads,
    gatehouse_upload_v1_chunks_receiving: v1Parts.chunks,
    gatehouse_drafts_open: open,
    gatehouse_draft_streams: streams,
  } satisfies Partial<MetricReadings>;
}

function downloadReadings({ files }: MetricSources) {
  const { v1Downloads, v2Downloads } = files.counters();
  const byVersion = <T>(read: (counters: DownloadCounters) => T) => ({
    v1: read(v1Downloads),
    v2: read(v2Downloads),
  });
  return {
    gatehouse_download_buffers: byVersion(({ buffers: { large, small } }) => ({ large, small })),
    gatehouse_download_answers_buffered: byVersion(({ buffers }) => buffers.answers),
    gatehouse_downloads_refused_total: byVersion(({ buffers }) => buffers.refused),
    gatehouse_downloads_total: byVersion(({ whole, streamed, handedOver, redirected }) => ({
      whole,
      streamed,
      handed_over: handedOver,
      redirected,
    })),
    gatehouse_downloads_broken_total: byVersion(({ broken }) => broken),
  } satisfies Partial<MetricReadings>;
}

function limitReadings({ bounds, limiter }: MetricSources) {
  const report = bounds.report();
  const byBound = <T>(read: (row: (typeof report)[number]) => T) =>
    Object.fromEntries(report.map((row) => [row.name, read(row)])) as Record<BoundName, T>;
  const { c, i, p, m, s, provenKey, unknownKey, keyProof, signUp } = limiter.counters();
  return {
    gatehouse_bound_held: byBound(({ held }) => held),
    gatehouse_bound_refusals_total: byBound(({ refused }) => refused),
    gatehouse_limiter_decisions_total: {
      connection: decisions(c),
      address: decisions(i),
      key: decisions(p),
      login: decisions(m),
      session: decisions(s),
      proven_key: decisions(provenKey),
      unknown_key: decisions(unknownKey),
      key_proof: decisions(keyProof),
      sign_up: decisions(signUp),
    },
  } satisfies Partial<MetricReadings>;
}

function decisions({ nearLimit, ...counters }: Readonly<ScopeCounters>) {
  return { ...counters, near_limit: nearLimit };
}

function httpReadings({ publicServer, requests }: MetricSources, pipeline: Pipeline) {
  const connections = publicServer.counters();
  const counters = pipeline.counters();
  const { written, dropped } = requests.sink.counters();
  return {
    gatehouse_connections_open: connections.open,
    gatehouse_connections_opened_total: connections.openedTotal,
    gatehouse_connections_refused_total: connections.refusedTotal,
    gatehouse_connections_rejected_total: {
      smuggling: counters.smuggledTotal,
      proxy_header: counters.proxyHeadersRefusedTotal,
    },
    gatehouse_http_requests_in_flight: counters.requestsInFlight,
    gatehouse_http_request_bodies_in_flight_bytes: counters.bodyBytesInFlight,
    gatehouse_http_requests_refused_total: {
      requests: counters.overloadedRequestsTotal,
      body_bytes: counters.overloadedBodiesTotal,
      stopping: counters.stoppingTotal,
    },
    gatehouse_log_lines_total: { written, dropped },
  } satisfies Partial<MetricReadings>;
}

function eventReadings({ events }: MetricSources) {
  const counters = events.counters();
  return {
    gatehouse_event_log_events: counters.rows,
    gatehouse_event_log_bytes: counters.sizeBytes,
    gatehouse_event_log_newest_sequence: counters.newest,
    gatehouse_events_accepted_total: counters.accepted,
    gatehouse_events_published_total: counters.own,
    gatehouse_events_duplicate_total: counters.duplicates,
    gatehouse_events_late_total: counters.late,
    gatehouse_events_trimmed_total: counters.trimmed,
    gatehouse_events_waiting: counters.waiting,
    gatehouse_events_waiting_bytes: counters.waitingBytes,
    gatehouse_event_batches_refused_total: {
      overloaded: counters.overloaded,
      storage_full: counters.storageFull,
      module_key: counters.refusedKey,
      input: counters.refusedInput,
    },
    gatehouse_event_polls_total: counters.polls,
    gatehouse_event_poll_failures_total: counters.pollFailures,
    gatehouse_event_pages_refused_total: counters.pagesRefused,
    gatehouse_event_feeds_failing: counters.feedsFailing,
  } satisfies Partial<MetricReadings>;
}

function streamReadings({ events }: MetricSources) {
  const counters = events.streams.counters();
  const { lag, stall, ended } = counters;
  return {
    gatehouse_streams_open: counters.streams,
    gatehouse_streams_blocked: counters.blocked,
    gatehouse_streams_behind: counters.behind,
    gatehouse_streams_opened_total: counters.opened,
    gatehouse_streams_resumed_total: counters.resumed,
    gatehouse_stream_resets_total: counters.resets,
    gatehouse_streams_ended_total: { ...ended, lag, stall },
    gatehouse_streams_refused_total: counters.refused,
    gatehouse_stream_frames_total: counters.frames,
    gatehouse_stream_writes_total: counters.writes,
    gatehouse_stream_sent_bytes_total: counters.bytes,
    gatehouse_stream_ring_frames: counters.ringFrames,
    gatehouse_stream_ring_bytes: counters.ringBytes,
  } satisfies Partial<MetricReadings>;
}

function socketReadings({ sockets }: MetricSources) {
  const { open, openedTotal, ended, messages, bytes } = sockets.counters();
  return {
    gatehouse_websockets_open: open,
    gatehouse_websockets_opened_total: openedTotal,
    gatehouse_websockets_ended_total: ended,
    gatehouse_websocket_messages_total: messages,
    gatehouse_websocket_bytes_total: bytes,
  } satisfies Partial<MetricReadings>;
}

function webhookReadings({ accountEvents, webhooks }: MetricSources) {
  const counters = webhooks.counters();
  return {
    gatehouse_account_notices_total: accountEvents.counters(),
    gatehouse_webhook_applications: counters.applications,
    gatehouse_webhook_applications_pending: counters.pending,
    gatehouse_webhook_applications_failing: counters.failing,
    gatehouse_webhook_applications_disabled: counters.disabled,
    gatehouse_webhook_applications_waiting: counters.waiting,
    gatehouse_webhook_attempts_in_flight: counters.inFlight,
    gatehouse_webhook_attempts_total: {
      delivered: counters.delivered,
      failed: counters.failed,
      ended: counters.ended,
    },
    gatehouse_webhook_events_delivered_total: counters.deliveredEvents,
    gatehouse_webhook_turns_deferred_total: counters.deferred,
    gatehouse_webhook_oldest_pending_seconds: counters.oldestUndeliveredSeconds,
  } satisfies Partial<MetricReadings>;
}

function traceReadings({ telemetry }: MetricSources) {
  const { sampled, waiting, lines, metrics, ...outcomes } = telemetry.counters();
  return {
    gatehouse_trace_requests_total: sampled,
    gatehouse_trace_spans_total: outcomes,
    gatehouse_trace_spans_waiting: waiting,
    gatehouse_telemetry_lines_total: lines,
    gatehouse_telemetry_metrics_total: metrics,
  } satisfies Partial<MetricReadings>;
}

/** Records a finished request in the metrics and in the log. */
export interface FinishedRequests {
  /** Sink of request lines and of others. */
  readonly sink: LineSink;
  readonly observers: readonly { observe(record: FinishedRequest): void }[];
  close(): Promise<void>;
}

export function observeRequests(
  configuration: Configuration,
  metrics: Metrics,
  follow: ((line: string) => void) | undefined,
): FinishedRequests {
  const { format, level } = configuration.log;
  // Styled last: a follower gets JSON, of the lines that are written.
  const written = styledSink(openLineSink(), { format, level: 'info' });
  const sink = styledSink(follow ? followedSink(written, follow) : written, { format: 'json', level });
  const log = createRequestLog(configuration.log, sink);
  return {
    sink,
    observers: log === undefined ? [metrics] : [metrics, { observe: log }],
    close: () => sink.close(),
  };
}
