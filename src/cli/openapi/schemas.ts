/**
 * JSON Schemas of OpenAPI 2.0 to 3.2 as the catalog takes them: without what is no JSON Schema, with the schemas that they
 * refer to in `$defs`. What is left out makes a check laxer, never stricter: the service has the last word.
 */
import { linearPattern } from '../../domain/linear-pattern.ts';
import { isObject, type JsonObject } from '../../io/mcp/input-schema.ts';
import { type Documents, type Located, ReferenceFault } from './documents.ts';
import { oneLine } from './text.ts';

const DESCRIPTION_MAX = 200;
const NESTING_MAX = 24;
/** Schemas that those of one operation refer to. */
const DEFINITIONS_MAX = 256;
/** Names that the argument check, and every host, takes as part of a reference. */
const NOT_IN_NAMES = /[^A-Za-z0-9_.-]/g;
const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];
const FORMATS = ['date-time', 'date', 'time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid'];
const BOUNDS = ['maximum', 'minimum', 'multipleOf'] as const;
const SIZES = [
  'maxLength',
  'minLength',
  'maxItems',
  'minItems',
  'maxProperties',
  'minProperties',
  'maxContains',
  'minContains',
] as const;
const BELOW = ['items', 'additionalProperties', 'contains', 'propertyNames'] as const;

/** A schema of an operation, and how its values are sent. */
interface SchemaUse extends Located {
  /** In an address integers may be texts, so that clients lose no digits. In a body they stay numbers. */
  readonly isText: boolean;
}

export interface BodyMember extends Located {
  readonly name: string;
  readonly isRequired: boolean;
}

/** Schemas of one operation: what they refer to is copied once. */
export class SchemaCopies {
  readonly definitions: Record<string, JsonObject> = {};
  readonly #documents: Documents;
  /** Checks that are left out. */
  readonly #notes: string[];
  /** By address, and by how the values are sent. */
  readonly #names = new Map<string, string>();

  constructor(documents: Documents, notes: string[]) {
    this.#documents = documents;
    this.#notes = notes;
  }

  /** Throws `ReferenceFault`. */
  copy({ value, document, isText }: SchemaUse, depth = 0): JsonObject {
    if (value === false) return { not: {} };
    if (!isObject(value)) return {};
    if (depth > NESTING_MAX) throw new ReferenceFault(`a schema is nested more than ${NESTING_MAX} deep`);
    const reference = value['$ref'];
    const below = (item: unknown) => this.copy({ value: item, document, isText }, depth + 1);
    if (typeof reference === 'string') return this.#referred(reference, { value, document, isText });
    const types = typesOf(value);
    if (isText && value['format'] === 'int64' && types.includes('integer')) return int64Text(value);
    const copy: Record<string, unknown> = {
      ...(types.length === 0 ? {} : { type: types.length === 1 ? types[0] : types }),
      ...describedBy(value),
      ...valuesOf(value),
      ...boundsOf(value),
      ...this.#textRules(value),
    };
    for (const key of BELOW) {
      const item = value[key];
      if (typeof item === 'boolean') copy[key] = item;
      else if (isObject(item)) copy[key] = below(item);
    }
    this.#combine(value, copy, below);
    if (Array.isArray(value['prefixItems'])) copy['prefixItems'] = value['prefixItems'].map(below);
    const { properties } = value;
    if (isObject(properties)) {
      const sent = Object.entries(properties).filter(([, item]) => !isReadOnly(item));
      copy['properties'] = Object.fromEntries(sent.map(([name, item]) => [name, below(item)]));
    }
    const required = requiredOf(value).filter((name) => !isReadOnly(memberOf(properties, name)));
    if (required.length > 0) copy['required'] = required;
    return copy;
  }

  /** The members of an object, those of its `allOf` included; undefined for a schema that is more than its members. */
  members(located: Located, depth = 0): Map<string, BodyMember> | undefined {
    const { value, document } = this.#documents.follow(located);
    if (!isObject(value) || depth > NESTING_MAX) return undefined;
    const isPlain = ['anyOf', 'oneOf', 'not', 'if', 'patternProperties'].every(
      (key) => value[key] === undefined,
    );
    const types = typesOf(value).filter((type) => type !== 'null');
    if (!isPlain || (types.length > 0 && types.join() !== 'object')) return undefined;
    const found = new Map<string, BodyMember>();
    for (const part of Array.isArray(value['allOf']) ? value['allOf'] : []) {
      const members = this.members({ value: part, document }, depth + 1);
      if (members === undefined) return undefined;
      for (const [name, member] of members) found.set(name, member);
    }
    const { properties } = value;
    if (isObject(properties))
      for (const [name, item] of Object.entries(properties))
        if (!isReadOnly(this.#documents.follow({ value: item, document }).value))
          found.set(name, { name, value: item, document, isRequired: found.get(name)?.isRequired === true });
    for (const name of requiredOf(value)) {
      const member = found.get(name);
      if (member !== undefined) found.set(name, { ...member, isRequired: true });
    }
    // A map of any names is an argument of its own.
    return depth === 0 && found.size === 0 ? undefined : found;
  }

  #textRules({ pattern, format }: JsonObject): JsonObject {
    const linear = linearPattern(pattern);
    if (pattern !== undefined && !linear.ok) this.#notes.push(`the pattern ${pattern} ${linear.fault}`);
    return {
      ...(linear.ok ? { pattern } : {}),
      ...(typeof format === 'string' && FORMATS.includes(format) ? { format } : {}),
    };
  }

  #referred(reference: string, { value, document, isText }: SchemaUse): JsonObject {
    const address = this.#documents.addressOf(reference, document);
    const key = `${isText} ${address}`;
    let name = this.#names.get(key);
    if (name === undefined) {
      if (this.#names.size >= DEFINITIONS_MAX)
        throw new ReferenceFault(`it needs more than ${DEFINITIONS_MAX} schemas`);
      name = this.#freeName(address);
      this.#names.set(key, name);
      this.definitions[name] = {};
      const target = this.#documents.follow({ value: { $ref: reference }, document });
      this.definitions[name] = this.copy({ ...target, isText });
    }
    const said = isObject(value) ? describedBy(value) : {};
    const referred = { $ref: `#/$defs/${name}`, ...said };
    return isObject(value) && value['nullable'] === true ? { anyOf: [referred, { type: 'null' }] } : referred;
  }

  #freeName(address: string): string {
    const last = address.split(/[/#]/).findLast((step) => step !== '') ?? '';
    const base = last.replace(NOT_IN_NAMES, '_').slice(0, 64) || 'Schema';
    for (let count = 1; ; count += 1) {
      const name = count === 1 ? base : `${base}_${count}`;
      if (!Object.hasOwn(this.definitions, name)) return name;
    }
  }

  /** `oneOf` becomes `anyOf`: a value that fits two of its schemas, such as 1 an integer and a number, is the service's to judge. */
  #combine(value: JsonObject, copy: Record<string, unknown>, below: (item: unknown) => JsonObject): void {
    const listOf = (key: string) => (Array.isArray(value[key]) ? value[key].map(below) : []);
    const choices = [listOf('anyOf'), listOf('oneOf')].filter(({ length }) => length > 0);
    if (value['nullable'] === true && typesOf(value).length === 0)
      for (const choice of choices) choice.push({ type: 'null' });
    const [first, second] = choices;
    if (first !== undefined) copy['anyOf'] = first;
    const all = [...listOf('allOf'), ...(second === undefined ? [] : [{ anyOf: second }])];
    if (all.length > 0) copy['allOf'] = all;
  }
}

function typesOf(schema: JsonObject): string[] {
  const { type, properties, nullable } = schema;
  const named = (Array.isArray(type) ? type : [type]).filter(
    (one): one is string => typeof one === 'string' && TYPES.includes(one),
  );
  if (named.length === 0 && type === undefined && isObject(properties)) named.push('object');
  if (nullable === true && named.length > 0 && !named.includes('null')) named.push('null');
  return named;
}

/** An int64 in an address is declared as the catalog does it: a text, or a safe integer. */
function int64Text(schema: JsonObject): JsonObject {
  const { default: given } = valuesOf(schema);
  const said = given === undefined ? {} : { default: String(given) };
  return { type: 'string', format: 'int64', ...describedBy(schema), ...said };
}

/** Official clients reject a list with null anywhere: `null` is a type alone. */
function valuesOf({ enum: choices, const: only, default: given }: JsonObject): JsonObject {
  const kept = Array.isArray(choices) ? choices.filter((choice) => !hasNull(choice)) : [];
  return {
    ...(kept.length === 0 ? {} : { enum: kept }),
    ...(only === undefined || hasNull(only) ? {} : { const: only }),
    ...(given === undefined || hasNull(given) || JSON.stringify(given).length > DESCRIPTION_MAX
      ? {}
      : { default: given }),
  };
}

function hasNull(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.values(value).some(hasNull));
}

/** A bound beyond the safe integers has lost its digits. OpenAPI 3.0 has exclusive bounds as booleans. */
function boundsOf(schema: JsonObject): JsonObject {
  const bounds: Record<string, unknown> = {};
  for (const key of BOUNDS) {
    const value = schema[key];
    if (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER) bounds[key] = value;
  }
  for (const [key, plain] of [
    ['exclusiveMaximum', 'maximum'],
    ['exclusiveMinimum', 'minimum'],
  ] as const) {
    const value = schema[key] === true ? bounds[plain] : schema[key];
    if (schema[key] === true) delete bounds[plain];
    if (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER) bounds[key] = value;
  }
  for (const key of SIZES) if (Number.isSafeInteger(schema[key])) bounds[key] = schema[key];
  return schema['uniqueItems'] === true ? { ...bounds, uniqueItems: true } : bounds;
}

function describedBy({ description }: JsonObject): JsonObject {
  const said = typeof description === 'string' ? oneLine(description, DESCRIPTION_MAX) : '';
  return said === '' ? {} : { description: said };
}

function requiredOf({ required }: JsonObject): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function memberOf(properties: unknown, name: string): unknown {
  return isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function isReadOnly(schema: unknown): boolean {
  return isObject(schema) && schema['readOnly'] === true;
}
