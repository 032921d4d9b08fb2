/**
 * Service levels, and rules that fire by how fast their budget of errors burns: two windows each, as the SRE workbook
 * of Google recommends ("Alerting on SLOs", multiwindow, multi-burn-rate).
 */
import type { Rule } from './rules.ts';
import { metric, rateOf, seriesOf } from './series.ts';

interface ServiceLevel {
  /** Part of the names of its alerts, and heading of its runbook. */
  readonly name: string;
  readonly title: string;
  /** Part that has to be good, over 30 days. */
  readonly objective: number;
  /** Part that was bad, 0 to 1, within a window such as `5m`, at the nodes with these matchers. */
  readonly bad: (window: string, nodes: readonly string[]) => string;
  /** Burning fast it cannot wait until morning. */
  readonly pages: boolean;
  readonly look: string;
  readonly act: string;
}

/** `burn`: times the rate at which the budget would last 30 days. */
const WINDOWS = [
  { name: 'Fast', burn: 14.4, long: '1h', short: '5m' },
  { name: 'Steadily', burn: 6, long: '6h', short: '30m' },
  { name: 'Slowly', burn: 1, long: '3d', short: '6h' },
] as const;
/** A webhook that waits longer, while no receiver fails, waits for the gateway. */
const WEBHOOK_DELAY_SECONDS = 300;

const requests = metric('gatehouse_http_requests_total');
const callTime = metric('gatehouse_call_gateway_duration_seconds');
const oldest = metric('gatehouse_webhook_oldest_pending_seconds');
const failing = metric('gatehouse_webhook_applications_failing');
const behind = metric('gatehouse_streams_behind');
const open = metric('gatehouse_streams_open');

/** Without any traffic nothing is bad. */
const part = (bad: string, all: string) => `(${bad} or vector(0)) / (${all} > 0 or vector(1))`;
/**
 * A gauge is read at steps, the fewer the longer the window, because Prometheus bounds what one query reads. Until the
 * first step nothing is bad.
 */
const STEPS: Readonly<Record<string, string>> = { '6h': '5m', '3d': '15m' };
const steps = (window: string) => `${window}:${STEPS[window] ?? '1m'}`;
const rate = (series: string, window: string) => `sum (${rateOf(series, window)})`;

export const SERVICE_LEVELS: readonly ServiceLevel[] = [
  {
    name: 'GatehouseAvailability',
    title: 'Requests that are not refused are answered without 5xx',
    objective: 0.999,
    bad: (window, nodes) =>
      part(
        rate(seriesOf(requests, ...nodes, 'status=~"5.."'), window),
        rate(seriesOf(requests, ...nodes, 'status!~"4..|0"'), window),
      ),
    pages: true,
    look: 'The panels of modules, bounds and the journal show which part fails; the log names the error.',
    act: 'Repair the module, the disk or the node that fails. A new version that began it is taken back (docs/upgrade.md).',
  },
  {
    name: 'GatehouseToolCalls',
    title: 'Of a tool call the gateway itself takes at most 100 ms',
    objective: 0.99,
    bad: (window, nodes) => {
      const all = rate(seriesOf(`${callTime}_count`, ...nodes, 'event="mcp.tool"'), window);
      const good = rate(seriesOf(`${callTime}_bucket`, ...nodes, 'event="mcp.tool"', 'le="0.1"'), window);
      return part(`${all} - ${good}`, all);
    },
    pages: true,
    look: 'The delay of the event loop and the backlog of the journal show a busy process or a slow disk.',
    act: 'Give the process more processor time, move DataPath to a faster disk, or add a node.',
  },
  {
    name: 'GatehouseWebhookDelay',
    title: 'While no receiver fails, no event waits five minutes for its delivery',
    objective: 0.99,
    bad: (window, nodes) =>
      `(avg_over_time(((max (${seriesOf(oldest, ...nodes)}) > bool ${WEBHOOK_DELAY_SECONDS}) * (sum (${seriesOf(failing, ...nodes)}) == bool 0))[${steps(window)}]) or vector(0))`,
    pages: false,
    look: 'Applications that wait for a connection, and attempts in flight, show whether receivers are slow.',
    act: 'A receiver that answers slowly takes the connections of its application: ask its owner. Otherwise look at the event loop.',
  },
  {
    name: 'GatehouseStreamFreshness',
    title: 'Open event streams get events as they come',
    objective: 0.999,
    bad: (window, nodes) =>
      `(avg_over_time((sum (${seriesOf(behind, ...nodes)}) / (sum (${seriesOf(open, ...nodes)}) > 0 or vector(1)))[${steps(window)}]) or vector(0))`,
    pages: false,
    look: 'Streams that are behind read the log, after a burst that was larger than the ring.',
    act: 'Give the process more processor time, or spread the streams over more gateways.',
  },
];

export const LEVEL_RULES: readonly Rule[] = SERVICE_LEVELS.flatMap((level) =>
  WINDOWS.filter(({ name }) => level.pages || name !== 'Fast').map(({ name, burn, long, short }) => ({
    alert: `${level.name}Burns${name}`,
    value: level.bad(long, []),
    also: level.bad(short, []),
    above: Number((burn * (1 - level.objective)).toPrecision(4)),
    for: '2m',
    severity: level.pages && name !== 'Slowly' ? ('page' as const) : ('ticket' as const),
    summary: `${level.title}: the budget of ${percent(1 - level.objective)} in 30 days burns ${burn === 1 ? 'faster' : `${burn} times as fast`} ${burn === 1 ? 'than' : 'as'} it may.`,
    look: level.look,
    act: level.act,
    runbook: level.name,
  })),
);

function percent(part: number): string {
  return `${Number((100 * part).toPrecision(4))} %`;
}
