/** Texts of rows that were read: the values are the same, whatever is in them. */
import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { anyCodePoint } from '../../../../kit/code-points.ts';
import { ownStrings, ownText } from '../../../../src/actors/runtime/journal/own-strings.ts';
import { runs } from '../../../support/depth.ts';

t.test('own strings: every plain value comes back as it was, texts of any characters included', (t) => {
  const text = fc.oneof(
    fc.string({ maxLength: 60 }),
    fc.string({ unit: anyCodePoint, maxLength: 60 }),
    fc.constantFrom('', '\ud800 lone surrogate', 'exactly 13 ch', 'é'.repeat(20), '\0'.repeat(20)),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      text,
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.constant(undefined),
      fc.uint8Array({ maxLength: 20 }),
      fc.array(tie('value'), { maxLength: 5 }),
      fc.dictionary(text, tie('value'), { maxKeys: 5, noNullPrototype: true }),
      fc.array(fc.tuple(text, text), { maxLength: 3 }).map((pairs) => new Map(pairs)),
      fc.array(text, { maxLength: 3 }).map((texts) => new Set(texts)),
    ),
  }));
  const property = () =>
    fc.assert(
      fc.property(value, (each) => {
        const before: unknown = structuredClone(each);
        deepStrictEqual(ownStrings(each), before);
      }),
      runs(500),
    );
  t.doesNotThrow(property);
  t.end();
});

t.test('own text: every text comes back as it was, half characters included', (t) => {
  const texts = ['', 'x'.repeat(12), 'x'.repeat(13), 'é'.repeat(20), '\0'.repeat(20), '\u0100'.repeat(20)];
  for (const text of [...texts, '\ud800'.repeat(20), '\udc00 a tail without its head', '🗝'.repeat(20)]) {
    t.equal(ownText(`before${text}after`.slice(6, 6 + text.length)), text);
  }
  t.end();
});
