/** Reliability 2: no acknowledged write is lost and none is applied twice, over 20 kills of the real program at full depth. */
import t from 'tap';
import { runKillLoop } from '../../tools/kill-loop.ts';
import { count, depth } from '../support/depth.ts';

const KILLS = 20;

t.test('kill -9 loop: every acknowledged write is there once after each kill', async (t) => {
  const kills = count(KILLS);
  const report = await runKillLoop({
    kills,
    dataPath: `${t.testdir()}/data`,
    writers: 4,
    writingMs: [30, 250],
    seed: depth.seed,
  });
  t.comment(JSON.stringify(report));
  t.same(report.faults, []);
  t.equal(report.kills, kills);
  t.ok(report.acknowledged > kills, 'the clients were writing');
  t.ok(report.sessions >= kills, 'and logging in');
});
