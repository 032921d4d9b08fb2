/** The time of scenarios: ten minutes for all of them, one table, and the printed estimate. */
import t from 'tap';
import { endsOf, expectation, leftMs, SECONDS } from '../../bench/cli/budget.ts';
import { parseOptions } from '../../bench/options.ts';
import { SCENARIOS } from '../../bench/scenarios/index.ts';

/** Scenarios of `all`. */
const NAMES = SCENARIOS.filter(({ notInAll }) => notInAll === undefined).map(({ name }) => name);

function line(...args: string[]) {
  const parsed = parseOptions(args, SCENARIOS);
  if (!parsed.ok) throw new Error(parsed.faults.join('; '));
  return parsed.line;
}

t.test(
  'budget: every scenario of all has its row, and all rows together stay below ten minutes',
  async (t) => {
    t.same(Object.keys(SECONDS), NAMES);
    const seconds = Object.values(SECONDS).reduce((sum, each) => sum + each, 0);
    t.ok(seconds <= 570, `${seconds} s: the end of the last scenario is beyond it`);
  },
);

t.test('budget: unused time of a scenario passes to the next ones', async (t) => {
  const ends = endsOf(['turn', 'mixed', 'unknown'], 1_000);
  const { turn = 0, mixed = 0 } = SECONDS;
  t.same(
    [...ends],
    [
      ['turn', 1_000 + turn * 1_000],
      ['mixed', 1_000 + (turn + mixed) * 1_000],
      ['unknown', 1_000 + (turn + mixed) * 1_000],
    ],
  );
});

t.test(
  'budget: rounds end on the clock of all; alone after two minutes, unless they are given',
  async (t) => {
    const suite = { beganMs: 5_000, endMs: 40_000 };
    t.equal(leftMs(line('all'), suite, 30_000), 10_000);
    t.equal(leftMs(line('turn'), suite, 30_000), 95_000);
    t.equal(leftMs(line('turn', '--rounds', '3'), suite, 30_000), Number.POSITIVE_INFINITY);
  },
);

t.test('budget: the expected time is shown where it is known', async (t) => {
  t.match(expectation(line('all'), NAMES), /^\d\d scenarios, about 10 minutes$/);
  t.equal(expectation(line('turn'), ['turn']), 'rounds end after 120 s at the latest');
  t.equal(expectation(line('turn', '--rounds', '3'), ['turn']), undefined);
  t.equal(expectation(line('mcp-call', '--target', 'http://a.example'), ['mcp-call']), undefined);
});
