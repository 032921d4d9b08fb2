/** What the load generator has counted since its last report. */
import { performance } from 'node:perf_hooks';
import { SECOND_MS } from '../src/domain/time.ts';
import { Latencies } from './latency.ts';
import type { LoadPlan, LoadReport } from './plan.ts';
import { costOfAll } from './process-cost.ts';

const SAMPLE_LENGTH = 300;

export class Tally {
  readonly #plan: LoadPlan;
  readonly #expect: Buffer;
  #latencies = new Latencies();
  #errors: Record<string, number> = {};
  #perSecond: number[] = [];
  #sample: string | undefined;
  #answers = 0;
  #answersInAll = 0;
  /** Of the slices that are over. */
  #elapsedMs = 0;
  #cpuMs = 0;
  #activeMs = 0;
  #idleMs = 0;
  /** Of the slice that is counted now. */
  #slice:
    | { startMs: number; cpuMs: number; utilization: ReturnType<typeof performance.eventLoopUtilization> }
    | undefined;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    this.#expect = Buffer.from(plan.expect, 'latin1');
  }

  begin(): void {
    const cpuMs = this.#cpuNow();
    this.#slice = { startMs: performance.now(), cpuMs, utilization: performance.eventLoopUtilization() };
  }

  /** All that was sent is answered. */
  end(): void {
    if (this.#slice === undefined) return;
    const { startMs, cpuMs, utilization } = this.#slice;
    this.#slice = undefined;
    this.#elapsedMs += performance.now() - startMs;
    this.#cpuMs += this.#cpuNow() - cpuMs;
    const { active, idle } = performance.eventLoopUtilization(utilization);
    this.#activeMs += active;
    this.#idleMs += idle;
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

  /** Begins anew. */
  report(): LoadReport {
    const durationMs = this.#elapsedMs;
    const wholeSeconds = Math.floor(durationMs / SECOND_MS);
    const report = {
      answers: this.#answers,
      answersInAll: this.#answersInAll,
      durationMs,
      ratePerSecond: durationMs > 0 ? (this.#answers / durationMs) * SECOND_MS : 0,
      latencyUs: this.#latencies.summary(),
      cpuMs: Number.isNaN(this.#cpuMs) ? undefined : this.#cpuMs,
      errors: this.#errors,
      sample: this.#sample,
      perSecond: Array.from({ length: wholeSeconds }, (_, second) => this.#perSecond[second] ?? 0),
      generatorBusy: this.#activeMs / (this.#activeMs + this.#idleMs),
    };
    this.#latencies = new Latencies();
    this.#errors = {};
    this.#perSecond = [];
    this.#sample = undefined;
    this.#answers = 0;
    this.#answersInAll = 0;
    this.#elapsedMs = 0;
    this.#cpuMs = 0;
    this.#activeMs = 0;
    this.#idleMs = 0;
    return report;
  }

  #good(sinceMs: number): void {
    this.#answersInAll += 1;
    if (this.#slice === undefined) return;
    const nowMs = performance.now();
    this.#answers += 1;
    this.#latencies.record((nowMs - sinceMs) * 1_000);
    const second = Math.floor((this.#elapsedMs + nowMs - this.#slice.startMs) / SECOND_MS);
    this.#perSecond[second] = (this.#perSecond[second] ?? 0) + 1;
  }

  /** NaN where nobody tells. */
  #cpuNow(): number {
    return costOfAll(this.#plan.pids ?? [])?.cpuMs ?? Number.NaN;
  }
}
