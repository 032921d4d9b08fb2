/**
 * docs/IMPLEMENTATION.md and docs/SECURITY.md: every route and every row of the error table has its line, and every line
 * that claims a test names one that exists, as it does with source files.
 */
import { existsSync, readFileSync } from 'node:fs';
import t from 'tap';
import { ERRORS } from '../../src/domain/errors.ts';
import { LiveSettings } from '../../src/domain/settings/settings.ts';
import type { FileRemovals } from '../../src/io/files/storage/removals.ts';
import type { EventPush } from '../../src/io/modules/event-push.ts';
import { createMetrics } from '../../src/io/observability/metrics.ts';
import { createRoutes, type RouteDeps } from '../../src/io/routes/index.ts';
import { createInternalRoutes } from '../../src/io/routes/internal.ts';

interface Line {
  readonly subject: string;
  readonly shownBy: string;
}

/** Table lines of the page: subject in the first column, evidence in the last. */
function linesOf(page: string): Line[] {
  return page
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('|---'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
    .map((cells) => ({ subject: cells[0] ?? '', shownBy: cells.at(-1) ?? '' }));
}

/** What is wrong with the evidence of a line. */
function evidenceFaults(lines: readonly Line[], read: (file: string) => string | undefined): string[] {
  const faults: string[] = [];
  for (const { subject, shownBy } of lines) {
    if (shownBy === 'Shown by') continue;
    const references = [...shownBy.matchAll(/`(test\/[^`]+\.ts)`: “([^”]+)”/g)];
    if (references.length === 0) faults.push(`${subject}: names no test`);
    for (const [, file = '', name = ''] of references) {
      const source = read(file);
      if (source === undefined) faults.push(`${subject}: ${file} does not exist`);
      else if (!source.includes(name)) faults.push(`${subject}: ${file} has no test “${name}”`);
    }
  }
  return faults;
}

function readSource(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The public and the internal table. The parts are only closed over, never used: no route is called. */
function routeNames(): string[] {
  const parts = { settings: new LiveSettings() } as unknown as RouteDeps;
  const facts = () => {
    throw new Error('not called');
  };
  const internal = createInternalRoutes(createMetrics(), facts, {} as EventPush, {} as FileRemovals);
  const names = createRoutes(parts).map((route) => `${route.method} ${route.path}`);
  return [...names, ...internal.map((route) => `${route.method} internal ${route.path}`)];
}

const page = ['docs/IMPLEMENTATION.md', 'docs/SECURITY.md']
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');
const lines = linesOf(page);
const HEADERS = ['Route', 'Row', 'Section', 'Field', 'Transition', 'Rule', 'Request', 'Promise', 'Attack'];
const subjects = new Set(lines.map((line) => line.subject.replaceAll('`', '')));

t.test('implementation: every row of the error table has a line', async (t) => {
  for (const name of Object.keys(ERRORS)) t.ok(subjects.has(name), name);
});

t.test('implementation: every route has a line', async (t) => {
  for (const name of routeNames()) t.ok(subjects.has(name), name);
});

t.test('implementation: every line names a test that exists', async (t) => {
  t.same(evidenceFaults(lines, readSource), []);
});

t.test('implementation: every subject has one line, every source file exists', async (t) => {
  const named = lines.map(({ subject }) => subject).filter((subject) => !HEADERS.includes(subject));
  t.same(
    named.filter((subject, index) => named.indexOf(subject) !== index),
    [],
  );
  const files = [...page.matchAll(/`((?:src|tools|bench|docs)\/[^`]+)`/g)].map(([, file = '']) => file);
  t.same(
    files.filter((file) => !existsSync(file)),
    [],
  );
});

t.test('implementation: a line without a test, with a missing file or a missing name is found', async (t) => {
  const read = (file: string) => (file === 'test/a.test.ts' ? "t.test('a thing: works')" : undefined);
  const fault = (shownBy: string) => evidenceFaults([{ subject: 'x', shownBy }], read).length;
  t.equal(fault(''), 1);
  t.equal(fault('later'), 1);
  t.equal(fault('`test/b.test.ts`: “a thing”'), 1);
  t.equal(fault('`test/a.test.ts`: “another”'), 1);
  t.equal(fault('`test/a.test.ts`: “a thing: works”'), 0);
});
