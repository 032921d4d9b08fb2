/** Reliability 2: no acknowledged write is lost and none is applied twice over 20 kills of the real program. */
import t from 'tap';
import { runKillLoop } from '../../tools/kill-loop.ts';

const KILLS = 20;

t.test('kill -9 loop: every acknowledged write is there once after each of 20 kills', async (t) => {
  const report = await runKillLoop({
    kills: KILLS,
    dataPath: `${t.testdir()}/data`,
    writers: 4,
    writingMs: [30, 250],
    random: Math.random,
  });
  t.comment(JSON.stringify(report));
  t.same(report.faults, []);
  t.equal(report.kills, KILLS);
  t.ok(report.acknowledged > KILLS, 'the clients were writing');
  t.ok(report.sessions >= KILLS, 'and logging in');
});
