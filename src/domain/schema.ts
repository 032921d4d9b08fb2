/**
 * Schemas: the only importer of typebox's code. Builders for bodies, queries, settings and configuration, and the
 * compiled check that names every fault with its path. The schema objects are plain JSON Schema, so OpenAPI and `tools/list`
 * print them as they are.
 */

import { createRequire } from 'node:module';
import type Type from 'typebox';
import type { Static, TSchema } from 'typebox';
import { ID_EXAMPLE } from './examples.ts';
import { type Fault, faultsInWords, formOfPattern, UNKNOWN_KEY } from './faults.ts';
import { ID_MAX, ID_MIN, parseId } from './ids.ts';
import { nothing, string, union, unsafe } from './json-schema.ts';

export {
  array,
  boolean,
  integer,
  literal,
  named,
  nameOf,
  nothing,
  number,
  object,
  optional,
  record,
  union,
  unknown,
} from './json-schema.ts';
export type { Fault, Static, TSchema };
export { UNKNOWN_KEY };

export interface CompiledSchema<T> {
  readonly schema: object;
  check(value: unknown): value is T;
  /** All faults, at most `FAULTS_MAX`; empty when the value fits. */
  faults(value: unknown): Fault[];
}

/** Faults reported of one value: enough to correct it, bounded for any input. */
const FAULTS_MAX = 64;

let loaded: typeof import('typebox/schema') | undefined;

/**
 * The library, 200 files, with the first schema that is compiled: the thread of the sandbox starts in half the time
 * without it. Required, as main.cts says.
 */
function library(): typeof import('typebox/schema') {
  if (loaded !== undefined) return loaded;
  const require = createRequire(import.meta.url);
  const { default: Format } = require('typebox/format') as typeof import('typebox/format');
  const { default: System } = require('typebox/system') as typeof import('typebox/system');
  // The library stops at 8 faults of its own accord; a whole configuration is judged in one go.
  System.Settings.Set({ maxErrors: 4 * FAULTS_MAX });
  // A pattern sees to the digits, this to the range. It is asked of strings alone.
  Format.Set('int64', (digits) => {
    if (!/^-?[0-9]{1,19}$/.test(digits)) return false;
    const value = BigInt(digits);
    return value >= ID_MIN && value <= ID_MAX;
  });
  loaded = require('typebox/schema') as typeof import('typebox/schema');
  return loaded;
}

type TextOptions = {
  minLength?: number;
  maxLength?: number;
  description?: string;
  examples?: string[];
  /** A secret: the annotation of JSON Schema for values that are given and never shown. */
  writeOnly?: true;
} & (
  | { pattern?: never; form?: never }
  | {
      pattern: string;
      /** Words for a text of this pattern, behind "must be": faults say this, never the pattern. */
      form: string;
    }
);

export function text({ form, ...options }: TextOptions = {}): Type.TString {
  return string({ maxLength: 4096, ...options, ...(form === undefined ? {} : formOfPattern(form)) });
}

/** A time in answers: ISO 8601, UTC. */
export function utcText(description?: string): Type.TString {
  return string({
    format: 'date-time',
    examples: ['2026-11-20T09:30:00.000Z'],
    ...(description === undefined ? {} : { description }),
  });
}

/** An id in answers: a 64-bit integer in decimal. */
export function idText(description?: string, example = ID_EXAMPLE): Type.TString {
  return string({ examples: [example], ...(description === undefined ? {} : { description }) });
}

/**
 * Content of a character class with the flag `u`: C0, DEL, C1, and the separators that end lines in logs of other
 * programs.
 */
export const CONTROL_CHARACTERS = '\\p{Cc}\\u2028\\u2029';
/** Marks, embeddings, overrides and isolates: they show `exe.gpj` as `jpg.exe` (Unicode TR 36, 2.6). */
export const BIDIRECTIONAL_CHARACTERS = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';
/** Take no room: joiners, fillers, variation selectors, tags, and the blank of braille. */
export const INVISIBLE_CHARACTERS = '\\p{Cf}\\p{Default_Ignorable_Code_Point}\\u2800';
const VISIBLE = `[^\\s${INVISIBLE_CHARACTERS}]`;

/** A name that people give: something to be seen, no control or direction characters, no lone surrogates. */
export function nameText(maxLength: number): Type.TString {
  const allowed = `[^${CONTROL_CHARACTERS}${BIDIRECTIONAL_CHARACTERS}\\p{Cs}]`;
  const form = 'a text with something to be seen, without control characters';
  const examples = ['Ada'];
  return text({ minLength: 1, maxLength, pattern: `^(?=.*${VISIBLE})${allowed}+$`, form, examples });
}

export function nullable<S extends TSchema>(schema: S): Type.TUnion<[S, Type.TNull]> {
  return union([schema, nothing()]);
}

export function oneOf<const V extends string>(values: readonly V[], description?: string): Type.TUnsafe<V> {
  return unsafe<V>({
    type: 'string',
    enum: values,
    ...(description === undefined ? {} : { description }),
  });
}

/** An int64 id: a decimal string, or a safe integer on input. Read it with `readId`. */
export function int64(description?: string): Type.TUnsafe<string | number> {
  return unsafe<string | number>({
    anyOf: [
      string({
        format: 'int64',
        pattern: '^(0|[1-9][0-9]{0,18})$',
        ...formOfPattern('an id of up to 19 digits'),
      }),
      { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    ],
    examples: [ID_EXAMPLE],
    ...(description === undefined ? {} : { description }),
  });
}

/** The decimal form of a value that passed `int64()`; undefined for one above int64. */
export function readId(value: string | number): string | undefined {
  const id = parseId(value);
  return id !== undefined && BigInt(id) <= ID_MAX ? id : undefined;
}

/**
 * A schema of this program. Compiled on first use, so that a start does not wait for the schemas of unused routes;
 * a test compiles them all.
 */
export function compileSchema<S extends TSchema>(schema: S): CompiledSchema<Static<S>> {
  return compileWhenAsked(schema, () => compileJsonSchema<Static<S>>(schema));
}

/** Stands for what `compile` will give: once, and not before the first value is checked. */
export function compileWhenAsked<T>(schema: object, compile: () => CompiledSchema<T>): CompiledSchema<T> {
  let compiled: CompiledSchema<T> | undefined;
  const ready = () => {
    compiled ??= compile();
    return compiled;
  };
  return {
    schema,
    check: (value): value is T => ready().check(value),
    faults: (value) => ready().faults(value),
  };
}

/** A JSON Schema from the configuration, compiled at once. Throws when it is unusable. */
export function compileJsonSchema<T = unknown>(schema: object): CompiledSchema<T> {
  const { Compile } = library();
  const validator = Compile(schema as Parameters<typeof Compile>[0]);
  return {
    schema,
    check: (value): value is T => validator.Check(value),
    faults(value) {
      if (validator.Check(value)) return [];
      const [, errors] = validator.Errors(value);
      return faultsInWords(errors, schema).slice(0, FAULTS_MAX);
    },
  };
}
