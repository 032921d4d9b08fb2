/** When the table of nodes is read: each second, at once after a change, never twice at a time. */
import t from 'tap';
import { NodeFollower } from '../../../src/io/cluster/node-follower.ts';
import { ManualClock } from '../../support/actors/actors.ts';

function open() {
  const clock = new ManualClock();
  const calls = { turns: 0, readings: 0, taken: 0 };
  const answers: ((failure?: Error) => void)[] = [];
  const follower = new NodeFollower({
    nodes() {
      calls.readings += 1;
      return new Promise((resolve, reject) =>
        answers.push((failure) => (failure === undefined ? resolve([]) : reject(failure))),
      );
    },
    onNodes() {
      calls.taken += 1;
    },
    onTurn() {
      calls.turns += 1;
    },
    schedule: clock,
  });
  const answer = async (failure?: Error) => {
    answers.shift()?.(failure);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, calls, follower, answer };
}

t.test('node follower: reads at once, then a second after each answer or failure', async (t) => {
  const { clock, calls, answer } = open();
  t.same(calls, { turns: 1, readings: 1, taken: 0 });
  clock.fireNext(10_000);
  t.equal(calls.readings, 1, 'the first one has no answer yet');
  await answer();
  clock.fireNext(clock.nowMs + 999);
  t.same(calls, { turns: 1, readings: 1, taken: 1 });
  clock.fireNext(clock.nowMs + 1_000);
  await answer(new Error('away'));
  clock.fireNext(clock.nowMs + 1_000);
  t.same(calls, { turns: 3, readings: 3, taken: 1 });
});

t.test('node follower: changes during a reading make one more reading, however many they are', async (t) => {
  const { clock, calls, follower, answer } = open();
  follower.readNow();
  follower.readNow();
  t.equal(calls.readings, 1);
  await answer();
  t.equal(calls.readings, 2);
  await answer();
  t.equal(calls.readings, 2);
  follower.readNow();
  t.equal(calls.readings, 3, 'at once when none runs');
  await answer();
  while (clock.fireNext(clock.nowMs + 1_000)) t.pass('one timer waits');
  t.equal(calls.readings, 4);
});

t.test('node follower: a stop ends it, and drops the answer under way', async (t) => {
  const { clock, calls, follower, answer } = open();
  follower.stop();
  await answer();
  follower.readNow();
  clock.fireNext(10_000);
  t.same(calls, { turns: 1, readings: 1, taken: 0 });
});
