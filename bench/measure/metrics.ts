/** Metrics of a gateway's internal listener. */

import { expectOk, request } from '../../kit/agent.ts';
import { metricValue } from '../../kit/metric-value.ts';
import type { MetricLabels, MetricName } from '../../src/io/observability/metric-table.ts';
import type { ProcessCost } from './process-cost.ts';

const SECOND_MS = 1_000;

/** NaN for a series that is not there. Rejects when the listener does not answer. */
export async function readMetric<Name extends MetricName>(
  internal: string,
  name: Name,
  labels: MetricLabels<Name>,
): Promise<number> {
  return metricValue(await metricsText(internal), name, labels);
}

async function metricsText(internal: string): Promise<string> {
  return expectOk('metrics', await request(`${internal}/metrics`)).text;
}

/** p99 of the event loop's delay since the last scrape, in milliseconds, the sampling interval of 10 ms included. */
export async function eventLoopP99Ms(internal: string): Promise<number> {
  return (await readMetric(internal, 'gatehouse_nodejs_eventloop_lag_p99_seconds', {})) * SECOND_MS;
}

/** Cost of a gateway on another machine, as it reports it. */
export async function remoteCost(internal: string): Promise<ProcessCost> {
  const text = await metricsText(internal);
  return {
    cpuMs: metricValue(text, 'gatehouse_process_cpu_seconds_total', {}) * SECOND_MS,
    rssBytes: metricValue(text, 'gatehouse_process_resident_memory_bytes', {}),
  };
}
