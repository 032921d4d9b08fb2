import { test } from 'tap';
import {
  array,
  compileJsonSchema,
  compileSchema,
  int64,
  integer,
  nameText,
  nullable,
  object,
  optional,
  text,
  union,
} from '../../src/domain/schema.ts';

const form = compileSchema(
  object({
    id: int64(),
    name: optional(nameText(16)),
    letter: optional(text({ pattern: '^a$', form: 'the letter a' })),
    codes: optional(nullable(array(text({ pattern: '^[A-Z]+$', form: 'capitals' }), { maxItems: 2 }))),
    either: optional(union([object({ a: integer() }), object({ b: integer() })])),
  }),
);

const said = (value: object) => form.faults(value).map(({ path, message }) => `${path} ${message}`);

test('faults: a text that does not fit its pattern, told by what the pattern stands for', async (t) => {
  t.strictSame(said({ id: '1', letter: 'b' }), ['/letter must be the letter a']);
  t.strictSame(said({ id: '1', codes: ['A', 'b'] }), ['/codes/1 must be capitals']);
  t.strictSame(said({ id: '1', name: '\u0007' }), [
    '/name must be a text with something to be seen, without control characters',
  ]);
});

test('faults: an id that is none, one fault in words', async (t) => {
  for (const id of ['x', '-1', '01', '9223372036854775808', '99999999999999999999'])
    t.strictSame(said({ id }), ['/id must be an id of up to 19 digits'], id);
  t.strictSame(said({ id: -1 }), ['/id must be >= 0']);
  t.strictSame(said({ id: true }), ['/id must be string or integer']);
});

test('faults: a value that fits no branch of a union, one fault', async (t) => {
  t.strictSame(said({ id: '1', codes: 'A' }), ['/codes must be array or null']);
  t.strictSame(said({ id: '1', codes: ['A', 'B', 'C'] }), ['/codes must not have more than 2 items']);
  t.strictSame(said({ id: '1', either: {} }), ['/either has none of the forms that are allowed']);
});

test('faults: a pattern of a configured schema, told by its example', async (t) => {
  const faultsOf = (schema: object, value: unknown) =>
    compileJsonSchema({ type: 'object', properties: { card: { type: 'string', ...schema } } }).faults({
      card: value,
    });
  const pattern = '^[0-9]{4}$';
  t.strictSame(faultsOf({ pattern, examples: ['4242'] }, 'x'), [
    { path: '/card', message: 'must have the form of 4242' },
  ]);
  for (const examples of [undefined, [], [4242], ['4'.repeat(65)]])
    t.strictSame(
      faultsOf({ pattern, ...(examples === undefined ? {} : { examples }) }, 'x'),
      [{ path: '/card', message: 'does not have the expected form' }],
      JSON.stringify(examples),
    );
});

test('faults: the words of a pattern, not printed with the schema', async (t) => {
  t.notMatch(JSON.stringify(form.schema), /the letter a|capitals/);
});
