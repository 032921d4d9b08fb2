/** The history of the overview: its bounds, gaps and percentiles, and the sum of several nodes. */
import fc from 'fast-check';
import t from 'tap';
import type { StoredEvent } from '../../../src/domain/events/events.ts';
import { HISTORY_RANGES, RANGE_NAMES } from '../../../src/io/admin/history/history.ts';
import { mergeHistory } from '../../../src/io/admin/history/merge.ts';
import { HISTORY_SERIES } from '../../../src/io/admin/history/series.ts';
import { OTHER_NAMES, USED_NAMES_MAX } from '../../../src/io/admin/history/usage.ts';
import { lastEvents, nodeModules, usedByModule } from '../../../src/io/admin/modules.ts';
import type { ModuleCounters } from '../../../src/io/http-client/types.ts';
import type { MetricReadings } from '../../../src/io/observability/metric-table.ts';
import type { Metrics } from '../../../src/io/observability/metrics.ts';
import { depth } from '../../support/depth.ts';
import { testHistory } from '../../support/panel/history.ts';

const START_MS = Date.UTC(2026, 10, 27, 8, 0, 0);
const LOOK_MS = 2_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MEBIBYTE = 1024 * 1024;

/** A node from its start on, at a time of its own. */
function node(startMs = START_MS, readings: Partial<MetricReadings> = {}) {
  let nowMs = startMs;
  const test = testHistory(() => nowMs);
  test.readings = readings;
  test.history.open();
  return {
    ...test,
    test,
    /** Time goes by, and the timer with it unless the process stands still. */
    pass(ms: number, stands = false) {
      const endMs = nowMs + ms;
      while (!stands && nowMs + (test.waitsMs ?? Number.POSITIVE_INFINITY) <= endMs) {
        nowMs += test.waitsMs ?? 0;
        test.fire();
      }
      nowMs = endMs;
      if (stands) test.fire();
    },
    see: (range: (typeof RANGE_NAMES)[number]) => mergeHistory(range, [test.history.read(range)]),
  };
}

function request({ observe }: Metrics, durationMs: number, status = 200, route = '/wallet'): void {
  observe({ method: 'GET', route, status, durationMs });
}

function tool({ observeCall }: Metrics, name: string, outcome = 'ok', elapsedMs = 7): void {
  observeCall({ event: 'mcp.tool', name, outcome, elapsedMs, backendMs: undefined });
}

t.test('history: requests become rates, and a percentile lies in the class of its request', (t) => {
  const { metrics, pass, see, test } = node(START_MS, { gatehouse_streams_open: 3 });
  for (let count = 0; count < 6; count += 1) request(metrics, 3);
  request(metrics, 300, 500);
  test.loopDelayMs = 40;
  pass(LOOK_MS);
  const { series, stepSeconds, endUtc } = see('5m');
  const last = (name: string) => series[name]?.at(-1);
  t.same([stepSeconds, endUtc], [2, new Date(START_MS + LOOK_MS).toISOString()]);
  t.same([last('requests'), last('errors'), last('streams'), last('loopDelay')], [3.5, 0.5, 3, 40]);
  t.ok((last('p50') ?? 0) > 2.5 && (last('p50') ?? 0) <= 5, `p50 ${last('p50')}`);
  t.ok((last('p99') ?? 0) > 250 && (last('p99') ?? 0) <= 500, `p99 ${last('p99')}`);
  t.equal(last('refused'), null, 'a part that the gateway does not have has no samples');
  pass(LOOK_MS);
  t.same([see('5m').series['requests']?.at(-1), see('5m').series['p99']?.at(-1)], [0, null]);
  t.end();
});

t.test('history: a start and a halt are gaps, and the start says since when there are samples', (t) => {
  const { metrics, pass, see, history } = node();
  pass(3 * LOOK_MS);
  request(metrics, 1);
  pass(4 * LOOK_MS, true);
  pass(2 * LOOK_MS);
  const requests = see('5m').series['requests'] ?? [];
  t.same(requests.slice(-9), [0, 0, 0, 0.125, null, null, null, 0, 0]);
  t.ok(
    requests.slice(0, -9).every((sample) => sample === null),
    'nothing before the start',
  );
  t.equal(history.read('24h').sinceMs, START_MS);
  t.equal(see('1h').series['requests']?.length, 60);
  t.end();
});

t.test('history: after a day all ranges are full, within 4 MiB, with the newest samples', (t) => {
  const { metrics, pass, see, history } = node(START_MS + 1_234);
  for (let hour = 0; hour < 25; hour += 1) {
    for (let count = 0; count < 120; count += 1) request(metrics, 1);
    pass(HOUR_MS);
  }
  for (const range of RANGE_NAMES) {
    const { series } = see(range);
    t.equal(series['memoryMegabytes']?.length, HISTORY_RANGES[range].samples);
    t.notOk(series['memoryMegabytes']?.includes(null), range);
  }
  const perMinute = see('24h').series['requests'] ?? [];
  t.equal(
    perMinute.filter((rate) => (rate ?? 0) > 0).length,
    24,
    'the hour that lies more than a day back is forgotten',
  );
  for (let count = 0; count < 2 * USED_NAMES_MAX; count += 1) tool(metrics, `tool_${count}`);
  pass(MINUTE_MS);
  t.ok(history.sizeBytes <= 4 * MEBIBYTE, `${history.sizeBytes} bytes`);
  t.end();
});

t.test('history: tools and routes of a range, with the later names together', (t) => {
  const { metrics, pass, see } = node();
  tool(metrics, 'old');
  pass(2 * HOUR_MS);
  tool(metrics, 'wallet_get_balance');
  tool(metrics, 'wallet_get_balance', 'ModuleFailed', 900);
  request(metrics, 3);
  pass(MINUTE_MS);
  const { tool: tools = [], route: routes = [] } = see('1h').used;
  t.match(tools, [{ name: 'wallet_get_balance', calls: 2, errors: 1 }]);
  t.equal(tools.length, 1, 'what was used two hours ago is not of this hour');
  t.match(routes, [{ name: 'GET /wallet', calls: 1, errors: 0 }]);
  t.ok((tools[0]?.p99 ?? 0) > 500);
  t.same(
    see('24h').used.tool.map(({ name }) => name),
    ['wallet_get_balance', 'old'],
  );
  for (let count = 0; count < USED_NAMES_MAX; count += 1) tool(metrics, `tool_${count}`);
  const others = see('5m').used.tool.find(({ name }) => name === OTHER_NAMES);
  const named = see('24h').used;
  t.equal(named.tool.length + named.route.length, USED_NAMES_MAX + 1);
  t.equal(others?.calls, 3);
  t.end();
});

t.test('history: of several nodes each step is the sum, and state that all have counts once', (t) => {
  const rates = fc.array(fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 12 }), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(rates, fc.integer({ min: 0, max: 3 }), (all, behind) => {
      const steps = Math.max(...all.map((counts) => counts.length));
      const nodes = all.map((counts, at) => {
        // Nodes begin at other times, and their answers are of other moments.
        const one = node(START_MS + (steps - counts.length) * LOOK_MS, {
          gatehouse_sessions: { browser: 5, mcp: 0 },
        });
        for (const count of counts) {
          for (let sent = 0; sent < count; sent += 1) request(one.metrics, 1 + at);
          one.pass(LOOK_MS);
        }
        if (at > 0) one.pass(behind * LOOK_MS);
        return one;
      });
      const late = nodes.length > 1 ? behind : 0;
      const { series } = mergeHistory(
        '5m',
        nodes.map(({ history }) => history.read('5m')),
      );
      const sums = Array.from({ length: steps }, (_, step) =>
        all.reduce((sum, counts) => sum + (counts[step - (steps - counts.length)] ?? 0), 0),
      );
      const end = late === 0 ? undefined : -late;
      t.strictSame(
        (series['requests'] ?? []).slice(0, end).slice(-steps),
        sums.map((sum) => sum / 2),
      );
      t.equal((series['browsers'] ?? []).slice(0, end).at(-1), 5);
    }),
    depth.runs(30),
  );
  t.end();
});

t.test(
  'modules: calls of tools and through the proxy are those of their module, with its connections',
  (t) => {
    const { metrics, history, pass } = node();
    tool(metrics, 'wallet_get_balance');
    tool(metrics, 'sessions');
    metrics.observeCall({
      event: 'rest.call',
      name: 'wallet',
      outcome: 'failed',
      elapsedMs: 90,
      backendMs: 89,
    });
    pass(MINUTE_MS);
    const used = usedByModule(history.read('24h').used, (name) => (name === 'sessions' ? null : 'wallet'));
    t.match([...used.values()], [{ name: 'wallet', calls: 2, errors: 1 }]);
    t.ok((used.get('wallet')?.p99 ?? 0) > 50);
    const known = ['wallet', 'chat'].map((name, at) => ({
      ...{ name, keySinceMs: 1, polled: false },
      url: `http://127.0.0.1:${9001 + at}/base`,
    }));
    const client = {
      counters: () => ({ breakersOpen: ['wallet:/balance', 'walletx:/a'] }) as unknown as ModuleCounters,
      origins: () => new Map([['http://127.0.0.1:9001', { connections: 3, pending: 1 }]]),
    };
    t.same(nodeModules(known, client), [
      { name: 'wallet', connections: 3, pending: 1, breakersOpen: ['wallet:/balance'] },
      { name: 'chat', connections: 0, pending: 0, breakersOpen: [] },
    ]);
    const events = [
      { module: 'wallet', acceptedMs: 5 },
      { module: 'wallet', acceptedMs: 7 },
    ] as StoredEvent[];
    t.same([...lastEvents({ newest: 2, page: () => events })], [['wallet', 7]]);
    t.end();
  },
);

t.test('history: every series has a name of its own', (t) => {
  const names = HISTORY_SERIES.map(({ name }) => name);
  t.equal(new Set(names).size, names.length);
  t.end();
});
