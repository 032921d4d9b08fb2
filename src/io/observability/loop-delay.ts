/** Delay of the event loop, as the event loop monitor of Node.js measures it. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 10;

export class LoopDelay {
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });

  /** Measures from now on. */
  begin(): void {
    this.#histogram.reset();
    this.#histogram.enable();
  }

  end(): void {
    this.#histogram.disable();
  }

  /** The 99th percentile in milliseconds since the last call, or since the begin. */
  takeP99(): number {
    const delayMs = Math.max(0, this.#histogram.percentile(99) / 1e6 - RESOLUTION_MS);
    this.#histogram.reset();
    return delayMs;
  }
}
