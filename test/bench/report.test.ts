/** Statements of a run about itself: verdicts, doubts, and the text for a terminal. */
import t from 'tap';
import { ProgressBar } from '../../bench/progress.ts';
import { generatorLimited, warningsOf } from '../../bench/report/report.ts';
import { tables } from '../../bench/report/table.ts';
import {
  optionalPeer,
  PARTICIPANTS,
  type ParticipantRow,
  packageVersion,
} from '../../bench/subjects/participants.ts';
import { fullReport, loadSample, scenarioReport } from './fixtures/report.ts';

t.test('targets: the median decides, a wide interval is uncertain, missing values are named', async (t) => {
  const { scenarios } = await fullReport();
  t.match(scenarios[0]?.targets, [
    {
      what: 'gatehouse / bare uWS + undici proxy',
      by: 'rate',
      value: 1,
      verdict: 'met',
      withinInterval: true,
    },
    { what: 'gatehouse / official SDK server', value: 11, verdict: 'missed', withinInterval: false },
    { what: 'gatehouse / @fastify/http-proxy', value: undefined, verdict: 'not measured' },
  ]);
  t.match(scenarios[1]?.targets, [
    { what: 'look-up', by: 'us', value: 0.42, verdict: 'met' },
    { what: 'RSS a session', verdict: 'not measured' },
  ]);
});

t.test('targets: a figure that a run does not measure is not judged', async (t) => {
  const { targets } = await scenarioReport(
    'soak',
    {},
    {
      targets: [
        { figure: 'RSS growth', atMost: 1.2, row: 'soak', whereTaken: true },
        { figure: 'errors', atMost: 0, row: 'soak', whereTaken: true },
      ],
      figures: [{ name: 'errors', unit: '', value: 0 }],
    },
  );
  t.match(targets, [{ what: 'errors', verdict: 'met' }]);
  t.equal(targets.length, 1);
});

t.test('targets: by processor time the ratio is their cost divided by ours', async (t) => {
  const { targets, ratios } = await scenarioReport(
    'sse',
    {
      gatehouse: { samples: [loadSample(100, 1)], cpuUs: 10 },
      nchan: { samples: [loadSample(500, 1)], cpuUs: 15 },
    },
    { targets: [{ against: 'nchan', by: 'processor time', atLeast: 1.2, row: 'SSE' }] },
  );
  t.match(targets, [{ value: 1.5, verdict: 'met' }]);
  t.equal(ratios[0]?.rate.median, 0.2);
});

t.test(
  'warnings: errors by kind, the first bad answer, limits, and a generator that was the limit',
  async (t) => {
    const { scenarios } = await fullReport();
    const [calls] = scenarios;
    const text = warningsOf(calls?.subjects ?? []).join('\n');
    for (const word of ['7 x status 429', '2 x timeout', 'first bad answer: <b>', 'SessionApiRPSLimit'])
      t.ok(text.includes(word), word);
    t.match(text, /official SDK server: the generator was the limit/);
    t.notMatch(text, /gatehouse: the generator was the limit/);
    t.equal(generatorLimited(calls?.subjects[2]?.rounds ?? []), true);
    t.equal(generatorLimited(calls?.subjects[0]?.rounds ?? []), false);
  },
);

t.test('warnings: rounds without a value are counted', (t) => {
  const round = (ratePerSecond: number) => ({
    ...loadSample(ratePerSecond, 100),
    cpuMs: undefined,
    cpuUsPerAnswer: undefined,
    rssBytes: undefined,
  });
  const measured = (rates: number[]) => ({ name: 'A', medianPerSecond: 1, rounds: rates.map(round) });
  t.same(warningsOf([measured([5, 0, Number.NaN, 7])]), [
    'A: 2 of 4 rounds measured nothing: its median and ratios are doubtful',
  ]);
  t.same(warningsOf([measured([5, 7])]), []);
  t.end();
});

t.test('table: circumstances, aligned rows, ratios, targets, omissions, failures', async (t) => {
  const report = await fullReport();
  const text = tables(report);
  t.match(text, 'npm run bench -- all --peers');
  t.match(text, '2 cores, Test CPU, 24 GiB, linux-x64, kernel 6.1.0');
  t.match(text, '0.1.0, commit abcdef123456');
  t.match(text, '123,456 answers a second of an empty uWS handler, 93 % busy');
  t.match(text, /^gatehouse +11,000 +4\.00 +20 +36 +70\.0 +180 +40 % +0$/m);
  t.match(text, /^official SDK server .* 40 % ! +9$/m, 'one round of its three was the generator’s');
  t.match(text, /^gatehouse \/ official SDK server +11\.000 \(9\.500 to 12\.000\) +7\.143/m);
  t.match(text, /met, within the interval/);
  t.match(
    text,
    'left out: @fastify/http-proxy, not installed: npm install in bench/subjects/peers brings it',
  );
  t.match(text, 'turn left out: it runs in this process');
  t.match(text, /^FAILED: the disk is <full>$/m);
  t.match(text, /\nFAILED: uploads\n$/);
  const widths = text.split('\n').filter((line) => /^(gatehouse|bare uWS|official SDK).* %/.test(line));
  t.equal(new Set(widths.slice(0, 2).map((line) => line.length)).size, 1, 'figures end in one column');
});

t.test('table: a column that is empty in every row is left out', async (t) => {
  const round = { ratePerSecond: 5, details: { answersInAll: 10 } };
  const loop = await scenarioReport('loop', { A: { samples: [round], cpuUs: 2 } });
  t.match(
    tables({ ...(await fullReport()), scenarios: [loop] }),
    /^ +answers\/s +CPU us +RSS MiB\nA +5 +2\.0 +180$/m,
  );
});

t.test('participants: floors always, peers with --peers, missing ones by name', async (t) => {
  t.match(optionalPeer('empty-uws', false), { kind: 'floor', version: packageVersion('uWebSockets.js') });
  t.match(optionalPeer('sdk', false), { kind: 'peer', leftOut: 'runs with --peers', version: undefined });
  t.match(optionalPeer('sdk', true), { kind: 'peer', version: packageVersion('@modelcontextprotocol/sdk') });
  t.equal(packageVersion('no-such-package'), undefined);
  const faults: string[] = [];
  for (const row of Object.values<ParticipantRow>(PARTICIPANTS)) {
    if (row.settings.length <= 10 || row.install.length === 0) faults.push(`${row.name}: its texts`);
    if (row.kind === 'floor' && row.version() === undefined) faults.push(`${row.name}: a floor is missing`);
  }
  t.same(faults, []);
});

t.test('progress: a bar with the time left on a terminal, a line a step elsewhere', async (t) => {
  const written: string[] = [];
  let nowMs = 0;
  const output = { write: (text: string) => written.push(text), columns: 200 };
  const terminal = new ProgressBar({ ...output, isTTY: true }, () => nowMs);
  terminal.begin('turn (2 of 3)');
  terminal.round('round 1 of 2: A', 0, 4);
  t.match(written.at(-1), /turn \(2 of 3\) \[\.{24}\] 0:00, \? left {2}round 1 of 2: A$/);
  nowMs = 30_000;
  terminal.round('round 1 of 2: B', 1, 4);
  t.match(written.at(-1), /\[#{6}\.{18}\] 0:30, 1:30 left {2}round 1 of 2: B$/);
  nowMs = 45_000;
  terminal.step('something');
  t.match(written.at(-1), /\[#{9}\.{15}\] 0:45, 1:15 left {2}something$/);
  terminal.end();
  const plain = new ProgressBar(output);
  plain.begin('turn');
  plain.step('accounts sign up');
  plain.round('round 1 of 2: A', 0, 4);
  plain.round('round 1 of 2: B', 1, 4);
  plain.end();
  t.same(
    written.slice(-2),
    ['turn: accounts sign up\n', 'turn: round 1 of 2: A\n'],
    'rounds that follow at once are not said',
  );
});
