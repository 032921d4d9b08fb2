/** Adversarial inputs: texts and JSON that make a reader slow which is not linear. Each fills the size that it is asked for. */

type Filled = (sizeBytes: number) => string;

const repeat =
  (unit: string): Filled =>
  (sizeBytes) =>
    unit.repeat(Math.max(1, Math.floor(sizeBytes / Buffer.byteLength(unit))));

/** Texts for every place that takes one: members of JSON, arguments, queries, fields of a head, parts of a path. */
export const TEXTS: Readonly<Record<string, Filled>> = {
  letters: repeat('a'),
  blanks: repeat(' '),
  'blanks around a letter': (size) => `${repeat(' ')(size / 2)}a${repeat(' ')(size / 2)}`,
  tabs: repeat('\t'),
  zeros: repeat('0'),
  'a decimal with a late digit': (size) => `10.${repeat('0')(size - 4)}1`,
  slashes: repeat('/'),
  'slashes and a letter': (size) => `${repeat('/')(size - 1)}a`,
  dots: repeat('.'),
  'dots and a letter': (size) => `${repeat('.')(size - 1)}a`,
  commas: repeat(','),
  'commas and blanks': repeat(', '),
  semicolons: repeat(';'),
  'equal signs': repeat('='),
  'members with a value': repeat('a=1;'),
  'members of a query': repeat('a=1&'),
  'members without a value': repeat('a&'),
  'quality values': repeat('a/b;q=0.5,'),
  'media types without an end': repeat('*/*;'),
  quotes: repeat('"'),
  'quoted tags': repeat('"a",'),
  'weak tags': repeat('W/"a", '),
  backslashes: repeat('\\'),
  'percent signs': repeat('%'),
  'encoded blanks': repeat('%20'),
  'encoded slashes': repeat('%2F'),
  colons: repeat(':'),
  'ranges of one byte': (size) => `bytes=${repeat('0-0,')(size - 7)}`,
  'addresses of one list': repeat('1.2.3.4, '),
  'nested parentheses': (size) => `${repeat('(')(size / 2)}${repeat(')')(size / 2)}`,
  'nested angles': repeat('<a'),
  'minus signs': repeat('-'),
  'plus signs': repeat('+'),
  'letters that a nested quantifier splits': (size) => `${repeat('a')(size - 1)}!`,
  'words with one blank between': repeat('word '),
  'base64url without an end': repeat('A-_9'),
};

/** Further texts for places that take Unicode. */
export const UNICODE_TEXTS: Readonly<Record<string, Filled>> = {
  'combining marks': (size) => `a${repeat('\u0301')(size - 1)}`,
  'joined emoji': repeat('👩\u200d'),
  'regional indicators': repeat('🇩'),
  'directions of writing': repeat('\u202e'),
  'line ends': repeat('\r\n'),
  'separators of lines': repeat('\u2028'),
  'characters of four bytes': repeat('😀'),
};

const filled =
  (start: string, unit: string, end: string): Filled =>
  (size) =>
    `${start}${repeat(unit)(size - start.length - end.length - unit.length)}${end}`;

const many =
  (name: (index: number) => string, value: string): Filled =>
  (size) => {
    const members: string[] = [];
    for (let index = 0, length = 0; length < size - 40; index += 1) {
      const member = `${name(index)}${value}`;
      members.push(member);
      length += Buffer.byteLength(member) + 1;
    }
    return members.join(',');
  };
const inObject =
  (members: Filled): Filled =>
  (size) =>
    `{${members(size - 2)}}`;
const inList =
  (items: Filled): Filled =>
  (size) =>
    `[${items(size - 2)}]`;
const key = (index: number) => `"k${index.toString(36)}":`;

/** JSON values of a size; some are no JSON at all. */
export const JSON_TEXTS: Readonly<Record<string, Filled>> = {
  'a long decimal': (size) => TEXTS['a decimal with a late digit']?.(size) ?? '',
  'a long integer': repeat('7'),
  'a negative number without an end': (size) => `-${repeat('0')(size - 1)}`,
  'a long exponent': (size) => `1e${repeat('9')(size - 2)}`,
  'small numbers': filled('[', '1e-300,', '1]'),
  'numbers of 17 digits': filled('[', '12345678901234567,', '1]'),
  zeros: filled('[', '0,', '0]'),
  nulls: filled('[', 'null,', 'null]'),
  'empty lists': filled('[', '[],', '[]]'),
  'empty objects': filled('[', '{},', '{}]'),
  'empty texts': filled('[', '"",', '""]'),
  'lists in lists': (size) => `${'['.repeat(50)}${filled('[', '[],', '[]]')(size - 102)}${']'.repeat(50)}`,
  'objects in objects': (size) =>
    `${'{"a":'.repeat(50)}${inObject(many(key, '1'))(size - 302)}${'}'.repeat(50)}`,
  'branches of depth 40': filled('[', `${'['.repeat(40)}${']'.repeat(40)},`, '0]'),
  'branches of objects': filled('[', `${'{"a":'.repeat(40)}1${'}'.repeat(40)},`, '0]'),
  'many members': inObject(many(key, '1')),
  'many members with lists': inObject(many(key, '[1,2]')),
  'members with long names': inObject(many((index) => `"${index}${'k'.repeat(900)}":`, '1')),
  'one member often': inObject(many(() => '"a":', '1')),
  'names with escapes': inObject(many((index) => `"\\u0061${index}":`, '1')),
  'names of prototypes': inObject(many((index) => `"__proto${index}":`, '{}')),
  'numbers as names': inObject(many((index) => `"${index}":`, 'null')),
  'a long name': (size) => `{"${repeat('n')(size - 8)}":1}`,
  'a text of escapes': filled('"', '\\u0041', '"'),
  'a text of escaped quotes': filled('"', '\\"', '"'),
  'a text of escaped backslashes': filled('"', '\\\\', '"'),
  'a text without an end': (size) => `"${repeat('a')(size - 1)}`,
  'a text of backslashes without an end': (size) => `"${repeat('\\')(size - 1)}`,
  'opened lists': repeat('['),
  'opened objects': repeat('{"a":'),
  'blanks between': filled('{"a"', ' ', ':1}'),
  'blanks before the end': filled('{"a":1', ' ', '}'),
  'a wrong end': filled('[', '1,', ']'),
  'texts of one letter': inList(many(() => '"a"', '')),
  'equal objects': filled('[', '{"a":[1,{"b":"c"}]},', '0]'),
  'different objects': inList(many((index) => `{"a":${index}}`, '')),
};

/** A JSON value for every text. */
export function jsonTexts(): Readonly<Record<string, Filled>> {
  const texts = Object.entries({ ...TEXTS, ...UNICODE_TEXTS });
  return {
    ...JSON_TEXTS,
    ...Object.fromEntries(
      texts.map(([name, text]) => [`a text: ${name}`, (size: number) => quotedWithin(text, size)]),
    ),
  };
}

/** Escapes can make it longer than the text: then the text is shorter. */
function quotedWithin(text: Filled, size: number): string {
  const whole = JSON.stringify(text(size - 2));
  return Buffer.byteLength(whole) <= size ? whole : JSON.stringify(text((size - 2) / 6));
}
