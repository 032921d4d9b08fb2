/** Kills of the program between consent and token, and between refresh and answer. */
import t from 'tap';
import { count, depth } from '../../support/depth.ts';
import { runHostKillLoop } from '../../support/host-kill-loop.ts';

const KILLS = 12;

t.setTimeout(240_000);

// covers S97
t.test(
  'kill -9: no answered grant is lost, no code is good twice, a refresh token has one successor',
  async (t) => {
    const kills = count(KILLS);
    const dataPath = `${t.testdir()}/data`;
    const report = await runHostKillLoop({ kills, dataPath, clients: 6, seed: depth.seed });
    t.comment(JSON.stringify(report));
    t.same(report.faults, []);
    t.equal(report.kills, kills);
    t.ok(report.issued > kills, 'the hosts were connecting');
    t.ok(report.codesMet + report.refreshesMet > 0, 'kills met unfinished requests');
  },
);
