/** Prometheus metrics of the internal listener. Counters of the parts are read when scraped, not pushed. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** One finished request, as the HTTP front reports it. */
export interface RequestObservation {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly elapsedMs: number;
}

/** One finished tool call, resource read or proxied REST call, refused ones included. */
export interface CallObservation {
  readonly event: string;
  /** Of the catalogue or a module; '' for a name that callers made up. */
  readonly name: string;
  readonly outcome: string;
  readonly elapsedMs: number;
  /** The part of `elapsedMs` that a module took; undefined when none was called. */
  readonly backendMs: number | undefined;
}

export type CallObserver = (call: CallObservation) => void;

/** Figures by name, as parts keep them: `{ allowed: 3, refused: 1 }`. */
export type Figures = Readonly<Record<string, number>>;

export interface Metrics {
  observe(request: RequestObservation): void;
  readonly observeCall: CallObserver;
  /** A family of figures that is read at every scrape: one sample per name, under the label `kind`. */
  source(name: string, help: string, read: () => Figures): void;
  /** The text exposition format and its content type. */
  render(): Promise<{ contentType: string; body: string }>;
}

/** Seconds; from the cost of an in-memory answer to the clients' own patience. */
const LATENCY_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Different (route, method, status) series kept; routes are a fixed table, so this is only a net. */
const SERIES_MAX = 5_000;

interface CallSeries {
  calls: Counter.Internal;
  gateway: Histogram.Internal<string>;
  backend: Histogram.Internal<string>;
}

interface Series {
  requests: Counter.Internal;
  seconds: Histogram.Internal<string>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'gatehouse_' });
  const labelNames = ['route', 'method', 'status'] as const;
  const requests = new Counter({
    name: 'gatehouse_http_requests_total',
    help: 'Requests by route, method and status.',
    labelNames,
    registers: [registry],
  });
  const seconds = new Histogram({
    name: 'gatehouse_http_request_seconds',
    help: 'Time from the last byte of the request to the answer.',
    labelNames: ['route', 'method'],
    buckets: LATENCY_BUCKETS,
    registers: [registry],
  });
  const series = new Map<string, Series>();
  return {
    observeCall: createCallObserver(registry),
    observe({ route, method, status, elapsedMs }) {
      const key = `${method} ${route} ${status}`;
      let found = series.get(key);
      if (found === undefined) {
        if (series.size >= SERIES_MAX) return;
        found = {
          requests: requests.labels(route, method, String(status)),
          seconds: seconds.labels(route, method),
        };
        series.set(key, found);
      }
      found.requests.inc();
      found.seconds.observe(elapsedMs / 1000);
    },
    source(name, help, read) {
      new Gauge({
        name: `gatehouse_${name}`,
        help,
        labelNames: ['kind'],
        registers: [registry],
        collect() {
          for (const [kind, value] of Object.entries(read())) this.set({ kind }, value);
        },
      });
    },
    render: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

/** Counts by name and outcome; the gateway's own time and the modules' in histograms of their own. */
function createCallObserver(registry: Registry): CallObserver {
  const calls = new Counter({
    name: 'gatehouse_calls_total',
    help: 'Tool calls, resource reads and proxied REST calls by name and outcome.',
    labelNames: ['event', 'name', 'outcome'],
    registers: [registry],
  });
  const histogramOf = (name: string, help: string) =>
    new Histogram({ name, help, labelNames: ['event'], buckets: LATENCY_BUCKETS, registers: [registry] });
  const gateway = histogramOf('gatehouse_call_gateway_seconds', 'Time of a call without that of its module.');
  const backend = histogramOf('gatehouse_call_backend_seconds', 'Time that modules took for a call.');
  const series = new Map<string, CallSeries>();
  return ({ event, name, outcome, elapsedMs, backendMs }) => {
    const key = `${event} ${outcome} ${name}`;
    let found = series.get(key);
    if (found === undefined) {
      if (series.size >= SERIES_MAX) return;
      found = {
        calls: calls.labels(event, name, outcome),
        gateway: gateway.labels(event),
        backend: backend.labels(event),
      };
      series.set(key, found);
    }
    found.calls.inc();
    found.gateway.observe(Math.max(0, elapsedMs - (backendMs ?? 0)) / 1000);
    if (backendMs !== undefined) found.backend.observe(backendMs / 1000);
  };
}
