/**
 * Every route, every row of the error table, every reading and extension of docs/specification.md, every row of
 * docs/SECURITY.md and every part of the state of a cluster has tests. The specification names every route.
 */
import { existsSync, readFileSync } from 'node:fs';
import t from 'tap';
import { ERRORS } from '../../src/domain/errors.ts';
import type { FileRemovals } from '../../src/io/files/storage/removals.ts';
import type { EventPush } from '../../src/io/modules/event-push.ts';
import { createMetrics } from '../../src/io/observability/metrics.ts';
import { createInternalRoutes } from '../../src/io/routes/internal.ts';
import { pageRows, readingRows, tableRows } from '../evidence/rows.ts';
import { allTags, tagFaults, tagsOf } from '../evidence/tags.ts';
import { routeTable } from '../support/route-table.ts';
import { ERROR_TESTS } from './evidence/errors.ts';
import type { Evidence } from './evidence/evidence.ts';
import { ROUTE_TESTS } from './evidence/routes.ts';

type Read = (file: string) => string | undefined;

/** Subjects without a test, and tests that do not exist. */
function evidenceFaults(evidence: Evidence, read: Read): string[] {
  return Object.entries(evidence).flatMap(([subject, tests]) => {
    if (tests.length === 0) return [`${subject}: names no test`];
    return tests.flatMap((test) => {
      const [, file = '', name = ''] = /^(\S+): (.+)$/.exec(test) ?? [];
      const source = read(file);
      if (source === undefined) return [`${subject}: ${file} does not exist`];
      return name !== '' && source.includes(name) ? [] : [`${subject}: ${file} has no test “${name}”`];
    });
  });
}

function readSource(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** The public and the internal table; no route is called. */
function routeNames(): string[] {
  const facts = () => {
    throw new Error('not called');
  };
  const internal = createInternalRoutes({
    metrics: createMetrics(),
    health: facts,
    events: {} as EventPush,
    removals: {} as FileRemovals,
  });
  const names = routeTable().map((route) => `${route.method} ${route.path}`);
  return [...names, ...internal.map((route) => `${route.method} internal ${route.path}`)];
}

const specification = readFileSync('docs/specification.md', 'utf8');

t.test('evidence: every row of the error table has tests', async (t) => {
  t.same(Object.keys(ERROR_TESTS).sort(), Object.keys(ERRORS).sort());
});

t.test('evidence: every route has tests', async (t) => {
  t.same(Object.keys(ROUTE_TESTS).sort(), routeNames().sort());
});

t.test('evidence: every row of the pages is covered by a tagged test, every tag has a row', async (t) => {
  const { rows, faults: rowFaults } = pageRows();
  const { tags, faults } = allTags();
  t.same([...rowFaults, ...faults, ...tagFaults(rows, tags)], []);
  t.ok(rows.size > 300, 'the pages were read');
});

t.test('evidence: named tests exist', async (t) => {
  for (const evidence of [ERROR_TESTS, ROUTE_TESTS]) t.same(evidenceFaults(evidence, readSource), []);
});

t.test('evidence: the specification names every route', async (t) => {
  const page = specification.replace(/\{\w+\}/g, '{}');
  const isNamed = (name: string) => {
    const path = name.replace(/^\S+ (internal )?/, '').replace(/:\w+/g, '{}');
    const below = path.replace(/^\/(ProxyAdmin\/api|auth\/v1\/app)\//, '');
    return page.includes(`${path}\``) || page.includes(`\`${below}\``);
  };
  t.same(
    routeNames().filter((name) => !isNamed(name)),
    [],
  );
});

t.test('evidence: a subject without a test, with a missing file or a missing name is found', async (t) => {
  const read = (file: string) => (file === 'test/a.test.ts' ? "t.test('a thing: works')" : undefined);
  const faults = (...tests: string[]) => evidenceFaults({ x: tests }, read).length;
  t.equal(faults(), 1);
  t.equal(faults('later'), 1);
  t.equal(faults('test/b.test.ts: a thing'), 1);
  t.equal(faults('test/a.test.ts: another'), 1);
  t.equal(faults('test/a.test.ts: a thing: works'), 0);
});

t.test('evidence: a row without an id or a tag is found, and so is an id that is there twice', async (t) => {
  const table = '| Id | Attack | Answer |\n|---|---|---|\n';
  const page = `text\n\n${table}| S1 | a | b |\n| c | d | e |\n| S1 | f | g |\n\ntext\n\n| Attack |\n|---|\n| h |`;
  const { rows, faults } = tableRows(page);
  t.same([...rows], [['S1', 'a']]);
  t.same(faults, ['d: no id', 'S1: twice', 'h: no id']);
  t.same(tagFaults(rows, []), ['S1: a: no test covers it']);
  const tag = { file: 'test/a.test.ts', line: 3, ids: ['S1', 'R2'], title: [] };
  t.same(tagFaults(rows, [tag]), ['test/a.test.ts:3: there is no row R2']);
});

t.test('evidence: a tag names rows and stands above a test', async (t) => {
  const text = [
    '// covers S1 R2',
    "t.test('it\\'s one', async (t) => {",
    '  // covers C3',
    '  withTwoNodes(',
    '    `of $'.concat('{nodes.join()} two`,'),
    '// covers S4',
    'const x = 1;',
    '// covers all',
    "t.test('three', async (t) => {",
  ].join('\n');
  const { tags, faults } = tagsOf('a.test.ts', text);
  t.same(
    tags.map(({ line, ids, title }) => [line, ids, title]),
    [
      [1, ['S1', 'R2'], ["it's one"]],
      [3, ['C3'], ['of ', ' two']],
    ],
  );
  t.same(faults, ['a.test.ts:6: stands above no test', 'a.test.ts:8: expected “// covers S1 R2”']);
});

t.test('evidence: a quoted paragraph of a section without a mark or an id is found', async (t) => {
  const page = [
    '> before all',
    '',
    '## 1. One',
    '',
    '> Reading R1: a thing',
    '>',
    '> no mark',
    '> | a |',
    '',
    '### 1.1 Two',
    '   > Extension R2: b',
    '',
    '> Reading: c',
  ].join('\n');
  const { rows, faults } = readingRows(page);
  t.same(
    [...rows],
    [
      ['R1', 'a thing'],
      ['R2', 'b'],
    ],
  );
  t.same(faults, ['no mark: no id', 'Reading: c: no id']);
});
