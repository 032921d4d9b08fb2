/** Words that the project does not use, each with the standard term (comments, docs, titles, names of code). */
import { lineOf, type Sources } from './sources.ts';

/** Words of comments and names; an identifier is split at its capitals. Plurals in `s` are found as well. */
const NAMES: Readonly<Record<string, string>> = {
  door: 'access check, session check, index entry or API',
  desk: 'owner API, registry or upload slots',
  courier: 'delivery worker or code sender',
  lane: 'keyed queue or per-host concurrency limit',
  seat: 'lock',
  slab: 'shared buffer',
  vault: 'API-key cipher',
  tally: 'counters',
  tallies: 'counters',
  bythree: 'label cache',
  nudge: 'retry or wake-up',
  buried: 'dead letter',
  patience: 'timeout',
  whoever: 'the caller, the client or another noun',
  nobody: 'no caller, no client or another noun',
  somebody: 'a caller, a client or another noun',
  stranger: 'unauthenticated caller',
};

const PHRASES: Readonly<Record<string, string>> = {
  'stand-in': 'sandbox, stub or substitute',
  'stands in': 'replaces',
  'is told': 'is notified, receives',
  'are told': 'are notified, receive',
  'goes on': 'continues',
  'came of it': 'the result',
  'its hand at': 'performs the I/O of',
  'as good as': 'say what holds',
};

/** Names in journals, on the wire, in metrics and of other programs keep their spelling. */
const STORED = /(['"`])(codeDesk|codeCourier|uploadDesk|vault|buried)\1|\bvault:/g;

/** Every text but the list of words itself and its planted violations. */
export const TEXTS =
  /^(?!test\/tidy\/words\.ts|test\/tidy\.test\.ts)(?:(?:src|kit|test|bench|tools|docs|examples|packages)\/.*|\w+)\.(?:ts|cts|js|mjs|html|css|md|py|svg)$/;

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
const NAME_WORDS = Object.keys(NAMES).join('|');
const BANNED = new RegExp(
  [
    `(?<![A-Za-z])(?:${NAME_WORDS})s?(?![a-z])`,
    `(?:${Object.keys(NAMES).map(capital).join('|')}|ByThree)s?(?![a-z])`,
    `(?<![A-Za-z])(?:${NAME_WORDS.toUpperCase()})S?(?![A-Za-z])`,
    `\\b(?:${Object.keys(PHRASES)
      .map((phrase) => phrase.replace(' ', '[\\s*/]+'))
      .join('|')})s?\\b(?! front)`,
  ].join('|'),
  'g',
);

/** `path:line: "word", better: the standard term`. */
export function wordFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    const text = source.replace(STORED, (name) => ' '.repeat(name.length));
    for (const { 0: word, index } of text.matchAll(BANNED))
      faults.push(
        `${path}:${lineOf(text, index)}: "${word.replace(/[\s*/]+/g, ' ')}", better: ${better(word)}`,
      );
  }
  return faults;
}

function better(word: string): string {
  const plain = word.toLowerCase().replace(/[\s*/]+/g, ' ');
  const singular = plain.replace(/s$/, '');
  return PHRASES[plain] ?? PHRASES[singular] ?? NAMES[plain] ?? NAMES[singular] ?? '';
}
