/** Reliability 2: no acknowledged write is lost and none is applied twice, over 20 kills of the real program at full depth. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { runChunkKillLoop } from '../../kit/chunk-kill-loop.ts';
import { runDraftKillLoop } from '../../kit/draft-kill-loop.ts';
import { runKillLoop } from '../../kit/kill-loop.ts';
import { DATA_FILE } from '../../src/actors/runtime/journal/file.ts';
import { count, depth } from '../support/depth.ts';

const KILLS = 20;
/** From the second kill on, acknowledged writes since the previous kill are lost; the first detected loss ends the loop. */
const PLANTED_KILLS = 10;

t.setTimeout(240_000);

// covers S149
t.test('kill -9 loop: every acknowledged write is present exactly once after each kill', async (t) => {
  const kills = count(KILLS);
  const report = await runKillLoop({
    kills,
    dataPath: `${t.testdir()}/data`,
    clients: 4,
    seed: depth.seed,
  });
  t.comment(JSON.stringify(report));
  t.same(report.faults, []);
  t.equal(report.kills, kills);
  t.ok(report.acknowledged > kills, 'the clients were writing');
  t.ok(report.sessions >= kills, 'and logging in');
});

/** Restores after each kill the journal of the previous kill: writes in between were acknowledged and are lost. */
function loseWrites(): (dataPath: string) => void {
  let before: Buffer | undefined;
  return (dataPath) => {
    const file = join(dataPath, DATA_FILE);
    if (before !== undefined) writeFileSync(file, before);
    before = readFileSync(file);
  };
}

const LOOPS = {
  'of accounts': { run: runKillLoop, clients: 2, fault: /acknowledged key \d+ is there 0 times/ },
  'of v1 uploads': {
    run: runChunkKillLoop,
    clients: 4,
    fault: /an acknowledged upload is gone|Already download/,
  },
  'of v2 uploads': { run: runDraftKillLoop, clients: 3, fault: /neither complete nor a draft/ },
} as const;

for (const [name, { run, clients, fault }] of Object.entries(LOOPS)) {
  t.test(`kill -9 loop ${name}: catches writes that were acknowledged and not written`, async (t) => {
    const options = { kills: PLANTED_KILLS, clients, seed: depth.seed, plant: loseWrites() };
    const { faults } = await run({ ...options, dataPath: `${t.testdir()}/data` });
    t.match(faults.join('\n'), fault);
  });
}
