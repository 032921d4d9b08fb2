/**
 * The kill -9 loops against the real program: what was acknowledged is there, and nothing is applied twice. Each loop of
 * data is also shown to catch a loss: after a further kill the folder of the program is damaged.
 */
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { KILL_LOOPS } from '../../kit/kill-loops.ts';
import type { KillOptions, KillReport, Plant } from '../../kit/kills.ts';
import { DATA_FILE } from '../../src/actors/runtime/journal/file.ts';
import { count, depth } from '../support/depth.ts';
import { runHostKillLoop } from '../support/host-kill-loop.ts';

t.setTimeout(240_000);

/** The first detected loss ends the loop. */
const PLANTED_KILLS = 10;
const PAGE_BYTES = 4096;

interface Row<Report extends KillReport> {
  readonly run: (options: KillOptions) => Promise<Report>;
  readonly clients: number;
  /** At full depth. */
  readonly kills: number;
  /** That the kills met clients at work. */
  readonly busy: (report: Report) => Readonly<Record<string, boolean>>;
  readonly planted?: { readonly plant: Plant; readonly fault: RegExp };
}

/** Restores the journal of an earlier kill: writes in between were acknowledged and are lost. */
function loseWrites(): Plant {
  let before = Buffer.alloc(0);
  return {
    kills: PLANTED_KILLS,
    keep(dataPath) {
      before = readFileSync(join(dataPath, DATA_FILE));
    },
    harm: (dataPath) => writeFileSync(join(dataPath, DATA_FILE), before),
  };
}

/** The table of a part with entries is its last page: so few chunks fit into one. */
const CUT_TABLES: Plant = {
  kills: PLANTED_KILLS,
  harm(dataPath) {
    const folder = join(dataPath, 'files');
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.part')) continue;
      const path = join(folder, name);
      const { size } = statSync(path);
      truncateSync(path, Math.max(0, Math.floor((size - 1) / PAGE_BYTES) * PAGE_BYTES));
    }
  },
};

/** Tests the promise, and the damage that comes after its kills. */
function testLoop<Report extends KillReport>(
  name: string,
  { run, clients, kills: most, busy, planted }: Row<Report>,
): void {
  t.test(`kill -9 loop: ${name}`, async (t) => {
    const kills = count(most);
    const plant = planted === undefined ? {} : { plant: planted.plant };
    const report = await run({ kills, dataPath: `${t.testdir()}/data`, clients, seed: depth.seed, ...plant });
    t.comment(JSON.stringify(report));
    t.same(report.faults, []);
    t.equal(report.kills, kills);
    for (const [what, holds] of Object.entries(busy(report))) t.ok(holds, what);
    if (planted !== undefined) t.match(report.found?.join('\n'), planted.fault, 'a planted loss is caught');
  });
}

const { accounts, uploads, chunks, drafts } = KILL_LOOPS;

// covers S149
testLoop('every acknowledged write of accounts is present exactly once', {
  ...accounts,
  kills: 20,
  busy: ({ acknowledged, sessions, kills }) => ({
    'the clients were writing': acknowledged > kills,
    'and logging in': sessions >= kills,
  }),
  planted: { plant: loseWrites(), fault: /acknowledged key \d+ is there 0 times|user_keys: HTTP 401/ },
});

// covers R26 S150
testLoop('each v1 upload is complete or absent, its message consistent, its slot free', {
  ...uploads,
  kills: 8,
  busy: ({ completed, kills }) => ({ 'people were uploading': completed > kills }),
  planted: { plant: loseWrites(), fault: /an acknowledged upload is gone|Already download/ },
});

testLoop('no acknowledged chunk is missing after a restart', {
  ...chunks,
  kills: 8,
  // A single kill may fall between two uploads of every client.
  busy: ({ acknowledged, atKills, replaced, replacing, kills }) => ({
    'chunks were acknowledged': acknowledged > kills,
    'uploads were under way, with chunks that were acknowledged': atKills > 2 * kills || kills === 1,
    'chunks were being replaced': replaced > kills || kills === 1,
    'kills met some of them': replacing > 0 || kills < 8,
  }),
  planted: { plant: CUT_TABLES, fault: /chunks \d.* were acknowledged and are missing/ },
});

// covers P1 R26 S152
testLoop('every v2 upload is complete or resumable', {
  ...drafts,
  kills: 5,
  busy: ({ acknowledged, kills }) => ({ 'the clients were uploading': acknowledged >= kills }),
  planted: { plant: loseWrites(), fault: /neither complete nor a draft/ },
});

// covers S97
testLoop('no answered grant of a host is lost, no code is good twice, a refresh token has one successor', {
  run: runHostKillLoop,
  clients: 6,
  kills: 12,
  busy: ({ issued, codesMet, refreshesMet, kills }) => ({
    'the hosts were connecting': issued > kills,
    'kills met unfinished requests': codesMet + refreshesMet > 0,
  }),
});
