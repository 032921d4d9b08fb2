/**
 * Every row of docs/SECURITY.md, every part of the state of a cluster, every reading and extension of docs/specification.md
 * has a test that names it. What tests meet is checked at the end (test/evidence).
 */
import t from 'tap';
import { specification } from '../contract/specification.ts';
import { pageRows, readingRows, tableRows } from '../evidence/rows.ts';
import { allTags, tagFaults, tagsOf } from '../evidence/tags.ts';
import { routeTable } from '../support/route-table.ts';

t.test('evidence: every row of the pages is covered by a tagged test, every tag has a row', async (t) => {
  const { rows, faults: rowFaults } = pageRows();
  const { tags, faults } = allTags();
  t.same([...rowFaults, ...faults, ...tagFaults(rows, tags)], []);
  t.ok(rows.size > 300, 'the pages were read');
});

t.test('evidence: the section that a route names is in the specification', async (t) => {
  const sections = new Set(specification().map(({ id }) => id));
  const named = routeTable().flatMap(({ spec, path }) => (spec === undefined ? [] : [[path, spec] as const]));
  t.ok(named.length > 20);
  t.same(
    named.filter(([, spec]) => !sections.has(spec)),
    [],
  );
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
