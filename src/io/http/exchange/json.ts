/**
 * Parses untrusted JSON. A scan of the bytes refuses broken UTF-8 and nesting over 64 levels before the parser; reserved
 * keys (prototype pollution) are refused after it, at any level.
 */
import { isUtf8 } from 'node:buffer';
import { setImmediate as yieldToLoop } from 'node:timers/promises';
import { GatewayError } from '../../../domain/errors.ts';

/** A body up to this size is read in one tick of the event loop. */
export const TICK_BYTES_MAX = 128 * 1024;
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

/** Parses like `parseJson`, with the text for callers that need numbers as they were written. */
export function readJson(bytes: Buffer, valuesMax?: number): { text: string; value: unknown } {
  const read = parseText(bytes, valuesMax);
  if (SUSPICIOUS.test(read.text) && hasReservedKey(read.value)) {
    throw new GatewayError('InvalidInput', 'body: reserved key');
  }
  return read;
}

/**
 * The text, known to be JSON, for callers that forward it: there no key is reserved. A long body takes a tick of the event loop
 * for each step; `valuesMax` bounds the time of the parser.
 */
export async function readJsonText(bytes: Buffer, valuesMax: number): Promise<string> {
  const isLong = bytes.length > TICK_BYTES_MAX;
  requireShape(bytes, valuesMax);
  if (isLong) await yieldToLoop();
  const text = bytes.toString('utf8');
  if (isLong) await yieldToLoop();
  parse(text);
  return text;
}

function parseText(bytes: Buffer, valuesMax = Infinity): { text: string; value: unknown } {
  requireShape(bytes, valuesMax);
  const text = bytes.toString('utf8');
  return { text, value: parse(text) };
}

function requireShape(bytes: Buffer, valuesMax: number): void {
  if (!isUtf8(bytes)) throw new GatewayError('InvalidInput', 'body: not UTF-8');
  const fault = shapeFault(bytes, valuesMax);
  if (fault !== undefined) throw new GatewayError('InvalidInput', `body: ${fault}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new GatewayError('InvalidInput', 'body: not JSON');
    throw error;
  }
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
