/** Patterns from outside: the meaning of ECMA-262, in linear time, and refusals that name the part. */
import fc from 'fast-check';
import t from 'tap';
import { linearPattern } from '../../src/domain/linear-pattern.ts';
import { compileOutsideSchema } from '../../src/domain/outside-schema.ts';
import { runs } from '../support/depth.ts';

const ATOMS = [
  'a',
  'é',
  '.',
  '\\s',
  '\\S',
  '\\d',
  '\\W',
  '\\w',
  '\\v',
  '\\0',
  '\\cJ',
  '\\x41',
  '\\u00e9',
  '\\u{1F600}',
  '\\ud83d\\ude00',
  '\\/',
  '\\.',
  '\\p{L}',
  '\\P{Lu}',
  '\\p{Script=Greek}',
  '[^]',
  '[]',
  '[a-c\\s]',
  '[^\\S\\d]',
  '[[:alpha:\\]]',
  '[\\b\\-.]',
  '(?:a|b)',
  '(x)',
];
const TEXTS = [
  '',
  'a',
  'b',
  'é',
  'É',
  '\u00a0',
  '\ufeff',
  '\n',
  '\r',
  '\u2028',
  '\v',
  '\0',
  '\b',
  'A',
  '1',
  '-',
  '.',
  ':',
  '[',
  '/',
  '😀',
  'ω',
  'x',
  '_',
];

// covers S38
t.test('linear pattern: finds what a regular expression with the flag u finds', async (t) => {
  const atom = fc.constantFrom(...ATOMS);
  const part = fc
    .tuple(atom, fc.constantFrom('', '', '*', '+', '?', '{1,2}', '*?'))
    .map((two) => two.join(''));
  const pattern = fc
    .tuple(
      fc.constantFrom('', '^', '\\b'),
      fc.array(part, { minLength: 1, maxLength: 4 }),
      fc.constantFrom('', '$', '\\B'),
    )
    .map(([start, parts, end]) => `${start}${parts.join('')}${end}`);
  const text = fc.array(fc.constantFrom(...TEXTS), { maxLength: 6 }).map((parts) => parts.join(''));
  const same = fc.property(pattern, text, (source, given) => {
    // V8 finds \B between the two halves of a character, where ECMA-262 has no position.
    fc.pre(!(source.includes('\\B') && given.includes('😀')));
    const compiled = linearPattern(source);
    return compiled.ok && compiled.pattern.test(given) === new RegExp(source, 'u').test(given);
  });
  t.doesNotThrow(() => fc.assert(same, runs(20_000)));
});

t.test('linear pattern: the name of a group changes nothing', async (t) => {
  const compiled = linearPattern('^(?<name>é|a)$');
  t.ok(compiled.ok && compiled.pattern.test('é'));
});

// covers S38
t.test('linear pattern: what a linear engine lacks is a fault that names the part', async (t) => {
  const faults: readonly (readonly [source: unknown, fault: RegExp])[] = [
    ['(?=a)b', /look-around \(\(\?=\)/],
    ['(?<!a)b', /look-around \(\(\?<!\)/],
    ['(a)\\1', /back-reference \(\\1\)/],
    ['(?<n>a)\\k<n>', /back-reference \(\\k<\)/],
    ['a{1001}', /\{1001\}/],
    ['\\p{Letter}', /\\p\{Letter\}/],
    ['(', /must be a regular expression/],
    [5, /must be a regular expression/],
  ];
  for (const [source, fault] of faults) t.match(linearPattern(source), { ok: false, fault }, String(source));
});

t.test('linear pattern: a text that is too long for the size of its pattern does not fit', async (t) => {
  const compiled = linearPattern('^(?:\\p{L}{1,300}\\s?){3}$');
  t.ok(compiled.ok && compiled.pattern.test('abc def'), 'a short one fits');
  t.ok(compiled.ok && compiled.pattern.test('a'.repeat(900)), 'a longer one fits');
  t.notOk(compiled.ok && compiled.pattern.test('a '.repeat(100_000)));
});

t.test(
  'outside schema: members that a pattern chooses, and the others, are checked as JSON Schema says',
  async (t) => {
    const compiled = compileOutsideSchema({
      type: 'object',
      properties: { own: { type: 'string' } },
      patternProperties: { '^n': { type: 'number' }, x$: { $ref: '#/$defs/short' }, '^never': false },
      additionalProperties: false,
      $defs: { short: { maximum: 5, patternProperties: { '^deep': { $ref: '#/$defs/short' } } } },
    });
    for (const value of [{}, { own: 'a' }, { n1: 1 }, { nx: 5 }, { x: { deep1: 5 } }])
      t.ok(compiled.check(value), JSON.stringify(value));
    for (const [value, message] of [
      [{ own: 5 }, 'must be string'],
      [{ n1: 'a' }, 'has a wrong member "n1": must be number'],
      [{ nx: 6 }, 'has a wrong member "nx": must be <= 5'],
      [{ never: 1 }, /has a wrong member "never"/],
      [{ other: 1 }, /has a wrong member "other"/],
      [{ x: { deep1: 6 } }, /has a wrong member "x": has a wrong member "deep1": must be <= 5/],
    ] as const)
      t.match(compiled.faults(value), [{ message }], JSON.stringify(value));
  },
);

t.test('outside schema: data that looks like a schema stays data', async (t) => {
  const compiled = compileOutsideSchema({
    properties: { a: { const: { pattern: 'b' } }, pattern: { type: 'string' } },
  });
  t.ok(compiled.check({ a: { pattern: 'b' }, pattern: 'c' }));
  t.notOk(compiled.check({ pattern: 5 }));
});
