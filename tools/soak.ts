/**
 * `npm run soak [-- KILLS [SEED]]`: the kill -9 loops of accounts and both kinds of uploads, 200 kills each by default.
 * Further modes with options of their own: `fleet` (one kill in a fleet's day, `--nodes 3` for a cluster), `mixed` (a load without kills), and `cluster`
 * (three nodes, one fault after the other).
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KILL_LOOPS } from '../kit/kill-loops.ts';
import { soakCluster } from './cluster/faults/soak.ts';
import { soakFleet } from './fleet/day.ts';
import { soakMixed } from './mixed-soak.ts';

const KILLS = 200;
/** An account holds at most 1,000 key records, so one writer serves a bounded number of kills. */
const KILLS_PER_ROUND = 20;

async function soak(killsInAll: number, firstSeed: number): Promise<number> {
  let faults = 0;
  for (let done = 0; done < killsInAll; done += KILLS_PER_ROUND) {
    const kills = Math.min(KILLS_PER_ROUND, killsInAll - done);
    const seed = firstSeed + done / KILLS_PER_ROUND;
    // Before anything can go wrong: what repeats this round alone.
    console.log(`again: npm run soak -- ${kills} ${seed}`);
    for (const [name, { run, clients }] of Object.entries(KILL_LOOPS)) {
      const folder = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'));
      const report = await run({ kills, clients, seed, dataPath: join(folder, 'data') });
      faults += report.faults.length;
      console.log(`${name}, ${done + kills} of ${killsInAll} kills: ${JSON.stringify(report)}`);
      // The data folder of a failure is kept.
      if (report.faults.length === 0) rmSync(folder, { recursive: true, force: true });
      else console.log(`kept: ${folder}`);
    }
  }
  return faults;
}

const EX_USAGE = 64;

/** Seeds are positive integers below it, those of all rounds included. */
const SEED_END = 2 ** 30;

async function run([mode, ...rest]: readonly string[]): Promise<number> {
  if (mode === 'mixed') {
    const faults = await soakMixed(rest);
    if (faults === undefined) console.error('soak: mixed takes --minutes (1 to 10) and --rate');
    return faults === undefined ? EX_USAGE : Math.min(faults, 1);
  }
  if (mode === 'fleet') {
    const faults = await soakFleet(rest);
    if (faults === undefined)
      console.error(
        'soak: fleet takes --percent (1 to 100), --seed, --nodes (1 to 8) and, with several nodes, --bucket',
      );
    return faults === undefined ? EX_USAGE : Math.min(faults, 1);
  }
  if (mode === 'cluster') {
    const faults = await soakCluster(rest);
    if (faults === undefined)
      console.error(
        'soak: cluster takes --takeovers, --seed, --kind, --lease, --within, --receivers and --streams',
      );
    return faults === undefined ? EX_USAGE : Math.min(faults, 1);
  }
  const numbers = [mode ?? KILLS, rest[0] ?? randomInt(1, SEED_END)].map(Number);
  const [kills = 0, seed = 0] = numbers;
  if (numbers.every((each) => Number.isInteger(each) && each >= 1))
    return Math.min(await soak(kills, seed), 1);
  console.error('soak: the number of kills, and the seed, must be positive integers');
  return EX_USAGE;
}

process.exitCode = await run(process.argv.slice(2));
