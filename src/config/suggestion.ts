/** Suggests the known name that a misspelt one most likely stands for. */

/** A longer name is no slip of one that exists. */
const COMPARED_MAX = 64;
const SLIPS_MAX = 2;

/** `unknown key`, with the known name that differs by case alone, or by at most two characters. */
export function unknownMessage(what: string, name: string, known: Iterable<string>): string {
  let nearest: string | undefined;
  let fewest = SLIPS_MAX + 1;
  for (const each of known) {
    const slips = slipsBetween(name.toLowerCase(), each.toLowerCase());
    // A short name with many slips would be another name.
    if (slips < fewest && slips * 3 <= each.length) [nearest, fewest] = [each, slips];
  }
  return `unknown ${what}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`;
}

/** Distance of Damerau and Levenshtein: added, left out, changed and swapped characters. Infinity: certainly too many. */
function slipsBetween(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > SLIPS_MAX || a.length > COMPARED_MAX) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : changed;
      next.push(Math.min(changed, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    [before, row] = [row, next];
  }
  return row[b.length] ?? 0;
}
