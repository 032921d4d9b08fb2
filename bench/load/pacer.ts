/**
 * Decides when a free connection sends. The open loop: request `i` is due at `i / rate`, whether or not a
 * connection is free. The bounded closed loop: at once, but no more than so many a second.
 */
import { performance } from 'node:perf_hooks';
import { SECOND_MS } from '../../src/domain/time.ts';

export interface Sender {
  /** Sends the next request; its latency counts from `sinceMs`. */
  send(sinceMs: number): void;
}

/** For one round of a load. */
export interface Pace {
  start(): void;
  free(loop: Sender): void;
  gone(loop: Sender): void;
  /** Requests that were due and found no connection. */
  unsent(): number;
  stop(): void;
}

/** The closed loop without a bound: each free connection sends. */
export const UNBOUNDED: Pace = {
  start: () => undefined,
  free: (loop) => loop.send(performance.now()),
  gone: () => undefined,
  unsent: () => 0,
  stop: () => undefined,
};

/** Unused sends are not saved up: a bound is no quota. */
export class Bound implements Pace {
  readonly #everyMs: number;
  readonly #free: Set<Sender> = new Set();
  #nextMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(maxPerSecond: number) {
    this.#everyMs = SECOND_MS / maxPerSecond;
  }

  start(): void {
    this.#nextMs = performance.now();
    this.#timer = setInterval(() => this.#send(), 1);
  }

  free(loop: Sender): void {
    this.#free.add(loop);
    this.#send();
  }

  gone(loop: Sender): void {
    this.#free.delete(loop);
  }

  unsent(): number {
    return 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #send(): void {
    const nowMs = performance.now();
    // Two ticks of the timer may be made up for, so that its grain does not lower the bound.
    this.#nextMs = Math.max(this.#nextMs, nowMs - 2);
    for (const loop of this.#free) {
      if (this.#nextMs > nowMs) return;
      this.#nextMs += this.#everyMs;
      this.#free.delete(loop);
      loop.send(nowMs);
    }
  }
}

export class Pacer implements Pace {
  readonly #connections: number;
  readonly #ratePerMs: number;
  #free: Sender[] = [];
  #startMs = 0;
  #started = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(connections: number, ratePerSecond: number) {
    this.#connections = connections;
    this.#ratePerMs = ratePerSecond / SECOND_MS;
  }

  start(): void {
    this.begin();
    this.#timer = setInterval(() => this.#send(), 1);
  }

  /** Again where a warm-up is over: its arrears are forgotten. */
  begin(): void {
    this.#startMs = performance.now();
    this.#started = 0;
  }

  free(loop: Sender): void {
    this.#free.push(loop);
    this.#send();
  }

  gone(loop: Sender): void {
    this.#free = this.#free.filter((each) => each !== loop);
  }

  /** Up to one a connection is no arrears but the loop's own grain. */
  unsent(): number {
    const due = Math.floor((performance.now() - this.#startMs) * this.#ratePerMs);
    return due - this.#started > this.#connections ? due - this.#started : 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #send(): void {
    const due = Math.floor((performance.now() - this.#startMs) * this.#ratePerMs);
    while (this.#started < due) {
      const loop = this.#free.pop();
      if (loop === undefined) return;
      loop.send(this.#startMs + this.#started / this.#ratePerMs);
      this.#started += 1;
    }
  }
}
