/**
 * Bodies of requests that are still arriving: one timer looks at all of them once a second. The floor of a body stands
 * here too: what a client has to send at least, in the seconds in which it may send.
 */
import type { HttpResponse } from '../server.ts';

const INTERVAL_MS = 1_000;
/** uWS cuts a body of less than 16 KB/s after 10 s; pausing and resuming at once starts its clock anew. */
export const REARM_INTERVALS = 4;
/** 1 KiB/s over 10 s: an unfinished request holds what callers share (docs/decisions/0091). */
const WINDOW_SECONDS = 10;
const WINDOW_BYTES_MIN = 10 * 1024;

export interface OpenBody {
  /** Once a second. */
  onInterval(): void;
}

/** Calls back once a second until the function it returns is called. */
type EverySecond = (act: () => void) => () => void;

/** Does not keep the process alive. */
const BY_TIMER: EverySecond = (act) => {
  const timer = setInterval(act, INTERVAL_MS).unref();
  return () => clearInterval(timer);
};

export class OpenBodies {
  readonly #everySecond: EverySecond;
  readonly #bodies = new Set<OpenBody>();
  #stop: (() => void) | undefined;

  constructor(everySecond: EverySecond = BY_TIMER) {
    this.#everySecond = everySecond;
  }

  add(body: OpenBody): void {
    this.#bodies.add(body);
    this.#stop ??= this.#everySecond(() => this.#onInterval());
  }

  /** The timer runs on until it finds nothing: bodies come and go more often than it ticks. */
  delete(body: OpenBody): void {
    this.#bodies.delete(body);
  }

  #onInterval(): void {
    if (this.#bodies.size === 0) {
      this.#stop?.();
      this.#stop = undefined;
      return;
    }
    for (const body of [...this.#bodies]) body.onInterval();
  }
}

/** All bodies of the process, where a test brings no others. */
export const OPEN_BODIES = new OpenBodies();

/** Starts the connection's clock anew. */
export function rearm(response: HttpResponse): void {
  response.pause();
  response.resume();
}

/** Window by window. The first one begins with the body, so it is up to a second longer. */
export class MinimumRate {
  #bytes = 0;
  #seconds = -1;

  add(sizeBytes: number): void {
    this.#bytes += sizeBytes;
  }

  /** A second in which the client could send is over: has it sent too little in the last ten? */
  isTooSlow(): boolean {
    this.#seconds += 1;
    if (this.#seconds < WINDOW_SECONDS) return false;
    const broken = this.#bytes < WINDOW_BYTES_MIN;
    this.#bytes = 0;
    this.#seconds = 0;
    return broken;
  }
}
