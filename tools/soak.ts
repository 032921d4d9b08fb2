/**
 * The long form of the kill -9 loops, of accounts and of uploads: 200 kills each unless told otherwise, on loopback, with
 * a data folder of its own. Or minutes of everything at once, without a kill.
 *
 *     npm run soak [-- KILLS]
 *     npm run soak -- mixed [--minutes 10] [--rate 400]
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runChunkKillLoop } from './chunk-kill-loop.ts';
import { runKillLoop } from './kill-loop.ts';
import { soakMixed } from './mixed-soak.ts';

const KILLS = 200;
/** An account holds at most 1,000 key records, so one writer lasts for so many kills. */
const KILLS_PER_ROUND = 20;

async function soak(killsInAll: number): Promise<number> {
  let faults = 0;
  for (let done = 0; done < killsInAll; done += KILLS_PER_ROUND) {
    const dataPath = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'));
    const kills = Math.min(KILLS_PER_ROUND, killsInAll - done);
    const seed = randomInt(1, 2 ** 31);
    const writing = {
      kills,
      dataPath: join(dataPath, 'accounts'),
      writers: 4,
      writingMs: [30, 250],
      seed,
    } as const;
    const accounts = await runKillLoop(writing);
    const uploads = await runChunkKillLoop({
      kills,
      dataPath: join(dataPath, 'uploads'),
      uploaders: 6,
      seed,
    });
    const found = accounts.faults.length + uploads.faults.length;
    faults += found;
    console.log(`${done + kills} of ${killsInAll} kills: ${JSON.stringify({ accounts, uploads })}`);
    // What went wrong is kept for whoever looks into it.
    if (found === 0) rmSync(dataPath, { recursive: true, force: true });
    else console.log(`kept: ${dataPath}`);
  }
  return faults;
}

const EX_USAGE = 64;

async function run([mode, ...rest]: readonly string[]): Promise<number> {
  if (mode === 'mixed') {
    const faults = await soakMixed(rest);
    if (faults === undefined) console.error('soak: mixed takes --minutes (1 to 10) and --rate');
    return faults === undefined ? EX_USAGE : Math.min(faults, 1);
  }
  const kills = Number(mode ?? KILLS);
  if (Number.isInteger(kills) && kills >= 1) return Math.min(await soak(kills), 1);
  console.error('soak: the number of kills must be a positive integer');
  return EX_USAGE;
}

process.exitCode = await run(process.argv.slice(2));
