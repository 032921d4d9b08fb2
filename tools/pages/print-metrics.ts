/** Prints docs/reference/METRICS.md from the table of metrics. */
import { CLUSTER_METRICS } from '../../src/io/observability/cluster-metrics.ts';
import type { MetricDefinition } from '../../src/io/observability/metric-definition.ts';
import { OBSERVED_METRICS, SAMPLED_METRICS } from '../../src/io/observability/metric-table.ts';
import { PROCESS_METRICS } from '../../src/io/observability/process-metrics.ts';

function rowsOf(table: Readonly<Record<string, MetricDefinition>>): string[] {
  return Object.entries(table).map(([name, { type, unit, labels, help }]) => {
    const shown = labels.map(({ name: label, values }) =>
      values === null ? `\`${label}\`` : `\`${label}\`: ${values.join(', ')}`,
    );
    return `| \`${name}\` | ${type} | ${unit} | ${shown.join('<br>')} | ${help} |`;
  });
}

function section(title: string, table: Readonly<Record<string, MetricDefinition>>): string[] {
  const head = ['| Metric | Type | Unit | Labels | Meaning |', '|---|---|---|---|---|'];
  return [`## ${title}`, '', ...head, ...rowsOf(table), ''];
}

export function metricsPage(): string {
  return [
    '# Metrics',
    '',
    'Generated from `src/io/observability/metric-table.ts` by `npm run generate`. The internal listener serves all of them at `/metrics` in the text format of Prometheus. Counters start at 0 with the process. Labels without values here take theirs from another table: routes, tools, modules, kinds of actors.',
    '',
    ...section('Requests and calls', OBSERVED_METRICS),
    ...section('Parts of the gateway', SAMPLED_METRICS),
    ...section('Node of a cluster, only with `Cluster`', CLUSTER_METRICS),
    ...section('Process', PROCESS_METRICS),
  ].join('\n');
}
