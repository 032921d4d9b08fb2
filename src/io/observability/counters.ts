/**
 * Counters and histograms that cost an addition each: the caller holds the series, so that no observation looks up
 * labels (docs/optimizations.md). metrics.ts passes all series to prom-client when scraped.
 */

/** A number of things that happened. */
export class Counter {
  value = 0;
}

/** Counts the values of a series at or below each bound, and their sum. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** One class for each bound, and one for what is above all of them. */
  readonly #buckets: Float64Array;
  sum = 0;

  /** `bounds` ascend. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#buckets = new Float64Array(bounds.length + 1);
  }

  /** `value` is finite, in the unit of the bounds. */
  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at += 1;
    this.#buckets[at] = (this.#buckets[at] as number) + 1;
    this.sum += value;
  }

  /** Values of each class by itself. */
  get classes(): Readonly<Float64Array> {
    return this.#buckets;
  }

  /** Values up to each bound, then all of them. */
  cumulative(): number[] {
    let sum = 0;
    return Array.from(this.#buckets, (count) => {
      sum += count;
      return sum;
    });
  }
}

/** Labels of one series and what is counted under them. */
export interface LabelledSeries<T> {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: T;
}

/** All series of one name, in the order in which they began. */
export class MetricFamily<T> {
  readonly #labelNames: readonly string[];
  readonly #make: () => T;
  readonly #series = new Map<string, LabelledSeries<T>>();

  constructor(labelNames: readonly string[], make: () => T) {
    this.#labelNames = labelNames;
    this.#make = make;
  }

  of(values: readonly string[]): T {
    const key = JSON.stringify(values);
    let found = this.#series.get(key);
    if (found === undefined) {
      const labels = Object.fromEntries(this.#labelNames.map((name, at) => [name, values[at] ?? '']));
      found = { labels, value: this.#make() };
      this.#series.set(key, found);
    }
    return found.value;
  }

  all(): Iterable<LabelledSeries<T>> {
    return this.#series.values();
  }
}

/**
 * Finds the value for three keys without making one text of them. At most `max` are kept: undefined for further ones.
 */
export class LabelCache<A, B, C, T> {
  readonly #max: number;
  readonly #make: (a: A, b: B, c: C) => T;
  readonly #kept = new Map<A, Map<B, Map<C, T>>>();
  #size = 0;

  constructor(max: number, make: (a: A, b: B, c: C) => T) {
    this.#max = max;
    this.#make = make;
  }

  get(a: A, b: B, c: C): T | undefined {
    return this.#kept.get(a)?.get(b)?.get(c) ?? this.#added(a, b, c);
  }

  #added(a: A, b: B, c: C): T | undefined {
    if (this.#size >= this.#max) return undefined;
    this.#size += 1;
    const made = this.#make(a, b, c);
    const inner = this.#kept.get(a) ?? new Map<B, Map<C, T>>();
    this.#kept.set(a, inner);
    const innermost = inner.get(b) ?? new Map<C, T>();
    inner.set(b, innermost);
    innermost.set(c, made);
    return made;
  }
}
