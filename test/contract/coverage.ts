/** Finds sentences of the contract without evidence, and faults of citations and of named tests. */
import type { Citation, OtherTest } from './check.ts';
import type { Section, Sentence } from './specification.ts';

const PARTS = ' … ';

/** Sections by the id that citations use. */
export type Sections = readonly Section[];

interface Span {
  readonly from: number;
  readonly to: number;
}

/** Spans of each part of a citation in the text of its section; all spans of a part that occurs more than once. */
function spansOf(text: string, sentence: string): Span[] {
  return sentence.split(PARTS).flatMap((part) => {
    const spans: Span[] = [];
    for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1))
      spans.push({ from: at, to: at + part.length });
    return spans;
  });
}

/** Position of a citation in its section, for sorting. */
export function positionOf(sections: Sections, { section, sentence }: Citation): number {
  const text = sections.find(({ id }) => id === section)?.text ?? '';
  return Math.min(...spansOf(text, sentence).map(({ from }) => from));
}

/** Citations of unknown sections, and of words that are not in their section. */
export function citationFaults(sections: Sections, citations: readonly Citation[]): string[] {
  return citations.flatMap(({ section, sentence }) => {
    const text = sections.find(({ id }) => id === section)?.text;
    if (text === undefined) return [`${section}: no such section`];
    return sentence
      .split(PARTS)
      .filter((part) => part === '' || !text.includes(part))
      .map((part) => `${section}: does not say “${part}”`);
  });
}

/** A sentence that introduces a list, or says that the contract leaves something open. */
function promisesNothing({ text }: Sentence): boolean {
  return text.endsWith(':') || text.startsWith('Left open: ');
}

/** Placeholder for cited words. */
const CITED = '‥';

/** The part of a sentence that no span covers. */
function rest({ text, at }: Sentence, spans: readonly Span[]): string {
  const isCited = (place: number) => spans.some(({ from, to }) => from <= place && place < to);
  const letters = text.split('').map((letter, index) => (isCited(at + index) ? CITED : letter));
  return letters.join('').replace(/‥+/g, CITED).trim();
}

/** Sentences with uncited words. Punctuation between citations is ignored. */
export function uncited(sections: Sections, citations: readonly Citation[]): string[] {
  return sections.flatMap(({ id, text, sentences }) => {
    const spans = citations
      .filter(({ section }) => section === id)
      .flatMap(({ sentence }) => spansOf(text, sentence));
    return sentences
      .filter((sentence) => !promisesNothing(sentence))
      .map((sentence) => rest(sentence, spans))
      .filter((words) => /[^‥\s.,:;|]/.test(words))
      .map((words) => `${id}: “${words}” is not accounted for`);
  });
}

/** Named tests that do not exist. `read` returns the source of a file. */
export function namedTestFaults(
  tests: readonly OtherTest[],
  read: (file: string) => string | undefined,
): string[] {
  return tests.flatMap(({ section, test: [file, name] }) => {
    const source = read(file);
    if (source === undefined) return [`${section}: ${file} does not exist`];
    return source.includes(name) ? [] : [`${section}: ${file} has no test “${name}”`];
  });
}
