/** Opens the export of traces, metrics and log lines: OTLP over HTTP to `Telemetry.url`, with a connection and bounds of its own. */
import { randomUUID } from 'node:crypto';
import type { Configuration } from '../domain/config/configuration.ts';
import { withoutTrailing } from '../domain/host-port.ts';
import { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import { SECOND_MS } from '../domain/time.ts';
import { createModuleClient, type ModuleClient } from '../io/modules/client.ts';
import type { Log } from '../io/observability/log.ts';
import type { MetricSnapshot } from '../io/observability/metrics.ts';
import { BatchExporter, type ExportCounters, type ExportResult } from '../io/tracing/exporter.ts';
import { logsBody, rejectedIn, type TelemetryResource, tracesBody } from '../io/tracing/otlp.ts';
import { metricsBody } from '../io/tracing/otlp-metrics.ts';
import type { TraceSpan } from '../io/tracing/span.ts';
import { Tracing } from '../io/tracing/tracing.ts';

const TIMEOUT_MS = 5 * SECOND_MS;
/** A stop waits at most so long for the collector. */
const CLOSE_MS = 2 * SECOND_MS;
/** Statuses after which a batch is sent again (OTLP over HTTP, retryable response codes). */
const RETRYABLE = new Set([429, 502, 503, 504]);

type Signal = 'traces' | 'metrics' | 'logs';

interface TelemetryCounters extends ExportCounters {
  readonly sampled: number;
  readonly waiting: number;
  readonly lines: Omit<ExportCounters, 'oversized'>;
  readonly metrics: { readonly exported: number; readonly failed: number };
}

export interface Telemetry {
  /** Undefined while `Telemetry.sampleRatio` is 0: no request has a span. */
  readonly tracing: Tracing | undefined;
  /** Takes a line of the log for the collector; undefined unless `Telemetry.logs`. */
  readonly follow: ((line: string) => void) | undefined;
  /** Sends what `read` gives at each interval of `Telemetry.metricsSeconds`. */
  exportMetrics(read: () => Promise<readonly MetricSnapshot[]>): void;
  counters(): TelemetryCounters;
  /** Sends what waits. */
  close(): Promise<void>;
}

interface TelemetryDeps {
  readonly configuration: Configuration;
  readonly settings: SettingsReader;
  readonly version: string;
  readonly log: Log;
}

const NO_LINES = { exported: 0, refused: 0, unreachable: 0, overflowed: 0 };
const NONE: Telemetry = {
  tracing: undefined,
  follow: undefined,
  exportMetrics: () => undefined,
  counters: () => ({
    ...NO_LINES,
    oversized: 0,
    sampled: 0,
    waiting: 0,
    lines: NO_LINES,
    metrics: { exported: 0, failed: 0 },
  }),
  close: async () => undefined,
};

export function openTelemetry(deps: TelemetryDeps): Telemetry {
  const { telemetry, project } = deps.configuration;
  if (telemetry === undefined) return NONE;
  const { sampleRatio, metricsSeconds, logs } = telemetry;
  if (sampleRatio === 0 && metricsSeconds === 0 && !logs) return NONE;
  const resource = { version: deps.version, project, instanceId: randomUUID() };
  const client = createModuleClient({
    clock: Date.now,
    bounds: new SharedBounds(deps.settings),
    connectionsPerOrigin: 1,
  });
  const collectorOf = (signal: Signal) => new Collector(client, telemetry, signal);
  const [traces, logLines] = [collectorOf('traces'), collectorOf('logs')];
  const spans = exporterOf<TraceSpan>(
    traces,
    (batch) => tracesBody(batch, resource),
    'rejectedSpans',
    (count) => deps.log.write('spansLost', { spans: count, detail: traces.failure }),
  );
  const lines = exporterOf<string>(
    logLines,
    (batch) => logsBody(batch, resource),
    'rejectedLogRecords',
    () => deps.log.write('telemetryLost', { kind: 'logs', detail: logLines.failure }),
  );
  const metrics = new MetricsExport(collectorOf('metrics'), resource, deps.log);
  const tracing =
    sampleRatio === 0
      ? undefined
      : new Tracing({
          sink: spans,
          sampleRatio,
          random: Math.random,
          elapsed: () => performance.now(),
          clock: Date.now,
        });
  return {
    tracing,
    follow: logs ? (line) => lines.add(line) : undefined,
    exportMetrics(read) {
      if (metricsSeconds > 0) metrics.start(read, metricsSeconds * SECOND_MS);
    },
    counters() {
      const { oversized: _, ...lineCounts } = lines.counters;
      return {
        ...spans.counters,
        sampled: tracing?.sampled ?? 0,
        waiting: spans.waiting,
        lines: lineCounts,
        metrics: { ...metrics.counts },
      };
    },
    async close() {
      const timeout = setTimeout(() => void client.close(), CLOSE_MS);
      await Promise.all([spans.close(), lines.close(), metrics.close()]);
      clearTimeout(timeout);
      await client.close();
    },
  };
}

/** `field`: of an accepted batch, what the collector did not store. `lost` writes the line, once until a batch is taken. */
function exporterOf<Item>(
  collector: Collector,
  encode: (items: readonly Item[]) => string,
  field: Parameters<typeof rejectedIn>[1],
  lost: (items: number) => void,
): BatchExporter<Item> {
  return new BatchExporter<Item>({
    send: (body) => collector.send(body),
    encode,
    rejected: (answer) => rejectedIn(answer, field),
    timer(delayMs, run) {
      const timeout = setTimeout(run, delayMs).unref();
      return () => clearTimeout(timeout);
    },
    onLost(items) {
      if (collector.isFirstLoss()) lost(items);
    },
  });
}

/** Sends all metrics at an interval, and once more at the end. A failed export is not repeated: counters are cumulative. */
class MetricsExport {
  readonly #collector: Collector;
  readonly #resource: TelemetryResource;
  readonly #log: Log;
  readonly #startMs = Date.now();
  readonly counts = { exported: 0, failed: 0 };
  #read: (() => Promise<readonly MetricSnapshot[]>) | undefined;
  #interval: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;

  constructor(collector: Collector, resource: TelemetryResource, log: Log) {
    this.#collector = collector;
    this.#resource = resource;
    this.#log = log;
  }

  start(read: () => Promise<readonly MetricSnapshot[]>, intervalMs: number): void {
    this.#read = read;
    this.#interval = setInterval(() => this.#send(), intervalMs).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#interval);
    await this.#sending;
    this.#send();
    await this.#sending;
  }

  #send(): void {
    const read = this.#read;
    if (read === undefined || this.#sending !== undefined) return;
    this.#sending = this.#export(read).finally(() => {
      this.#sending = undefined;
    });
  }

  async #export(read: () => Promise<readonly MetricSnapshot[]>): Promise<void> {
    const times = { startMs: this.#startMs, nowMs: Date.now() };
    const { kind } = await this.#collector.send(metricsBody(await read(), this.#resource, times));
    if (kind === 'accepted') this.counts.exported += 1;
    else this.counts.failed += 1;
    if (kind !== 'accepted' && this.#collector.isFirstLoss())
      this.#log.write('telemetryLost', { kind: 'metrics', detail: this.#collector.failure });
  }
}

class Collector {
  readonly #client: ModuleClient;
  readonly #url: { readonly origin: string; readonly pathname: string; readonly search: string };
  readonly #headers: Readonly<Record<string, string>>;
  #isLossReported = false;
  /** Failure of the last batch that was not accepted. */
  failure = '';

  constructor(
    client: ModuleClient,
    { url, headers }: NonNullable<Configuration['telemetry']>,
    signal: Signal,
  ) {
    this.#client = client;
    this.#headers = { ...headers, 'content-type': 'application/json' };
    const { origin, pathname, search } = new URL(url);
    const path = withoutTrailing(pathname, '/');
    // A URL may name the path of traces, as those of other programs do.
    const base = path.endsWith('/v1/traces') ? path.slice(0, -'/v1/traces'.length) : path;
    this.#url = { origin, pathname: `${base}/v1/${signal}`, search };
  }

  async send(body: string): Promise<ExportResult> {
    const result = await this.#client.call({
      method: 'POST',
      url: this.#url,
      headers: this.#headers,
      body,
      timeoutMs: TIMEOUT_MS,
      endpoint: 'telemetry',
    });
    if (!result.ok) {
      this.failure = `${result.error}: ${result.reason}`;
      return { kind: 'retry' };
    }
    const { status, body: answer } = result.answer;
    if (status >= 200 && status < 300) {
      this.#isLossReported = false;
      this.failure = 'some were rejected';
      return { kind: 'accepted', body: answer.toString('utf8') };
    }
    this.failure = `HTTP status ${status}`;
    return { kind: RETRYABLE.has(status) ? 'retry' : 'refused' };
  }

  /** Once until a batch was accepted again. */
  isFirstLoss(): boolean {
    const isFirst = !this.#isLossReported;
    this.#isLossReported = true;
    return isFirst;
  }
}
