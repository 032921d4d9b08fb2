/** One series of the text exposition format. The table's types refuse a name or a label that it does not have. */
import { METRICS, type MetricLabels, type MetricName } from '../src/io/observability/metric-table.ts';

/** The value of a series, NaN where there is none; `suffix`: `_count` or `_sum` of a histogram. */
export function metricValue<Name extends MetricName>(
  text: string,
  name: Name,
  labels: MetricLabels<Name>,
  suffix: '' | '_count' | '_sum' = '',
): number {
  const start = `${seriesText(`${name}${suffix}`, name, labels)} `;
  const line = text.split('\n').find((each) => each.startsWith(start));
  return line === undefined ? Number.NaN : Number(line.slice(start.length));
}

function seriesText(shown: string, name: MetricName, labels: Readonly<Record<string, string>>): string {
  const pairs = METRICS[name].labels.map((label) => `${label.name}="${labels[label.name]}"`);
  return pairs.length === 0 ? shown : `${shown}{${pairs.join(',')}}`;
}
