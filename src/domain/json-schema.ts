/**
 * Builders of JSON Schema, for schema.ts alone. Typed as typebox's builders, so that `Static` reads them; written here
 * because those come in 300 modules, and nothing else of them is used (docs/optimizations.md).
 */
import type Type from 'typebox';

/** Made by `optional`: not among an object's required properties. */
const OMISSIBLE = new WeakSet<object>();

/** Key of the name that `named` gave a schema. A symbol, so that it is printed nowhere. */
const NAME = Symbol('name');

/** The same schema under a name: descriptions of the API list it once and refer to it. */
export function named<S extends object>(name: string, schema: S): S {
  return { ...schema, [NAME]: name };
}

/** The name that `named` gave, which copies of the schema keep. */
export function nameOf(schema: object): string | undefined {
  return (schema as { [NAME]?: string })[NAME];
}

function typed<Builder>(build: (...given: never[]) => object): Builder {
  return build as Builder;
}

/** Unknown body fields are ignored, so objects stay open unless `closed`. */
export const object = typed<typeof Type.Object>((properties: Record<string, object>, options?: object) => {
  const required = Object.entries(properties).flatMap(([name, schema]) =>
    OMISSIBLE.has(schema) ? [] : [name],
  );
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options };
});

export const optional = typed<typeof Type.Optional>((schema: object) => {
  const copy = { ...schema };
  OMISSIBLE.add(copy);
  return copy;
});

export const array = typed<typeof Type.Array>((items: object, options?: object) => ({
  type: 'array',
  items,
  ...options,
}));

/** Keys are texts: those that fit the pattern of `key`, or any. */
export const record = typed<typeof Type.Record>(
  (key: { readonly pattern?: string }, value: object, options?: object) => ({
    type: 'object',
    patternProperties: { [key.pattern ?? '^.*$']: value },
    ...options,
  }),
);

export const literal = typed<typeof Type.Literal>((value: unknown) => ({ type: typeof value, const: value }));

export const union = typed<typeof Type.Union>((anyOf: readonly object[], options?: object) => ({
  anyOf,
  ...options,
}));

export const string = typed<typeof Type.String>((options?: object) => ({ type: 'string', ...options }));
export const integer = typed<typeof Type.Integer>((options?: object) => ({ type: 'integer', ...options }));
export const number = typed<typeof Type.Number>((options?: object) => ({ type: 'number', ...options }));
export const boolean = typed<typeof Type.Boolean>((options?: object) => ({ type: 'boolean', ...options }));
export const nothing = typed<typeof Type.Null>((options?: object) => ({ type: 'null', ...options }));
export const unknown = typed<typeof Type.Unknown>((options?: object) => ({ ...options }));
/** Any JSON Schema, with the type that the caller names. */
export const unsafe = typed<typeof Type.Unsafe>((schema: object) => schema);
