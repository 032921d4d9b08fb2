/**
 * Patterns of schemas that come from outside, on an engine that takes linear time (RE2). A pattern with a part that such an
 * engine cannot have is refused with that part. The only importer of re2js.
 */
import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';

/** Instructions of a compiled pattern times characters of a text: about 10 ms. */
const STEPS_MAX = 10_000_000;

type PatternResult =
  | { readonly ok: true; readonly pattern: LinearPattern }
  /** Behind the path of the pattern, for example `has a look-ahead (?=, which …`. */
  | { readonly ok: false; readonly fault: string };

/** Stands in for a `RegExp` in a schema, because the validator accepts no other object. Only `test` is called. */
class LinearPattern extends RegExp {
  readonly #compiled: RE2JS;
  readonly #size: number;

  constructor(source: string, compiled: RE2JS) {
    super(source, 'u');
    this.#compiled = compiled;
    this.#size = compiled.programSize();
  }

  /** False also for a text that is too long to be compared with this pattern. */
  override test(text: string): boolean {
    return text.length * this.#size <= STEPS_MAX && this.#compiled.test(text);
  }
}

/** Compiles a pattern of JSON Schema (ECMA-262 with the flag `u`). */
export function linearPattern(source: unknown): PatternResult {
  if (typeof source !== 'string' || !isEcmaPattern(source))
    return { ok: false, fault: 'must be a regular expression' };
  const translated = translate(source);
  if (!translated.ok) return translated;
  try {
    return { ok: true, pattern: new LinearPattern(source, engine().compile(translated.source)) };
  } catch (error) {
    // The engine's own limits: repeats above 1,000 and the size of the compiled pattern.
    const reason = error instanceof Error ? error.message.replace(/^[^:]*: /, '') : String(error);
    return { ok: false, fault: `cannot be compared in linear time: ${reason}` };
  }
}

let loaded: typeof RE2JS | undefined;

/** Loaded with the first pattern: most gateways have none from outside. */
function engine(): typeof RE2JS {
  loaded ??= (createRequire(import.meta.url)('re2js') as { RE2JS: typeof RE2JS }).RE2JS;
  return loaded;
}

function isEcmaPattern(source: string): boolean {
  try {
    new RegExp(source, 'u');
    return true;
  } catch {
    return false;
  }
}

/** White space of ECMA-262, for a class; RE2's `\s` has that of ASCII alone. */
const SPACE =
  '\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
/** Its complement as ranges, because a class cannot contain a negated class. */
const NO_SPACE =
  '\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}' +
  '\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}';
const ANYTHING = '[\\x{0}-\\x{10ffff}]';
const NOTHING = '[^\\x{0}-\\x{10ffff}]';

/** A part of an ECMA-262 pattern that RE2 writes otherwise, or lacks. All other characters mean the same in both. */
interface Token {
  /** Sticky. */
  readonly form: RegExp;
  /** The context in which it has this meaning; undefined: in a class and outside. */
  readonly where?: 'class' | 'outside';
  readonly write?: (...found: string[]) => string;
  readonly lacking?: string;
  /** It begins or ends a class. */
  readonly turns?: true;
}

const codePoint = (hex: string) => `\\x{${hex}}`;
const TOKENS: readonly Token[] = [
  { form: /\(\?<?[=!]/y, where: 'outside', lacking: 'a look-around' },
  { form: /\\(?:[1-9]|k<)/y, where: 'outside', lacking: 'a back-reference' },
  { form: /\(\?<[^>]*>/y, where: 'outside', write: () => '(' },
  { form: /\[\^\]/y, where: 'outside', write: () => ANYTHING },
  { form: /\[\]/y, where: 'outside', write: () => NOTHING },
  { form: /\[\^?/y, where: 'outside', write: (whole) => whole, turns: true },
  { form: /\]/y, where: 'class', write: (whole) => whole, turns: true },
  { form: /\[/y, where: 'class', write: () => '\\[' },
  { form: /\./y, where: 'outside', write: () => '[^\\n\\r\\x{2028}\\x{2029}]' },
  { form: /\\s/y, where: 'outside', write: () => `[${SPACE}]` },
  { form: /\\S/y, where: 'outside', write: () => `[^${SPACE}]` },
  { form: /\\s/y, where: 'class', write: () => SPACE },
  { form: /\\S/y, where: 'class', write: () => NO_SPACE },
  { form: /\\b/y, where: 'class', write: () => codePoint('8') },
  { form: /\\v/y, write: () => codePoint('b') },
  { form: /\\0/y, write: () => codePoint('0') },
  { form: /\\c([A-Za-z])/y, write: (_, letter = '') => codePoint((letter.charCodeAt(0) % 32).toString(16)) },
  {
    form: /\\u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})/y,
    write: (_, high = '', low = '') =>
      codePoint((((parseInt(high, 16) & 0x3ff) << 10) + (parseInt(low, 16) & 0x3ff) + 0x10000).toString(16)),
  },
  { form: /\\u\{([0-9A-Fa-f]+)\}/y, write: (_, hex = '') => codePoint(hex) },
  { form: /\\u([0-9A-Fa-f]{4})/y, write: (_, hex = '') => codePoint(hex) },
  {
    form: /\\([pP])\{(?:(?:Script|sc|General_Category|gc)=)?(\w+)\}/y,
    write: (_, p = '', name = '') => `\\${p}{${name}}`,
  },
  { form: /\\./y, write: (whole) => whole },
];

type Translated =
  | { readonly ok: true; readonly source: string }
  | { readonly ok: false; readonly fault: string };

/** Writes a valid ECMA-262 pattern in the syntax of RE2, with the same meaning. */
function translate(source: string): Translated {
  let written = '';
  let place: Token['where'] = 'outside';
  for (let at = 0; at < source.length; ) {
    const found = tokenAt(source, at, place);
    if (found === undefined) {
      written += source.charAt(at);
      at += 1;
      continue;
    }
    const { token, parts } = found;
    const [whole] = parts;
    if (token.write === undefined)
      return { ok: false, fault: `has ${token.lacking} (${whole}), which cannot be compared in linear time` };
    written += token.write(...parts);
    if (token.turns) place = place === 'class' ? 'outside' : 'class';
    at += whole.length;
  }
  return { ok: true, source: written };
}

function tokenAt(source: string, at: number, place: Token['where']) {
  for (const token of TOKENS) {
    if (token.where !== undefined && token.where !== place) continue;
    token.form.lastIndex = at;
    const parts = token.form.exec(source);
    if (parts !== null) return { token, parts };
  }
  return undefined;
}
