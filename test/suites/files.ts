/** Runs the test files of one suite in this process, one after the other. */
import { readdirSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import t from 'tap';
import { beginSuite, endSuite } from '../support/shared.ts';
import { suiteOf } from './table.ts';

const BUILT_TESTS = fileURLToPath(new URL('../', import.meta.url));

/** Compiled test files below `build/test`, in order, without the suites themselves. */
function testFiles(): string[] {
  return readdirSync(BUILT_TESTS, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.js') && !path.startsWith('suites/'))
    .sort();
}

type Teardown = () => unknown;

/** Runs the files one after the other. What a file gives to `t.teardown` of the report runs when its tests have run. */
export async function runFiles(name: string): Promise<void> {
  // A coverage run's loader would cost each program that a test starts half a second.
  delete process.env['NODE_OPTIONS'];
  beginSuite();
  const teardowns: Teardown[] = [];
  t.teardown = (teardown: Teardown) => void teardowns.push(teardown);
  const jobs = t.jobs;
  for (const path of testFiles()) {
    if (suiteOf(path) !== name) continue;
    await import(pathToFileURL(`${BUILT_TESTS}${path}`).href);
    // A file's own time-out and jobs hold for its tests, not for those of the next file.
    t.setTimeout(0);
    await t.test(`${path}: every test has run`, async (end) => end.pass());
    t.jobs = jobs;
    for (let teardown = teardowns.pop(); teardown !== undefined; teardown = teardowns.pop()) await teardown();
  }
  await endSuite();
}
