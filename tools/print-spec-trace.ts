/**
 * Writes docs/SPEC-TRACE.md from the chapters of the contract client, so that the page cannot drift. The suite compares
 * the file with what this prints.
 *
 *     npm run build && node build/tools/print-spec-trace.js
 */
import { writeFileSync } from 'node:fs';
import { CHAPTERS, testOf } from '../test/contract/chapters.ts';
import type { Citation } from '../test/contract/check.ts';
import { placeOf } from '../test/contract/coverage.ts';
import { GAPS, OTHER_TESTS } from '../test/contract/evidence.ts';
import { type Section, specification } from '../test/contract/specification.ts';

interface Line extends Citation {
  readonly shows: string;
  readonly test: string;
}

/** A text as it was written, in a cell of a table. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '\\<').replaceAll('*', '\\*');
}

function linesOf(sections: readonly Section[]): Line[] {
  const checks = CHAPTERS.flatMap((chapter) =>
    chapter.checks.map(({ section, sentence, shows }) => {
      const test = `\`${testOf(chapter)}\``;
      return { section, sentence, shows, test };
    }),
  );
  const others = OTHER_TESTS.map(({ section, sentence, shows, test: [file, name] }) => {
    const test = `\`${file}\`: “${name}”`;
    return { section, sentence, shows, test };
  });
  return [...checks, ...others]
    .map((line) => ({ line, place: placeOf(sections, line) }))
    .sort((one, other) => one.place - other.place)
    .map(({ line }) => line);
}

function sectionText({ id, title }: Section, lines: readonly Line[]): string[] {
  const rows = lines
    .filter(({ section }) => section === id)
    .map(({ sentence, shows, test }) => `| ${cell(sentence)} | ${cell(shows)} | ${test} |`);
  const heading = id === 'Intro' ? title : `${id} ${title}`;
  return [`## ${heading}`, '', '| Sentence | What is seen | Test |', '|---|---|---|', ...rows, ''];
}

/** The whole page. */
export function specTracePage(): string {
  const sections = specification();
  const lines = linesOf(sections);
  return [
    '# Specification trace',
    '',
    'Generated from the contract client by `node build/tools/print-spec-trace.js`. The client (`test/contract/`) talks to the running program and knows nothing of it but the [specification](SPECIFICATION.md). Each line below is one of its checks: a sentence of the specification, word for word, and what a client then sees. A check is the test “contract, its section: what is seen” of the named file. What no client can see has a test of another kind; such a line names it too.',
    '',
    'Every sentence has a line or is a known gap, but for those that announce what follows and those that end with “not shown”. `test/docs/spec-trace.test.ts` holds the page to that. Where things are built, and what other tests show: [IMPLEMENTATION.md](IMPLEMENTATION.md). Attacks: [SECURITY.md](SECURITY.md).',
    '',
    '## Known gaps',
    '',
    ...GAPS.map(({ section, sentence, gap }) => `- **${section}** “${cell(sentence)}” ${gap}`),
    '',
    ...sections.flatMap((section) => sectionText(section, lines)),
  ].join('\n');
}

if (process.argv[1]?.endsWith('print-spec-trace.js')) writeFileSync('docs/SPEC-TRACE.md', specTracePage());
