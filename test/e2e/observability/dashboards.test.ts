/** Dashboard and alerting rules: generated from the table of metrics, and every query against Prometheus. */
import t, { type Test } from 'tap';
import { bearerOf, callTool, expectOk, request, signUp, signUpAgent } from '../../../kit/agent.ts';
import { stopAfter } from '../../../kit/close-after.ts';
import { startNodes } from '../../../kit/cluster/nodes.ts';
import { launchFor, NO_LIMITS } from '../../../kit/launch.ts';
import { startPrometheus } from '../../../kit/prometheus.ts';
import { runSync } from '../../../kit/run-sync.ts';
import { METRICS } from '../../../src/io/observability/metric-table.ts';
import { type Row, rows } from '../../../tools/dashboards/panels.ts';
import { ALERTS_FILE, alertsText, dashboardText } from '../../../tools/dashboards/print-dashboards.ts';
import { CLUSTER_RULES, exprOf, RULES, type Rule } from '../../../tools/dashboards/rules.ts';
import { RATE_INTERVAL } from '../../../tools/dashboards/series.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { depth } from '../../support/depth.ts';
import { AT_FULL_DEPTH, lacking } from '../../support/programs/tools.ts';

t.setTimeout(120_000);

/** Scrapes that `rate` needs, with one to spare. */
const SCRAPES = 4;
/**
 * These queries are only tried: libuv may have no such request at a scrape, no garbage may be collected between scrapes,
 * no tick of the loop may be long, and no other MCP server is configured.
 */
const TRANSIENT = /gatehouse_(?:nodejs_(?:active_requests|gc_duration)|event_loop_long_ticks|mcp_server)/;

const PANELS_MAX = 60;
const panels = rows().flatMap((row) => row.panels);

t.test('dashboard: every metric of the table is on it, for the chosen jobs and nodes alone', async (t) => {
  const text = panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)).join('\n');
  const chosen = [...text.matchAll(/(gatehouse_[a-z0-9_]+)(\{job=~"\$job",instance=~"\$node"[,}])?/g)];
  t.same(
    chosen.filter(([, , matchers]) => matchers === undefined).map(([, name]) => name),
    [],
  );
  const named = new Set(chosen.map(([, name = '']) => name.replace(/_(?:bucket|count)$/, '')));
  t.same(
    Object.keys(METRICS).filter((name) => !named.has(name)),
    [],
  );
});

t.test(
  'dashboard: titles are words and say which panel it is, and a panel has at most two units',
  async (t) => {
    const titles = panels.map(({ title }) => title);
    t.same(
      titles.filter((title) => !/^[A-Z][A-Za-z0-9 ,'-]+$/.test(title)),
      [],
    );
    t.equal(new Set(titles).size, titles.length);
    t.ok(titles.length <= PANELS_MAX, `${titles.length} panels`);
    const crowded = panels.filter(({ queries }) => new Set(queries.map(({ unit }) => unit)).size > 2);
    t.same(
      crowded.map(({ title }) => title),
      [],
    );
  },
);

t.test('dashboard: the second unit of a panel has an axis of its own', async (t) => {
  const written = JSON.parse(dashboardText()) as {
    panels: {
      panels?: { title: string; fieldConfig: { overrides: { matcher: { options: string } }[] } }[];
    }[];
  };
  const all = written.panels.flatMap((row) => row.panels ?? []);
  const underWay = all.find(({ title }) => title === 'Requests, connections and bodies under way');
  t.same(
    underWay?.fieldConfig.overrides.map(({ matcher }) => matcher.options),
    ['C'],
  );
});

const missing = lacking('Prometheus');

t.test('rules: promtool accepts them', { skip: missing }, async (t) => {
  const { status, stdout, stderr } = runSync('promtool', ['check', 'rules', ALERTS_FILE]);
  t.equal(status, 0, stderr);
  t.match(stdout, `${RULES.length} rules found`);
});

interface QueriedGateway {
  readonly internal: string;
  readonly rows: readonly Row[];
  readonly rules: readonly Rule[];
  /** A number that rises with every scrape of these rows. */
  readonly scraped: string;
  readonly load: () => Promise<void>;
}

async function askEveryQuery(t: Test, { internal, rows, rules, scraped, load }: QueriedGateway) {
  await load();
  const prometheus = stopAfter(t, await startPrometheus([internal], alertsText()));
  for (let scrapes = 0; scrapes < SCRAPES; scrapes = (await prometheus.query(scraped))[0] ?? 0) await load();
  for (const { panels } of rows) {
    for (const { title, queries } of panels) {
      for (const { expr } of queries) {
        const asked = expr.replaceAll(RATE_INTERVAL, '1m').replaceAll(/\$(?:job|node)/g, '.*');
        const values = await prometheus.query(asked);
        if (!TRANSIENT.test(expr)) t.ok(values.some(Number.isFinite), `${title}: ${expr}`);
      }
    }
  }
  for (const rule of rules) {
    const values = await prometheus.query(rule.value);
    t.ok(values.length === 1 && values.every(Number.isFinite), `${rule.alert}: one number`);
    // The others compare with times, which the load of this machine decides.
    if (rule.above === 0) t.same(await prometheus.query(exprOf(rule)), [], `${rule.alert} does not fire`);
  }
  return prometheus;
}

const skip = depth.isQuick ? AT_FULL_DEPTH : missing;
const isOfCluster = ({ title }: Row) => title === 'Cluster';

t.test(
  'dashboard and rules: every query returns numbers of a gateway under load, and no alert fires',
  { skip },
  async (t) => {
    const gateway = await launchFor(t, { configuration: { Settings: NO_LIMITS }, args: ['--sandbox'] });
    const { url, internal } = gateway;
    const person = await signUpAgent(url);
    const bearer = await bearerOf(url, person.key);
    const load = async () => {
      expectOk('tool', await callTool(url, bearer, 'wallet_get_balance'));
      const headers = { Authorization: `Bearer ${bearer}` };
      expectOk('rest', await request(`${url}/wallet/v1/balance/get`, { headers }));
    };
    const prometheus = await askEveryQuery(t, {
      ...{ internal, load },
      rows: rows().filter((row) => !isOfCluster(row)),
      rules: RULES.filter((rule) => !CLUSTER_RULES.includes(rule)),
      scraped: 'min (count_over_time(gatehouse_call_module_duration_seconds_count[1m]))',
    });
    for (const rule of CLUSTER_RULES)
      t.same(await prometheus.query(rule.value), [], `${rule.alert}: nothing without Cluster`);
  },
);

postgresTest(
  'dashboard and rules: every query about a cluster returns numbers of a node, and no alert fires',
  async (t, postgres) => {
    const configuration = { Settings: { ...NO_LIMITS, SignUpsPerNetworkPerDay: 0 } };
    const cluster = stopAfter(t, await startNodes({ postgres, nodes: 1, configuration }));
    const [node] = cluster.nodes;
    if (node === undefined) throw new Error('no node');
    await askEveryQuery(t, {
      internal: node.gateway.internal,
      rows: rows().filter(isOfCluster),
      rules: CLUSTER_RULES,
      scraped: 'min (count_over_time(gatehouse_cluster_gate_seconds_count[1m]))',
      load: async () => void (await signUp(node.url)),
    });
  },
  { skip },
);
