/**
 * The load generator: keeps connections busy (closed loop) or sends at a fixed rate (open loop) and counts what comes
 * back. Runs in a process of its own (load-process.ts), so that nothing else shares its thread.
 */
import { performance } from 'node:perf_hooks';
import { HttpConnection } from './http-connection.ts';
import { Latencies } from './latency.ts';
import { Bound, type Pace, Pacer, type Sender, UNBOUNDED } from './pacer.ts';
import type { LoadPlan, LoadReport } from './plan.ts';
import { costOfAll } from './process-cost.ts';

const SECOND_MS = 1_000;
/** A server that closes connections is given this long before the next attempt. */
const RECONNECT_MS = 20;
/** Connections that are being opened at once. */
const OPENING_MAX = 128;
const SAMPLE_LENGTH = 300;

/** Runs one plan. */
export async function runLoad(plan: LoadPlan): Promise<LoadReport> {
  const tally = new Tally(plan);
  const lanes = Array.from({ length: plan.connections }, (_, index) => new Lane(plan, index, tally));
  const pace = paceOf(plan, lanes);
  pace.start();
  const ticker = setInterval(() => {
    for (const lane of lanes) lane.checkTimeout(performance.now());
  }, SECOND_MS / 2);
  await open(lanes, pace);
  await elapse(plan.leadInMs);
  const cpuBeforeMs = cpuOf(plan.pids);
  tally.begin();
  pace.begin();
  await elapse(plan.durationMs);
  const report = tally.end(pace.unsent(), cpuOf(plan.pids) - cpuBeforeMs);
  clearInterval(ticker);
  pace.stop();
  for (const lane of lanes) lane.stop();
  return report;
}

/** Thousands that knock at once overrun the listener's queue, and wait a second for their next try. */
async function open(lanes: readonly Lane[], pace: Pace): Promise<void> {
  let next = 0;
  const opener = async () => {
    for (let lane = lanes[next++]; lane !== undefined; lane = lanes[next++]) await lane.open(pace);
  };
  await Promise.all(Array.from({ length: OPENING_MAX }, opener));
  // Not before: those that are open would keep both sides busy while the others open.
  for (const lane of lanes) lane.start();
}

/** NaN where nobody tells. */
function cpuOf(pids: readonly number[] = []): number {
  return costOfAll(pids)?.cpuMs ?? Number.NaN;
}

function paceOf({ ratePerSecond, maxRatePerSecond }: LoadPlan, lanes: readonly Lane[]): Pace {
  if (ratePerSecond !== undefined) return new Pacer(lanes, ratePerSecond);
  return maxRatePerSecond === undefined ? UNBOUNDED : new Bound(maxRatePerSecond);
}

function elapse(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

class Tally {
  readonly #plan: LoadPlan;
  readonly #expect: Buffer;
  readonly #latencies = new Latencies();
  #startMs: number | undefined;
  #busyAtStart = performance.eventLoopUtilization();
  #errors: Record<string, number> = {};
  #perSecond: number[] = [];
  #sample: string | undefined;
  #answersInAll = 0;
  answers = 0;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    this.#expect = Buffer.from(plan.expect, 'latin1');
  }

  elapsedMs(): number {
    return this.#startMs === undefined ? 0 : performance.now() - this.#startMs;
  }

  begin(): void {
    this.#startMs = performance.now();
    this.#busyAtStart = performance.eventLoopUtilization();
  }

  answered(status: number, body: Buffer, sinceMs: number): void {
    if (status !== (this.#plan.status ?? 200)) this.failed(`status ${status}`, body);
    else if (!body.includes(this.#expect)) this.failed('unexpected body', body);
    else this.#good(sinceMs);
  }

  #good(sinceMs: number): void {
    this.#answersInAll += 1;
    if (this.#startMs !== undefined) {
      const nowMs = performance.now();
      this.answers += 1;
      this.#latencies.record((nowMs - sinceMs) * 1_000);
      const second = Math.floor((nowMs - this.#startMs) / SECOND_MS);
      this.#perSecond[second] = (this.#perSecond[second] ?? 0) + 1;
    }
  }

  /** Failures of the lead-in count too: they say that the set-up is wrong. */
  failed(kind: string, body?: Buffer): void {
    this.#errors[kind] = (this.#errors[kind] ?? 0) + 1;
    if (body !== undefined) this.#sample ??= body.toString('utf8', 0, SAMPLE_LENGTH);
  }

  end(unsent: number, cpuMs: number): LoadReport {
    const durationMs = this.elapsedMs();
    if (unsent > 0) this.#errors['unsent'] = unsent;
    const wholeSeconds = Math.floor(this.#plan.durationMs / SECOND_MS);
    return {
      answers: this.answers,
      answersInAll: this.#answersInAll,
      durationMs,
      ratePerSecond: (this.answers / durationMs) * SECOND_MS,
      latencyUs: this.#latencies.summary(),
      cpuMs: Number.isNaN(cpuMs) ? undefined : cpuMs,
      errors: this.#errors,
      sample: this.#sample,
      perSecond: Array.from({ length: wholeSeconds }, (_, second) => this.#perSecond[second] ?? 0),
      generatorBusy: performance.eventLoopUtilization(this.#busyAtStart).utilization,
    };
  }
}

/** One connection and its share of the requests. */
class Lane implements Sender {
  readonly #plan: LoadPlan;
  readonly #tally: Tally;
  #next: number;
  #connection: HttpConnection | undefined;
  #pace: Pace = UNBOUNDED;
  #sinceMs: number | undefined;
  #sentMs = 0;
  #connected = false;
  #started = false;
  #stopped = false;
  #onTried: () => void = () => undefined;

  constructor(plan: LoadPlan, index: number, tally: Tally) {
    this.#plan = plan;
    this.#tally = tally;
    this.#next = index % plan.requests.length;
  }

  /** Resolves when it is connected, or could not be for the first time. */
  open(pace: Pace): Promise<void> {
    this.#pace = pace;
    return new Promise((resolve) => {
      this.#onTried = resolve;
      this.#connect();
    });
  }

  start(): void {
    this.#started = true;
    if (this.#connected) this.#pace.free(this);
  }

  stop(): void {
    this.#stopped = true;
    this.#connection?.close();
  }

  /** Sends the next request; its latency counts from `sinceMs`. */
  send(sinceMs: number): void {
    this.#sinceMs = sinceMs;
    this.#sentMs = performance.now();
    this.#connection?.send(this.#plan.requests[this.#next] ?? '');
    this.#next = (this.#next + this.#plan.connections) % this.#plan.requests.length;
  }

  checkTimeout(nowMs: number): void {
    if (this.#sinceMs === undefined || nowMs - this.#sentMs < this.#plan.timeoutMs) return;
    this.#connection?.close();
    this.#lost('timeout');
  }

  #connect(): void {
    this.#connection = new HttpConnection(this.#plan.host, this.#plan.port, {
      connected: () => {
        this.#connected = true;
        this.#onTried();
        this.#idle();
      },
      answered: (status, body) => {
        const sinceMs = this.#sinceMs ?? performance.now();
        this.#sinceMs = undefined;
        this.#tally.answered(status, body, sinceMs);
        this.#idle();
      },
      ended: (kind) => this.#lost(kind),
    });
  }

  #idle(): void {
    if (this.#started && !this.#stopped) this.#pace.free(this);
  }

  #lost(kind: string): void {
    this.#connected = false;
    this.#onTried();
    this.#sinceMs = undefined;
    this.#tally.failed(kind);
    this.#pace.gone(this);
    setTimeout(() => {
      if (!this.#stopped) this.#connect();
    }, RECONNECT_MS);
  }
}
