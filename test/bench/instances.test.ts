/** Several processes of one subject: all are warmed up, and rounds are theirs in turn, counted under one name. */
import t from 'tap';
import { mergeCasts } from '../../bench/instances.ts';
import { compare, type Subject } from '../../bench/measure.ts';
import { Bench } from '../../bench/scenario.ts';
import { OPTIONS } from './fixtures/report.ts';

function cast(letter: string, rate: number, order: string[]): Subject[] {
  return ['one', 'other'].map((name, place) => ({
    name,
    pids: [],
    warmUp: async () => order.push(`warm ${name} ${letter}`),
    async round() {
      order.push(`${name} ${letter}`);
      return { ratePerSecond: place === 0 ? rate : 1, details: { answers: 1, cpuMs: 1 / rate } };
    },
  }));
}

t.test('instances: each is warmed up; they have as many rounds in a row as there are subjects', async (t) => {
  const order: string[] = [];
  const subjects = mergeCasts([cast('a', 10, order), cast('b', 30, order)]);
  t.same(
    subjects.map(({ name }) => name),
    ['one', 'other'],
  );
  const { subjects: measured, ratios } = await compare(subjects, { least: 5, most: 5 });
  const warm = ['warm one a', 'warm one b', 'warm other a', 'warm other b'];
  const [a, b] = [
    ['one a', 'other a', 'other a', 'one a'],
    ['one b', 'other b', 'other b', 'one b'],
  ] as const;
  t.same(order, [...warm, ...a, ...b, 'one a', 'other a'], 'another one is first each time');
  t.same(
    measured.map(({ rounds }) => rounds.map(({ ratePerSecond }) => ratePerSecond)),
    [
      [10, 10, 30, 30, 10],
      [1, 1, 1, 1, 1],
    ],
  );
  t.match(ratios, [{ of: 'one', against: 'other', rate: { median: 10, lowest: 10, highest: 30 } }]);
});

t.test('instances: a cast without others stands alone; none is nobody', (t) => {
  const [one] = mergeCasts([cast('a', 1, [])]);
  t.same(one?.others, []);
  t.same(mergeCasts([]), []);
  t.end();
});

t.test('instances: two of what a scenario starts, one of a target, which is there', async (t) => {
  for (const [target, count] of [
    [undefined, 2],
    ['http://127.0.0.1:9', 1],
  ] as const) {
    const options = { ...OPTIONS, ...(target === undefined ? {} : { target }) };
    const bench = new Bench(options, { progress: { step: () => undefined, round: () => undefined } });
    t.teardown(() => bench.close());
    let made = 0;
    const subjects = await bench.severally(async () => {
      made += 1;
      return cast(String(made), made, []);
    });
    t.equal(made, count);
    t.same(
      subjects.map(({ others }) => others?.length),
      [count - 1, count - 1],
    );
  }
});
