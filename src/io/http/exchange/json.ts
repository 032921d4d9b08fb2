/**
 * Parses untrusted JSON. A scan of the bytes refuses broken UTF-8 and nesting over 64 levels before the parser; reserved
 * keys (prototype pollution) are refused after it, at any level.
 */
import { isUtf8 } from 'node:buffer';
import { GatewayError } from '../../../domain/errors.ts';

/** Levels of arrays and objects. */
export const JSON_DEPTH_MAX = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COMMA = 0x2c;

const RESERVED = new Set(['__proto__', 'constructor', 'prototype']);
/** A text without any of these cannot hold a reserved key, not even with escapes. */
const SUSPICIOUS = /__proto__|constructor|prototype|\\u/;

/** Parses a JSON text. Throws `InvalidInput` with the reason; also for more than `valuesMax` values, unparsed. */
export function parseJson(bytes: Buffer, valuesMax?: number): unknown {
  return readJson(bytes, valuesMax).value;
}

/** As `parseJson`, with the text for callers that need numbers as they were written. */
export function readJson(bytes: Buffer, valuesMax?: number): { text: string; value: unknown } {
  const read = parseText(bytes, valuesMax);
  if (SUSPICIOUS.test(read.text) && hasReservedKey(read.value)) {
    throw new GatewayError('InvalidInput', 'body: reserved key');
  }
  return read;
}

/**
 * The text, known to be JSON, for callers that forward it: there no key is reserved. `valuesMax` bounds the time of the parser
 * where a body may be large.
 */
export function readJsonText(bytes: Buffer, valuesMax: number): string {
  return parseText(bytes, valuesMax).text;
}

function parseText(bytes: Buffer, valuesMax = Infinity): { text: string; value: unknown } {
  if (!isUtf8(bytes)) throw new GatewayError('InvalidInput', 'body: not UTF-8');
  const fault = shapeFault(bytes, valuesMax);
  if (fault !== undefined) throw new GatewayError('InvalidInput', `body: ${fault}`);
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new GatewayError('InvalidInput', 'body: not JSON');
    throw error;
  }
  return { text, value };
}

/** Nesting over `JSON_DEPTH_MAX`, or more values than `valuesMax`, containers included. Scans the bytes only. */
export function shapeFault(bytes: Uint8Array, valuesMax = Infinity): string | undefined {
  let depth = 0;
  let values = 1;
  let quoted = false;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (quoted) {
      if (byte === BACKSLASH) index += 1;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1;
      values += 1;
      if (depth > JSON_DEPTH_MAX) return `nested over ${JSON_DEPTH_MAX} levels`;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth -= 1;
    else if (byte === COMMA) values += 1;
    if (values > valuesMax) return `more than ${valuesMax} values`;
  }
  return undefined;
}

/** The depth scan bounds the recursion. */
function hasReservedKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasReservedKey);
  for (const key in value)
    if (RESERVED.has(key) || hasReservedKey((value as Readonly<Record<string, unknown>>)[key])) return true;
  return false;
}
