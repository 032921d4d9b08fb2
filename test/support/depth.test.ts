/** The depth of a run: how much is cut, which seeds come, and that an unknown value is refused. */
import t from 'tap';
import { createDepth, type DepthName, everySeed, readDepth } from './depth.ts';

const make = (depth: DepthName, seed?: number) => {
  const lines: string[] = [];
  return { lines, ...{ depth: createDepth({ depth, seed }, (line) => lines.push(line)) } };
};

t.test(
  'depth: quick unless told otherwise; every other word, and every other seed, is an error',
  async (t) => {
    t.same(readDepth({}), { depth: 'quick', seed: undefined });
    t.same(readDepth({ GATEHOUSE_TEST_DEPTH: 'full', GATEHOUSE_TEST_SEED: '2147483647' }), {
      depth: 'full',
      seed: 2_147_483_647,
    });
    const refusals = [
      ...['', 'Full', 'deep', 'quick '].map((word) => ({ GATEHOUSE_TEST_DEPTH: word })),
      ...['', '0', '-1', '1.5', '07', '1e3', 'x', '2147483648'].map((seed) => ({
        GATEHOUSE_TEST_SEED: seed,
      })),
    ];
    const accepted = refusals.filter((environment) => {
      try {
        readDepth(environment);
        return true;
      } catch (error) {
        const [[name, value] = []] = Object.entries(environment);
        return !String(error).includes(`${name} must be`) || !String(error).endsWith(`not "${value}"`);
      }
    });
    t.same(accepted, []);
  },
);

t.test('depth: full does all, gate a third, quick a tenth and never nothing', async (t) => {
  const [full, gate, quick] = [make('full').depth, make('gate').depth, make('quick').depth];
  const counts = [1, 3, 20, 25, 20_000];
  t.same(counts.map(full.count), counts);
  t.same(counts.map(gate.count), [1, 1, 7, 9, 6_667]);
  t.same(counts.map(quick.count), [1, 1, 2, 3, 2_000]);
  t.same(
    [full, gate, quick].map(({ isQuick }) => isQuick),
    [false, false, true],
  );
  t.same([full.runs().numRuns, quick.runs().numRuns, quick.runs(5_000).numRuns], [100, 10, 500]);
});

t.test('depth: a fresh seed is printed once, with the settings that repeat it', async (t) => {
  const { depth, lines } = make('quick');
  const { seed } = depth.runs();
  t.same(depth.seeds(30), [seed, seed + 1, seed + 2]);
  t.equal(depth.seed, seed);
  t.same(lines, [`again: GATEHOUSE_TEST_DEPTH=quick GATEHOUSE_TEST_SEED=${seed}`]);
  t.not(make('quick').depth.seed, seed, 'and the next process has another');
  const again = make('quick', seed);
  t.same([again.depth.runs(), again.depth.seeds(30)], [depth.runs(), depth.seeds(30)]);
});

t.test(
  'depth: histories of a full run and of the gate begin with seed 1, unless a seed is given',
  async (t) => {
    t.same(make('full').depth.seeds(3), [1, 2, 3]);
    t.same(make('gate').depth.seeds(3), [1]);
    t.same(make('full', 70).depth.seeds(3), [70, 71, 72]);
    t.same(everySeed(3), [1, 2, 3]);
  },
);
