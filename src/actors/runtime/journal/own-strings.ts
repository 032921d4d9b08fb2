/**
 * Strings of what was read from the journal. The decoder cuts them out of one long text of the whole row, names of
 * fields included, and each piece keeps all of it alive: an account that was loaded would be half as large again.
 */

/** Shorter ones are copied by the engine anyway, never cut out. */
const CUT_MIN_LENGTH = 13;
/** The decoder cuts out no others. */
const PLAIN_TEXT = /^[ -~]*$/;
const ONE_BYTE = /^[\0-\xff]*$/;

/** The same value, changed in memory: its ASCII texts no longer refer to larger ones. For fresh values alone. */
export function ownStrings(value: unknown): unknown {
  if (typeof value === 'string') return isCut(value) ? ownOneByte(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    for (let place = 0; place < value.length; place += 1) value[place] = ownStrings(value[place]);
    return value;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  const fields = value as Record<string, unknown>;
  for (const name of Object.keys(fields)) {
    const present = fields[name];
    const own = ownStrings(present);
    if (typeof own === 'string') fields[name] = own;
  }
  return value;
}

function isCut(text: string): boolean {
  return text.length >= CUT_MIN_LENGTH && PLAIN_TEXT.test(text);
}

/** The same text, standing for itself: one that was cut out of another keeps all of that alive. */
export function ownText(text: string): string {
  if (text.length < CUT_MIN_LENGTH) return text;
  return ONE_BYTE.test(text) ? ownOneByte(text) : Buffer.from(text, 'utf16le').toString('utf16le');
}

function ownOneByte(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
