/**
 * History of this node for the overview: a sample every two seconds for five minutes, one a minute for a day, and the
 * use of each tool and route. In memory alone: a start begins anew. One timer reads the registry of metrics.
 */
import type { Schedule } from '../../../actors/runtime/runtime-context.ts';
import { type Clock, MINUTE_MS, SECOND_MS } from '../../../domain/time.ts';
import type { MetricReadings } from '../../observability/metric-table.ts';
import type { ObservedSeries } from '../../observability/metrics.ts';
import { type HistoryReading, KEPT_SERIES, LATENCY_CLASSES } from './series.ts';
import { isFailure, UsageMarks, type Used } from './usage.ts';
import { HistoryWindow } from './window.ts';

const SAMPLE_MS = 2 * SECOND_MS;
const FINE_STEPS = 150;
const MINUTES = 24 * 60;

const LOOP_DELAY = KEPT_SERIES.findIndex(({ name }) => name === 'loopDelay');
const LATE_STEPS = 5;

/** Ranges that a reader may ask for, and the newest samples of each. */
export const HISTORY_RANGES = {
  '5m': { fine: true, samples: FINE_STEPS },
  '1h': { fine: false, samples: 60 },
  '24h': { fine: false, samples: MINUTES },
} as const;
export type HistoryRange = keyof typeof HISTORY_RANGES;
export const RANGE_NAMES = Object.keys(HISTORY_RANGES) as HistoryRange[];

/** Plain data: it travels between nodes. */
export interface HistoryPart {
  /** Time at which this process began to sample, Unix milliseconds. */
  readonly sinceMs: number;
  readonly stepMs: number;
  /** Number of the newest step: its end is `(newest + 1) * stepMs`. */
  readonly newest: number;
  /** Samples by row of `KEPT_SERIES`, the newest last; NaN in gaps. */
  readonly samples: readonly (readonly number[])[];
  readonly used: readonly Used[];
}

interface HistoryOptions {
  readonly clock: Clock;
  readonly schedule: Pick<Schedule, 'timer'>;
  readonly read: () => Partial<MetricReadings>;
  readonly series: ObservedSeries;
  readonly rssBytes: () => number;
  /** Measures while the history is kept. */
  readonly loopDelay: { begin(): void; end(): void; takeP99(): number };
}

export class History {
  readonly #options: HistoryOptions;
  readonly #fine = new HistoryWindow(SAMPLE_MS, FINE_STEPS);
  readonly #minutes = new HistoryWindow(MINUTE_MS, MINUTES);
  readonly #usage: UsageMarks;
  #sinceMs = 0;
  #cancel: (() => void) | undefined;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.#usage = new UsageMarks(options.series);
  }

  /** Bytes of all samples and marks. */
  get sizeBytes(): number {
    return this.#fine.sizeBytes + this.#minutes.sizeBytes + this.#usage.sizeBytes;
  }

  open(): void {
    this.#sinceMs = this.#options.clock();
    this.#options.loopDelay.begin();
    this.#sample();
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#options.loopDelay.end();
  }

  read(range: HistoryRange): HistoryPart {
    const nowMs = this.#options.clock();
    const { fine, samples } = HISTORY_RANGES[range];
    const window = fine ? this.#fine : this.#minutes;
    const newest = window.newest(nowMs);
    const first = newest - samples + 1;
    return {
      sinceMs: this.#sinceMs,
      stepMs: window.stepMs,
      newest,
      samples: KEPT_SERIES.map((_, at) => window.read(at, first, samples)),
      used: this.#usage.read(range, nowMs, this.#sinceMs),
    };
  }

  /** A delay of the event loop that it had five times in the last five minutes, in milliseconds: one halt is none. */
  loopDelayMs(): number {
    const first = this.#fine.newest(this.#options.clock()) - FINE_STEPS + 1;
    const all = this.#fine.read(LOOP_DELAY, first, FINE_STEPS).filter((delay) => !Number.isNaN(delay));
    return all.sort((one, other) => other - one)[LATE_STEPS - 1] ?? 0;
  }

  /** At the beginning of each step, whatever the one before has taken. */
  #sample(): void {
    const { clock, schedule } = this.#options;
    const nowMs = clock();
    const reading = this.#reading();
    const now = KEPT_SERIES.map(({ read }) => read(reading) ?? Number.NaN);
    this.#fine.look(now, nowMs);
    this.#minutes.look(now, nowMs);
    this.#usage.look(nowMs);
    this.#cancel = schedule.timer(SAMPLE_MS - (nowMs % SAMPLE_MS), () => this.#sample());
  }

  #reading(): HistoryReading {
    const { read, series, rssBytes, loopDelay } = this.#options;
    const latencies = new Float64Array(LATENCY_CLASSES);
    for (const { classes } of series.requestTimes.values())
      for (const [at, count] of classes.entries()) latencies[at] = (latencies[at] as number) + count;
    let requests = 0;
    let errors = 0;
    for (const { status, requests: counter } of series.requests) {
      requests += counter.value;
      if (isFailure(status)) errors += counter.value;
    }
    return {
      metrics: read(),
      requests,
      errors,
      latencies,
      loopDelayP99Ms: loopDelay.takeP99(),
      rssBytes: rssBytes(),
    };
  }
}
