/** The builders of JSON Schema, held against those of the library whose types they carry. */
import t from 'tap';
import Type, { type Static } from 'typebox';
import * as own from '../../src/domain/schema.ts';

const CASES: Readonly<Record<string, readonly [own: object, library: object]>> = {
  'an object without properties': [own.object({}), Type.Object({})],
  'an object whose properties may all be left out': [
    own.object({ a: own.optional(own.boolean()) }),
    Type.Object({ a: Type.Optional(Type.Boolean()) }),
  ],
  'an object of required and other properties, closed and described': [
    own.object(
      { a: own.integer({ minimum: 1 }), b: own.optional(own.nothing()), c: own.unknown() },
      { additionalProperties: false, description: 'x' },
    ),
    Type.Object(
      { a: Type.Integer({ minimum: 1 }), b: Type.Optional(Type.Null()), c: Type.Unknown() },
      { additionalProperties: false, description: 'x' },
    ),
  ],
  'an object in an object that may be left out': [
    own.object({ a: own.optional(own.object({ b: own.literal('c') })) }),
    Type.Object({ a: Type.Optional(Type.Object({ b: Type.Literal('c') })) }),
  ],
  'lists, with bounds': [
    own.array(own.array(own.integer()), { maxItems: 3 }),
    Type.Array(Type.Array(Type.Integer()), { maxItems: 3 }),
  ],
  'literals of each type': [
    own.union([own.literal('a'), own.literal(1), own.literal(true)], { description: 'x' }),
    Type.Union([Type.Literal('a'), Type.Literal(1), Type.Literal(true)], { description: 'x' }),
  ],
  'a record of anything': [
    own.record(own.text(), own.unknown(), { description: 'x' }),
    Type.Record(Type.String({ maxLength: 4096 }), Type.Unknown(), { description: 'x' }),
  ],
  'a record whose keys have a pattern': [
    own.record(own.text({ pattern: '^[0-9]+$', form: 'digits' }), own.integer()),
    Type.Record(Type.String({ pattern: '^[0-9]+$' }), Type.Integer()),
  ],
  'null or a text': [
    own.nullable(own.text({ maxLength: 3 })),
    Type.Union([Type.String({ maxLength: 3 }), Type.Null()]),
  ],
};

for (const [name, [built, expected]] of Object.entries(CASES))
  t.test(`schema builders: ${name}: the same JSON, keys in the same order`, async (t) =>
    t.equal(JSON.stringify(built), JSON.stringify(expected)),
  );

t.test('schema builders: a schema made optional: the one it was made of stays required', async (t) => {
  const name = own.text();
  const shape = own.object({ name, other: own.optional(name) });
  t.same(shape.required, ['name']);
  const value: Static<typeof shape> = { name: 'a' };
  const compiled = own.compileSchema(shape);
  t.ok(compiled.check(value));
  t.same(compiled.faults({ other: 'b' }), [{ path: '/name', message: 'is required' }]);
});
