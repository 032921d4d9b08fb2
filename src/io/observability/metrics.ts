/** Prometheus metrics of the internal listener. Counters of the parts are read when scraped, not pushed. */
import { collectDefaultMetrics, Gauge, type Metric, Counter as PromCounter, Registry } from 'prom-client';
import { Counter, Histogram, LabelCache, type LabelledSeries, MetricFamily } from './counters.ts';

/** One finished request, as the HTTP front reports it. */
export interface RequestObservation {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly milliseconds: number;
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
export type PartCounters = Readonly<Record<string, number>>;

export interface Metrics {
  observe(request: RequestObservation): void;
  readonly observeCall: CallObserver;
  /** A family of figures that is read at every scrape: one sample per name, under the label `kind`. */
  source(name: string, help: string, read: () => PartCounters): void;
  /** The text exposition format and its content type. */
  render(): Promise<{ contentType: string; body: string }>;
}

/** Seconds; from the cost of an in-memory answer to the clients' own patience. */
const LATENCY_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Different (route, method, status) series kept; routes are a fixed table, so this is only a net. */
const SERIES_MAX = 5_000;

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'gatehouse_' });
  const requests = counterFamily(registry, {
    name: 'gatehouse_http_requests_total',
    help: 'Requests by route, method and status.',
    labelNames: ['route', 'method', 'status'],
  });
  const seconds = histogramFamily(registry, {
    name: 'gatehouse_http_request_seconds',
    help: 'Time from the last byte of the request to the answer.',
    labelNames: ['route', 'method'],
    bounds: LATENCY_BUCKETS,
  });
  const series = new LabelCache(SERIES_MAX, (route: string, method: string, status: number) => ({
    requests: requests(route, method, String(status)),
    seconds: seconds(route, method),
  }));
  return {
    observeCall: createCallObserver(registry),
    observe({ route, method, status, milliseconds }) {
      const found = series.get(route, method, status);
      if (found === undefined) return;
      found.requests.value += 1;
      found.seconds.observe(milliseconds / 1000);
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
  const calls = counterFamily(registry, {
    name: 'gatehouse_calls_total',
    help: 'Tool calls, resource reads and proxied REST calls by name and outcome.',
    labelNames: ['event', 'name', 'outcome'],
  });
  const secondsOf = (name: string, help: string) =>
    histogramFamily(registry, { name, help, labelNames: ['event'], bounds: LATENCY_BUCKETS });
  const gateway = secondsOf('gatehouse_call_gateway_seconds', 'Time of a call without that of its module.');
  const backend = secondsOf('gatehouse_call_backend_seconds', 'Time that modules took for a call.');
  const series = new LabelCache(SERIES_MAX, (event: string, outcome: string, name: string) => ({
    calls: calls(event, name, outcome),
    gateway: gateway(event),
    backend: backend(event),
  }));
  return ({ event, name, outcome, elapsedMs, backendMs }) => {
    const found = series.get(event, outcome, name);
    if (found === undefined) return;
    found.calls.value += 1;
    found.gateway.observe(Math.max(0, elapsedMs - (backendMs ?? 0)) / 1000);
    if (backendMs !== undefined) found.backend.observe(backendMs / 1000);
  };
}

export interface FamilyOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** A family of counters; the labels of a series, told once, stand in the order of `labelNames`. */
export function counterFamily(registry: Registry, options: FamilyOptions): (...labels: string[]) => Counter {
  const family = new MetricFamily(options.labelNames, () => new Counter());
  new PromCounter({
    ...options,
    registers: [registry],
    collect() {
      this.reset();
      for (const { labels, value: counts } of family.all()) this.inc(labels, counts.value);
    },
  });
  return (...labels) => family.of(labels);
}

/** A family of histograms with the classes `bounds`. */
export function histogramFamily(
  registry: Registry,
  options: FamilyOptions & { readonly bounds: readonly number[] },
): (...labels: string[]) => Histogram {
  const { name, help, labelNames, bounds } = options;
  const family = new MetricFamily(labelNames, () => new Histogram(bounds));
  const read = async () => ({
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: [...family.all()].flatMap((series) => samples(name, bounds, series)),
  });
  // The registry asks a metric for its name and its values alone, which its type does not say.
  registry.registerMetric({ name, get: read } as unknown as Metric);
  return (...labels) => family.of(labels);
}

function samples(
  name: string,
  bounds: readonly number[],
  { labels, value: counts }: LabelledSeries<Histogram>,
) {
  const upTo = counts.cumulative();
  const all = upTo.at(-1) ?? 0;
  // Nothing was observed: the series has not begun.
  if (all === 0) return [];
  const buckets = upTo.map((value, at) => ({
    metricName: `${name}_bucket`,
    labels: { le: bounds[at] ?? '+Inf', ...labels },
    value,
  }));
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: counts.sum },
    { metricName: `${name}_count`, labels, value: all },
  ];
}
