/** Argument schemas that several built-in tools share: plain JSON Schema, sent to clients unchanged. */
import type { JsonObject } from '../input-schema.ts';

/** The schema of a tool's arguments. Extra arguments are refused, so that misspelt ones are noticed. */
export function inputOf(
  properties: Record<string, JsonObject>,
  required: readonly string[] = [],
): JsonObject {
  return {
    type: 'object',
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

export function currency(description: string): JsonObject {
  return {
    type: 'string',
    description,
    minLength: 2,
    maxLength: 16,
    pattern: '^[A-Za-z0-9_-]+$',
    examples: ['EUR'],
  };
}

/** A 64-bit id: declared as a decimal string, a safe integer is accepted too. */
export function id(description: string, example: string): JsonObject {
  return {
    type: 'string',
    format: 'int64',
    description,
    pattern: '^(?:0|[1-9][0-9]{0,18})$',
    examples: [example],
  };
}

/** An exact decimal as text, because a JSON number would lose digits. */
export function amount(description: string): JsonObject {
  return {
    type: 'string',
    description,
    maxLength: 64,
    pattern: '^(?:0|[1-9][0-9]{0,29})(?:\\.[0-9]{1,18})?$',
    examples: ['12.50'],
  };
}

export function note(description: string, maxLength = 256): JsonObject {
  return { type: 'string', description, maxLength, examples: ['invoice 1042'] };
}

export function limit(description: string, most: number, usual: number): JsonObject {
  return { type: 'integer', description, minimum: 1, maximum: most, default: usual, examples: [usual] };
}

export const onceOnly = id(
  'Your own number for this operation. Sending the same number again returns the first operation instead of doing it twice; use a fresh one for each new operation.',
  '20261120001',
);

/** The cursor of a list in the order newest first. */
export const before = id(
  'Only what is older than the one with this id: the cursor of the next page.',
  '1842003',
);

export function choice(description: string, values: readonly string[]): JsonObject {
  return { type: 'string', description, enum: values, examples: values.slice(0, 1) };
}

/** A line of text that people read. */
export function line(description: string, maxLength: number, example: string): JsonObject {
  return { type: 'string', description, minLength: 1, maxLength, pattern: '\\S', examples: [example] };
}
