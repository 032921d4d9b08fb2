/**
 * A time-out that passes when the test says so: what happens at it does not hang on how busy the machine is. Stands for
 * the global `setTimeout` at one delay. (The mock timers of Node 20 cannot `refresh`, and hold those of fetch too.)
 */

export interface HeldTimeouts {
  /** Lets so many milliseconds go by at once; what becomes due runs in its order. */
  pass(ms: number): void;
}

interface VirtualClock {
  nowMs: number;
  readonly waiting: Set<HeldTimer>;
}

class HeldTimer {
  dueMs = 0;
  readonly #delayMs: number;
  readonly #run: () => void;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock, delayMs: number, run: () => void) {
    this.#clock = clock;
    this.#delayMs = delayMs;
    this.#run = run;
    this.refresh();
  }

  refresh(): this {
    this.dueMs = this.#clock.nowMs + this.#delayMs;
    // Behind those that are due at the same time already.
    this.#clock.waiting.delete(this);
    this.#clock.waiting.add(this);
    return this;
  }

  fire(): void {
    this.#clock.waiting.delete(this);
    this.#run();
  }
}

/** Holds every time-out of exactly `delayMs` milliseconds that is started from now until the end of the test. */
export function holdTimeouts(t: { teardown(handler: () => void): void }, delayMs: number): HeldTimeouts {
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
  const clock: VirtualClock = { nowMs: 0, waiting: new Set() };
  const start = (run: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) =>
    ms === delayMs ? new HeldTimer(clock, ms, () => run(...given)) : real.setTimeout(run, ms, ...given);
  const clear = (timer: unknown) => {
    if (timer instanceof HeldTimer) clock.waiting.delete(timer);
    else real.clearTimeout(timer as NodeJS.Timeout);
  };
  Object.assign(globalThis, { setTimeout: start, clearTimeout: clear });
  t.teardown(() => {
    Object.assign(globalThis, real);
  });
  return {
    pass(ms) {
      const untilMs = clock.nowMs + ms;
      for (;;) {
        const [next] = [...clock.waiting].sort((a, b) => a.dueMs - b.dueMs);
        if (next === undefined || next.dueMs > untilMs) break;
        clock.nowMs = next.dueMs;
        next.fire();
      }
      clock.nowMs = untilMs;
    },
  };
}
