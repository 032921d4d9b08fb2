/** Rounds of a comparison: their number, one warm-up for each subject, and files of a round, which go with it. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import {
  type Comparison,
  compare,
  expectedRounds,
  needsAnotherRound,
  PRECISION,
  ROUNDS_MIN,
  type Sample,
  widestUncertainty,
} from '../../bench/measure/measure.ts';
import { costOf, costOfAll } from '../../bench/measure/process-cost.ts';
import type { TransferPlan } from '../../bench/scenarios/transfers/kinds.ts';
import { transferSubject } from '../../bench/subjects/transfers.ts';
import { runs } from '../support/depth.ts';
import { benchOf, rated } from './fixtures/bench.ts';

function roundsOf({ subjects }: Comparison): number | undefined {
  return subjects[0]?.rounds.length;
}

t.test('rounds: the minimum where all values are equal', async (t) => {
  const both = [rated('A', () => 30), rated('B', () => 10)];
  t.equal(roundsOf(await compare(both, { least: 15, most: 300 })), 15);
});

t.test('rounds: continue until the interval of every ratio is narrow', async (t) => {
  // Far apart at first: with more rounds the middle ones come close to each other.
  const noisy = (round: number) => (round <= 15 ? 100 + 20 * (round % 3) : 100);
  const both = [rated('A', noisy), rated('B', () => 100)];
  const result = await compare(both, { least: 15, most: 300 });
  const rounds = roundsOf(result) ?? 0;
  t.ok(rounds > 15 && rounds < 300, `${rounds} rounds`);
  t.ok(widestUncertainty(result.ratios) <= PRECISION, 'the interval is narrow');
});

t.test(
  'rounds: a ratio that never gets sure ends at the most, and by the one that is least sure',
  async (t) => {
    const wild = (round: number) => (round % 2 === 0 ? 100 : 200);
    const all = [rated('A', () => 100), rated('B', () => 100), rated('C', wild)];
    t.equal(roundsOf(await compare(all, { least: 15, most: 40 })), 40);
  },
);

t.test('rounds: nothing to compare, no more than requested; no subject, no round', async (t) => {
  t.equal(roundsOf(await compare([rated('A', (round) => round)], { least: 4, most: 300 })), 4);
  t.same(await compare([], { least: 4, most: 300 }), { subjects: [], ratios: [] });
});

t.test(
  'rounds: least, most and what is left of the time are held whatever the uncertainty and the times',
  async () => {
    const times = { roundMs: fc.nat(10_000), leftMs: fc.integer({ min: -10_000, max: 1_000_000 }) };
    const uncertainty = fc.oneof(
      fc.constant(Number.POSITIVE_INFINITY),
      fc.double({ min: 0, max: 5, noNaN: true }),
    );
    fc.assert(
      fc.property(
        fc.record({ least: fc.nat(50), more: fc.nat(300), done: fc.nat(400), uncertainty, ...times }),
        ({ least, more, ...state }) => {
          const plan = { least, most: least + more };
          const on = needsAnotherRound(plan, state);
          const late = state.roundMs > state.leftMs;
          const expected = expectedRounds(plan, state);
          if (state.done >= plan.most) return !on;
          if (state.done < Math.min(least, ROUNDS_MIN)) return on;
          if (late) return !on;
          if (state.done < least) return on;
          return on === state.uncertainty > PRECISION && expected <= plan.most;
        },
      ),
      runs(5_000),
    );
  },
);

t.test('warm-up: each subject once before the first round, not counted', async (t) => {
  const order: string[] = [];
  const warmed = (name: string) =>
    rated(
      name,
      () => {
        order.push(name);
        return 1;
      },
      { warmUp: async () => order.push(`${name} is warmed up`) },
    );
  const result = await compare([warmed('A'), warmed('B')], { least: 2, most: 2 });
  t.same(order, ['A is warmed up', 'B is warmed up', 'A', 'B', 'B', 'A']);
  t.equal(roundsOf(result), 2);
});

t.test('processor time: of the measured time if known, else of the whole round', async (t) => {
  let usedMs = 0;
  const rounds = (details: Sample['details']) =>
    rated('A', () => 1, { round: async () => ({ ratePerSecond: 1, details }) });
  const cost = async () => {
    usedMs += 50;
    return { cpuMs: usedMs, rssBytes: 1 };
  };
  const plan = { least: 1, most: 1, cost };
  const measured = await compare([rounds({ answers: 10, answersInAll: 20, cpuMs: 30 })], plan);
  t.match(measured.subjects[0]?.rounds, [{ cpuMs: 30, cpuUsPerAnswer: 3_000 }]);
  const whole = await compare([rounds({ answers: 10, answersInAll: 20 })], plan);
  t.match(whole.subjects[0]?.rounds, [{ cpuMs: 50, cpuUsPerAnswer: 2_500 }]);
});

t.test('process cost: finer than a clock tick, without ended processes', async (t) => {
  const before = costOf(process.pid);
  if (before === undefined) return t.comment('no /proc here: processor time is not known');
  const work = Array.from({ length: 200_000 }, (_, step) => Math.sqrt(step));
  t.equal(work.length, 200_000);
  const after = costOf(process.pid);
  const usedMs = (after?.cpuMs ?? 0) - before.cpuMs;
  t.ok(usedMs > 0 && usedMs % 10 !== 0, `${usedMs} ms`);
  t.ok(before.rssBytes > 1_000_000);
  t.equal(costOf(2 ** 22 + 1), undefined);
  t.equal(costOfAll([process.pid, 2 ** 22 + 1]), undefined);
  t.equal(costOfAll([]), undefined);
});

t.test('transfers: each stored file is removed, each round opens new connections', async (t) => {
  const folder = t.testdir({});
  const plans: TransferPlan[] = [];
  const found: number[] = [];
  const stored = () => readdirSync(folder).length;
  const client = {
    async run(plan: TransferPlan) {
      found.push(stored());
      plans.push(plan);
      for (let stream = 0; stream < plan.streams; stream += 1) writeFileSync(join(folder, `${stream}`), 'x');
      const bytes = plan.fileBytes * plan.streams;
      return { files: plan.streams, bytes, elapsedMs: 40, streamEndsMs: [], clientBusy: 0.5 };
    },
  };
  const bench = benchOf(t, { durationMs: 100, warmupMs: 0 });
  const plan = {
    kind: 'put',
    url: 'http://127.0.0.1:9',
    streams: 2,
    connectionsPerFile: 1,
    cookies: [],
  } as const;
  const uploads = transferSubject(bench, client, {
    name: 'A',
    pids: [],
    plan: { ...plan, fileBytes: 1024 * 1024 },
    cleanUp: () => {
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
    },
  });
  await uploads.warmUp?.();
  t.equal(plans.length, 1, 'one file a stream is the least');
  const { ratePerSecond, details } = await uploads.round();
  t.equal(plans.length, 4, 'three times 40 ms fill 100 ms');
  t.ok(plans.every(({ files }) => files === 1));
  t.same(found, [0, 0, 0, 0], 'nothing is left when the next one begins');
  t.equal(ratePerSecond, 50, 'of the time that was measured');
  t.match(details, { answers: 6, files: 6, elapsedMs: 120, generatorBusy: 0.5 });
});
