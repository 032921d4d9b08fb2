/**
 * Copies of plain data, for the memory journal: what comes back is never the object that went in, exactly as with a
 * disk, and a value that no journal could keep is refused at once.
 */

/** A deep copy. Throws TypeError for functions, symbols and instances of classes. */
export function copyPlain(value: unknown): unknown {
  switch (typeof value) {
    case 'object':
      return value === null ? null : copyObject(value);
    case 'function':
    case 'symbol':
      throw new TypeError(`a ${typeof value} cannot be stored`);
    default:
      return value;
  }
}

function copyObject(value: object): unknown {
  if (Array.isArray(value)) return value.map(copyPlain);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) {
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(value)) copy[key] = copyPlain((value as Record<string, unknown>)[key]);
    return copy;
  }
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (value instanceof Date) return new Date(value.getTime());
  if (value instanceof Map) {
    return new Map([...value].map(([key, item]) => [copyPlain(key), copyPlain(item)]));
  }
  if (value instanceof Set) return new Set([...value].map(copyPlain));
  throw new TypeError(`an instance of ${value.constructor.name} cannot be stored`);
}
