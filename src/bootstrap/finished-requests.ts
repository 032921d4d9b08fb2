/** What every finished request leaves behind: its sample in the metrics and its line in the log. */
import type { Configuration } from '../domain/config/configuration.ts';
import type { FinishedRequest } from '../io/http/pipeline.ts';
import { type LineSink, openLineSink } from '../io/observability/log.ts';
import type { Metrics } from '../io/observability/metrics.ts';
import { createRequestLog } from '../io/observability/request-log.ts';

export interface FinishedRequests {
  /** Also for lines that are not of requests. */
  readonly sink: LineSink;
  readonly observe: (record: FinishedRequest) => void;
  /** The lines that are still held are written. */
  close(): Promise<void>;
}

export function observeRequests(
  configuration: Configuration,
  metrics: Metrics,
  clock: () => number,
): FinishedRequests {
  const sink = openLineSink();
  const log = createRequestLog(configuration.log.requests, sink, clock);
  metrics.source('log_lines', 'Lines of finished requests, written and dropped.', () => ({
    ...sink.counters(),
  }));
  return {
    sink,
    observe(record) {
      metrics.observe(record);
      log?.(record);
    },
    close: () => sink.close(),
  };
}
