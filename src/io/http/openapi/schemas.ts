/** Schemas of the OpenAPI document: named ones are registered once, and examples are made from those of their fields. */
import { isDeepStrictEqual } from 'node:util';
import { nameOf } from '../../../domain/schema.ts';

interface AnySchema {
  readonly type?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly AnySchema[];
  readonly items?: AnySchema;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, AnySchema>>;
  readonly patternProperties?: object;
}

/** Schemas of the document by name. */
export class SchemaRegistry {
  readonly #schemas = new Map<string, object>();

  /** All of them in the order of their names. */
  get components(): Record<string, object> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The schema with references instead of its named schemas. */
  reference(schema: object): object {
    const name = nameOf(schema);
    return name === undefined ? this.#copy(schema) : this.register(name, schema);
  }

  /** A reference to the schema under its own name or this one. Throws if two schemas have the same name. */
  register(name: string, schema: object): object {
    const taken = nameOf(schema) ?? name;
    const copy = this.#copy(schema);
    const known = this.#schemas.get(taken);
    if (known !== undefined && !isDeepStrictEqual(known, copy)) throw new Error(`two schemas named ${taken}`);
    this.#schemas.set(taken, copy);
    return { $ref: `#/components/schemas/${taken}` };
  }

  /** A copy without the symbols of the schema library. */
  #copy(schema: object): object {
    return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, this.#value(value)]));
  }

  #value(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#value(each));
    return typeof value === 'object' && value !== null ? this.reference(value) : value;
  }
}

/**
 * A valid value: the schema's own example, or one made from its fields. Adds the path of a text without example to
 * `missing`; a number is the smallest valid one from 1.
 */
export function exampleOf(schema: object, path: string, missing: string[]): unknown {
  const { examples, anyOf, items, properties, minimum, minItems, ...rest } = schema as AnySchema;
  if (examples?.[0] !== undefined) return examples[0];
  if (rest.const !== undefined) return rest.const;
  if (rest.enum?.[0] !== undefined) return rest.enum[0];
  if (anyOf?.[0] !== undefined) return exampleOf(anyOf[0], path, missing);
  if (properties !== undefined) {
    const entries = Object.entries(properties);
    return Object.fromEntries(
      entries.map(([name, each]) => [name, exampleOf(each, `${path}/${name}`, missing)]),
    );
  }
  if (items !== undefined)
    return Array.from({ length: Math.max(1, minItems ?? 1) }, () => exampleOf(items, `${path}/0`, missing));
  if (rest.type === 'boolean') return true;
  if (rest.type === 'null') return null;
  if (rest.type === 'integer') return Math.max(1, minimum ?? 1);
  if (rest.patternProperties !== undefined) return {};
  missing.push(path);
  return undefined;
}
