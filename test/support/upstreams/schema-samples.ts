/** A value that fits a JSON Schema of a row: every required member, and the first optional ones. */
import fc from 'fast-check';

export type Schema = Readonly<Record<string, unknown>>;

const DEPTH_MAX = 8;
const OPTIONAL_MEMBERS = 3;
const TEXTS: Readonly<Record<string, string>> = {
  'date-time': '2026-01-02T03:04:05Z',
  date: '2026-01-02',
  time: '03:04:05Z',
  duration: 'P1D',
  email: 'a@shop.example',
  hostname: 'shop.example',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://shop.example/',
  uuid: '00000000-0000-4000-8000-000000000000',
  int64: '9007199254740993',
};

export function sampleOf(schema: Schema, root = schema, depth = 0): unknown {
  const below = (part: unknown) => sampleOf(part as Schema, root, depth + 1);
  const { $ref, const: only, enum: choices, anyOf, allOf, type } = schema;
  if (typeof $ref === 'string') {
    const definitions = root['$defs'] as Record<string, Schema>;
    return below(definitions[decodeURIComponent($ref.slice('#/$defs/'.length))]);
  }
  if (only !== undefined) return only;
  if (Array.isArray(choices)) return choices[0];
  if (Array.isArray(anyOf)) return below(anyOf[0]);
  const own = Array.isArray(type) ? type[0] : type;
  if (Array.isArray(allOf)) {
    const parts = allOf.map(below);
    const isObject = parts.every((part) => typeof part === 'object');
    return isObject ? Object.assign({}, ...parts, membersOf(schema, below, depth)) : parts[0];
  }
  switch (own) {
    case 'array':
      return depth > DEPTH_MAX && !schema['minItems'] ? [] : [below(schema['items'] ?? {})];
    case 'string':
      return textOf(schema);
    case 'integer':
    case 'number':
      return numberOf(schema);
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return schema['properties'] === undefined && own === undefined
        ? 'any'
        : membersOf(schema, below, depth);
  }
}

function membersOf(schema: Schema, below: (part: unknown) => unknown, depth: number): object {
  const properties = (schema['properties'] ?? {}) as Record<string, Schema>;
  const required = (schema['required'] ?? []) as string[];
  const optional = Object.keys(properties).filter((name) => !required.includes(name));
  const shown = depth > DEPTH_MAX ? required : [...required, ...optional.slice(0, OPTIONAL_MEMBERS)];
  return Object.fromEntries(shown.map((name) => [name, below(properties[name] ?? {})]));
}

function textOf({ pattern, format, minLength = 1, maxLength }: Schema): string {
  if (typeof pattern === 'string') {
    // A pattern without anchors fits longer texts too, with characters that no address takes.
    const texts = fc.sample(fc.stringMatching(new RegExp(`^(?:${pattern})$`, 'u')), 50);
    const fitting = texts.filter(({ length }) => length >= Number(minLength));
    return fitting.sort((a, b) => a.length - b.length)[0] ?? '';
  }
  const given = TEXTS[String(format)] ?? 'text';
  return given.padEnd(Number(minLength), 'x').slice(0, Number(maxLength ?? given.length + Number(minLength)));
}

function numberOf({ minimum, exclusiveMinimum, multipleOf = 1, maximum }: Schema): number {
  const least =
    typeof minimum === 'number' ? minimum : typeof exclusiveMinimum === 'number' ? exclusiveMinimum + 1 : 1;
  const value = Math.ceil(least / Number(multipleOf)) * Number(multipleOf);
  return typeof maximum === 'number' ? Math.min(value, maximum) : value;
}
