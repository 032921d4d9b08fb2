/** Another built checkout beside this one: here this checkout's own build, started as any other would be. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { page } from '../../bench/report/html/page.ts';
import type { BenchReport } from '../../bench/report/report.ts';
import { judge } from '../../bench/report/targets.ts';
import { SCENARIOS } from '../../bench/scenarios/index.ts';
import { baselineFault, knownTo } from '../../bench/subjects/baseline.ts';
import { gatewayUnderLoad } from '../../bench/subjects/gateway.ts';
import { runtimeFault } from '../../bench/subjects/runtime.ts';
import { request } from '../../kit/agent.ts';
import { benchOf, rated, suite } from './fixtures/bench.ts';

t.setTimeout(120_000);

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

t.test(
  'baseline: a folder without a checkout, or without a build, is refused with one sentence',
  async (t) => {
    const empty = t.testdir({});
    t.equal(baselineFault(empty), `--baseline names a checkout of Gatehouse, and ${empty} is none.`);
    writeFileSync(join(empty, 'package.json'), '{"name": "other"}');
    t.match(baselineFault(empty), 'is none');
    writeFileSync(join(empty, 'package.json'), '{"name": "gatehouse"}');
    t.match(baselineFault(empty), `${empty} has no build/src/main.cjs`);
    mkdirSync(join(empty, 'build/src'), { recursive: true });
    writeFileSync(join(empty, 'build/src/main.cjs'), '');
    t.equal(baselineFault(empty), undefined);
    t.equal(baselineFault(ROOT), undefined);
    t.match(runtimeFault(empty), 'has no actor runtime', 'a build with other modules');
    t.equal(runtimeFault(ROOT), undefined);
  },
);

t.test('baseline: an unusable folder ends the suite with 64 and one sentence', async (t) => {
  const folder = t.testdir({});
  const { code, stdout, stderr } = await suite('turn', '--baseline', folder).ended;
  t.equal(code, 64);
  t.equal(stdout, '');
  t.equal(stderr, `--baseline names a checkout of Gatehouse, and ${folder} is none.\n`);
});

t.test('baseline: configuration keys that a build refuses are left out and named', async (t) => {
  const configuration = {
    Tomorrow: true,
    Settings: { ApiRPSLimit: 5, TomorrowRPSLimit: 5 },
    Listen: { tomorrow: 1 },
    AllowedOrigins: ['https://app.example'],
  };
  const known = await knownTo(ROOT, configuration);
  t.same(new Set(known.leftOut), new Set(['Tomorrow', 'Settings.TomorrowRPSLimit', 'Listen.tomorrow']));
  t.same(known.configuration, {
    Settings: { ApiRPSLimit: 5 },
    Listen: {},
    AllowedOrigins: ['https://app.example'],
  });
});

t.test('baseline: its gateway starts without unknown settings, and the report names them', async (t) => {
  const bench = benchOf(t);
  const build = { checkout: ROOT, suffix: ', baseline' } as const;
  const more = { build, settings: { TomorrowRPSLimit: 5 } };
  const { name, url } = await gatewayUnderLoad(bench, {}, more);
  t.equal(name, 'gatehouse, baseline');
  t.equal((await request(`${url}/auth/v1/get_info`)).status, 200);
  t.same(bench.remarks, ['The baseline does not take, and was started without: Settings.TomorrowRPSLimit.']);
});

t.test('baseline: each subject is compared with its counterpart alone', async (t) => {
  const bench = benchOf(t, { baseline: ROOT });
  t.same(
    bench.builds.map(({ suffix }) => suffix),
    ['', ', baseline'],
  );
  const { ratios } = await bench.compare([
    rated('one', 30),
    rated('floor', 60),
    rated('two', 10, { group: 'two' }),
    rated('one, baseline', 20),
    rated('two, baseline', 20, { group: 'two' }),
  ]);
  t.same(
    ratios.map(({ of, against, rate }) => [of, against, rate.median]),
    [
      ['one', 'floor', 0.5],
      ['one', 'one, baseline', 1.5],
      ['two', 'two, baseline', 0.5],
    ],
  );
});

t.test('baseline: the target is met where the interval reaches the share, whatever the median', async (t) => {
  const spread = (from: number, median: number, to: number) => ({
    median,
    from,
    to,
    lowest: from,
    highest: to,
  });
  const verdict = (from: number, median: number, to: number) => {
    const rate = spread(from, median, to);
    const ratios = [{ of: 'a', against: 'b', rate, processorTime: undefined }];
    const target = { of: 'a', against: 'b', by: 'rate', reaches: 0.97, row: 'as fast' } as const;
    const [judged] = judge([target], { subjects: [], ratios }, []);
    return [judged?.verdict, judged?.withinInterval];
  };
  t.same(verdict(0.98, 0.99, 1.01), ['met', false]);
  t.same(verdict(0.93, 0.95, 0.97), ['met', true], 'the interval holds it: another run may say otherwise');
  t.same(verdict(0.93, 0.95, 0.969), ['missed', false]);
});

t.test('baseline: all scenarios of speed accept one', async (t) => {
  for (const name of [
    'mcp-call',
    'session-check',
    'sse-fanout',
    'upload-v2',
    'turn',
    'rest-proxy',
    'download',
  ])
    t.equal(SCENARIOS.find((scenario) => scenario.name === name)?.baseline, true, name);
});

t.test('baseline: a run shows the ratio, its interval and the verdict, in text, JSON and HTML', async (t) => {
  const files = t.testdir({});
  const [json, html] = [join(files, 'run.json'), join(files, 'run.html')];
  const short = ['--rounds', '2', '--duration', '0.05', '--warmup', '0', '--connections', '4'];
  const share = ['--baseline-share', '0.01'];
  const { code, stdout, stderr } = await suite(
    ...['turn', '--baseline', ROOT, ...short, ...share, '--json', json, '--html', html],
  ).ended;
  t.equal(code, 0, stderr);
  t.match(stdout, /^Baseline: +\d+\.\d+\.\d+/m);
  t.match(stdout, /^durable turns \/ durable turns, baseline +[\d.]+ \([\d.]+ to [\d.]+\)/m);
  t.match(stdout, /as fast as the baseline .* interval reaches 0.01 .* met$/m);
  const report = JSON.parse(readFileSync(json, 'utf8')) as BenchReport;
  t.match(report.baseline, { version: String });
  t.match(
    report.scenarios[0]?.targets.filter(({ wanted }) => wanted.reaches === 0.01),
    [
      { what: 'durable turns / durable turns, baseline', verdict: 'met', from: Number, to: Number },
      { what: 'volatile turns / volatile turns, baseline', verdict: 'met' },
    ],
  );
  for (const text of [readFileSync(html, 'utf8'), page(report)])
    t.match(text, 'durable turns / durable turns, baseline');
});
