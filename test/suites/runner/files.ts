/** Runs the test files of one suite in this process, one after the other. */
import { readdirSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import t from 'tap';
import { observeSuite } from '../../evidence/observe.ts';
import { depth } from '../../support/depth.ts';
import { AT_FULL_DEPTH, refusedSkips } from '../../support/programs/tools.ts';
import { beginSuite, type Close, closeAll, endSuite } from '../../support/shared.ts';
import { isLeftToGate, suiteOf } from './table.ts';

const BUILT_TESTS = fileURLToPath(new URL('../../', import.meta.url));

/** Compiled test files below `build/test`, in order, without the suites themselves. */
function testFiles(): string[] {
  return readdirSync(BUILT_TESTS, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.js') && !path.startsWith('suites/'))
    .sort();
}

/** Runs the files one after the other. What a file gives to `t.teardown` of the report runs when its tests have run. */
export async function runFiles(name: string): Promise<void> {
  beginSuite();
  const observation = observeSuite(name, t);
  const teardowns: Close[] = [];
  // The limit of a file is for a run of it alone. The suite has tap's, which is generous.
  t.setTimeout(0);
  t.setTimeout = () => undefined;
  t.teardown = (teardown: Close) => void teardowns.push(teardown);
  const jobs = t.jobs;
  for (const path of testFiles()) {
    if (suiteOf(path) !== name) continue;
    if (depth.isQuick && isLeftToGate(path)) {
      observation.leave(path);
      await t.test(path, { skip: AT_FULL_DEPTH }, () => {});
      continue;
    }
    observation.begin(path);
    await import(pathToFileURL(`${BUILT_TESTS}${path}`).href);
    await t.test(`${path}: every test has run`, async (end) => end.pass());
    // Settings of a file hold for its tests, not for those of the next file.
    t.jobs = jobs;
    await closeAll(teardowns);
  }
  await endSuite();
  await t.test(`${name}: no test is skipped that this machine can run`, async (end) =>
    end.same(refusedSkips(t.lists.skip, process.env['GATEHOUSE_TEST_REQUIRE'], depth.depth), []),
  );
  observation.end();
}
