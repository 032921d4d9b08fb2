/** The counters behind the metrics: what a scrape reads of them is what the metrics library would have counted itself. */
import fc from 'fast-check';
import { Counter as PromCounter, Histogram as PromHistogram, Registry } from 'prom-client';
import t from 'tap';
import { LabelCache } from '../../../src/io/observability/counters.ts';
import { counterFamily, histogramFamily } from '../../../src/io/observability/metrics.ts';
import { runs } from '../../support/depth.ts';

const bounds = [0.001, 0.5, 1, 30];
const label = fc.constantFrom('a', 'b "quoted"', 'c\nd', '');
const observed = fc.tuple(
  label,
  label,
  fc.oneof(fc.constantFrom(...bounds), fc.double({ min: 0, max: 60, noNaN: true })),
);

t.test(
  'counters: a scrape of counters and histograms is the text that the library makes of the same values',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.array(observed, { maxLength: 40 }), async (values) => {
        const own = new Registry();
        const theirs = new Registry();
        const counted = { name: 'things_total', help: 'Things.', labelNames: ['x', 'y'] };
        const spread = { name: 'seconds', help: 'Times.', labelNames: ['x', 'y'] };
        const counts = counterFamily(own, counted);
        const spreads = histogramFamily(own, { ...spread, bounds });
        const counter = new PromCounter({ ...counted, registers: [theirs] });
        const histogram = new PromHistogram({ ...spread, buckets: bounds, registers: [theirs] });
        for (const [x, y, value] of values) {
          counts(x, y).value += 1;
          spreads(x, y).observe(value);
          counter.inc({ x, y });
          histogram.observe({ x, y }, value);
        }
        return (await own.metrics()) === (await theirs.metrics());
      }),
      runs(),
    );
    t.pass('every run gave the same text');
  },
);

t.test('counters: a histogram without observations is not exported', async (t) => {
  const registry = new Registry();
  histogramFamily(registry, { name: 'seconds', help: 'Times.', labelNames: ['x'], bounds })('a');
  t.equal(await registry.metrics(), '# HELP seconds Times.\n# TYPE seconds histogram\n');
});

t.test('counters: three keys find their counter; beyond the bound none is created', (t) => {
  const made: string[] = [];
  const kept = new LabelCache(2, (a: string, b: string, c: number) => {
    made.push(`${a} ${b} ${c}`);
    return { c };
  });
  const first = kept.get('/a', 'GET', 200);
  t.match(first, { c: 200 });
  t.equal(kept.get('/a', 'GET', 200), first);
  t.match(kept.get('/a', 'GET', 404), { c: 404 });
  t.equal(kept.get('/a', 'POST', 200), undefined);
  t.equal(kept.get('/b', 'GET', 200), undefined);
  t.equal(kept.get('/a', 'GET', 200), first);
  t.same(made, ['/a GET 200', '/a GET 404']);
  t.end();
});
