/** Figures of a gateway's internal listener, out of its `/metrics`. */
import { expectOk, request } from '../../tools/agent.ts';
import type { ProcessCost } from './process-cost.ts';

const SECOND_MS = 1_000;

/** The value of each named series without labels; NaN where there is none. Throws where nobody answers. */
export async function readMetrics(internal: string, names: readonly string[]): Promise<number[]> {
  const { text } = expectOk('metrics', await request(`${internal}/metrics`));
  return names.map((name) => Number(new RegExp(`^${name} ([0-9.e+-]+)$`, 'm').exec(text)?.[1]));
}

/** p99 of the event loop's delay since the last look, in milliseconds; the sampling interval of 10 ms is in it. */
export async function eventLoopP99Ms(internal: string): Promise<number> {
  const [seconds = Number.NaN] = await readMetrics(internal, ['gatehouse_nodejs_eventloop_lag_p99_seconds']);
  return seconds * SECOND_MS;
}

/** What a gateway elsewhere says of its own process. */
export async function remoteCost(internal: string): Promise<ProcessCost> {
  const [cpuSeconds = Number.NaN, rssBytes = Number.NaN] = await readMetrics(internal, [
    'gatehouse_process_cpu_seconds_total',
    'gatehouse_process_resident_memory_bytes',
  ]);
  return { cpuMs: cpuSeconds * SECOND_MS, rssBytes };
}
