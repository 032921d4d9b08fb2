/** Panels of the dashboard: service levels, an overview by hand, and the metrics of the panel table. */
import type { MetricDefinition } from '../../src/io/observability/metric-definition.ts';
import { METRICS, type MetricName } from '../../src/io/observability/metric-table.ts';
import { PANEL_TABLE, type PanelDefinition } from './panel-table.ts';
import { CHOSEN_NODES, metric, rateOf, seriesOf } from './series.ts';
import { SERVICE_LEVELS } from './service-levels.ts';

export interface Query {
  readonly expr: string;
  readonly legend: string;
  /** Unit in Grafana's spelling. */
  readonly unit: string;
}

export interface Panel {
  readonly title: string;
  readonly description: string;
  readonly queries: readonly Query[];
  /** A line that the values should stay below. */
  readonly limit?: number;
}

export interface Row {
  readonly title: string;
  readonly isOpen?: true;
  readonly panels: readonly Panel[];
}

const TOP = 10;
const ALL: Readonly<Record<MetricName, MetricDefinition>> = METRICS;
const chosen = (name: string, ...matchers: readonly string[]) => seriesOf(name, ...CHOSEN_NODES, ...matchers);

export function rows(): Row[] {
  return [
    { title: 'Service levels', isOpen: true, panels: SERVICE_LEVELS.map(levelPanel) },
    { title: 'Overview', isOpen: true, panels: overview() },
    ...PANEL_TABLE.map(({ title, panels }) => ({ title, panels: panels.map(panelOf) })),
  ];
}

/** Draws how many times as fast as it may the budget of errors burns. */
function levelPanel({ title, objective, bad }: (typeof SERVICE_LEVELS)[number]): Panel {
  const burn = (window: string) => `${bad(window, CHOSEN_NODES)} / ${Number((1 - objective).toPrecision(4))}`;
  return {
    title,
    description: `Times the rate at which the budget of errors lasts 30 days; objective ${objective * 100} %. Above 1 it will not last.`,
    queries: [
      { expr: burn('1h'), legend: 'last hour', unit: 'short' },
      { expr: burn('6h'), legend: 'last six hours', unit: 'short' },
    ],
    limit: 1,
  };
}

function panelOf(panel: PanelDefinition): Panel {
  const definitions = panel.metrics.map((short) => {
    const name = metric(`gatehouse_${short}`);
    return { name, ...ALL[name] };
  });
  return {
    title: panel.title,
    description: definitions.map(({ help }) => help).join(' '),
    queries: definitions.flatMap((definition) => queriesOf(definition, panel)),
  };
}

function queriesOf(
  { name, type, unit, labels }: MetricDefinition & { readonly name: MetricName },
  { metrics, perNode, top }: PanelDefinition,
): Query[] {
  const words = wordsOf(name);
  const nodes = perNode === true ? ['instance'] : [];
  if (type === 'histogram')
    return [0.5, 0.99].map((part) => ({ ...quantile(name, part), legend: `${words}, p${part * 100}` }));
  const by = top === undefined ? [...labels.map((label) => label.name), ...nodes] : [top];
  const isRate = type === 'counter';
  const series = chosen(name);
  const grouped = `${by.length === 0 ? 'sum' : `sum by (${by.join(', ')})`} (${isRate ? rateOf(series) : series})`;
  const parts = [
    ...(metrics.length > 1 || by.length === 0 ? [words] : []),
    ...by.map((each) => `{{${each}}}`),
  ];
  return [
    {
      expr: top === undefined ? grouped : `topk(${TOP}, ${grouped})`,
      legend: parts.join(' '),
      unit: unitOf(name, unit, isRate),
    },
  ];
}

function wordsOf(name: string): string {
  return name
    .replace(/^gatehouse_/, '')
    .replace(/_total$/, '')
    .replace(/_(?:seconds|bytes)$/, '')
    .replaceAll('_', ' ');
}

function unitOf(name: MetricName, unit: string, isRate: boolean): string {
  if (name === 'gatehouse_process_start_time_seconds') return 'dateTimeAsIso';
  if (unit === 'bytes') return isRate ? 'Bps' : 'bytes';
  if (unit === 'seconds') return isRate ? 'percentunit' : 's';
  return isRate ? 'ops' : 'short';
}

function quantile(name: string, part: number): Query {
  const rate = `sum by (le) (${rateOf(chosen(`${name}_bucket`))})`;
  return { expr: `histogram_quantile(${part}, ${rate})`, legend: `p${part * 100}`, unit: 's' };
}

function overview(): Panel[] {
  const requests = metric('gatehouse_http_requests_total');
  const duration = metric('gatehouse_http_request_duration_seconds');
  const calls = metric('gatehouse_calls_total');
  const memory = metric('gatehouse_process_resident_memory_bytes');
  const lag = metric('gatehouse_nodejs_eventloop_lag_p99_seconds');
  const one = (expr: string, legend: string, unit: string) => [{ expr, legend, unit }];
  return [
    {
      title: 'Requests by status',
      description: 'Requests a second. Status 0: the client left before the answer.',
      queries: one(`sum by (status) (${rateOf(chosen(requests))})`, '{{status}}', 'reqps'),
    },
    {
      title: 'Duration of requests',
      description: 'From the last byte of the request to the answer, all routes.',
      queries: [0.5, 0.9, 0.99].map((part) => quantile(duration, part)),
    },
    {
      title: 'Slowest routes',
      description: '99th percentile of the five slowest routes.',
      queries: one(
        `topk(5, histogram_quantile(0.99, sum by (le, route) (${rateOf(chosen(`${duration}_bucket`))})))`,
        '{{route}}',
        's',
      ),
    },
    {
      title: 'Tool calls by outcome',
      description: 'Calls of tools and resources a second.',
      queries: one(`sum by (outcome) (${rateOf(chosen(calls, 'event=~"mcp.*"'))})`, '{{outcome}}', 'ops'),
    },
    {
      title: 'Busiest tools',
      description: 'The ten tools with most calls.',
      queries: one(
        `topk(${TOP}, sum by (name) (${rateOf(chosen(calls, 'event="mcp.tool"'))}))`,
        '{{name}}',
        'ops',
      ),
    },
    {
      title: 'Memory, and delay of the event loop',
      description: 'Resident memory, and the 99th percentile of the delay of the event loop.',
      queries: [
        { expr: `sum by (instance) (${chosen(memory)})`, legend: 'memory {{instance}}', unit: 'bytes' },
        { expr: `max by (instance) (${chosen(lag)})`, legend: 'delay {{instance}}', unit: 's' },
      ],
    },
  ];
}
