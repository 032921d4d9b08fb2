/**
 * Timer wheel for the heartbeats of event streams and WebSockets: slots of one second, one timer for all. Ended streams
 * are skipped when their slot is due.
 */
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { type Clock, SECOND_MS } from '../../domain/time.ts';

/** Seconds in the wheel; a heartbeat is due within 24. */
const SLOTS = 32;

interface Beating {
  readonly isOver: boolean;
}

interface HeartbeatRun<Stream> {
  readonly schedule: Schedule;
  readonly clock: Clock;
  /** Streams that are looked at in one event-loop tick. */
  readonly sliceStreams: number;
  readonly beat: (stream: Stream) => void;
}

export class HeartbeatWheel<Stream extends Beating> {
  readonly #slots: Stream[][] = Array.from({ length: SLOTS }, () => []);
  #second: number;
  #stopTimer: () => void = () => undefined;
  #isStopped = false;

  constructor(nowMs: number) {
    this.#second = Math.floor(nowMs / SECOND_MS);
  }

  /** Due in `delayMs`, in the second after it at the latest. */
  arm(stream: Stream, nowMs: number, delayMs: number): void {
    const second = Math.ceil((nowMs + delayMs) / SECOND_MS);
    const latest = this.#second + SLOTS - 1;
    this.#slots[Math.max(this.#second + 1, Math.min(second, latest)) % SLOTS]?.push(stream);
  }

  /** Looks each second for the streams that are due, until `stop`. */
  start(run: HeartbeatRun<Stream>): void {
    this.#stopTimer = run.schedule.timer(SECOND_MS, () => {
      this.start(run);
      this.#beatSlice(run, this.due(run.clock()), 0);
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopTimer();
  }

  #beatSlice(run: HeartbeatRun<Stream>, due: readonly Stream[], from: number): void {
    if (this.#isStopped) return;
    const until = from + run.sliceStreams;
    for (const stream of due.slice(from, until)) if (!stream.isOver) run.beat(stream);
    if (until < due.length) run.schedule.immediate(() => this.#beatSlice(run, due, until));
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
