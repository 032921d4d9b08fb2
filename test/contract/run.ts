/** Runs the checks of a chapter against one gateway: a test for each, named by section and by what it shows. */
import type { Test } from 'tap';
import type { Check } from './check.ts';
import { World, type WorldOptions } from './world.ts';

/** A check that hangs is a failure, not the end of the run. Milliseconds. */
const CHECK_TIMEOUT_MS = 60_000;

export async function runChecks(
  t: Test,
  checks: readonly Check[],
  options: WorldOptions = {},
): Promise<void> {
  const world = await World.start(options);
  t.teardown(() => world.close());
  for (const { section, shows, run } of checks) {
    await t.test(`contract ${section}: ${shows}`, { timeout: CHECK_TIMEOUT_MS }, (test) => run(test, world));
  }
}
