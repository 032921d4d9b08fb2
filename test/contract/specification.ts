/** The text of the contract, docs/specification.md: its sections, and their sentences in the form that checks cite. */
import { readFileSync } from 'node:fs';

export interface Section {
  /** Number such as `4.2`; `Intro` is the text before section 1. */
  readonly id: string;
  readonly title: string;
  /** Title and text without the Markdown of lists, tables and code; ` | ` separates the cells of a table. */
  readonly text: string;
  readonly sentences: readonly Sentence[];
}

/** A sentence of a paragraph, of a list item or of a table row; each sentence of a row begins with its first cell. */
export interface Sentence {
  readonly text: string;
  /** Offset of its first character in the text of the section. */
  readonly at: number;
}

const PATH = 'docs/specification.md';
const HEADING = /^#{2,3} (\d+(?:\.\d+)?)\.? (.+)$/;
const HEAD_OF_TABLE = /^\|[-|\s:]+\|$/;
const READING = /^\s*>/;
/** The boundary between two sentences. */
const SENTENCE_END = /(?<=\.)(?<!\be\.g\.)\s+(?=[A-Z0-9/])/;

/**
 * The lines of a section without their Markdown. Table headers are omitted; quoted paragraphs are
 * readings and extensions, whose tests name their ids.
 */
function plainLines(lines: readonly string[]): string[] {
  return lines
    .filter((line) => !READING.test(line))
    .filter((line, at, all) => !HEAD_OF_TABLE.test(line) && !HEAD_OF_TABLE.test(all[at + 1] ?? ''))
    .map((line) =>
      line
        .replace(/^(\d+\.|[-*]) /, '')
        .replace(/^\||\|$/g, '')
        .replaceAll('`', '')
        .replace(/\s+/g, ' ')
        .trim(),
    )
    .filter((line) => line !== '');
}

/** Sentences of `lines`, which are consecutive in the text of their section from `start` on. */
function sentencesOf(lines: readonly string[], start: number): Sentence[] {
  let at = start;
  return lines.flatMap((line) =>
    line.split(SENTENCE_END).map((text) => {
      const sentence = { text, at };
      at += text.length + 1;
      return sentence;
    }),
  );
}

/** All sections with at least one sentence, in the order of the page. */
export function readSections(markdown: string): Section[] {
  const found: { id: string; title: string; lines: string[] }[] = [
    { id: 'Intro', title: 'Conventions', lines: [] },
  ];
  for (const line of markdown.split('\n')) {
    const [, id, title] = HEADING.exec(line) ?? [];
    if (id !== undefined && title !== undefined) found.push({ id, title, lines: [] });
    else if (!line.startsWith('# ')) found.at(-1)?.lines.push(line);
  }
  return found
    .map(({ id, title: heading, lines }) => {
      const title = heading.replaceAll('`', '');
      const plain = plainLines(lines);
      const sentences = sentencesOf(plain, title.length + 1);
      return { id, title, text: [title, ...plain].join(' '), sentences };
    })
    .filter(({ sentences }) => sentences.length > 0);
}

export function specification(): Section[] {
  return readSections(readFileSync(PATH, 'utf8'));
}
