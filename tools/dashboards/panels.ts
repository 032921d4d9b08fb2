/**
 * Panels of the dashboard. The first row is chosen by hand; the other rows have a panel for every metric of the table, so
 * that a new metric is on the dashboard without a change here.
 */
import type { MetricDefinition } from '../../src/io/observability/metric-definition.ts';
import { METRICS, type MetricName } from '../../src/io/observability/metric-table.ts';

export interface Panel {
  readonly title: string;
  readonly description: string;
  /** Of Grafana. */
  readonly unit: string;
  readonly queries: readonly { readonly expr: string; readonly legend: string }[];
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** Grafana replaces it by an interval that holds several scrapes. */
export const RATE_INTERVAL = '$__rate_interval';

/** Names a metric of the table; another name does not compile. */
export const metric = (name: MetricName): MetricName => name;

/** Rows by the first word of a metric's name; a metric without a row fails the test. */
const ROWS: readonly (readonly [title: string, names: RegExp])[] = [
  ['HTTP', /^gatehouse_(?:http|connections|log)_/],
  ['Calls of tools and modules', /^gatehouse_(?:calls?|modules?|proxied|websockets?|mcp_server)_/],
  ['Sessions, actors and journal', /^gatehouse_(?:sessions|actors?|mailbox|audit|journal)(?:_|$)/],
  ['Worker threads', /^gatehouse_worker_/],
  ['Files', /^gatehouse_(?:storage|file|throttle|uploads?|drafts?|downloads?)_/],
  ['Limits', /^gatehouse_(?:bound|limiter)_/],
  ['Events and streams', /^gatehouse_(?:events?(?!_loop)|streams?)_/],
  ['Webhooks', /^gatehouse_webhook_/],
  ['Connected hosts', /^gatehouse_oauth_/],
  ['Traces', /^gatehouse_trace_/],
  ['Cluster', /^gatehouse_cluster_/],
  ['Process', /^gatehouse_(?:process|nodejs|event_loop)_/],
];

export function rows(): Row[] {
  const all = Object.entries<MetricDefinition>(METRICS);
  return [
    { title: 'Overview', panels: overview() },
    ...ROWS.map(([title, names]) => ({
      title,
      panels: all.filter(([name]) => names.test(name)).map(([name, definition]) => panelOf(name, definition)),
    })),
  ];
}

function panelOf(name: string, { type, unit, help, labels }: MetricDefinition): Panel {
  const by = labels.map((label) => label.name);
  const legend = by.length === 0 ? name : by.map((each) => `{{${each}}}`).join(' ');
  const title = name.replace(/^gatehouse_/, '').replace(/_total$/, '');
  if (type === 'histogram')
    return { title, description: help, unit: 's', queries: [0.5, 0.99].map((part) => quantile(name, part)) };
  const grouping = by.length === 0 ? 'sum' : `sum by (${by.join(', ')})`;
  const isRate = type === 'counter';
  const expr = isRate ? `${grouping} (rate(${name}[${RATE_INTERVAL}]))` : `${grouping} (${name})`;
  return { title, description: help, unit: unitOf(unit, isRate), queries: [{ expr, legend }] };
}

function unitOf(unit: string, isRate: boolean): string {
  if (unit === 'bytes') return isRate ? 'Bps' : 'bytes';
  if (unit === 'seconds') return isRate ? 'percentunit' : 's';
  return isRate ? 'ops' : 'short';
}

function quantile(name: string, part: number) {
  const rate = `sum by (le) (rate(${name}_bucket[${RATE_INTERVAL}]))`;
  return { expr: `histogram_quantile(${part}, ${rate})`, legend: `p${part * 100}` };
}

function overview(): Panel[] {
  const requests = metric('gatehouse_http_requests_total');
  const duration = metric('gatehouse_http_request_duration_seconds');
  const calls = metric('gatehouse_calls_total');
  const memory = metric('gatehouse_process_resident_memory_bytes');
  const lag = metric('gatehouse_nodejs_eventloop_lag_p99_seconds');
  return [
    {
      title: 'Requests by status',
      description: 'Requests a second. Status 0: the client left before the answer.',
      unit: 'reqps',
      queries: [{ expr: `sum by (status) (rate(${requests}[${RATE_INTERVAL}]))`, legend: '{{status}}' }],
    },
    {
      title: 'Duration of requests',
      description: 'From the last byte of the request to the answer, all routes.',
      unit: 's',
      queries: [0.5, 0.9, 0.99].map((part) => quantile(duration, part)),
    },
    {
      title: 'Slowest routes',
      description: '99th percentile of the five slowest routes.',
      unit: 's',
      queries: [
        {
          expr: `topk(5, histogram_quantile(0.99, sum by (le, route) (rate(${duration}_bucket[${RATE_INTERVAL}]))))`,
          legend: '{{route}}',
        },
      ],
    },
    {
      title: 'Tool calls by outcome',
      description: 'Calls of tools and resources a second.',
      unit: 'ops',
      queries: [
        {
          expr: `sum by (outcome) (rate(${calls}{event=~"mcp.*"}[${RATE_INTERVAL}]))`,
          legend: '{{outcome}}',
        },
      ],
    },
    {
      title: 'Busiest tools',
      description: 'The ten tools with most calls.',
      unit: 'ops',
      queries: [
        {
          expr: `topk(10, sum by (name) (rate(${calls}{event="mcp.tool"}[${RATE_INTERVAL}])))`,
          legend: '{{name}}',
        },
      ],
    },
    {
      title: 'Memory and event loop',
      description: 'Resident memory, and the 99th percentile of the delay of the event loop.',
      unit: 'short',
      queries: [
        { expr: `sum (${memory}) / 1048576`, legend: 'memory, MiB' },
        { expr: `max (${lag}) * 1000`, legend: 'delay, ms' },
      ],
    },
  ];
}
