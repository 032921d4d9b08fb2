/**
 * The long form of the kill -9 loop: 200 kills unless told otherwise, on loopback, with a data folder of its own.
 *
 *     npm run soak [-- KILLS]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runKillLoop } from './kill-loop.ts';

const KILLS = 200;
/** An account holds at most 1,000 key records, so one writer lasts for so many kills. */
const KILLS_PER_ROUND = 20;

async function soak(kills: number): Promise<number> {
  let faults = 0;
  for (let done = 0; done < kills; done += KILLS_PER_ROUND) {
    const dataPath = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'));
    const report = await runKillLoop({
      kills: Math.min(KILLS_PER_ROUND, kills - done),
      dataPath: join(dataPath, 'data'),
      writers: 4,
      writingMs: [30, 250],
      random: Math.random,
    });
    faults += report.faults.length;
    console.log(`${done + report.kills} of ${kills} kills: ${JSON.stringify(report)}`);
    // What went wrong is kept for whoever looks into it.
    if (report.faults.length === 0) rmSync(dataPath, { recursive: true, force: true });
    else console.log(`kept: ${dataPath}`);
  }
  return faults;
}

const kills = Number(process.argv[2] ?? KILLS);
if (!Number.isInteger(kills) || kills < 1) {
  console.error('soak: the number of kills must be a positive integer');
  process.exitCode = 64;
} else if ((await soak(kills)) > 0) process.exitCode = 1;
