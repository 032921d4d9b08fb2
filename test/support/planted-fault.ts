/** A planted fault must show, or the simulation proves nothing. */
import type { Test } from 'tap';
import { everySeed } from './depth.ts';

/** Passes with the first of the seeds 1 to `last` in which `simulate` says what was broken; fails when none does. */
export async function expectCaught(
  t: Test,
  last: number,
  simulate: (seed: number) => Promise<string | undefined>,
): Promise<void> {
  for (const seed of everySeed(last)) {
    const broken = await simulate(seed);
    if (broken === undefined) continue;
    t.pass(`seed ${seed}: ${broken.split('\n')[0]}`);
    return;
  }
  t.fail(`${last} seeds saw nothing`);
}
