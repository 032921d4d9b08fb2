/** The check at the end of a run finds what no test met, and answers that no route declares; the recorder writes what it is given. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { impliedErrors } from '../../src/io/http/openapi/answers.ts';
import { type AnyRoute, defineRoute } from '../../src/io/http/table/route.ts';
import { internalRouteTable, routeTable } from '../support/route-table.ts';
import { type Expected, readMet, undeclared, unmet } from './check.ts';
import type { Tag } from './tags.ts';

const thing = defineRoute({
  method: 'GET',
  path: '/thing',
  summary: 'A thing',
  group: 'system',
  auth: 'none',
  errors: ['KeyNotFound'],
  description: 'A thing',
  docs: { answers: { 410: { description: 'Gone' } } },
  handle: () => undefined,
});
const WHOLE: Expected = {
  routes: [thing],
  errors: ['KeyNotFound'],
  settings: ['ApiRPSLimit'],
  rows: new Map([['S1', 'an attack']]),
  tags: [{ file: 'test/a.test.ts', line: 1, ids: ['S1'], title: ['thing: ', ' is refused'] }],
};
const LINES = [
  ['answer', 'GET /thing', '200', ''],
  ['answer', 'GET /thing', '404', 'KeyNotFound'],
  ['setting', 'ApiRPSLimit'],
  ['passed', 'test/a.test.ts', 'around', 'thing: one is refused'],
];

const met = (lines: readonly (readonly string[])[]) => readMet(lines.map((line) => JSON.stringify(line)));

t.test('evidence: each thing that no test met is named, and nothing else', async (t) => {
  t.same(unmet(met(LINES), WHOLE), []);
  const faults = LINES.map((line) => unmet(met(LINES.filter((each) => each !== line)), WHOLE));
  t.same(faults, [
    ['GET /thing: no test saw it succeed'],
    ['KeyNotFound: no test saw it answered'],
    ['ApiRPSLimit: no test gave it another value than its default'],
    ['S1: an attack: no test that covers it has passed'],
  ]);
});

t.test('evidence: a test of another file, or with another title, covers no row', async (t) => {
  for (const passed of [
    ['test/b.test.ts', 'thing: one is refused'],
    ['test/a.test.ts', 'is refused thing: '],
  ])
    t.equal(unmet(met([...LINES.slice(0, 3), ['passed', ...passed]]), WHOLE).length, 1);
});

t.test('evidence: a row is not judged while each file that covers it is left out', async (t) => {
  const withLeft = met([...LINES.slice(0, 3), ['left', 'test/a.test.ts']]);
  const [tag] = WHOLE.tags;
  t.same(unmet(withLeft, WHOLE), []);
  const tags = [...WHOLE.tags, { ...tag, file: 'test/b.test.ts' } as Tag];
  const without = 'S1: an attack: no test that covers it has passed';
  t.same(unmet(withLeft, { ...WHOLE, tags }), [without]);
  t.same(unmet(withLeft, { ...WHOLE, tags: [] }), [without], 'no file covers it');
});

t.test('evidence: a route that offers nothing is met by its refusal', async (t) => {
  const routes: AnyRoute[] = [{ ...thing, notOffered: true }];
  t.same(unmet(met(LINES.slice(1)), { ...WHOLE, routes }), []);
});

t.test('evidence: an error that its route neither lists nor implies is found, also of HEAD', async (t) => {
  const faults = (...answer: string[]) => undeclared(met([['answer', ...answer]]), [thing]);
  t.same(faults('GET /thing', '404', 'KeyNotFound'), []);
  t.same(faults('GET /thing', '503', 'Overloaded'), []);
  t.same(faults('GET /thing', '410', 'FileNotFound'), [], 'the route describes the status itself');
  t.same(faults('GET /other', '404', 'FileNotFound'), [], 'a route of a test');
  for (const method of ['GET', 'HEAD'])
    t.same(faults(`${method} /thing`, '404', 'FileNotFound'), [
      `${method} /thing: answers 404 FileNotFound, which it does not declare`,
    ]);
});

t.test('evidence: no route lists an error that its definition implies', async (t) => {
  const faults = [...routeTable(), ...internalRouteTable()].flatMap((route) => {
    const implied: readonly string[] = impliedErrors(route);
    const listed = (route.errors ?? []).filter((error) => implied.includes(error));
    return listed.map((error) => `${route.method} ${route.path}: ${error}`);
  });
  t.same(faults, []);
});

t.test(
  'evidence: a program with the recorder writes each answer once, before it can be killed',
  async (t) => {
    const recorder = fileURLToPath(new URL('./recorder.cjs', import.meta.url));
    const program = `
    const requests = require('node:diagnostics_channel').channel('gatehouse.request');
    const record = { method: 'GET', route: '/planted', status: 404, error: 'NotFound' };
    for (const next of [record, record, { ...record, error: undefined }, { ...record, route: '' }])
      requests.publish(next);
    process.kill(process.pid, 'SIGKILL');`;
    const { GATEHOUSE_TEST_PRELOAD, ...env } = process.env;
    const run = promisify(execFile)(process.execPath, ['--require', recorder, '-e', program], { env });
    t.match(await run.catch((error: unknown) => error), { signal: 'SIGKILL' });
    const file = join(fileURLToPath(new URL('../../met', import.meta.url)), `${process.pid}.txt`);
    const lines = readFileSync(file, 'utf8').split('\n');
    t.same(
      lines.filter((line) => line.includes('/planted')),
      ['["answer","GET /planted","404","NotFound"]', '["answer","GET /planted","404",""]'],
    );
  },
);
