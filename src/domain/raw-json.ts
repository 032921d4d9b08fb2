/**
 * Reads members of JSON text without parsing it, for ids and decimals that `JSON.parse` would change, and for answers
 * that are forwarded unread. Finds numbers that would lose digits. Never throws; other text has no members.
 */

export interface Span {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
/** Characters behind a backslash, with their meanings (RFC 8259 7). */
const ESCAPED: Readonly<Record<string, number>> = {
  '"': 0x22,
  '\\': 0x5c,
  '/': 0x2f,
  b: 0x08,
  f: 0x0c,
  n: 0x0a,
  r: 0x0d,
  t: 0x09,
};

/**
 * The value of `key` in the object that begins at `from` (white space before it is skipped). Of a repeated key the
 * last one counts, as for `JSON.parse`. Undefined when there is none or the text is no object.
 */
export function memberSpan(text: string, key: string, from = 0): Span | undefined {
  let at = skipSpace(text, from);
  if (text.charCodeAt(at) !== OPEN_BRACE) return undefined;
  let found: Span | undefined;
  at = skipSpace(text, at + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const keyEnd = stringEnd(text, at);
    const colon = skipSpace(text, keyEnd);
    if (text.charCodeAt(colon) !== COLON) return undefined;
    const start = skipSpace(text, colon + 1);
    const end = valueEnd(text, start);
    if (end <= start) return undefined;
    if (sameKey(text, at, keyEnd, key)) found = { start, end };
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === CLOSE_BRACE) return found;
    if (text.charCodeAt(at) !== COMMA) return undefined;
    at = skipSpace(text, at + 1);
  }
  return undefined;
}

/**
 * The values of members of the object that begins at `from`, in one pass: of all, or of those `wanted`; of a repeated key the
 * last one.
 */
export function memberSpans(text: string, from = 0, wanted?: ReadonlySet<string>): Map<string, Span> {
  const found = new Map<string, Span>();
  let at = skipSpace(text, from);
  if (text.charCodeAt(at) !== OPEN_BRACE) return found;
  at = skipSpace(text, at + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const keyEnd = stringEnd(text, at);
    const colon = skipSpace(text, keyEnd);
    if (text.charCodeAt(colon) !== COLON) return found;
    const start = skipSpace(text, colon + 1);
    const end = valueEnd(text, start);
    if (end <= start) return found;
    const spelled = text.slice(at + 1, keyEnd - 1);
    const key = spelled.includes('\\') ? decoded(text.slice(at, keyEnd)) : spelled;
    if (wanted?.has(key) !== false) found.set(key, { start, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) !== COMMA) return found;
    at = skipSpace(text, at + 1);
  }
  return found;
}

/** A key that is written with escapes; one that is no JSON is returned unchanged. */
function decoded(literal: string): string {
  try {
    return String(JSON.parse(literal));
  } catch (error) {
    if (error instanceof SyntaxError) return literal;
    throw error;
  }
}

/** The items of the array that begins at `from`, in order; empty when the text is no array. */
export function itemSpans(text: string, from = 0): Span[] {
  const spans: Span[] = [];
  let at = skipSpace(text, from);
  if (text.charCodeAt(at) !== OPEN_BRACKET) return spans;
  at = skipSpace(text, at + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
    const end = valueEnd(text, at);
    if (end <= at) return spans;
    spans.push({ start: at, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) !== COMMA) return spans;
    at = skipSpace(text, at + 1);
  }
  return spans;
}

/** Are there more than `max` values in valid JSON text, lists and objects included? One pass that stops there. */
export function hasMoreValues(text: string, max: number): boolean {
  // Each value takes a character.
  if (text.length <= max) return false;
  let values = 1;
  for (let at = 0; at < text.length && values <= max; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at);
    else {
      // An empty container counts as one that has a value.
      if (code === COMMA || code === OPEN_BRACE || code === OPEN_BRACKET) values += 1;
      at += 1;
    }
  }
  return values > max;
}

/** Characters of a JSON number that is compared; a double never needs more than 25. */
export const NUMBER_MAX_CHARACTERS = 40;

export interface NumberFault {
  /** Position of the number, as `a.b.0`; '' for the value itself. */
  readonly path: string;
  /** `long`: over `NUMBER_MAX_CHARACTERS`, and not read. `lossy`: a double cannot hold its digits. */
  readonly kind: 'long' | 'lossy';
}

/** A container that is open at a position of the text: an object has the span of its present key. */
interface OpenContainer {
  key: Span | undefined;
  index: number;
}

/**
 * The first number in valid JSON text that a double would change: 2^53 + 1, or a decimal with more digits than survive.
 * Undefined when every number is exact. One pass over the text.
 */
export function numberFault(text: string, span: Span): NumberFault | undefined {
  const open: OpenContainer[] = [];
  let inner: OpenContainer | undefined;
  let at = span.start;
  while (at < span.end) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = stringEnd(text, at);
      const next = skipSpace(text, end);
      if (inner !== undefined && text.charCodeAt(next) === COLON) inner.key = { start: at, end };
      at = next;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      inner = { key: undefined, index: 0 };
      open.push(inner);
      at += 1;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      open.pop();
      inner = open.at(-1);
      at += 1;
    } else if (code === COMMA) {
      if (inner !== undefined) inner.index += 1;
      at += 1;
    } else if (code === MINUS || isDigit(code)) {
      const end = valueEnd(text, at);
      const kind = faultOfNumber(text, at, end);
      if (kind !== undefined) return { path: pathOf(open, text), kind };
      at = end;
    } else at += 1;
  }
  return undefined;
}

function pathOf(open: readonly OpenContainer[], text: string): string {
  return open
    .map(({ key, index }) => (key === undefined ? index : decoded(text.slice(key.start, key.end))))
    .join('.');
}

function faultOfNumber(text: string, start: number, end: number): NumberFault['kind'] | undefined {
  if (end - start > NUMBER_MAX_CHARACTERS) return 'long';
  return losesDigits(text.slice(start, end)) ? 'lossy' : undefined;
}

/** Does reading this number as a double and writing it again change its digits? */
function losesDigits(literal: string): boolean {
  const value = Number(literal);
  return !Number.isFinite(value) || digitsOf(literal) !== digitsOf(String(value));
}

/** Significant digits and the power of ten of the last one, so that 1.50, 15e-1 and 1.5 are the same. */
function digitsOf(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.replace(/^-/, '').toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const all = (whole + fraction).replace(/^0+/, '');
  let end = all.length;
  while (end > 0 && all.charCodeAt(end - 1) === ZERO) end -= 1;
  if (end === 0) return '0';
  return `${all.slice(0, end)}e${Number(exponent) - fraction.length + (all.length - end)}`;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/**
 * Is this literal, quotation marks included, another spelling of `key`? Stops at the first difference: an object may have
 * very many names with escapes.
 */
function sameKey(text: string, start: number, end: number, key: string): boolean {
  let at = start + 1;
  for (let index = 0; index < key.length; index += 1) {
    let code = text.charCodeAt(at);
    let length = 1;
    if (code === BACKSLASH) {
      const kind = text.charAt(at + 1);
      length = kind === 'u' ? 6 : 2;
      code = kind === 'u' ? Number.parseInt(text.slice(at + 2, at + 6), 16) : (ESCAPED[kind] ?? Number.NaN);
    }
    if (code !== key.charCodeAt(index)) return false;
    at += length;
  }
  return at === end - 1;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
    at += 1;
  }
}

/** Characters read one by one behind an escaped quotation mark: there a search for each mark would be slower. */
const ESCAPED_STRETCH = 1_024;

/** Past the closing quote of the string that begins at `start`; the end of the text when it never closes. */
function stringEnd(text: string, start: number): number {
  let at = start + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return text.length;
    let before = quote - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((quote - before) % 2 === 1) return quote + 1;
    at = quote + 1;
    for (const stop = at + ESCAPED_STRETCH; at < stop; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) return at + 1;
      if (code === BACKSLASH) at += 1;
    }
    if (at >= text.length) return text.length;
  }
}

/** Past the value that begins at `start`. */
function valueEnd(text: string, start: number): number {
  const opening = text.charCodeAt(start);
  if (opening === QUOTE) return stringEnd(text, start);
  if (opening === OPEN_BRACE || opening === OPEN_BRACKET) return nestedEnd(text, start);
  let at = start;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code <= 0x20) break;
  }
  return at;
}

function nestedEnd(text: string, start: number): number {
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = stringEnd(text, at);
      continue;
    }
    at += 1;
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return text.length;
}

/** JSON text that is the same for equal values: the members of each object stand in the order of their names. */
export function sortedJson(value: unknown): string {
  return JSON.stringify(sorted(value));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}
