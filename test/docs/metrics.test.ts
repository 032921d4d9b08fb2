/** The table of metrics follows the conventions of Prometheus, and /metrics is the table. */
import t from 'tap';
import { expectOk, request } from '../../kit/agent.ts';
import { launchFor } from '../../kit/launch.ts';
import { metricValue } from '../../kit/metric-value.ts';
import { runSync } from '../../kit/run-sync.ts';
import { CLUSTER_METRICS } from '../../src/io/observability/cluster-metrics.ts';
import type { MetricDefinition } from '../../src/io/observability/metric-definition.ts';
import {
  METRICS,
  type MetricLabels,
  type MetricName,
  type MetricReadings,
  SAMPLED_METRICS,
} from '../../src/io/observability/metric-table.ts';
import { lacking } from '../support/programs/tools.ts';

t.setTimeout(60_000);
/** Servers that are not there have series too. */
const configuration = {
  McpServers: { gone: { url: 'http://127.0.0.1:1/mcp' }, none: { command: ['/no/such/program'] } },
};
const gateway = await launchFor(t, { configuration, args: ['--sandbox'] });
await request(`${gateway.url}/health`);
const { text } = expectOk('metrics', await request(`${gateway.internal}/metrics`));
const table = Object.entries<MetricDefinition>(METRICS);
/** A gateway without `Cluster` lacks the metrics of a cluster. */
const alone = table.filter(([name]) => !(name in CLUSTER_METRICS));

t.test('metrics: names end in their unit, counters in _total, and no label is called kind', async (t) => {
  const faults = table.filter(([name, { type, unit, labels }]) => {
    const stem = name.replace(/_total$/, '');
    const isBase = unit === 'bytes' || unit === 'seconds';
    return (
      !/^gatehouse_[a-z0-9_]+$/.test(name) ||
      name.endsWith('_total') !== (type === 'counter') ||
      (isBase && !stem.endsWith(`_${unit}`)) ||
      labels.some((label) => label.name === 'kind')
    );
  });
  t.same(faults, []);
});

t.test('metrics: a scrape has the declared names and types, help and labels, and no others', async (t) => {
  const declared = Object.fromEntries(alone.map(([name, { type, help }]) => [name, { type, help }]));
  const shown = [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \1 (\S+)$/gm)].map(
    ([, name = '', help, type]) => [name, { type, help }] as const,
  );
  t.same(Object.fromEntries(shown), declared);
  const faults = text.split('\n').filter((line) => {
    const [, name = '', labels = ''] = /^([a-z0-9_]+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    const definition = declaredOf(name);
    return line !== '' && !line.startsWith('#') && !hasLabels(labels, definition);
  });
  t.same(faults, []);
  const silent = Object.keys(SAMPLED_METRICS).filter((name) => !new RegExp(`^${name}[{ ]`, 'm').test(text));
  t.same(silent, []);
});

function declaredOf(series: string): MetricDefinition | undefined {
  const stem = series.replace(/_(bucket|sum|count)$/, '');
  return Object.fromEntries(table)[series] ?? Object.fromEntries(table)[stem];
}

/** All labels of the definition in its order, each with one of its values; `le` besides. */
function hasLabels(text: string, definition: MetricDefinition | undefined): boolean {
  const pairs = [...text.matchAll(/([a-z]+)="([^"]*)"/g)].filter(([, name]) => name !== 'le');
  const { labels = [] } = definition ?? {};
  return (
    definition !== undefined &&
    pairs.length === labels.length &&
    labels.every(({ name, values }, at) => {
      const [, shown, value = ''] = pairs[at] ?? [];
      return shown === name && (values === null || values.includes(value));
    })
  );
}

t.test('metrics: an undeclared metric, a wrong label and a missing reading do not compile', async (t) => {
  type Fits<Given, Wanted> = Given extends Wanted ? true : false;
  // Each element is a type: `true` in place of `false` would not compile.
  const fits: [
    Fits<'gatehouse_sessions', MetricName>,
    Fits<'gatehouse_visits', MetricName>,
    Fits<{ scope: 'browser' }, MetricLabels<'gatehouse_sessions'>>,
    Fits<{ scope: 'phone' }, MetricLabels<'gatehouse_sessions'>>,
    Fits<{ kind: 'browser' }, MetricLabels<'gatehouse_sessions'>>,
    Fits<{ browser: number }, MetricReadings['gatehouse_sessions']>,
  ] = [true, false, true, false, false, false];
  t.equal(fits.length, 6);
  t.equal(metricValue(text, 'gatehouse_sessions', { scope: 'browser' }), 0);
});

t.test('metrics: promtool has nothing to say', { skip: lacking('Prometheus') }, async (t) => {
  const { status, stdout, stderr } = runSync('promtool', ['check', 'metrics'], { input: text });
  t.same({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' });
});
