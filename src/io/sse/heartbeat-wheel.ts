/**
 * When each stream is due for its heartbeat: a wheel of seconds, one timer for all of them. Streams that ended meanwhile
 * are met once more and left out.
 */
import { SECOND_MS } from '../../domain/time.ts';
import type { EventStream } from './stream.ts';

/** Seconds that the wheel spans; a heartbeat is due within 24. */
const SLOTS = 32;

export class HeartbeatWheel {
  readonly #slots: EventStream[][] = Array.from({ length: SLOTS }, () => []);
  #second: number;

  constructor(nowMs: number) {
    this.#second = Math.floor(nowMs / SECOND_MS);
  }

  /** Due in `delayMs`, in the second after it at the latest. */
  arm(stream: EventStream, nowMs: number, delayMs: number): void {
    const second = Math.ceil((nowMs + delayMs) / SECOND_MS);
    const latest = this.#second + SLOTS - 1;
    this.#slots[Math.max(this.#second + 1, Math.min(second, latest)) % SLOTS]?.push(stream);
  }

  /** Takes what is due by now out of the wheel. A clock that was set forward brings every stream once. */
  due(nowMs: number): EventStream[] {
    const second = Math.floor(nowMs / SECOND_MS);
    // A clock that was set back must not silence the wheel.
    if (second < this.#second) this.#second = second;
    const due: EventStream[] = [];
    const steps = Math.min(second - this.#second, SLOTS);
    for (let step = 1; step <= steps; step += 1) {
      const slot = (this.#second + step) % SLOTS;
      for (const stream of this.#slots[slot] ?? []) if (!stream.isOver) due.push(stream);
      this.#slots[slot] = [];
    }
    this.#second = second;
    return due;
  }
}
