/**
 * Input schemas of tools. A schema is checked at load, because clients drop the whole list for one bad schema. Arguments are
 * checked before a call; the message names the field, so that a model can correct it.
 */
import { linearPattern } from '../../domain/linear-pattern.ts';
import { compileOutsideSchema } from '../../domain/outside-schema.ts';
import { type CompiledSchema, compileJsonSchema, compileWhenAsked, type Fault } from '../../domain/schema.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

const TYPES = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
const SCHEMA_MAPS = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];
const SCHEMA_LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const SCHEMAS = [
  'items',
  'additionalProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  'propertyNames',
  'contains',
  'not',
  'if',
  'then',
  'else',
];
const NESTING_MAX = 32;
/** Faults named in one refusal of arguments. */
export const NAMED_MAX = 8;

/** Origin of a schema. Patterns of the program's own rows are known to be linear (test/tidy). */
export type SchemaOrigin = 'own' | 'outside';

type CompiledInput =
  | { readonly ok: true; readonly compiled: CompiledSchema<unknown> }
  | { readonly ok: false; readonly faults: Fault[] };

/** Faults that would break a client or the argument check, with their path in the schema. */
export function compileInputSchema(schema: unknown, origin: SchemaOrigin): CompiledInput {
  if (!isObject(schema))
    return { ok: false, faults: [{ path: '', message: 'must be a JSON Schema object' }] };
  const faults: Fault[] = [];
  if (schema['type'] !== 'object') faults.push({ path: '/type', message: 'must be "object"' });
  for (const key of ['oneOf', 'anyOf', 'allOf'])
    if (key in schema) faults.push({ path: `/${key}`, message: 'is not allowed at the top level' });
  const properties = schema['properties'];
  if (isObject(properties)) {
    for (const [name, property] of Object.entries(properties))
      if (typeof property === 'boolean')
        faults.push({ path: `/properties/${pointer(name)}`, message: 'must be a schema object' });
  }
  findNulls(schema, '', faults, 0);
  checkSchema(schema, '', { root: schema, origin, faults, isByName: false }, 0);
  if (faults.length > 0) return { ok: false, faults };
  try {
    const compile = origin === 'own' ? compileJsonSchema : compileOutsideSchema;
    return { ok: true, compiled: compile(bothForms(schema) as JsonObject) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { ok: false, faults: [{ path: '', message: `cannot be compiled: ${reason}` }] };
  }
}

/** The argument check of a valid schema. Configured schemas are checked at load, built-in ones by tests. */
export function inputCheck(name: string, schema: JsonObject, origin: SchemaOrigin): CompiledSchema<unknown> {
  return compileWhenAsked(schema, () => {
    const input = compileInputSchema(schema, origin);
    if (!input.ok) throw new Error(`input schema of ${name}: ${JSON.stringify(input.faults)}`);
    return input.compiled;
  });
}

/** The faults of the arguments, for example `currency must be string`; undefined without faults. */
export function argumentFaults(compiled: CompiledSchema<unknown>, values: JsonObject): string | undefined {
  const faults = compiled.faults(values);
  if (faults.length === 0) return undefined;
  const named = faults.filter((fault) => fault.path !== '');
  const shown = named.length > 0 ? named : faults;
  const texts = shown.map(({ path, message }) => `${fieldName(path)} ${plain(message)}`.trim());
  return [...new Set(texts)].slice(0, NAMED_MAX).join('; ');
}

/** One step of a JSON pointer (RFC 6901). */
export function pointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldName(path: string): string {
  return path
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.');
}

/** The validator's message for a property that the schema does not have. */
function plain(message: string): string {
  return message === 'unknown key' ? 'is not an argument of this tool' : message;
}

interface Judging {
  readonly root: JsonObject;
  readonly origin: SchemaOrigin;
  readonly faults: Fault[];
  /** Below `patternProperties`, whose schemas are compiled by themselves. */
  readonly isByName: boolean;
}

function checkSchema(schema: unknown, path: string, judging: Judging, depth: number): void {
  const { faults } = judging;
  if (typeof schema === 'boolean') return;
  if (!isObject(schema)) {
    faults.push({ path, message: 'must be a schema' });
    return;
  }
  if (depth > NESTING_MAX) {
    faults.push({ path, message: `is nested more than ${NESTING_MAX} deep` });
    return;
  }
  checkKeywords(schema, path, judging);
  for (const key of SCHEMAS)
    if (key in schema) checkSchema(schema[key], `${path}/${key}`, judging, depth + 1);
  for (const key of SCHEMA_LISTS) {
    const list = schema[key];
    if (list === undefined) continue;
    if (!Array.isArray(list)) faults.push({ path: `${path}/${key}`, message: 'must be a list of schemas' });
    else
      for (const [at, item] of list.entries()) checkSchema(item, `${path}/${key}/${at}`, judging, depth + 1);
  }
  for (const key of SCHEMA_MAPS) {
    const map = schema[key];
    if (map === undefined) continue;
    if (!isObject(map)) faults.push({ path: `${path}/${key}`, message: 'must be an object of schemas' });
    else {
      const inner = key === 'patternProperties' ? { ...judging, isByName: true } : judging;
      for (const [name, item] of Object.entries(map))
        checkSchema(item, `${path}/${key}/${pointer(name)}`, inner, depth + 1);
    }
  }
}

function checkKeywords(schema: JsonObject, path: string, { root, origin, faults, isByName }: Judging): void {
  const { type, required, pattern, patternProperties, $ref: reference } = schema;
  if (type !== undefined) {
    const named = Array.isArray(type) ? type : [type];
    if (named.length === 0 || !named.every((one) => typeof one === 'string' && TYPES.has(one)))
      faults.push({ path: `${path}/type`, message: 'must be a type of JSON Schema' });
  }
  if (
    required !== undefined &&
    !(Array.isArray(required) && required.every((one) => typeof one === 'string'))
  )
    faults.push({ path: `${path}/required`, message: 'must be a list of names' });
  if (schema['enum'] !== undefined && !Array.isArray(schema['enum']))
    faults.push({ path: `${path}/enum`, message: 'must be a list of values' });
  if (pattern !== undefined && origin === 'outside') checkPattern(pattern, `${path}/pattern`, faults);
  if (isObject(patternProperties) && origin === 'outside') {
    for (const name of Object.keys(patternProperties))
      checkPattern(name, `${path}/patternProperties/${pointer(name)}`, faults);
    if (usesUnevaluated(root))
      faults.push({
        path: `${path}/patternProperties`,
        message: 'cannot stand beside unevaluatedProperties',
      });
  }
  if (reference === undefined) return;
  if (!resolves(root, reference))
    faults.push({ path: `${path}/$ref`, message: 'must point into this schema' });
  else if (isByName && !/^#\/(?:\$defs|definitions)\//.test(String(reference)))
    faults.push({ path: `${path}/$ref`, message: 'below patternProperties must point into $defs' });
}

function checkPattern(source: unknown, path: string, faults: Fault[]): void {
  const compiled = linearPattern(source);
  if (!compiled.ok) faults.push({ path, message: compiled.fault });
}

function usesUnevaluated(root: JsonObject): boolean {
  return JSON.stringify(root).includes('"unevaluatedProperties":');
}

function resolves(root: JsonObject, reference: unknown): boolean {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) return false;
  let target: unknown = root;
  for (const step of reference.slice(1).split('/').slice(1)) {
    const name = decodeURIComponent(step.replace(/%(?![0-9A-Fa-f]{2})/g, '%25'))
      .replaceAll('~1', '/')
      .replaceAll('~0', '~');
    if (typeof target !== 'object' || target === null || !Object.hasOwn(target, name)) return false;
    target = (target as Record<string, unknown>)[name];
  }
  return true;
}

/**
 * The schema for the argument check. An int64 is declared as a string with the format `int64`, and a safe integer is
 * accepted too.
 */
function bothForms(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map((item) => bothForms(item));
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).map(([key, value]) => [key, bothForms(value)] as const);
  const same = Object.fromEntries(entries);
  if (schema['type'] !== 'string' || schema['format'] !== 'int64') return same;
  return {
    pattern: '^-?(?:0|[1-9][0-9]{0,18})$',
    ...same,
    type: ['string', 'integer'],
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
  };
}

/** Official clients reject a list that contains null anywhere. */
function findNulls(value: unknown, path: string, faults: Fault[], depth: number): void {
  if (value === null) faults.push({ path, message: 'must not be null' });
  if (typeof value !== 'object' || value === null || depth > 2 * NESTING_MAX) return;
  for (const [name, item] of Object.entries(value))
    findNulls(item, `${path}/${pointer(name)}`, faults, depth + 1);
}
