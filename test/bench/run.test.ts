/** A run of several scenarios: one that fails is named, cleaned up after, and does not stop the others. */
import t from 'tap';
import { runScenarios } from '../../bench/cli/run.ts';
import { OTHERS_BUSY_MAX } from '../../bench/measure/busy-machine.ts';
import { parseOptions } from '../../bench/options.ts';
import { ProgressBar } from '../../bench/progress.ts';
import type { Scenario } from '../../bench/scenario.ts';
import { outside } from '../support/outside.ts';
import { rated } from './fixtures/bench.ts';

t.setTimeout(120_000);

const cleaned: string[] = [];

function scenario(name: string, run: Scenario['run'], more: Partial<Scenario> = {}): Scenario {
  return {
    name,
    summary: `what ${name} measures`,
    async run(bench) {
      bench.onTeardown(async () => cleaned.push(name));
      return await run(bench);
    },
    ...more,
  };
}

const good = scenario(
  'good',
  async (bench) => {
    bench.optionalPeer('empty-uws');
    bench.optionalPeer('sdk');
    bench.remarks.push('a remark');
    return {
      comparison: await bench.compare([rated('A', 30), rated('B', 10)]),
      notes: ['a note'],
      figures: [{ name: 'size', unit: 'KiB', value: 3 }],
    };
  },
  {
    unit: 'things',
    targets: [
      { against: 'B', by: 'rate', atLeast: 2, row: 'A against B' },
      { figure: 'size', atMost: 2, row: 'size of A' },
    ],
  },
);
const bad = scenario('bad', async (bench) => {
  void Promise.reject(new Error('not awaited'));
  bench.onTeardown(async () => {
    throw new Error('no broom');
  });
  await new Promise((resolve) => setImmediate(resolve));
  throw new Error('no luck', { cause: new Error('rain') });
});
/** Runs once like the mixed load: one round, no counterpart. */
const once = scenario(
  'once',
  async (bench) => ({ comparison: await bench.compare([rated('A', 30)]), notes: [] }),
  { defaults: { rounds: 1, roundsMax: 1 } },
);
const last = scenario('last', async (bench) => ({ comparison: await bench.compare([]), notes: [] }), {
  noTarget: 'it is shy',
});

t.test(
  'run: what a given-up scenario starts after its clean-up goes at once, and no other one begins',
  async (t) => {
    const parsed = parseOptions(['all', '--duration', '0.05'], [{ name: 'late' }]);
    if (!parsed.ok) throw new Error(parsed.faults.join());
    const stop = new AbortController();
    const { promise: gone, resolve: goOn } = outside<void>();
    const ended: string[] = [];
    const late = scenario('late', async (bench) => {
      stop.abort();
      await gone;
      bench.onTeardown(async () => ended.push('started too late'));
      return { comparison: await bench.compare([]), notes: [] };
    });
    const progress = new ProgressBar({ write: () => undefined });
    const report = await runScenarios(
      parsed.line,
      'npm run bench -- all',
      [late, last],
      progress,
      stop.signal,
    );
    t.match(report.scenarios, [{ name: 'late', failure: 'interrupted' }]);
    t.equal(report.scenarios.length, 1);
    goOn();
    await new Promise((resolve) => setImmediate(resolve));
    t.same(ended, ['started too late']);
    cleaned.length = 0;
  },
);

t.test('run: every scenario runs and is cleaned up, a failed one is named', async (t) => {
  const parsed = parseOptions(['all', '--rounds', '3', '--duration', '0.05'], [good, bad, last]);
  if (!parsed.ok) throw new Error(parsed.faults.join());
  const said: string[] = [];
  const progress = new ProgressBar({ write: (text) => said.push(text) });
  const command = 'npm run bench -- all';
  const report = await runScenarios(parsed.line, command, [good, bad, last], progress);
  t.same(cleaned, ['good', 'bad', 'last']);
  t.same(
    report.scenarios.map(({ name, failure }) => [name, failure]),
    [
      ['good', undefined],
      ['bad', 'not awaited; no luck: rain; no broom'],
      ['last', undefined],
    ],
  );
  t.ok(said.includes('good (1 of 3, 0 s): round 1 of 3: A\n'), said.join(''));
  t.ok(report.generator.ratePerSecond > 0 && report.generator.busy > 0, 'the generator was tried first');
  t.match(report.scenarios[0], {
    unit: 'things',
    notes: ['a note', 'a remark'],
    options: { durationMs: 50, rounds: 3, roundsMax: 3, peers: false },
    targets: [
      { row: 'A against B', value: 3, verdict: 'met' },
      { row: 'size of A', value: 3, verdict: 'missed' },
    ],
    participants: [
      { name: 'empty uWS handler', version: String },
      { name: 'official SDK server', leftOut: 'runs with --peers' },
    ],
    othersBusy: Number,
  });
  const { othersBusy, noisy, warnings } = report.scenarios[0] ?? {};
  t.equal(noisy, (othersBusy ?? 0) > OTHERS_BUSY_MAX, 'noise is work of others');
  t.equal(
    warnings?.some((line) => line.startsWith('the machine was busy')),
    noisy,
  );
  t.ok(warnings?.some((line) => line.includes('a median of 3 rounds')));
});

t.test('run: one round without a counterpart is no uncertain median', async (t) => {
  const parsed = parseOptions(['once', '--duration', '0.05'], [once]);
  if (!parsed.ok) throw new Error(parsed.faults.join());
  const progress = new ProgressBar({ write: () => undefined });
  const { scenarios } = await runScenarios(parsed.line, 'npm run bench -- once', [once], progress);
  t.equal(scenarios[0]?.subjects[0]?.rounds.length, 1);
  t.same(
    scenarios[0]?.warnings.filter((line) => !line.startsWith('the machine was busy')),
    [],
  );
});
