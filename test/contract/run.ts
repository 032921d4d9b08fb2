/** Runs the checks of a chapter against one gateway: one test each, named by section and observation. */
import type { Test } from 'tap';
import { closeAfter } from '../../kit/close-after.ts';
import { shared } from '../support/shared.ts';
import type { Check } from './check.ts';
import { World, type WorldOptions } from './world.ts';

/** Time limit of one check, so that a hanging check fails alone. Milliseconds. */
const CHECK_TIMEOUT_MS = 60_000;

/** For the chapters that need no gateway of their own. */
const standing = shared(
  () => World.start(),
  (world) => world.close(),
);

export async function runChecks(t: Test, checks: readonly Check[], options?: WorldOptions): Promise<void> {
  const world = options === undefined ? await standing(t) : closeAfter(t, await World.start(options));
  const test = ({ section, shows, run }: Check) =>
    t.test(`contract ${section}: ${shows}`, { timeout: CHECK_TIMEOUT_MS, buffered: true }, (test) =>
      run(test, world),
    );
  const apart = checks.filter((check) => check.apart);
  // The checks marked `apart` run in parallel, the others one at a time.
  t.jobs = apart.length + 1;
  const beside = Promise.all(apart.map(test));
  for (const check of checks) if (!check.apart) await test(check);
  await beside;
}
