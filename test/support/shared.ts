/** Resources that the test files of a suite share: each is started once and closed when the last file has run. */
import type { Test } from 'tap';

export type Close = () => unknown;

/** Undefined in a file that runs alone. */
let suite: Close[] | undefined;

export function beginSuite(): void {
  suite = [];
}

export async function endSuite(): Promise<void> {
  await closeAll(suite ?? []);
}

/** The last first; empties the list. */
export async function closeAll(closings: Close[]): Promise<void> {
  for (let close = closings.pop(); close !== undefined; close = closings.pop()) await close();
}

/** A getter that starts on the first call. `t`: the report of the file, which a start in a file alone ends with. */
export function shared<Thing>(
  start: () => Promise<Thing>,
  close: (thing: Thing) => unknown,
): (t: Pick<Test, 'teardown'>) => Promise<Thing> {
  let started: Promise<Thing> | undefined;
  return (t) => {
    if (started === undefined) {
      const starting = start();
      const end = async () => close(await starting);
      if (suite === undefined) t.teardown(end);
      else suite.push(end);
      started = starting;
    }
    return started;
  };
}
