/** Prometheus metrics of the internal listener. Counters of the parts are read when scraped, not pushed. */
import { type Metric, Registry } from 'prom-client';
import { CLUSTER_HISTOGRAMS, CLUSTER_SAMPLED_METRICS } from './cluster-metrics.ts';
import { Counter, Histogram, LabelCache, type LabelledSeries, MetricFamily } from './counters.ts';
import type { LongTick } from './loop-watch.ts';
import type { Label, MetricDefinition } from './metric-definition.ts';
import { type MetricLabels, type MetricReadings, OBSERVED_METRICS, SAMPLED_METRICS } from './metric-table.ts';
import { registerProcessMetrics } from './process-metrics.ts';

/** One finished request, as the HTTP front reports it. */
interface RequestObservation {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
}

/** One finished tool call, resource read or proxied REST call, refused ones included. */
export interface CallObservation {
  readonly event: string;
  /** Name in the catalog or of a module; '' for a name that callers made up. */
  readonly name: string;
  readonly outcome: string;
  readonly elapsedMs: number;
  /** The part of `elapsedMs` that a module took; undefined when none was called. */
  readonly backendMs: number | undefined;
  /** Reports of progress, where the client asked for them. */
  readonly progress?: { readonly sent: number; readonly dropped: number } | undefined;
}

export type CallObserver = (call: CallObservation) => void;

/** Counts of requests and calls since the start, for readers that keep a history. The lists grow. */
export interface ObservedSeries {
  readonly requests: readonly {
    readonly route: string;
    readonly method: string;
    readonly status: number;
    readonly requests: Counter;
  }[];
  /** Request times by method and route, seconds. */
  readonly requestTimes: ReadonlyMap<string, Histogram>;
  readonly calls: readonly {
    readonly event: string;
    readonly name: string;
    readonly outcome: string;
    readonly calls: Counter;
  }[];
  /** Call times by `callName` of tools and of proxied REST calls, seconds. */
  readonly callTimes: ReadonlyMap<string, Histogram>;
}

/** Durations of a node of a cluster, in milliseconds. */
export interface NodeDurations {
  appended(durationMs: number): void;
  gateOpened(durationMs: number): void;
}

export interface Metrics {
  observe(request: RequestObservation): void;
  readonly observeCall: CallObserver;
  readonly series: ObservedSeries;
  /** Fields of a proxied request that were dropped because of a character of their name. */
  readonly observeFieldsDropped: (count: number) => void;
  readonly observeLongTick: (tick: LongTick) => void;
  /** Undefined without `Cluster`. */
  readonly observeNode: NodeDurations | undefined;
  /** All metrics with their samples, as they are rendered. */
  snapshot(): Promise<readonly MetricSnapshot[]>;
  /** The text exposition format and its content type. */
  render(): Promise<{ contentType: string; body: string }>;
}

/** Seconds; from the cost of an in-memory answer to the longest time-out of clients. */
export const LATENCY_BUCKETS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
/** Different (route, method, status) series kept; routes are a fixed table, so this is only a net. */
const SERIES_MAX = 5_000;
/** Events whose names have times of their own: calls of tools, and of modules through the proxy. */
const TIMED_EVENTS: ReadonlySet<string> = new Set(['mcp.tool', 'rest.call']);

const OBSERVED = { ...OBSERVED_METRICS, ...CLUSTER_HISTOGRAMS };
type ObservedName = keyof typeof OBSERVED;
type NamesOf<Type extends string> = {
  [Name in ObservedName]: (typeof OBSERVED)[Name]['type'] extends Type ? Name : never;
}[ObservedName];

/** `read` is called at each scrape. `isNode`: with the metrics of a cluster. */
export function createMetrics(
  read: () => MetricReadings | undefined = () => undefined,
  isNode = false,
): Metrics {
  const registry = new Registry();
  registerProcessMetrics(registry);
  const requests = observedCounter(registry, 'gatehouse_http_requests_total');
  const seconds = observedHistogram(registry, 'gatehouse_http_request_duration_seconds');
  const requestTimes = new Map<string, Histogram>();
  const counted: ObservedSeries['requests'][number][] = [];
  const series = new LabelCache(SERIES_MAX, (route: string, method: string, status: number) => {
    const kept = {
      requests: requests({ route, method, status: String(status) }),
      seconds: seconds({ route, method }),
    };
    counted.push({ route, method, status, requests: kept.requests });
    requestTimes.set(requestName(method, route), kept.seconds);
    return kept;
  });
  const { observeCall, calls, callTimes } = createCallObserver(registry);
  const fieldsDropped = observedCounter(registry, 'gatehouse_proxied_fields_dropped_total')({});
  const longTicks = observedCounter(registry, 'gatehouse_event_loop_long_ticks_total');
  const sampled = isNode ? { ...SAMPLED_METRICS, ...CLUSTER_SAMPLED_METRICS } : SAMPLED_METRICS;
  const readings = registerSampled(registry, sampled);
  return {
    observeCall,
    series: { requests: counted, requestTimes, calls, callTimes },
    observeFieldsDropped: (count) => {
      fieldsDropped.value += count;
    },
    observeLongTick({ route, tool }) {
      longTicks({ route, tool }).value += 1;
    },
    observeNode: isNode ? createNodeDurations(registry) : undefined,
    observe({ route, method, status, durationMs: milliseconds }) {
      const found = series.get(route, method, status);
      if (found === undefined) return;
      found.requests.value += 1;
      found.seconds.observe(milliseconds / 1000);
    },
    async snapshot() {
      readings.current = read();
      return (await registry.getMetricsAsJSON()) as unknown as readonly MetricSnapshot[];
    },
    async render() {
      readings.current = read();
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

/** The key of a call's times. */
export function callName(event: string, name: string): string {
  return `${event} ${name}`;
}

/** One name for a route with its method, as the admin panel shows it. */
export function requestName(method: string, route: string): string {
  return route === '' ? 'no route' : `${method} ${route}`;
}

function createNodeDurations(registry: Registry): NodeDurations {
  const append = observedHistogram(registry, 'gatehouse_cluster_append_seconds')({});
  const gate = observedHistogram(registry, 'gatehouse_cluster_gate_seconds')({});
  return {
    appended: (durationMs) => append.observe(durationMs / 1000),
    gateOpened: (durationMs) => gate.observe(durationMs / 1000),
  };
}

/** Counts by name and outcome; the gateway's own time and the modules' in histograms of their own. */
function createCallObserver(
  registry: Registry,
): Pick<ObservedSeries, 'calls' | 'callTimes'> & { readonly observeCall: CallObserver } {
  const calls = observedCounter(registry, 'gatehouse_calls_total');
  const gateway = observedHistogram(registry, 'gatehouse_call_gateway_duration_seconds');
  const module = observedHistogram(registry, 'gatehouse_call_module_duration_seconds');
  const reports = observedCounter(registry, 'gatehouse_call_progress_reports_total');
  const [sent, dropped] = [reports({ outcome: 'sent' }), reports({ outcome: 'dropped' })];
  const counted: ObservedSeries['calls'][number][] = [];
  const callTimes = new Map<string, Histogram>();
  // A time for each name is no metric: seventeen series for each would be too many for a scrape.
  const timesOf = (key: string) => {
    const times = callTimes.get(key) ?? new Histogram(LATENCY_BUCKETS);
    callTimes.set(key, times);
    return times;
  };
  const series = new LabelCache(SERIES_MAX, (event: string, outcome: string, name: string) => {
    const counter = calls({ event, name, outcome });
    counted.push({ event, name, outcome, calls: counter });
    const times = TIMED_EVENTS.has(event) && name !== '' ? timesOf(callName(event, name)) : undefined;
    return { calls: counter, gateway: gateway({ event }), module: module({ event }), times };
  });
  const observeCall: CallObserver = ({ event, name, outcome, elapsedMs, backendMs, progress }) => {
    sent.value += progress?.sent ?? 0;
    dropped.value += progress?.dropped ?? 0;
    const found = series.get(event, outcome, name);
    if (found === undefined) return;
    found.calls.value += 1;
    found.gateway.observe(Math.max(0, elapsedMs - (backendMs ?? 0)) / 1000);
    if (backendMs !== undefined) found.module.observe(backendMs / 1000);
    found.times?.observe(elapsedMs / 1000);
  };
  return { observeCall, calls: counted, callTimes };
}

function observedCounter<Name extends NamesOf<'counter'>>(registry: Registry, name: Name) {
  const options = optionsOf(name);
  const family = counterFamily(registry, options);
  return (labels: MetricLabels<Name>) => family(...valuesOf(options, labels));
}

function observedHistogram<Name extends NamesOf<'histogram'>>(registry: Registry, name: Name) {
  const options = { ...optionsOf(name), bounds: LATENCY_BUCKETS };
  const family = histogramFamily(registry, options);
  return (labels: MetricLabels<Name>) => family(...valuesOf(options, labels));
}

function optionsOf(name: ObservedName): FamilyOptions {
  const { help, labels }: MetricDefinition = OBSERVED[name];
  return { name, help, labelNames: labels.map((label) => label.name) };
}

function valuesOf({ labelNames }: FamilyOptions, labels: Readonly<Record<string, string>>): string[] {
  return labelNames.map((name) => labels[name] ?? '');
}

/** One snapshot of all parts for each scrape. */
interface Readings {
  current?: MetricReadings | undefined;
}

function registerSampled(registry: Registry, table: Readonly<Record<string, MetricDefinition>>): Readings {
  const readings: Readings = {};
  for (const [name, definition] of Object.entries(table)) {
    const { type, help, labels } = definition;
    register(registry, { name, help, type }, () => {
      const reading = readings.current?.[name as keyof MetricReadings];
      return reading === undefined ? [] : seriesOf(reading, labels, {});
    });
  }
  return readings;
}

type AnyReading = number | { readonly [value: string]: AnyReading };

/** Each number of a reading with its labels, in the order of the definition. */
function seriesOf(
  reading: AnyReading,
  [label, ...rest]: readonly Label[],
  labels: Readonly<Record<string, string>>,
): Sample[] {
  if (typeof reading === 'number') return [{ labels, value: reading }];
  return Object.entries(reading).flatMap(([value, inner]) =>
    seriesOf(inner, rest, label === undefined ? labels : { ...labels, [label.name]: value }),
  );
}

/** A metric at one moment. Samples of a histogram have the name, and the bound `le`, of the text format. */
export interface MetricSnapshot extends Head {
  readonly values: readonly Sample[];
}

interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

interface Head {
  readonly name: string;
  readonly help: string;
  readonly type: string;
}

/** The registry uses only the name and the values of a metric, which its type does not express. */
function register(registry: Registry, head: Head, read: () => Sample[]): void {
  const get = async () => ({ ...head, aggregator: 'sum', values: read() });
  registry.registerMetric({ name: head.name, get } as unknown as Metric);
}

interface FamilyOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** A family of counters; the labels of a series are in the order of `labelNames`. */
export function counterFamily(registry: Registry, options: FamilyOptions): (...labels: string[]) => Counter {
  const { name, help, labelNames } = options;
  const family = new MetricFamily(labelNames, () => new Counter());
  register(registry, { name, help, type: 'counter' }, () =>
    [...family.all()].map(({ labels, value }) => ({ labels, value: value.value })),
  );
  return (...labels) => family.of(labels);
}

/** A family of histograms with the buckets `bounds`. */
export function histogramFamily(
  registry: Registry,
  options: FamilyOptions & { readonly bounds: readonly number[] },
): (...labels: string[]) => Histogram {
  const { name, help, labelNames, bounds } = options;
  const family = new MetricFamily(labelNames, () => new Histogram(bounds));
  register(registry, { name, help, type: 'histogram' }, () =>
    [...family.all()].flatMap((series) => histogramSamples(name, bounds, series)),
  );
  return (...labels) => family.of(labels);
}

function histogramSamples(
  name: string,
  bounds: readonly number[],
  { labels, value }: LabelledSeries<Histogram>,
): Sample[] {
  const cumulative = value.cumulative();
  const all = cumulative.at(-1) ?? 0;
  // Nothing was observed: the series has not begun.
  if (all === 0) return [];
  const buckets = cumulative.map((count, at) => ({
    metricName: `${name}_bucket`,
    labels: { le: bounds[at] ?? '+Inf', ...labels },
    value: count,
  }));
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: value.sum },
    { metricName: `${name}_count`, labels, value: all },
  ];
}
