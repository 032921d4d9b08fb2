/** A planted fault must show, or the simulation proves nothing. */
import type { Test } from 'tap';
import { everySeed } from './depth.ts';

/**
 * Passes with a seed of 1 to `last` in which `simulate` says what was broken; fails when none does. `shownBy`: the seed
 * that showed the fault when this was written, tried first. Where it no longer does, all others are tried in order.
 */
export async function expectCaught(
  t: Test,
  { last, shownBy }: { readonly last: number; readonly shownBy: number },
  simulate: (seed: number) => Promise<string | undefined>,
): Promise<void> {
  for (const seed of new Set([shownBy, ...everySeed(last)])) {
    const broken = await simulate(seed);
    if (broken === undefined) continue;
    if (seed !== shownBy) t.comment(`shownBy ${shownBy} shows nothing any more: ${seed} does`);
    t.pass(`seed ${seed}: ${broken.split('\n')[0]}`);
    return;
  }
  t.fail(`${last} seeds saw nothing`);
}
