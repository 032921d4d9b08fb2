import t from 'tap';
import { joinRuns } from '../../src/bootstrap/joined-runs.ts';

t.test('joined runs: a hundred requests during a run are one more run, after the interval', async (t) => {
  let runs = 0;
  const ends: (() => void)[] = [];
  const timers: (() => void)[] = [];
  const ask = joinRuns({
    run() {
      runs += 1;
      return new Promise<void>((resolve) => ends.push(resolve));
    },
    intervalMs: 1_000,
    timer(delayMs, run) {
      t.equal(delayMs, 1_000);
      timers.push(run);
    },
  });
  ask();
  t.equal(runs, 1, 'the first one begins at once');
  for (let count = 0; count < 100; count += 1) ask();
  t.equal(runs, 1);
  timers.shift()?.();
  t.equal(runs, 1, 'one at a time');
  ends.shift()?.();
  await new Promise(setImmediate);
  t.equal(runs, 2, 'one for all that asked meanwhile');
  ends.shift()?.();
  await new Promise(setImmediate);
  ask();
  t.equal(runs, 2, 'not before the interval');
  timers.shift()?.();
  t.equal(runs, 3);
  ends.shift()?.();
  timers.shift()?.();
  await new Promise(setImmediate);
  t.same({ runs, timers: timers.length }, { runs: 3, timers: 0 }, 'nothing asked for, nothing run');
});
