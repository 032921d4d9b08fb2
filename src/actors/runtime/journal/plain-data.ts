/**
 * Data that may be stored: plain data. Both journals check every value here. The memory journal copies values here, so
 * that, as from a disk, no object is shared. Owns the lengths of names.
 */

/** Longest actor id, timer name and name of a claim, in bytes: four of a kind still fit the engine's keys. */
export const ID_MAX_BYTES = 256;
/** Longest name of an actor kind, and longest Idempotency-Key. */
export const KIND_MAX_BYTES = 64;
export const IDEMPOTENCY_KEY_MAX_BYTES = 256;
/** A WebAuthn credential id of 1,023 bytes in base64url takes 1,364. */
export const CLAIM_KEY_MAX_BYTES = 1_400;

/** Can this be a key of the journal: 1 to so many bytes of UTF-8, no NUL? */
export function isName(name: string, bytesMax: number): boolean {
  // A UTF-16 unit takes at most three bytes of UTF-8.
  const fits = name.length * 3 <= bytesMax || Buffer.byteLength(name) <= bytesMax;
  return name.length > 0 && fits && !name.includes('\0');
}

/** Throws TypeError for a name that no journal takes as a key. */
export function checkName(what: string, name: string, bytesMax: number): void {
  if (!isName(name, bytesMax)) throw new TypeError(`${what} must have 1 to ${bytesMax} bytes and no NUL`);
}

/** Throws TypeError for functions, symbols, instances of classes, bigints over 64 bits and keys called __proto__. */
export function checkPlain(value: unknown): void {
  switch (typeof value) {
    case 'object':
      if (value !== null) checkObject(value);
      return;
    case 'function':
    case 'symbol':
      throw new TypeError(`a ${typeof value} cannot be stored`);
    case 'bigint':
      if (BigInt.asIntN(64, value) !== value) throw new TypeError('a bigint over 64 bits cannot be stored');
      return;
    default:
      return;
  }
}

function checkObject(value: object): void {
  if (Array.isArray(value)) {
    for (const item of value) checkPlain(item);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) {
    for (const key of Object.keys(value)) {
      if (key === '__proto__') throw new TypeError('a key called __proto__ cannot be stored');
      checkPlain((value as Record<string, unknown>)[key]);
    }
    return;
  }
  if (value instanceof Map) {
    for (const [key, item] of value) {
      checkPlain(key);
      checkPlain(item);
    }
  } else if (value instanceof Set) for (const item of value) checkPlain(item);
  else if (!(value instanceof Uint8Array || value instanceof Date)) {
    throw new TypeError(`an instance of ${value.constructor.name} cannot be stored`);
  }
}

/** A deep copy of a value that has passed the check. */
export function copyPlain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copyPlain);
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (value instanceof Date) return new Date(value.getTime());
  if (value instanceof Map) {
    return new Map([...value].map(([key, item]) => [copyPlain(key), copyPlain(item)]));
  }
  if (value instanceof Set) return new Set([...value].map(copyPlain));
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) copy[key] = copyPlain((value as Record<string, unknown>)[key]);
  return copy;
}
