/** A bandwidth limiter in virtual time, and its clients: one that takes, one that sends, both as much as they may. */
import type { Test } from 'tap';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { Throttle, type ThrottledStream } from '../../../src/io/files/throttle.ts';

export const MiB = 1024 * 1024;

/** A clock that jumps from timer to timer. `lateMs` says how late the next timer is, as a busy event loop makes it. */
export class VirtualTime {
  nowMs = 0;
  readonly #timers: { atMs: number; run: () => void }[] = [];
  readonly #lateMs: () => number;

  constructor(lateMs: () => number = () => 0) {
    this.#lateMs = lateMs;
  }

  readonly clock = () => this.nowMs;
  readonly timer = (delayMs: number, run: () => void) => {
    const entry = { atMs: this.nowMs + delayMs, run };
    this.#timers.push(entry);
    return () => {
      const at = this.#timers.indexOf(entry);
      if (at >= 0) this.#timers.splice(at, 1);
    };
  };

  get waiting(): number {
    return this.#timers.length;
  }

  /** False when no timer is left. */
  next(): boolean {
    this.#timers.sort((a, b) => a.atMs - b.atMs);
    const entry = this.#timers.shift();
    if (entry === undefined) return false;
    this.nowMs = Math.max(this.nowMs, entry.atMs + this.#lateMs());
    entry.run();
    return true;
  }

  runUntil(atMs: number): void {
    while (this.nowMs < atMs && this.next());
    this.nowMs = Math.max(this.nowMs, atMs);
  }
}

export function setUp(settings: ConstructorParameters<typeof LiveSettings>[0] = {}, lateMs?: () => number) {
  const time = new VirtualTime(lateMs);
  const live = new LiveSettings(settings);
  const throttle = new Throttle({ settings: live, elapsed: time.clock, timer: time.timer });
  return { time, live, throttle };
}

/** A client that reads at once; `done` receives the time of the last byte. */
export function download(stream: ThrottledStream, sizeBytes: number, done: () => void): void {
  const step = (left: number): void => {
    if (left === 0) {
      stream.leave();
      done();
    } else stream.ask(left, (bytes) => step(left - bytes));
  };
  step(sizeBytes);
}

/** A client that sends whenever it may, in pieces of `pieceBytes`; its answer comes once all is paid. */
export async function upload(
  stream: ThrottledStream,
  sizeBytes: number,
  pieceBytes: () => number,
  done: () => void,
): Promise<void> {
  let left = sizeBytes;
  const send = (): void => {
    while (left > 0) {
      const piece = Math.min(left, pieceBytes());
      left -= piece;
      if (!stream.charge(piece)) return;
    }
  };
  stream.onClear = send;
  send();
  while (left > 0 || stream.owing) await stream.paid();
  stream.leave();
  done();
}

/** All promises that can go on have gone on. */
export const settle = () => new Promise((resolve) => setImmediate(resolve));

export function checkEnds(t: Test, ends: readonly number[], sizeBytes: number, bytesPerSecond: number): void {
  const expectedMs = (ends.length * sizeBytes * 1_000) / bytesPerSecond;
  for (const end of ends) {
    t.ok(Math.abs(end - expectedMs) <= expectedMs * 0.05, `ended at ${end} ms of ${expectedMs} ms`);
  }
  t.ok(Math.max(...ends) - Math.min(...ends) <= expectedMs * 0.05, 'and together');
}
