/** Latencies as HdrHistograms keep them, and what of them goes into a report. */
import { build, type Histogram } from 'hdr-histogram-js';
import type { Latency } from './plan.ts';

/** Ten minutes. */
const HIGHEST_US = 600_000_000;
/** Percentiles that a curve needs; 100 is the maximum. */
const SPECTRUM = [0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100];

/** Microseconds, three digits. */
export class Latencies {
  readonly #histogram: Histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_US,
    numberOfSignificantValueDigits: 3,
  });

  record(us: number): void {
    this.#histogram.recordValue(Math.min(HIGHEST_US, Math.max(1, us)));
  }

  summary(): Latency {
    const at = (percentile: number) => this.#histogram.getValueAtPercentile(percentile);
    return {
      p50: at(50),
      p90: at(90),
      p99: at(99),
      p999: at(99.9),
      max: this.#histogram.maxValue,
      mean: Math.round(this.#histogram.mean),
      spectrum: SPECTRUM.map((percentile) => [percentile, at(percentile)]),
    };
  }
}
