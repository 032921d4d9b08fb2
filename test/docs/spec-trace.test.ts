/**
 * The chapters of the contract client leave no sentence of the contract out: each has a check, a test of another kind, or
 * is a known gap.
 */
import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { CITATIONS, gapPages } from '../../tools/pages/print-spec-trace.ts';
import { CHAPTERS, testOf } from '../contract/chapters.ts';
import { citationFaults, namedTestFaults, uncited } from '../contract/coverage.ts';
import { OTHER_TESTS } from '../contract/evidence.ts';
import { readSections, specification } from '../contract/specification.ts';

const sections = specification();
const checks = CHAPTERS.flatMap((chapter) => chapter.checks);

function sourceOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

t.test('spec trace: every citation is in its section, word for word', async (t) => {
  t.same(citationFaults(sections, CITATIONS), []);
});

t.test('spec trace: with a citation that the specification no longer has, no page is printed', async (t) => {
  const cited = 'McpApiRPSLimit (16)';
  const changed = sections.map((section) => ({ ...section, text: section.text.replace(cited, 'removed') }));
  const { faults, pages } = gapPages(changed);
  t.ok(faults.length > 0);
  for (const fault of faults) t.match(fault, /^8\.1: does not say “.*McpApiRPSLimit \(16\)/);
  t.same(pages, {});
});

t.test('spec trace: every section has a check', async (t) => {
  const ids = new Set(checks.map(({ section }) => section));
  t.same(
    sections.map(({ id }) => id).filter((id) => !ids.has(id)),
    [],
  );
});

t.test('spec trace: every sentence is accounted for', async (t) => {
  t.same(uncited(sections, CITATIONS), []);
});

t.test('spec trace: named tests exist', async (t) => {
  t.same(namedTestFaults(OTHER_TESTS, sourceOf), []);
});

t.test(
  'spec trace: every file of chapters is a chapter that its test runs, each check has its name',
  async (t) => {
    const files = readdirSync('test/contract/chapters').map((file) => file.replace(/\.ts$/, ''));
    t.same(CHAPTERS.map(({ file }) => file).sort(), files.sort());
    t.same(
      CHAPTERS.filter(
        (chapter) => !sourceOf(testOf(chapter))?.includes(`'./chapters/${chapter.file}.ts'`),
      ).map(({ file }) => file),
      [],
      'chapters that no test runs',
    );
    const names = checks.map(({ section, shows }) => `${section}: ${shows}`);
    t.equal(new Set(names).size, names.length);
  },
);

const PLANTED = `
Before all. The base is \`here\`.

## 1. First

1. One thing. Another thing, e.g. This.
- It does:

### 1.1 Part

| Name | Notes |
|---|---|
| \`a\` | The first. Always there. |
| b | |

> A reading: it is not part of the contract.

Left open: what it is.
`;

t.test('spec trace: sections and sentences are read without their Markdown', async (t) => {
  t.same(
    readSections(PLANTED).map(({ id, title, text, sentences }) => [
      id,
      title,
      text,
      sentences.map((each) => each.text),
    ]),
    [
      [
        'Intro',
        'Conventions',
        'Conventions Before all. The base is here.',
        ['Before all.', 'The base is here.'],
      ],
      [
        '1',
        'First',
        'First One thing. Another thing, e.g. This. It does:',
        ['One thing.', 'Another thing, e.g. This.', 'It does:'],
      ],
      [
        '1.1',
        'Part',
        'Part a | The first. Always there. b | Left open: what it is.',
        ['a | The first.', 'Always there.', 'b |', 'Left open: what it is.'],
      ],
    ],
  );
  const misplaced = [...readSections(PLANTED), ...sections].flatMap(({ text, sentences }) =>
    sentences.filter((sentence) => !text.startsWith(sentence.text, sentence.at)),
  );
  t.same(misplaced, []);
});

t.test('spec trace: a sentence that is left out, invented or wrongly placed is found', async (t) => {
  const planted = readSections(PLANTED);
  const of = (section: string, sentence: string) => ({ section, sentence });
  const rest = [
    of('Intro', 'Before all. … The base is here.'),
    of('1', 'One thing … Another thing, … This.'),
  ];
  t.same(uncited(planted, rest), [
    '1: “‥ e.g. ‥” is not accounted for',
    '1.1: “a | The first.” is not accounted for',
    '1.1: “Always there.” is not accounted for',
    '1.1: “b |” is not accounted for',
  ]);
  const whole = [of('1', 'thing, e.g. This.'), of('1.1', 'a | The first. Always … there. … b')];
  t.same(uncited(planted, [...rest, ...whole]), []);
  t.same(citationFaults(planted, [of('1.1', 'a | The … One thing.'), of('2', 'One'), of('1', '')]), [
    '1.1: does not say “One thing.”',
    '2: no such section',
    '1: does not say “”',
  ]);
  const named = (file: string, name: string) => ({
    ...of('1', 'One'),
    shows: '',
    test: [file, name] as const,
  });
  const read = (file: string) => (file === 'a.test.ts' ? "t.test('a thing')" : undefined);
  const tests = [named('a.test.ts', 'a thing'), named('a.test.ts', 'other'), named('b.test.ts', 'a thing')];
  t.same(namedTestFaults(tests, read), ['1: a.test.ts has no test “other”', '1: b.test.ts does not exist']);
});
