/** Names the route and tool that held the event loop for long: one call of the observer for each such tick. */
import { performance } from 'node:perf_hooks';
import { LOOP_TICK } from '../batch.ts';

/** A tick that takes longer is reported. Milliseconds. */
const LONG_TICK_MS = 100;

export interface LongTick {
  /** Route of the longest stretch of work in it: its pattern, '' before one was found. */
  readonly route: string;
  /** Name of the tool or resource; '' outside of calls. */
  readonly tool: string;
  /** Duration of that stretch. */
  readonly durationMs: number;
}

/**
 * Work is noted when it begins on the loop, and lasts until the next note or the end of the tick. The first note of a tick
 * begins the measurement, so that waiting is not counted.
 */
export class LoopWatch {
  readonly #observe: (tick: LongTick) => void;
  readonly #now: () => number;
  readonly #atEnd: (end: () => void) => void;
  readonly #end = () => this.#finish();
  #isRunning = false;
  #route = '';
  #tool = '';
  #sinceMs = 0;
  #longest: LongTick | undefined;

  constructor(
    observe: (tick: LongTick) => void,
    now: () => number = () => performance.now(),
    atEnd: (end: () => void) => void = (end) => LOOP_TICK.atEnd('end', end),
  ) {
    this.#observe = observe;
    this.#now = now;
    this.#atEnd = atEnd;
  }

  /** From here on the loop works for this route and tool. `nowMs`: where the caller has just read the clock. */
  note(route: string, tool = '', nowMs = this.#now()): void {
    if (this.#isRunning) this.#close(nowMs);
    else {
      this.#isRunning = true;
      this.#atEnd(this.#end);
    }
    this.#route = route;
    this.#tool = tool;
    this.#sinceMs = nowMs;
  }

  /** The stretch that has begun is work for this route. Reads no clock: every request passes here. */
  label(route: string): void {
    this.#route = route;
  }

  #close(nowMs: number): void {
    const durationMs = nowMs - this.#sinceMs;
    if (durationMs <= (this.#longest?.durationMs ?? LONG_TICK_MS)) return;
    this.#longest = { route: this.#route, tool: this.#tool, durationMs };
  }

  #finish(): void {
    this.#isRunning = false;
    this.#close(this.#now());
    const longest = this.#longest;
    if (longest === undefined) return;
    this.#longest = undefined;
    this.#observe(longest);
  }
}
