/** A history whose clock, timer and counters belong to the test. */
import { History } from '../../../src/io/admin/history/history.ts';
import type { NodeTroubles } from '../../../src/io/admin/node-work.ts';
import type { MetricReadings } from '../../../src/io/observability/metric-table.ts';
import { createMetrics, type Metrics } from '../../../src/io/observability/metrics.ts';

/** A node without troubles. */
export const noTroubles = async (): Promise<NodeTroubles> => ({
  webhooks: [],
  breakersOpen: [],
  loopDelayMs: 0,
  isWritable: true,
  freeBytes: 1024 ** 4,
});

export interface TestHistory {
  readonly history: History;
  readonly metrics: Metrics;
  /** Readings of the next looks besides requests and calls. */
  readings: Partial<MetricReadings>;
  loopDelayMs: number;
  /** Runs the timer that waits, which says for how long. */
  fire(): void;
  readonly waitsMs: number | undefined;
}

export function testHistory(clock: () => number): TestHistory {
  const metrics = createMetrics();
  let waiting: { readonly delayMs: number; readonly run: () => void } | undefined;
  const all: TestHistory = {
    metrics,
    readings: {},
    loopDelayMs: 0,
    history: new History({
      clock,
      schedule: {
        timer(delayMs, run) {
          waiting = { delayMs, run };
          return () => {
            waiting = undefined;
          };
        },
      },
      read: () => all.readings,
      series: metrics.series,
      rssBytes: () => 1024 * 1024,
      loopDelay: { begin: () => undefined, end: () => undefined, takeP99: () => all.loopDelayMs },
    }),
    fire() {
      const due = waiting;
      waiting = undefined;
      due?.run();
    },
    get waitsMs() {
      return waiting?.delayMs;
    },
  };
  return all;
}
