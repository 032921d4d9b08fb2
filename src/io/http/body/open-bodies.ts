/** Checks all bodies that are still arriving once a second, with one timer, and measures the minimum rate of each. */
import type { HttpResponse } from '../listen/server.ts';

const INTERVAL_MS = 1_000;
/** uWS closes a body of less than 16 KB/s after 10 s; a pause and resume restarts its timeout. */
export const REARM_INTERVALS = 4;
/** 1 KiB/s over 10 s: an unfinished request holds shared resources (docs/decisions/0090). */
const WINDOW_SECONDS = 10;
const WINDOW_BYTES_MIN = 10 * 1024;

export interface OpenBody {
  /** Once a second. */
  onInterval(): void;
  /** Its index among the open bodies, -1 outside them. Belongs to `OpenBodies`. */
  openAt: number;
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
  /** No Set: V8 chains the copies of one that grows and shrinks, and old copies keep what was in them. */
  readonly #bodies: OpenBody[] = [];
  #stop: (() => void) | undefined;

  constructor(everySecond: EverySecond = BY_TIMER) {
    this.#everySecond = everySecond;
  }

  add(body: OpenBody): void {
    if (body.openAt >= 0) return;
    body.openAt = this.#bodies.length;
    this.#bodies.push(body);
    this.#stop ??= this.#everySecond(() => this.#onInterval());
  }

  /** The timer stops only when it finds no body, because bodies come and go more often than it fires. */
  delete(body: OpenBody): void {
    const { openAt } = body;
    if (openAt < 0) return;
    body.openAt = -1;
    const last = this.#bodies.pop();
    if (last === undefined || last === body) return;
    this.#bodies[openAt] = last;
    last.openAt = openAt;
  }

  #onInterval(): void {
    if (this.#bodies.length === 0) {
      this.#stop?.();
      this.#stop = undefined;
      return;
    }
    for (const body of [...this.#bodies]) body.onInterval();
  }
}

/** All bodies of the process; tests may use another. */
export const OPEN_BODIES = new OpenBodies();

/** Restarts uWS's timeout of the connection. */
export function rearm(response: HttpResponse): void {
  response.pause();
  response.resume();
}

/** Measures consecutive windows. The first one begins with the body, so it is up to a second longer. */
export class MinimumRate {
  #bytes = 0;
  #seconds = -1;

  add(sizeBytes: number): void {
    this.#bytes += sizeBytes;
  }

  /** Call it after each second in which the client could send. At the end of a window: was it too little? */
  isTooSlow(): boolean {
    this.#seconds += 1;
    if (this.#seconds < WINDOW_SECONDS) return false;
    const broken = this.#bytes < WINDOW_BYTES_MIN;
    this.#bytes = 0;
    this.#seconds = 0;
    return broken;
  }
}
