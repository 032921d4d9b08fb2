/**
 * Every route, every row of the error table, and every reading and extension of docs/specification.md has tests, and so
 * has every line of docs/SECURITY.md. Named tests exist, and the specification names every route and error.
 */
import { existsSync, readFileSync } from 'node:fs';
import t from 'tap';
import { ERRORS } from '../../src/domain/errors.ts';
import type { FileRemovals } from '../../src/io/files/storage/removals.ts';
import type { EventPush } from '../../src/io/modules/event-push.ts';
import { createMetrics } from '../../src/io/observability/metrics.ts';
import { createInternalRoutes } from '../../src/io/routes/internal.ts';
import { routeTable } from '../support/route-table.ts';
import { ATTACKS_ON_DATA } from './evidence/attacks-on-data.ts';
import { ATTACKS_ON_REQUESTS } from './evidence/attacks-on-requests.ts';
import { CLUSTER_PARTS } from './evidence/cluster.ts';
import { ERROR_TESTS } from './evidence/errors.ts';
import type { Evidence } from './evidence/evidence.ts';
import { READINGS_1_TO_3 } from './evidence/readings-1-to-3.ts';
import { READINGS_4 } from './evidence/readings-4.ts';
import { READINGS_5_TO_9 } from './evidence/readings-5-to-9.ts';
import { ROUTE_TESTS } from './evidence/routes.ts';

const ATTACKS: Evidence = { ...ATTACKS_ON_REQUESTS, ...ATTACKS_ON_DATA };
const READINGS: Evidence = { ...READINGS_1_TO_3, ...READINGS_4, ...READINGS_5_TO_9 };

type Read = (file: string) => string | undefined;

/** Table rows with a test file: subject in the first column, file in the last, which is titled “Test”. */
function rowsOf(page: string): [subject: string, file: string][] {
  const tables = page.split(/\n(?!\|)/).filter((table) => /^\n*\|.*\| Test \|\n/.test(table));
  return tables
    .flatMap((table) => table.trim().split('\n').slice(2))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map((cells) => [cells[1] ?? '', (cells.at(-2) ?? '').replaceAll('`', '')]);
}

/** Rows without evidence or with a file that is not in it, and evidence without a row. */
function rowFaults(rows: readonly [subject: string, file: string][], evidence: Evidence): string[] {
  const subjects = rows.map(([subject]) => subject);
  return [
    ...rows
      .filter(([subject, file]) => !evidence[subject]?.some((test) => test.startsWith(`${file}: `)))
      .map(([subject, file]) => `${subject}: ${file} is not among its tests`),
    ...subjects
      .filter((subject, at) => subjects.indexOf(subject) !== at)
      .map((subject) => `${subject}: twice`),
    ...Object.keys(evidence)
      .filter((subject) => !subjects.includes(subject))
      .map((subject) => `${subject}: no row`),
  ];
}

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

/** Quoted paragraphs of numbered sections, `4.2 Reading: …`. Empty quoted lines separate paragraphs. */
function readingsOf(page: string): string[] {
  let section = '';
  const paragraphs: string[] = [];
  let isOpen = false;
  for (const line of page.split('\n')) {
    section = /^#{2,3} (\d+(?:\.\d+)?)/.exec(line)?.[1] ?? section;
    const [, text] = /^\s*> (.+)$/.exec(line) ?? [];
    if (text !== undefined && isOpen) paragraphs.push(`${paragraphs.pop()} ${text}`);
    else if (text !== undefined && section !== '') paragraphs.push(`${section} ${text}`);
    isOpen = text !== undefined && section !== '';
  }
  return paragraphs;
}

const MARKED = /^[\d.]+ (Reading|Extension): /;

/** Paragraphs without a mark or a test, and evidence of words that no paragraph of its section has. */
function readingFaults(paragraphs: readonly string[], subjects: readonly string[]): string[] {
  const isIn = (subject: string, paragraph: string) => {
    const [, section = '', words = ''] = /^(\S+) (.+)$/.exec(subject) ?? [];
    return paragraph.startsWith(`${section} `) && paragraph.includes(words);
  };
  const texts = paragraphs.filter((paragraph) => !/^[\d.]+ \|/.test(paragraph));
  return [
    ...texts.filter((text) => !MARKED.test(text)).map((text) => `${text}: neither Reading nor Extension`),
    ...texts.filter((text) => !subjects.some((each) => isIn(each, text))).map((text) => `${text}: no test`),
    ...subjects.filter((each) => !texts.some((text) => isIn(each, text))).map((each) => `${each}: not said`),
  ];
}

const specification = readFileSync('docs/specification.md', 'utf8');

t.test('evidence: every row of the error table has tests', async (t) => {
  t.same(Object.keys(ERROR_TESTS).sort(), Object.keys(ERRORS).sort());
});

t.test('evidence: every route has tests', async (t) => {
  t.same(Object.keys(ROUTE_TESTS).sort(), routeNames().sort());
});

t.test('evidence: every reading and extension is marked and has tests', async (t) => {
  t.same(readingFaults(readingsOf(specification), Object.keys(READINGS)), []);
});

t.test('evidence: every attack and fault of docs/SECURITY.md has tests', async (t) => {
  const page = readFileSync('docs/SECURITY.md', 'utf8');
  const rows = rowsOf(page);
  t.equal(rows.length, page.match(/^\| (?!(?:Attack|Fault) \|)/gm)?.length, 'every row is read');
  t.same(rowFaults(rows, ATTACKS), []);
});

t.test('evidence: every part of the state of a cluster has tests', async (t) => {
  const [, section = ''] =
    /^## Parts of the state\n([\s\S]*?)^## /m.exec(readFileSync('docs/cluster.md', 'utf8')) ?? [];
  const rows = rowsOf(section);
  t.equal(rows.length, section.match(/^\| (?!Part \|)/gm)?.length, 'every row is read');
  t.same(rowFaults(rows, CLUSTER_PARTS), []);
});

t.test('evidence: named tests exist', async (t) => {
  for (const evidence of [ERROR_TESTS, ROUTE_TESTS, READINGS, ATTACKS, CLUSTER_PARTS])
    t.same(evidenceFaults(evidence, readSource), []);
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
  const table = '| Attack | Answer | Test |\n|---|---|---|\n';
  const rows = rowsOf(`text\n\n${table}| a | b | \`test/a.test.ts\` |\n| c | d | later |\n\ntext`);
  t.same(rows, [
    ['a', 'test/a.test.ts'],
    ['c', 'later'],
  ]);
  t.same(rowFaults([...rows, ['a', 'test/a.test.ts']], { a: ['test/a.test.ts: one'], e: [] }), [
    'c: later is not among its tests',
    'a: twice',
    'e: no row',
  ]);
});

t.test('evidence: a reading without a mark, without a test, or that is not said is found', async (t) => {
  const page =
    '> before all\n\n## 1. One\n\n> Reading: a thing\n>\n> no mark\n> | a |\n\n### 1.1 Two\n   > Extension: b';
  const paragraphs = readingsOf(page);
  t.same(paragraphs, ['1 Reading: a thing', '1 no mark | a |', '1.1 Extension: b']);
  t.same(readingFaults(paragraphs, ['1 thing', '1 no mark', '1.1 thing']), [
    '1 no mark | a |: neither Reading nor Extension',
    '1.1 Extension: b: no test',
    '1.1 thing: not said',
  ]);
});
