/**
 * Timer wheel for the heartbeats of event streams and WebSockets: slots of one second, one timer for all. Ended streams
 * are skipped when their slot is due.
 */
import { SECOND_MS } from '../../domain/time.ts';

/** Seconds in the wheel; a heartbeat is due within 24. */
const SLOTS = 32;

interface Beating {
  readonly isOver: boolean;
}

export class HeartbeatWheel<Stream extends Beating> {
  readonly #slots: Stream[][] = Array.from({ length: SLOTS }, () => []);
  #second: number;

  constructor(nowMs: number) {
    this.#second = Math.floor(nowMs / SECOND_MS);
  }

  /** Due in `delayMs`, in the second after it at the latest. */
  arm(stream: Stream, nowMs: number, delayMs: number): void {
    const second = Math.ceil((nowMs + delayMs) / SECOND_MS);
    const latest = this.#second + SLOTS - 1;
    this.#slots[Math.max(this.#second + 1, Math.min(second, latest)) % SLOTS]?.push(stream);
  }

  /** Removes and returns the streams that are due. After a forward jump of the clock each stream is due once. */
  due(nowMs: number): Stream[] {
    const second = Math.floor(nowMs / SECOND_MS);
    // A clock that was set back must not stop the wheel.
    if (second < this.#second) this.#second = second;
    const due: Stream[] = [];
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
