/** Opens the export of traces: OTLP over HTTP to `Telemetry.url`, with connections and bounds of its own. */
import { randomUUID } from 'node:crypto';
import type { Configuration } from '../domain/config/configuration.ts';
import { withoutTrailing } from '../domain/host-port.ts';
import { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import { SECOND_MS } from '../domain/time.ts';
import { createModuleClient, type ModuleClient } from '../io/modules/client.ts';
import type { Log } from '../io/observability/log.ts';
import { type ExportResult, type SpanCounters, SpanExporter } from '../io/tracing/exporter.ts';
import { Tracing } from '../io/tracing/tracing.ts';

const TIMEOUT_MS = 5 * SECOND_MS;
/** A stop waits at most so long for the collector. */
const CLOSE_MS = 2 * SECOND_MS;
const TRACES_PATH = '/v1/traces';
/** Statuses after which a batch is sent again (OTLP over HTTP, retryable response codes). */
const RETRYABLE = new Set([429, 502, 503, 504]);

export interface Telemetry {
  /** Undefined while `Telemetry.sampleRatio` is 0: no request has a span. */
  readonly tracing: Tracing | undefined;
  counters(): SpanCounters & { readonly sampled: number; readonly waiting: number };
  /** Sends what waits. */
  close(): Promise<void>;
}

interface TelemetryDeps {
  readonly configuration: Configuration;
  readonly settings: SettingsReader;
  readonly version: string;
  readonly log: Log;
}

const NONE: Telemetry = {
  tracing: undefined,
  counters: () => ({
    exported: 0,
    refused: 0,
    unreachable: 0,
    overflowed: 0,
    oversized: 0,
    sampled: 0,
    waiting: 0,
  }),
  close: async () => undefined,
};

export function openTelemetry({ configuration, settings, version, log }: TelemetryDeps): Telemetry {
  const { telemetry, project } = configuration;
  if (telemetry === undefined || telemetry.sampleRatio === 0) return NONE;
  const client = createModuleClient({
    clock: Date.now,
    bounds: new SharedBounds(settings),
    connectionsPerOrigin: 1,
  });
  const collector = new Collector(client, telemetry);
  const exporter = new SpanExporter({
    send: (body) => collector.send(body),
    resource: { version, project, instanceId: randomUUID() },
    timer(delayMs, run) {
      const timer = setTimeout(run, delayMs).unref();
      return () => clearTimeout(timer);
    },
    onLost(spans) {
      if (collector.isFirstLoss()) log.write('spansLost', { spans, detail: collector.failure });
    },
  });
  const { sampleRatio } = telemetry;
  const elapsed = () => performance.now();
  const tracing = new Tracing({ sink: exporter, sampleRatio, random: Math.random, elapsed, clock: Date.now });
  return {
    tracing,
    counters: () => ({ ...exporter.counters, sampled: tracing.sampled, waiting: exporter.waiting }),
    async close() {
      const timeout = setTimeout(() => void client.close(), CLOSE_MS);
      await exporter.close();
      clearTimeout(timeout);
      await client.close();
    },
  };
}

class Collector {
  readonly #client: ModuleClient;
  readonly #url: { readonly origin: string; readonly pathname: string; readonly search: string };
  readonly #headers: Readonly<Record<string, string>>;
  #isLossReported = false;
  /** Of the last batch that was not accepted. */
  failure = '';

  constructor(client: ModuleClient, { url, headers }: NonNullable<Configuration['telemetry']>) {
    this.#client = client;
    this.#headers = { ...headers, 'content-type': 'application/json' };
    const { origin, pathname, search } = new URL(url);
    const path = withoutTrailing(pathname, '/');
    this.#url = { origin, pathname: path.endsWith(TRACES_PATH) ? path : path + TRACES_PATH, search };
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
      this.failure = 'spans rejected';
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
