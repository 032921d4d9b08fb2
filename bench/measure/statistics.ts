/** Medians and their confidence intervals. */

/** Median and interval of a sample, in its unit. */
export interface Interval {
  readonly median: number;
  /** The interval that holds the true median with 95 %: `intervalOf`. */
  readonly from: number;
  readonly to: number;
  /** Single values: how far a round may be from the median. */
  readonly lowest: number;
  readonly highest: number;
}

/** The chance that the interval holds the true median. */
export const CONFIDENCE = 0.95;

export function intervalOfSample(values: readonly number[]): Interval {
  const sorted = [...values].sort((a, b) => a - b);
  const { from, to } = intervalOf(sorted);
  const [lowest = Number.NaN] = sorted;
  return { median: median(sorted), from, to, lowest, highest: sorted.at(-1) ?? Number.NaN };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * The interval of the median from order statistics: the k-th smallest and the k-th largest of n values contain it with
 * probability 1 - 2 P(Binomial(n, 1/2) < k), for the largest k that reaches `CONFIDENCE` (David and Nagaraja, Order
 * Statistics, 3rd edition, 7.1). Below six values: the lowest and the highest. NaN without values.
 */
export function intervalOf(sorted: readonly number[]): { readonly from: number; readonly to: number } {
  const rank = rankOf(sorted.length);
  return { from: sorted[rank - 1] ?? Number.NaN, to: sorted[sorted.length - rank] ?? Number.NaN };
}

/** k of `intervalOf`, counted from 1. */
export function rankOf(count: number): number {
  // P(Binomial(n, 1/2) = 0); a thousand values are within the range of a double.
  let chance = 0.5 ** count;
  let below = chance;
  let rank = 1;
  for (; rank < count / 2; rank += 1) {
    chance *= (count - rank + 1) / rank;
    below += chance;
    if (below > (1 - CONFIDENCE) / 2) break;
  }
  return rank;
}

/** Half of the interval over the median: 0.04 is plus or minus four percent. Infinite where nothing can be said. */
export function uncertaintyOf({ median: middle, from, to }: Interval): number {
  const share = (to - from) / 2 / Math.abs(middle);
  return Number.isFinite(share) ? share : Number.POSITIVE_INFINITY;
}
