/** Comments begin with a whole sentence, or with a noun phrase that says what a field or a value is; never with a fragment. */
import { commentsOf, lineOf, type Sources } from './sources.ts';

/** Words that begin a clause without its sentence: "What is left.", "Of one node.", "Whether it is open." */
const NEVER = [
  'What',
  'Of',
  'Whether',
  'Whose',
  'Which',
  'How',
  'Who',
  'Why',
  'As(?! (?:soon|long) as)',
  'To be',
];

/** Words that may begin a sentence whose main clause follows behind a comma: "When x is y, z happens." */
const BEFORE_A_CLAUSE = ['When', 'Where', 'As', 'Until', 'If', 'Because', 'While', 'Unless', 'To'];

const NEVER_STARTS = new RegExp(`^(?:${NEVER.join('|')})\\b`);
const CLAUSE_STARTS = new RegExp(`^(?:${BEFORE_A_CLAUSE.join('|')})\\b`);

/** A comma with a unit is none that a main clause follows: "When it began, Unix milliseconds." */
const MAIN_CLAUSE = /, (?!(?:in )?(?:Unix )?(?:milli|micro)?seconds\b)\S+ \S/i;

/** Texts whose comments are checked: all code but the planted fragments. */
export const CHECKED =
  /^(?:src|kit|test(?!\/tidy(?:\.test|\/comments)\.ts)|bench|tools|packages|examples)\/.*\.(?:ts|cts|js|mjs|css)$/;

/** `path:line: the comment begins with a fragment: "…"`. */
export function fragmentFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources)
    for (const { text, index } of commentsOf(source)) {
      const sentence = firstSentence(text);
      if (isFragment(sentence))
        faults.push(`${path}:${lineOf(source, index)}: the comment begins with a fragment: "${sentence}"`);
    }
  return faults;
}

function isFragment(sentence: string): boolean {
  return NEVER_STARTS.test(sentence) || (CLAUSE_STARTS.test(sentence) && !MAIN_CLAUSE.test(sentence));
}

/** The words of a comment up to the end of its first sentence, on one line. */
function firstSentence(comment: string): string {
  const lines = (comment.endsWith('*/') ? comment.slice(0, -2) : comment).split('\n');
  const words = lines
    .map((line) =>
      line
        .trim()
        .replace(/^(?:\/?\*+|\/\/)/, '')
        .trim(),
    )
    .filter((line) => line !== '')
    .join(' ');
  const end = /[.?!](?= |$)/.exec(words);
  return end === null ? words : words.slice(0, end.index + 1);
}
