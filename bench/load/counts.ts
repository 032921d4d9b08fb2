/** Counts of the load generator in one round. */
import { performance } from 'node:perf_hooks';
import { SECOND_MS } from '../../src/domain/time.ts';
import { costOfAll } from '../measure/process-cost.ts';
import { Latencies } from './latency.ts';
import type { LoadPlan, LoadReport } from './plan.ts';

const SAMPLE_LENGTH = 300;

export class Counts {
  readonly #plan: LoadPlan;
  readonly #expect: Buffer;
  readonly #latencies = new Latencies();
  readonly #errors: Record<string, number> = {};
  readonly #perSecond: number[] = [];
  #sample: string | undefined;
  #answers = 0;
  #answersInAll = 0;
  /** Clocks at the beginning of the measured time; undefined in the lead-in. */
  #began:
    | { ms: number; cpuMs: number; utilization: ReturnType<typeof performance.eventLoopUtilization> }
    | undefined;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    this.#expect = Buffer.from(plan.expect, 'latin1');
  }

  begin(): void {
    const cpuMs = this.#cpuNow();
    this.#began = { ms: performance.now(), cpuMs, utilization: performance.eventLoopUtilization() };
  }

  /** All that was sent is answered. */
  end(): LoadReport {
    const { ms = performance.now(), cpuMs = Number.NaN, utilization } = this.#began ?? {};
    const durationMs = performance.now() - ms;
    const usedMs = this.#cpuNow() - cpuMs;
    const wholeSeconds = Math.floor(durationMs / SECOND_MS);
    return {
      answers: this.#answers,
      answersInAll: this.#answersInAll,
      durationMs,
      ratePerSecond: durationMs > 0 ? (this.#answers / durationMs) * SECOND_MS : 0,
      latencyUs: this.#latencies.summary(),
      cpuMs: Number.isNaN(usedMs) ? undefined : usedMs,
      errors: this.#errors,
      sample: this.#sample,
      perSecond: Array.from({ length: wholeSeconds }, (_, second) => this.#perSecond[second] ?? 0),
      generatorBusy: performance.eventLoopUtilization(utilization).utilization,
    };
  }

  answered(status: number, body: Buffer, sinceMs: number): void {
    if (status !== (this.#plan.status ?? 200)) this.failed(`status ${status}`, 1, body);
    else if (!body.includes(this.#expect)) this.failed('unexpected body', 1, body);
    else this.#good(sinceMs);
  }

  /** Failures of the lead-in count too: they say that the set-up is wrong. */
  failed(kind: string, count = 1, body?: Buffer): void {
    if (count > 0) this.#errors[kind] = (this.#errors[kind] ?? 0) + count;
    if (body !== undefined) this.#sample ??= body.toString('utf8', 0, SAMPLE_LENGTH);
  }

  #good(sinceMs: number): void {
    this.#answersInAll += 1;
    if (this.#began === undefined) return;
    const nowMs = performance.now();
    this.#answers += 1;
    this.#latencies.record((nowMs - sinceMs) * 1_000);
    const second = Math.floor((nowMs - this.#began.ms) / SECOND_MS);
    this.#perSecond[second] = (this.#perSecond[second] ?? 0) + 1;
  }

  /** NaN where it is not known. */
  #cpuNow(): number {
    return costOfAll(this.#plan.pids ?? [])?.cpuMs ?? Number.NaN;
  }
}
