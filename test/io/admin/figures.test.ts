/** Figures of nodes: a window for each reader, and one sample of several nodes. */
import t from 'tap';
import { Dashboard } from '../../../src/io/admin/dashboard.ts';
import { FigureCounter, type Figures, sampleOf } from '../../../src/io/admin/figures.ts';
import type { FinishedRequest } from '../../../src/io/http/exchange/finished.ts';
import type { MetricReadings } from '../../../src/io/observability/metric-table.ts';

const NOW_MS = 1_000_000;

function finished(route: string, status: number, durationMs: number): FinishedRequest {
  return { method: 'GET', route, status, durationMs } as FinishedRequest;
}

/** Returns the counts of a node in two seconds. */
function figuresOf(requests: readonly FinishedRequest[], metrics: Partial<MetricReadings> = {}): Figures {
  const counter = new FigureCounter({ metrics: () => metrics, rssBytes: () => 1_000 });
  counter.begin(NOW_MS);
  for (const request of requests) counter.observe(request);
  counter.observeCall({
    event: 'toolCall',
    name: 'balance',
    outcome: 'ok',
    elapsedMs: 1,
    backendMs: undefined,
  });
  const figures = counter.take(NOW_MS + 2_000);
  counter.end();
  return figures;
}

const times = (count: number, request: FinishedRequest) => Array.from({ length: count }, () => request);

t.test(
  'figures: of several nodes requests and names are summed, and latency is that of all requests',
  (t) => {
    const busy = figuresOf(times(99, finished('/fast', 200, 1)));
    const slow = figuresOf([...times(2, finished('/slow', 500, 400)), finished('/fast', 200, 1)]);
    const sample = sampleOf(busy, [slow]);
    t.match(sample, {
      seconds: 2,
      requests: 102,
      errors: 2,
      rssBytes: 2_000,
      routes: [
        { name: 'GET /fast', count: 100, errors: 0 },
        { name: 'GET /slow', count: 2, errors: 2 },
      ],
      tools: [{ name: 'balance', count: 2, errors: 0 }],
    });
    t.ok((sample.p50 ?? 0) < 1.13 && (sample.p99 ?? 0) >= 400, 'a mean of two percentiles would be neither');
    t.equal(
      sampleOf(busy).p99,
      sampleOf(busy, [figuresOf([])]).p99,
      'a node without requests changes nothing',
    );
    t.equal(sampleOf(figuresOf([])).p50, null);
    t.end();
  },
);

t.test('figures: counters are summed, what every node stores counts once, of ages the oldest', (t) => {
  const metrics = (one: number): Partial<MetricReadings> => ({
    gatehouse_sessions: { browser: 7, mcp: 1 },
    gatehouse_connections_open: one,
    gatehouse_webhook_attempts_total: { delivered: one, failed: 0, ended: 0 },
    gatehouse_webhook_oldest_pending_seconds: one,
    gatehouse_actors_resident: one === 2 ? { user: 3 } : { user: 1, app: 5 },
  });
  const sample = sampleOf(figuresOf([], metrics(2)), [figuresOf([], metrics(40))]);
  t.same(sample.metrics, {
    gatehouse_sessions: { browser: 7, mcp: 1 },
    gatehouse_connections_open: 42,
    gatehouse_webhook_attempts_total: { delivered: 42, failed: 0, ended: 0 },
    gatehouse_webhook_oldest_pending_seconds: 40,
    gatehouse_actors_resident: { user: 4, app: 5 },
  });
  t.end();
});

t.test('figures: each node that asks gets what was counted since it asked before', (t) => {
  const dashboard = new Dashboard(() => ({}));
  const countOf = (asker: string) => sampleOf(dashboard.figuresFor(asker, NOW_MS)).requests;
  dashboard.observe(finished('/early', 200, 1));
  t.same([countOf('b'), countOf('c')], [0, 0], 'counting begins with the first question');
  dashboard.observe(finished('/one', 200, 1));
  t.equal(countOf('b'), 1);
  dashboard.observe(finished('/two', 200, 1));
  t.same([countOf('b'), countOf('c')], [1, 2]);
  dashboard.close();
  dashboard.observe(finished('/late', 200, 1));
  t.equal(countOf('b'), 0, 'a stop ends the counting');
  dashboard.close();
  t.end();
});
