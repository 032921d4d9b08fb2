/** The open loop: request `i` is due at `i / rate`, whether or not a connection is free. */
import { performance } from 'node:perf_hooks';

const SECOND_MS = 1_000;

/** What the pacer drives: one connection. */
export interface Sender {
  /** Sends the next request; its latency counts from `sinceMs`. */
  send(sinceMs: number): void;
}

export class Pacer {
  readonly #lanes: readonly Sender[];
  readonly #ratePerMs: number;
  #free: Sender[] = [];
  #startMs = 0;
  #started = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(lanes: readonly Sender[], ratePerSecond: number) {
    this.#lanes = lanes;
    this.#ratePerMs = ratePerSecond / SECOND_MS;
  }

  start(): void {
    this.begin();
    this.#timer = setInterval(() => this.#send(), 1);
  }

  /** Forgets the arrears of the warm-up. */
  begin(): void {
    this.#startMs = performance.now();
    this.#started = 0;
  }

  free(lane: Sender): void {
    this.#free.push(lane);
    this.#send();
  }

  gone(lane: Sender): void {
    this.#free = this.#free.filter((each) => each !== lane);
  }

  /** Requests that were due and found no connection. Up to one a connection is no arrears but the loop's own grain. */
  unsent(): number {
    const due = Math.floor((performance.now() - this.#startMs) * this.#ratePerMs);
    return due - this.#started > this.#lanes.length ? due - this.#started : 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #send(): void {
    const due = Math.floor((performance.now() - this.#startMs) * this.#ratePerMs);
    while (this.#started < due) {
      const lane = this.#free.pop();
      if (lane === undefined) return;
      lane.send(this.#startMs + this.#started / this.#ratePerMs);
      this.#started += 1;
    }
  }
}
