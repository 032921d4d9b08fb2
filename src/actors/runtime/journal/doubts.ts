/**
 * Ranges of keys in which a row may be missing, because damage was found there: a key that was hit is another one, or
 * leads the engine astray. What is not found in such a range is not known to be absent.
 */
import { keyBytes, keyOf } from './keys.ts';
import type { KeyRange } from './pages/pages.ts';
import type { Part } from './reader.ts';

/** Ranges that are kept of a table; one more, and all of it is in doubt. */
const RANGES_MAX = 1_000;
const ALL: KeyRange = { low: undefined, high: undefined };

export class Doubts {
  readonly #tables = new Map<string, KeyRange[]>();

  /** `low` and `high` themselves were found. */
  add(table: string, range: KeyRange): void {
    const ranges = this.#tables.get(table) ?? [];
    if (ranges.length >= RANGES_MAX) ranges.splice(0, ranges.length, ALL);
    else ranges.push(range);
    this.#tables.set(table, ranges);
  }

  /** May there be a row with this key, although it is not found? */
  mayHave(table: string, key: Part[] | Part): boolean {
    const ranges = this.#tables.get(table);
    if (ranges === undefined) return false;
    const bytes = keyBytes(key);
    return ranges.some((range) => isWithin(range, bytes, bytes));
  }

  /**
   * May there be such a row from one key to another, which begin with the same part? `isBetween`: only between rows that
   * begin with this part, so that what is new at an end is not in doubt.
   */
  mayHaveFrom(table: string, from: Part[], until: Part[], isBetween: boolean): boolean {
    const ranges = this.#tables.get(table);
    if (ranges === undefined) return false;
    const [first, last] = [keyBytes(from), keyBytes(until)];
    const begins = (end: Uint8Array | undefined) => end !== undefined && firstPart(end) === from[0];
    return ranges.some(
      (range) => isWithin(range, first, last) && (!isBetween || (begins(range.low) && begins(range.high))),
    );
  }
}

function isWithin({ low, high }: KeyRange, first: Uint8Array, last: Uint8Array): boolean {
  const isAbove = low === undefined || Buffer.compare(last, low) > 0;
  return isAbove && (high === undefined || Buffer.compare(first, high) < 0);
}

function firstPart(bytes: Uint8Array): Part | undefined {
  const key = keyOf(bytes);
  return Array.isArray(key) ? key[0] : key;
}
