/** Compiles a JSON Schema that comes from outside: its patterns run on an engine that is linear for any pattern. */
import { linearPattern } from './linear-pattern.ts';
import { type CompiledSchema, compileJsonSchema, compileWhenAsked } from './schema.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** Keywords whose values are data and no schemas. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples']);

interface Compilation {
  readonly root: JsonObject;
  /** Schemas of members that are chosen by a pattern, each compiled once: they may refer to each other. */
  readonly parts: Map<unknown, CompiledSchema<unknown>>;
}

/** Throws an `Error` for a schema that the validator cannot use, or a pattern that `linearPattern` refuses. */
export function compileOutsideSchema(root: JsonObject): CompiledSchema<unknown> {
  const compilation: Compilation = { root, parts: new Map() };
  const compiled = compileJsonSchema(linearForm(root, compilation) as object);
  // Each part is compiled at load, not with the first value. Compiling one part may add others.
  for (const part of compilation.parts.values()) part.check(undefined);
  return compiled;
}

function linearForm(schema: unknown, compilation: Compilation): unknown {
  if (Array.isArray(schema)) return schema.map((item) => linearForm(item, compilation));
  if (!isObject(schema)) return schema;
  const form = Object.fromEntries(
    Object.entries(withoutNamePatterns(schema, compilation)).map(([key, value]) => [
      key,
      DATA.has(key) ? value : linearForm(value, compilation),
    ]),
  );
  // An object of properties may have one with this name, which is then a schema.
  if (typeof form['pattern'] === 'string') form['pattern'] = patternOf(form['pattern']);
  return form;
}

/**
 * The validator makes expressions of its own of `patternProperties`, and with them decides which members are additional.
 * Both keywords become one check.
 */
function withoutNamePatterns(schema: JsonObject, compilation: Compilation): JsonObject {
  const { patternProperties, additionalProperties, ...rest } = schema;
  if (!isObject(patternProperties)) return schema;
  const rules = Object.entries(patternProperties).map(
    ([source, part]) => [patternOf(source), partOf(part, compilation)] as const,
  );
  const own = isObject(schema['properties']) ? schema['properties'] : {};
  const others = additionalProperties === undefined ? [] : [partOf(additionalProperties, compilation)];
  const faultOf = (value: unknown): string | undefined => {
    if (!isObject(value)) return undefined;
    for (const [name, item] of Object.entries(value)) {
      const matching = rules.flatMap(([pattern, part]) => (pattern.test(name) ? [part] : []));
      const parts = matching.length === 0 && !Object.hasOwn(own, name) ? others : matching;
      const failed = parts.find((part) => !part.check(item));
      if (failed !== undefined)
        return `has a wrong member ${JSON.stringify(name)}: ${reasonOf(failed, item)}`;
    }
    return undefined;
  };
  const refinement = {
    check: (value: unknown) => faultOf(value) === undefined,
    error: (value: unknown) => faultOf(value) ?? '',
  };
  return { ...rest, '~refine': [refinement] };
}

function reasonOf(part: CompiledSchema<unknown>, value: unknown): string {
  const [fault] = part.faults(value);
  return fault === undefined ? 'is not allowed' : `${fault.path} ${fault.message}`.trim();
}

function partOf(part: unknown, compilation: Compilation): CompiledSchema<unknown> {
  const known = compilation.parts.get(part);
  if (known !== undefined) return known;
  const made = compileWhenAsked({}, () => {
    const { $defs = {}, definitions = {} } = compilation.root;
    return compileJsonSchema(linearForm({ allOf: [part], $defs, definitions }, compilation) as object);
  });
  compilation.parts.set(part, made);
  return made;
}

function patternOf(source: string): RegExp {
  const compiled = linearPattern(source);
  if (!compiled.ok) throw new Error(`pattern ${source} ${compiled.fault}`);
  return compiled.pattern;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
