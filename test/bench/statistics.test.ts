/** The median and its interval: against exact chances, against drawn samples, and as properties. */
import fc from 'fast-check';
import t from 'tap';
import {
  CONFIDENCE,
  intervalOf,
  intervalOfSample,
  median,
  rankOf,
  uncertaintyOf,
} from '../../bench/measure/statistics.ts';
import { runs } from '../support/depth.ts';

const VALUES = fc.array(fc.double({ min: 1e-6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 400 });

/** P(k <= Binomial(n, 1/2) <= n - k), by exact integers. */
function coverage(count: number, rank: number): number {
  let chance = 1n;
  let below = 0n;
  for (let hits = 0; hits < rank; hits += 1) {
    below += chance;
    chance = (chance * BigInt(count - hits)) / BigInt(hits + 1);
  }
  const whole = 1n << BigInt(count);
  return Number(((whole - 2n * below) * 1_000_000n) / whole) / 1e6;
}

t.test('rank: the tables of order statistics', async (t) => {
  // Ranks of the 95 % interval as they stand in textbooks.
  const known = { 6: 1, 8: 1, 9: 2, 10: 2, 15: 4, 20: 6, 25: 8, 30: 10, 50: 18, 100: 40 };
  for (const [count, rank] of Object.entries(known)) t.equal(rankOf(Number(count)), rank, count);
});

t.test('rank: the narrowest that reaches the confidence, for every number of values', async (t) => {
  for (let count = 6; count <= 1_000; count += 1) {
    const rank = rankOf(count);
    if (coverage(count, rank) < CONFIDENCE) t.fail(`${count} values: rank ${rank} is not sure enough`);
    if (coverage(count, rank + 1) >= CONFIDENCE) t.fail(`${count} values: rank ${rank} is wider than needed`);
  }
  for (let count = 1; count < 6; count += 1) t.equal(rankOf(count), 1, 'the lowest and the highest');
});

t.test(
  'interval: holds the sample’s median, lies among the values, and follows scale and mirror',
  async () => {
    fc.assert(
      fc.property(VALUES, fc.double({ min: 0.001, max: 1_000, noNaN: true }), (values, factor) => {
        const spread = intervalOfSample(values);
        const ordered = [spread.lowest, spread.from, spread.median, spread.to, spread.highest];
        for (const [index, value] of ordered.entries()) {
          if (index > 0 && value < (ordered[index - 1] ?? Number.NaN)) return false;
        }
        if (!values.includes(spread.from) || !values.includes(spread.to)) return false;
        const scaled = intervalOfSample(values.map((value) => value * factor));
        const mirrored = intervalOfSample(values.map((value) => -value));
        return (
          scaled.from === spread.from * factor &&
          scaled.to === spread.to * factor &&
          mirrored.from === -spread.to &&
          mirrored.to === -spread.from
        );
      }),
      runs(2_000),
    );
  },
);

t.test('interval: independent of the order of the values, which are not changed', async () => {
  fc.assert(
    fc.property(VALUES, (values) => {
      const before = [...values];
      const reversed = [...values].reverse();
      const same = JSON.stringify(intervalOfSample(values)) === JSON.stringify(intervalOfSample(reversed));
      return same && values.every((value, index) => Object.is(value, before[index]));
    }),
    runs(),
  );
});

t.test('interval: contains the median of a skewed distribution as often as its confidence', async (t) => {
  // A generator with a seed: the same draws in every run.
  let seed = 12_345;
  const draw = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return (seed + 0.5) / 2 ** 32;
  };
  const trials = 4_000;
  let held = 0;
  for (let trial = 0; trial < trials; trial += 1) {
    const values = Array.from({ length: 25 }, () => -Math.log(draw())).sort((a, b) => a - b);
    const { from, to } = intervalOf(values);
    if (from <= Math.LN2 && Math.LN2 <= to) held += 1;
  }
  const share = held / trials;
  t.ok(share >= CONFIDENCE - 0.01 && share <= 0.975, `${share} of the intervals`);
});

t.test('statistics: nothing, one value, and an interval around nothing', async (t) => {
  t.ok(Number.isNaN(intervalOfSample([]).median) && Number.isNaN(intervalOfSample([]).from));
  t.same(intervalOfSample([3]), { median: 3, from: 3, to: 3, lowest: 3, highest: 3 });
  t.equal(median([4, 1, 3, 2]), 2.5);
  t.equal(uncertaintyOf({ median: 2, from: 1.9, to: 2.1, lowest: 1, highest: 9 }).toFixed(3), '0.050');
  t.equal(uncertaintyOf(intervalOfSample([])), Number.POSITIVE_INFINITY);
  t.equal(uncertaintyOf(intervalOfSample([0, 0])), Number.POSITIVE_INFINITY);
});
