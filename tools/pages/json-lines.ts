/** JSON for files that people compare: one item a line where the items matter, and everything below on that line. */

/** The items of `value`, and those of every object and list that is the value of one of `keys`, have a line each. */
export function jsonLines(value: unknown, keys: readonly string[]): string {
  return `${written(value, true, '', new Set(keys))}\n`;
}

function written(value: unknown, isBroken: boolean, indent: string, keys: ReadonlySet<string>): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const inner = isBroken ? `${indent}  ` : indent;
  const items = Array.isArray(value)
    ? value.map((item) => written(item ?? null, false, inner, keys))
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => `${JSON.stringify(key)}: ${written(item, keys.has(key), inner, keys)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  if (items.length === 0) return `${open}${close}`;
  if (!isBroken) return `${open}${items.join(', ')}${close}`;
  return `${open}\n${items.map((item) => inner + item).join(',\n')}\n${indent}${close}`;
}
