/** Printed pages say what the tables say. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { differing, generated } from '../../tools/pages/generate.ts';
import { jsonLines } from '../../tools/pages/json-lines.ts';

// covers R110
t.test('generated pages: no file differs from what npm run generate prints', async (t) => {
  const { pages, faults } = await generated();
  t.same(faults, []);
  t.same(differing(pages), [], 'print them again: npm run generate');
});

t.test('generated pages: a file with another character is named', async (t) => {
  const { pages } = await generated();
  t.ok(Object.keys(pages).length >= 9);
  for (const changed of Object.keys(pages)) {
    const read = (path: string) => `${readFileSync(path, 'utf8')}${path === changed ? ' ' : ''}`;
    t.same(differing(pages, read), [changed]);
  }
});

t.test('generated pages: items of the named lists have a line each, and all values are kept', async (t) => {
  const value = { a: [1, { b: null, items: [{ c: 'x' }, []] }], items: { d: {}, e: undefined, f: ['y', 2] } };
  const text = jsonLines(value, ['items']);
  t.same(JSON.parse(text), JSON.parse(JSON.stringify(value)));
  t.equal(
    text,
    `{
  "a": [1, {"b": null, "items": [
    {"c": "x"},
    []
  ]}],
  "items": {
    "d": {},
    "f": ["y", 2]
  }
}
`,
  );
});
