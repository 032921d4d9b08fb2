/** Short forms of JSON Schema, and schemas that the endpoints of several sandbox modules share. */

export type JsonSchema = Readonly<Record<string, unknown>>;

export const TEXT: JsonSchema = { type: 'string' };
export const INTEGER: JsonSchema = { type: 'integer' };
export const BOOLEAN: JsonSchema = { type: 'boolean' };
export const UTC: JsonSchema = { type: 'string', format: 'date-time' };
export const ID: JsonSchema = {
  type: 'string',
  pattern: '^(0|[1-9][0-9]{0,18})$',
  description: 'A 64-bit id, decimal.',
};
/** An id in a body: callers with safe integers may send numbers. */
export const ID_GIVEN: JsonSchema = {
  anyOf: [ID, { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }],
};
export const AMOUNT: JsonSchema = {
  type: 'string',
  pattern: '^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$',
  description: 'An exact decimal with all places of its currency.',
};
export const CURRENCY: JsonSchema = { type: 'string', pattern: '^[A-Za-z0-9_-]{2,16}$' };
export const PAIR: JsonSchema = { type: 'string', pattern: '^[A-Za-z0-9_]{2,16}-[A-Za-z0-9_]{2,16}$' };
export const CODE: JsonSchema = {
  type: 'string',
  pattern: '^[A-Za-z0-9_-]{22}$',
  description: 'A capability code.',
};

/** All properties are required, but those of `optional`. */
export function object(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required };
}

export const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items });
export const nullable = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] });
export const oneOf = (...values: readonly string[]): JsonSchema => ({ enum: values });

export const CAPABILITY = object({
  family: oneOf('chat', 'wallet'),
  scope: TEXT,
  id: ID,
  expiresUtc: nullable(UTC),
});

const ERROR = object({ error: object({ code: INTEGER, message: TEXT }) });

export const EVENT = object(
  {
    module: TEXT,
    tick: ID,
    type: TEXT,
    crmId: ID,
    netType: { type: 'integer', minimum: 0, maximum: 255 },
    data: { type: 'object' },
  },
  ['crmId', 'netType'],
);

/** Schemas by their names in docs/modules.openapi.json. */
export const SHARED_SCHEMAS = {
  Id: ID,
  Amount: AMOUNT,
  Currency: CURRENCY,
  Pair: PAIR,
  Code: CODE,
  Capability: CAPABILITY,
  Event: EVENT,
  Error: ERROR,
};
