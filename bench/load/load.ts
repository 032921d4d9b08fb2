/**
 * The load generator: keeps connections busy (closed loop) or sends at a fixed rate (open loop) and counts what comes
 * back. Runs in a process of its own (load-process.ts), so that nothing else shares its thread.
 */
import { performance } from 'node:perf_hooks';
import { SECOND_MS } from '../../src/domain/time.ts';
import { Counts } from './counts.ts';
import { Bound, type Pace, Pacer, UNBOUNDED } from './pacer.ts';
import type { LoadPlan, LoadReport } from './plan.ts';
import { ConnectionLoop } from './stream.ts';

/** Connections that are being opened at once: thousands that knock together overrun the listener's queue. */
const OPENING_MAX = 128;

/** Opens its connections, sends for the lead-in and the duration of the plan, and closes them. */
export async function runLoad(plan: LoadPlan): Promise<LoadReport> {
  const load = await Load.open(plan);
  try {
    return await load.round(plan.durationMs, plan.leadInMs);
  } finally {
    load.close();
  }
}

/**
 * Connections that stay open from one round to the next: several loads take turns, and no time is lost between them.
 */
export class Load {
  readonly #plan: LoadPlan;
  #counts: Counts;
  readonly #loops: readonly ConnectionLoop[];
  readonly #ticker: NodeJS.Timeout;
  #underWay = 0;
  /** Called when nothing is under way; only the end of a round waits for it. */
  #onQuiet: (() => void) | undefined;

  private constructor(plan: LoadPlan) {
    this.#plan = plan;
    this.#counts = new Counts(plan);
    const events = {
      sent: () => {
        this.#underWay += 1;
      },
      answered: (status: number, body: Buffer, sinceMs: number) => {
        this.#counts.answered(status, body, sinceMs);
        this.#settled();
      },
      // The connection loop reconnects by itself.
      lost: (kind: string, { asked, rested }: { readonly asked: boolean; readonly rested: boolean }) => {
        if (!rested) this.#counts.failed(kind);
        if (asked) this.#settled();
      },
    };
    this.#loops = Array.from(
      { length: plan.connections },
      (_, index) => new ConnectionLoop(plan, index, events),
    );
    this.#ticker = setInterval(() => {
      for (const loop of this.#loops) loop.checkTimeout(performance.now());
    }, SECOND_MS / 2);
  }

  /** Resolves when each connection is open, or could not be opened for the first time. */
  static async open(plan: LoadPlan): Promise<Load> {
    const load = new Load(plan);
    let next = 0;
    const opener = async () => {
      for (let loop = load.#loops[next++]; loop !== undefined; loop = load.#loops[next++]) await loop.open();
    };
    await Promise.all(Array.from({ length: OPENING_MAX }, opener));
    return load;
  }

  /** Other requests from the next round on. */
  use(requests: readonly string[]): void {
    for (const [index, loop] of this.#loops.entries()) loop.use(requests, index);
  }

  /**
   * Sends for so long after a lead-in that does not count, and resolves when everything is answered or given up: all work
   * that was asked for lies within the measured time, and none of it in the next round.
   */
  async round(durationMs: number, leadInMs = 0): Promise<LoadReport> {
    if (leadInMs > 0) await this.#send(leadInMs);
    this.#counts.begin();
    this.#counts.failed('unsent', await this.#send(durationMs));
    const report = this.#counts.end();
    this.#counts = new Counts(this.#plan);
    return report;
  }

  /** Requests that were due and found no connection. */
  async #send(durationMs: number): Promise<number> {
    const pace = this.#pace();
    pace.start();
    for (const loop of this.#loops) loop.begin(pace);
    await new Promise((resolve) => setTimeout(resolve, durationMs));
    for (const loop of this.#loops) loop.pause();
    pace.stop();
    const unsent = pace.unsent();
    if (this.#underWay > 0)
      await new Promise<void>((resolve) => {
        this.#onQuiet = resolve;
      });
    this.#onQuiet = undefined;
    return unsent;
  }

  close(): void {
    clearInterval(this.#ticker);
    for (const loop of this.#loops) loop.close();
  }

  #settled(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#onQuiet?.();
  }

  #pace(): Pace {
    const { ratePerSecond, maxRatePerSecond } = this.#plan;
    if (ratePerSecond !== undefined) return new Pacer(this.#loops.length, ratePerSecond);
    return maxRatePerSecond === undefined ? UNBOUNDED : new Bound(maxRatePerSecond);
  }
}
