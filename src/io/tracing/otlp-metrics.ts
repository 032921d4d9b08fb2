/** OTLP over HTTP in its JSON form (opentelemetry-proto 1, ExportMetricsServiceRequest): all metrics at one moment. */
import type { MetricSnapshot } from '../observability/metrics.ts';
import { resourceOf, scopeOf, type TelemetryResource } from './otlp.ts';

/** OTLP's `AGGREGATION_TEMPORALITY_CUMULATIVE`: values count from the start of the process. */
const CUMULATIVE = 2;

/** Unix milliseconds of the start of the process, and of the values. */
interface Times {
  readonly startMs: number;
  readonly nowMs: number;
}

type Values = MetricSnapshot['values'];

export function metricsBody(
  metrics: readonly MetricSnapshot[],
  resource: TelemetryResource,
  times: Times,
): string {
  const scopeMetrics = [
    { scope: scopeOf(resource), metrics: metrics.map((metric) => metricOf(metric, times)) },
  ];
  return JSON.stringify({ resourceMetrics: [{ resource: resourceOf(resource), scopeMetrics }] });
}

function metricOf({ name, help, type, values }: MetricSnapshot, times: Times): object {
  const head = { name, description: help };
  const points = () =>
    values.map(({ value, labels }) => ({ ...pointOf(labels, times), asDouble: finite(value) }));
  if (type === 'histogram')
    return {
      ...head,
      histogram: { aggregationTemporality: CUMULATIVE, dataPoints: histogramsOf(name, values, times) },
    };
  if (type === 'counter')
    return {
      ...head,
      sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints: points() },
    };
  return { ...head, gauge: { dataPoints: points() } };
}

function pointOf(labels: Values[number]['labels'], { startMs, nowMs }: Times): object {
  return {
    attributes: Object.entries(labels).map(([key, value]) => ({
      key,
      value: { stringValue: String(value) },
    })),
    startTimeUnixNano: `${Math.round(startMs)}000000`,
    timeUnixNano: `${Math.round(nowMs)}000000`,
  };
}

/** The protocol's JSON writes what is no number as a text. */
function finite(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}

interface HistogramPoint {
  readonly point: object;
  readonly bounds: number[];
  /** Values up to each bound, then all of them. */
  readonly cumulative: number[];
  sum: number;
}

/** A point for each series: cumulative samples by bound become counts of the buckets. */
function histogramsOf(name: string, values: Values, times: Times): object[] {
  const series = new Map<string, HistogramPoint>();
  for (const { metricName, value, labels } of values) {
    const { le, ...own } = labels;
    const key = JSON.stringify(own);
    const found = series.get(key) ?? { point: pointOf(own, times), bounds: [], cumulative: [], sum: 0 };
    series.set(key, found);
    if (metricName === `${name}_sum`) found.sum = value;
    else if (metricName === `${name}_bucket`) {
      found.cumulative.push(value);
      if (le !== '+Inf') found.bounds.push(Number(le));
    }
  }
  return [...series.values()].map(({ point, bounds, cumulative, sum }) => ({
    ...point,
    count: String(cumulative.at(-1) ?? 0),
    sum: finite(sum),
    bucketCounts: cumulative.map((count, at) => String(count - (cumulative[at - 1] ?? 0))),
    explicitBounds: bounds,
  }));
}
