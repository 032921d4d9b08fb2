/**
 * THE series of the overview's history. A row says what a sample of it is, and how those of several nodes are one. The
 * classes of latency are series too, so that percentiles of several nodes and of longer steps stay true.
 */
import type { MetricReadings } from '../../observability/metric-table.ts';
import { LATENCY_BUCKETS } from '../../observability/metrics.ts';

const MEGABYTE = 1024 * 1024;

/** The state of a node at one moment; counters since its start. */
export interface HistoryReading {
  readonly metrics: Partial<MetricReadings>;
  readonly requests: number;
  /** Those that failed at the gateway. */
  readonly errors: number;
  /** Requests by class of `LATENCY_BUCKETS`, the last one for longer times. */
  readonly latencies: Readonly<Float64Array>;
  /** 99th percentile of the delay since the reading before. */
  readonly loopDelayP99Ms: number;
  readonly rssBytes: number;
}

/**
 * - `rate`: a counter; a sample is its increase per second. `count`: the same, and a sample is the increase.
 * - `level`: a sample is the mean. `peak`: a sample is the largest value.
 */
type SeriesKind = 'rate' | 'count' | 'level' | 'peak';

export interface SeriesRow {
  readonly name: string;
  readonly kind: SeriesKind;
  /**
   * The way in which values of several nodes become one. `one`: every node has the same state, so one of them stands
   * for all.
   */
  readonly nodes: 'sum' | 'largest' | 'one';
  /** Undefined where the gateway has no such part. */
  readonly read: (reading: HistoryReading) => number | undefined;
}

type Limiter = MetricReadings['gatehouse_limiter_decisions_total'];

const row = (kind: SeriesKind, name: string, read: SeriesRow['read'], nodes: SeriesRow['nodes'] = 'sum') => ({
  name,
  kind,
  nodes,
  read,
});
const metric = (
  kind: SeriesKind,
  name: string,
  read: (metrics: Partial<MetricReadings>) => number | undefined,
) => row(kind, name, ({ metrics }) => read(metrics));
/** Without `scopes` all but `key_proof`, whose refusals are counted by the scope that asked for the proof. */
const refused = (name: string, scopes?: readonly (keyof Limiter)[]) =>
  metric('rate', name, ({ gatehouse_limiter_decisions_total: decisions }) => {
    if (decisions === undefined) return undefined;
    const { key_proof: _, ...own } = decisions;
    const chosen = scopes === undefined ? Object.values(own) : scopes.map((scope) => decisions[scope]);
    return chosen.reduce((sum, { limited }) => sum + limited, 0);
  });
const sessions = (scope: 'browser' | 'mcp', name: string) =>
  row('level', name, ({ metrics }) => metrics.gatehouse_sessions?.[scope], 'one');
const megabytes = (bytes: number | undefined) => (bytes === undefined ? undefined : bytes / MEGABYTE);

/** Series that readers get, besides `p50` and `p99`. */
export const HISTORY_SERIES: readonly SeriesRow[] = [
  row('rate', 'requests', ({ requests }) => requests),
  row('rate', 'errors', ({ errors }) => errors),
  refused('refused'),
  refused('refusedConnection', ['connection']),
  refused('refusedAddress', ['address']),
  refused('refusedKey', ['key', 'proven_key']),
  refused('refusedSession', ['session']),
  refused('refusedLogin', ['login']),
  sessions('browser', 'browsers'),
  sessions('mcp', 'agents'),
  metric('level', 'connections', (metrics) => metrics.gatehouse_connections_open),
  metric('level', 'streams', (metrics) => metrics.gatehouse_streams_open),
  metric('level', 'webSockets', (metrics) => metrics.gatehouse_websockets_open),
  metric('rate', 'receivedMegabytes', (metrics) => megabytes(metrics.gatehouse_upload_received_bytes_total)),
  metric('rate', 'limitedMegabytes', (metrics) => megabytes(metrics.gatehouse_throttle_charged_bytes_total)),
  metric('level', 'uploads', (metrics) => metrics.gatehouse_uploads_active),
  metric('level', 'uploadsWaiting', (metrics) => metrics.gatehouse_throttle_streams_waiting),
  metric('rate', 'delivered', (metrics) => metrics.gatehouse_webhook_attempts_total?.delivered),
  metric('level', 'applicationsWaiting', (metrics) => metrics.gatehouse_webhook_applications_pending),
  row('peak', 'loopDelay', ({ loopDelayP99Ms }) => loopDelayP99Ms, 'largest'),
  row('level', 'memoryMegabytes', ({ rssBytes }) => rssBytes / MEGABYTE),
  metric('level', 'journalMegabytes', (metrics) => megabytes(metrics.gatehouse_journal_file_bytes)),
];

export const LATENCY_CLASSES = LATENCY_BUCKETS.length + 1;

/** Series that are kept: the rows above, then one for each class of latency. */
export const KEPT_SERIES: readonly SeriesRow[] = [
  ...HISTORY_SERIES,
  ...Array.from({ length: LATENCY_CLASSES }, (_, at) =>
    row('count', `latency${at}`, ({ latencies }) => latencies[at]),
  ),
];

/** Milliseconds, interpolated within a class; null when nothing finished. `counts`: by class. */
export function percentileMs(counts: ArrayLike<number>, share: number): number | null {
  let total = 0;
  for (let at = 0; at < LATENCY_CLASSES; at += 1) total += counts[at] ?? 0;
  if (total === 0) return null;
  let left = total * share;
  for (const [at, bound] of LATENCY_BUCKETS.entries()) {
    const count = counts[at] ?? 0;
    const lower = LATENCY_BUCKETS[at - 1] ?? 0;
    if (count > 0 && left <= count) return 1000 * (lower + ((bound - lower) * left) / count);
    left -= count;
  }
  return 1000 * (LATENCY_BUCKETS.at(-1) ?? 0);
}
