/**
 * Strings of what was read from the journal. The decoder cuts them out of one long text of the whole row, names of
 * fields included, and each piece keeps all of it alive: an account that was loaded would be half as large again.
 */

/** Shorter ones are copied by the engine anyway, never cut out. */
const CUT_MIN_LENGTH = 13;
/** The decoder cuts out no others. */
const PLAIN_TEXT = /^[ -~]*$/;
const ONE_BYTE = /^[\0-\xff]*$/;

/** The same value, changed in place: its texts of plain characters stand for themselves. For fresh values alone. */
export function ownStrings(value: unknown): unknown {
  if (typeof value === 'string') return PLAIN_TEXT.test(value) ? ownText(value) : value;
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

/** The same text, standing for itself: one that was cut out of another keeps all of that alive. */
export function ownText(text: string): string {
  if (text.length < CUT_MIN_LENGTH) return text;
  const encoding = ONE_BYTE.test(text) ? 'latin1' : 'utf16le';
  return Buffer.from(text, encoding).toString(encoding);
}
