/** Runs the test files of one suite in this process, one after the other. */
import { readdirSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import t from 'tap';
import { suiteOf } from './table.ts';

const BUILT_TESTS = fileURLToPath(new URL('../', import.meta.url));

/** Compiled test files below `build/test`, in order, without the suites themselves. */
function testFiles(): string[] {
  return readdirSync(BUILT_TESTS, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.js') && !path.startsWith('suites/'))
    .sort();
}

/**
 * Each file is loaded within a test of its own, so that its tests run before the next file is loaded and the report is
 * not closed while a file loads.
 */
export async function runSuite(name: string): Promise<void> {
  // The loader that tap gives to its processes costs each program that a test starts half a second.
  delete process.env['NODE_OPTIONS'];
  const files = testFiles().filter((path) => suiteOf(path) === name);
  for (const path of files) {
    await t.test(`${path} is loaded`, async (loading) => {
      await import(pathToFileURL(`${BUILT_TESTS}${path}`).href);
      // A file's own time-out holds for its tests, not for those of the next file.
      t.setTimeout(0);
      loading.pass();
    });
  }
}
