/** Series of the metric table in PromQL, for panels, service levels and alerting rules. */
import type { MetricName } from '../../src/io/observability/metric-table.ts';

/** Grafana replaces it by an interval that holds several scrapes. */
export const RATE_INTERVAL = '$__rate_interval';
/** Labels of the nodes that are chosen on the dashboard. */
export const CHOSEN_NODES = ['job=~"$job"', 'instance=~"$node"'] as const;

/** Names a metric of the table; another name does not compile. */
export const metric = (name: MetricName): MetricName => name;

/** `name` with all matchers. */
export function seriesOf(name: string, ...matchers: readonly string[]): string {
  return matchers.length === 0 ? name : `${name}{${matchers.join(',')}}`;
}

export function rateOf(series: string, window: string = RATE_INTERVAL): string {
  return `rate(${series}[${window}])`;
}
