/** Text of a configuration file: its value, faults of its syntax, and the line of each key. */
import {
  findNodeAtLocation,
  getNodePath,
  type Node,
  type ParseError,
  parse,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import type { Fault } from '../domain/schema.ts';

/** Characters of a line that are shown on each side of the fault. */
const SHOWN_MAX = 60;
/** A longer value is cut, because it may be a secret. */
const VALUE_MAX = 12;
const VALUE_SHOWN = 4;

/** Words by the name that the parser has for the fault. */
const WORDS: Readonly<Record<string, string>> = {
  InvalidSymbol: 'unknown word',
  InvalidNumberFormat: 'not a number',
  PropertyNameExpected: 'a key in double quotes is expected',
  ValueExpected: 'a value is expected',
  ColonExpected: 'a colon is expected',
  CommaExpected: 'a comma is expected',
  CloseBraceExpected: 'a closing brace is expected',
  CloseBracketExpected: 'a closing bracket is expected',
  EndOfFileExpected: 'text behind the end',
  InvalidCommentToken: 'not a comment',
  UnexpectedEndOfComment: 'a comment without end',
  UnexpectedEndOfString: 'a text without end',
  UnexpectedEndOfNumber: 'a number without end',
  InvalidUnicode: 'not a character',
  InvalidEscapeCharacter: 'unknown escape in a text',
  InvalidCharacter: 'a character that JSON does not allow in a text',
};
const OPTIONS = { allowTrailingComma: true };

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value of the text, and its faults: `FILE:LINE: column N: what: the line`, and keys that stand twice. */
export function parseSource(path: string, source: string): { value: unknown; faults: Fault[] } {
  const errors: ParseError[] = [];
  const value: unknown = parse(source, errors, OPTIONS);
  const faults = errors.map(({ error, offset }) => {
    const before = source.slice(0, offset).split('\n');
    const column = (before.at(-1) ?? '').length;
    const line = source.split('\n')[before.length - 1] ?? '';
    const what = WORDS[printParseErrorCode(error)] ?? 'not JSON';
    const text = shown(line, column);
    const message = `${path}:${before.length}: column ${column + 1}: ${what}${text === '' ? '' : `: ${text}`}`;
    return { path: '', message };
  });
  return { value, faults: [...faults, ...doubledKeys(source)] };
}

/** The parser takes the last one of two keys, and an operator may have changed the first. */
function doubledKeys(source: string): Fault[] {
  const faults: Fault[] = [];
  const walk = (node: Node): void => {
    const offsets = new Map<unknown, number>();
    for (const child of node.children ?? []) {
      const [key] = child.children ?? [];
      if (node.type === 'object' && key !== undefined) {
        const first = offsets.get(key.value);
        const lines = () => [first ?? 0, key.offset].map((offset) => lineAt(source, offset)).join(' and ');
        if (first === undefined) offsets.set(key.value, key.offset);
        else faults.push({ path: getNodePath(key).join('.'), message: `stands twice, in lines ${lines()}` });
      }
      walk(child);
    }
  };
  const tree = parseTree(source, [], OPTIONS);
  if (tree !== undefined) walk(tree);
  return faults;
}

function lineAt(source: string, offset: number): number {
  return source.slice(0, offset).split('\n').length;
}

/** Returns the part of the line around the fault. A text that the fault is inside of begins anew behind it. */
function shown(line: string, column: number): string {
  const before = line.slice(0, column);
  const isInside = before.replace(/\\./g, '').split('"').length % 2 === 0;
  const left = cutValues(before);
  const right = cutValues(`${isInside ? '"' : ''}${line.slice(column)}`).slice(isInside ? 1 : 0);
  const start = left.length > SHOWN_MAX ? `…${left.slice(-SHOWN_MAX)}` : left.trimStart();
  return `${start}${right.length > SHOWN_MAX ? `${right.slice(0, SHOWN_MAX)}…` : right.trimEnd()}`;
}

/** Cuts texts that are no keys, and words without quotes. */
function cutValues(text: string): string {
  return text
    .replace(
      /"(?:[^"\\]|\\.)*"\s*:|"((?:[^"\\]|\\.)*)("?)/g,
      (whole, value: string | undefined, end: string) =>
        value !== undefined && value.length > VALUE_MAX ? `"${value.slice(0, VALUE_SHOWN)}…${end}` : whole,
    )
    .replace(/[^\s"{}[\],:…]{17,}/g, (word) => `${word.slice(0, VALUE_SHOWN)}…`);
}

/** Finds the line of a key by its path, or of the nearest key above that the file has. Counted from 1. */
export function createLineFinder(source: string): (path: string) => number | undefined {
  const tree = parseTree(source, [], OPTIONS);
  return (path) => {
    if (tree === undefined) return undefined;
    for (let steps = stepsOf(path); steps.length > 0; steps = steps.slice(0, -1)) {
      const node = findNodeAtLocation(tree, steps);
      // The value's parent begins with its key.
      const offset = node?.parent?.type === 'property' ? node.parent.offset : node?.offset;
      if (offset !== undefined) return lineAt(source, offset);
    }
    return undefined;
  };
}

/** `TrustedProxies.0` is a key and a position. */
function stepsOf(path: string): (string | number)[] {
  return path.split('.').map((step) => (/^[0-9]+$/.test(step) ? Number(step) : step));
}
