/**
 * The limit of a row (`rateLimit`), counted for each tool and user after authorization, in the window of all limits. The map
 * is dropped at the end of the window, so no sweep is needed.
 */
import type { SharedCounts } from '../../actors/limits/shared-counts.ts';
import { type QuotaResult, WindowCounter, windowIndex } from '../../domain/limits/quotas.ts';
import type { Clock } from '../../domain/time.ts';

/** Pairs of tool and user in one window; those beyond share a counter. */
const COUNTERS_MAX = 100_000;
const SHARED = '';

export class ToolLimits {
  #window = -1;
  #counters = new Map<string, WindowCounter>();
  readonly #clock: Clock;
  readonly #shared: SharedCounts | undefined;

  /** `shared`: other nodes count too. */
  constructor(clock: Clock, shared?: SharedCounts) {
    this.#clock = clock;
    this.#shared = shared;
  }

  /** A call counts when it is made: its request may have begun windows ago. */
  hit(tool: string, userId: string, rps: number, windowSeconds: number): QuotaResult {
    const nowMs = this.#clock();
    const window = windowIndex(nowMs, windowSeconds);
    if (window !== this.#window) {
      this.#window = window;
      this.#counters = new Map();
    }
    const key = `${tool} ${userId}`;
    const counter = this.#counters.get(key) ?? this.#add(key);
    const others = this.#shared?.others(key, window) ?? 0;
    const result = counter.hit('s', rps, windowSeconds, nowMs, { others });
    if (result.allowed) this.#shared?.note(key, window, counter.used, result.quota);
    return result;
  }

  #add(key: string): WindowCounter {
    if (this.#counters.size >= COUNTERS_MAX && key !== SHARED)
      return this.#counters.get(SHARED) ?? this.#add(SHARED);
    const counter = new WindowCounter();
    this.#counters.set(key, counter);
    return counter;
  }
}
