import { setTimeout as wait } from 'node:timers/promises';

/** Work of this process ends within few turns of its event loop. */
const TURNS = 100;
/** Between two looks at what another process or thread does: it has the processor meanwhile. */
const PAUSE_MS = 5;

/** Resolves once it holds. The time-out of the test is the bound. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; !(await holds()); turn += 1)
    await (turn < TURNS ? new Promise(setImmediate) : wait(PAUSE_MS));
}
