/**
 * Counts of a node for the dashboard: requests, tool calls and latencies since it was last asked, and the readings of
 * that moment. Figures of several nodes make one sample.
 */
import type { FinishedRequest } from '../http/exchange/finished.ts';
import { LoopDelay } from '../observability/loop-delay.ts';
import { METRICS, type MetricReadings } from '../observability/metric-table.ts';
import { type CallObservation, requestName } from '../observability/metrics.ts';

/** Routes and tools in a sample: the busiest. */
const NAMES_MAX = 12;
/** Upper bounds of latency buckets in milliseconds, 12 % apart: 0.05 ms to about 60 s. */
const BUCKETS = Array.from({ length: 124 }, (_, index) => 0.05 * 1.12 ** index);

interface NamedCounts {
  readonly name: string;
  count: number;
  errors: number;
}

/** Plain data: it travels between nodes. */
export interface Figures {
  readonly utcMs: number;
  /** Time that the counts are of. */
  readonly seconds: number;
  /** Requests by bucket of latency: all buckets that have some. */
  readonly latencies: readonly (readonly [bucket: number, requests: number])[];
  readonly loopDelayP99: number;
  readonly rssBytes: number;
  readonly routes: readonly Readonly<NamedCounts>[];
  readonly tools: readonly Readonly<NamedCounts>[];
  /** The readings of /metrics. */
  readonly metrics: Partial<MetricReadings>;
}

export interface DashboardSample {
  readonly utcMs: number;
  readonly seconds: number;
  readonly requests: number;
  readonly errors: number;
  /** Milliseconds; null when nothing finished. */
  readonly p50: number | null;
  readonly p99: number | null;
  readonly loopDelayP99: number;
  readonly rssBytes: number;
  readonly routes: readonly Readonly<NamedCounts>[];
  readonly tools: readonly Readonly<NamedCounts>[];
  readonly metrics: Partial<MetricReadings>;
}

interface FigureSources {
  readonly metrics: () => Partial<MetricReadings>;
  readonly rssBytes: () => number;
}

/** Counts from `begin` to `end`. */
export class FigureCounter {
  readonly #sources: FigureSources;
  readonly #delay = new LoopDelay();
  #buckets = new Uint32Array(BUCKETS.length);
  #routes = new Map<string, NamedCounts>();
  #tools = new Map<string, NamedCounts>();
  #beganMs = 0;

  constructor(sources: FigureSources) {
    this.#sources = sources;
  }

  begin(nowMs: number): void {
    this.#reset(nowMs);
    this.#delay.begin();
  }

  end(): void {
    this.#delay.end();
  }

  observe({ method, route, status, durationMs }: FinishedRequest): void {
    const at = BUCKETS.findIndex((bound) => durationMs <= bound);
    const index = at < 0 ? BUCKETS.length - 1 : at;
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
    const isError = status >= 500 || status === 0;
    count(this.#routes, requestName(method, route), 1, isError ? 1 : 0);
  }

  observeCall({ name, outcome }: CallObservation): void {
    if (name !== '') count(this.#tools, name, 1, outcome === 'ok' ? 0 : 1);
  }

  /** Returns the counts since the last time. */
  take(nowMs: number): Figures {
    const figures = {
      utcMs: nowMs,
      seconds: Math.max(0.001, (nowMs - this.#beganMs) / 1000),
      latencies: [...this.#buckets.entries()].filter(([, requests]) => requests > 0),
      loopDelayP99: this.#delay.takeP99(),
      rssBytes: this.#sources.rssBytes(),
      routes: [...this.#routes.values()],
      tools: [...this.#tools.values()],
      metrics: this.#sources.metrics(),
    };
    this.#reset(nowMs);
    return figures;
  }

  #reset(nowMs: number): void {
    this.#buckets = new Uint32Array(BUCKETS.length);
    this.#routes = new Map();
    this.#tools = new Map();
    this.#beganMs = nowMs;
  }
}

function count(all: Map<string, NamedCounts>, name: string, times: number, errors: number): void {
  const counts = all.get(name) ?? { name, count: 0, errors: 0 };
  all.set(name, counts);
  counts.count += times;
  counts.errors += errors;
}

/** Makes the sample of one node, or of several together. The first is the one whose replica stands for all. */
export function sampleOf(first: Figures, others: readonly Figures[] = []): DashboardSample {
  const all = [first, ...others];
  const sum = (read: (figures: Figures) => number) => all.reduce((total, each) => total + read(each), 0);
  const largest = (read: (figures: Figures) => number) => Math.max(...all.map(read));
  const buckets = new Map<number, number>();
  for (const [bucket, requests] of all.flatMap(({ latencies }) => latencies))
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + requests);
  return {
    utcMs: first.utcMs,
    seconds: largest(({ seconds }) => seconds),
    requests: [...buckets.values()].reduce((total, each) => total + each, 0),
    errors: sum(({ routes }) => routes.reduce((total, { errors }) => total + errors, 0)),
    p50: percentile(buckets, 0.5),
    p99: percentile(buckets, 0.99),
    loopDelayP99: largest(({ loopDelayP99 }) => loopDelayP99),
    rssBytes: sum(({ rssBytes }) => rssBytes),
    routes: busiest(all.map(({ routes }) => routes)),
    tools: busiest(all.map(({ tools }) => tools)),
    metrics: together(all.map(({ metrics }) => metrics)),
  };
}

function percentile(buckets: ReadonlyMap<number, number>, share: number): number | null {
  const total = [...buckets.values()].reduce((sum, each) => sum + each, 0);
  let left = Math.ceil(total * share);
  for (const [bucket, requests] of [...buckets].sort(([a], [b]) => a - b)) {
    left -= requests;
    if (left <= 0) return BUCKETS[bucket] ?? null;
  }
  return null;
}

function busiest(lists: readonly Figures['routes'][]): NamedCounts[] {
  const all = new Map<string, NamedCounts>();
  for (const { name, count: times, errors } of lists.flat()) count(all, name, times, errors);
  return [...all.values()].sort((a, b) => b.count - a.count).slice(0, NAMES_MAX);
}

/** Read from the state that every node has: a sum would count it once for each node. */
const OF_THE_CLUSTER: ReadonlySet<string> = new Set<keyof MetricReadings>([
  'gatehouse_sessions',
  'gatehouse_event_log_events',
  'gatehouse_event_log_bytes',
  'gatehouse_event_log_newest_sequence',
]);

/** Counts of all nodes are summed. Of ages and positions the largest counts. */
function together(all: readonly Partial<MetricReadings>[]): Partial<MetricReadings> {
  const names = new Set(all.flatMap((each) => Object.keys(each)));
  const readings = [...names].map((name) => {
    const values = all.flatMap((each) => (each as Record<string, unknown>)[name] ?? []);
    if (OF_THE_CLUSTER.has(name)) return [name, values[0]];
    const definition = (METRICS as Record<string, { type: string; unit: string } | undefined>)[name];
    const isAge = definition?.type === 'gauge' && definition.unit === 'seconds';
    return [
      name,
      values.reduce<unknown>((one, other) => join(one, other, isAge ? Math.max : plus), undefined),
    ];
  });
  return Object.fromEntries(readings) as Partial<MetricReadings>;
}

const plus = (one: number, other: number): number => one + other;

/** Numbers at the same labels, joined. A label that one of them lacks is taken from the other. */
function join(one: unknown, other: unknown, numbers: (one: number, other: number) => number): unknown {
  if (typeof one === 'number' && typeof other === 'number') return numbers(one, other);
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return one ?? other;
  const [left, right] = [one as Record<string, unknown>, other as Record<string, unknown>];
  const labels = new Set([...Object.keys(left), ...Object.keys(right)]);
  return Object.fromEntries([...labels].map((label) => [label, join(left[label], right[label], numbers)]));
}
