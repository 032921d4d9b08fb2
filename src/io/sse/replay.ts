/**
 * Replays the log to streams that are behind the ring. Each step reads one page, at the position farthest back, for all
 * streams: a thousand clients that reconnect together cost one read. Steps are short, so they block no other work.
 */
import type { EventLog, StoredEvent } from '../../domain/events/events.ts';
import { missedAfter } from '../../domain/events/events.ts';
import { EMPTY_FRAME, eventFrame, WRITE_BYTES_MAX } from './frames.ts';
import type { FrameRing } from './ring.ts';
import type { EventStream } from './stream.ts';

/** Events read in one step, about 0.5 ms. */
const PAGE_EVENTS = 128;
/** Streams written to in one step. */
const STREAMS_A_STEP = 100;

interface ReplayOptions {
  readonly log: EventLog;
  readonly ring: FrameRing;
  /** Sends and counts. */
  readonly send: (stream: EventStream, bytes: Buffer, frames: number) => void;
  /** The stream has reached the ring or needs a `reset` event; the fan-out continues it. */
  readonly handOver: (stream: EventStream) => void;
}

export class Replay {
  readonly #options: ReplayOptions;
  readonly #waiting = new Set<EventStream>();

  constructor(options: ReplayOptions) {
    this.#options = options;
  }

  /** Streams that wait for a step, without blocked ones. */
  get size(): number {
    return this.#waiting.size;
  }

  add(stream: EventStream): void {
    this.#waiting.add(stream);
  }

  remove(stream: EventStream): void {
    this.#waiting.delete(stream);
  }

  step(): void {
    const { log, ring } = this.#options;
    let from = Number.POSITIVE_INFINITY;
    for (const stream of this.#waiting) {
      if (missedAfter(log, stream.through) > 0) this.#leave(stream, true);
      else from = Math.min(from, stream.through);
    }
    if (this.#waiting.size === 0) return;
    const page = log.page(from, PAGE_EVENTS).filter((event) => event.sequence <= ring.newest);
    const last = page.at(-1)?.sequence ?? ring.newest;
    const encoded = new Map<number, Buffer>();
    let served = 0;
    for (const stream of this.#waiting) {
      if (stream.through >= last) continue;
      this.#take(stream, page, last, encoded);
      served += 1;
      if (served === STREAMS_A_STEP) return;
    }
  }

  /** Sends the events of the page that are for this stream, up to one write. */
  #take(stream: EventStream, page: readonly StoredEvent[], last: number, encoded: Map<number, Buffer>): void {
    const { log, ring, send } = this.#options;
    const { userId } = stream.origin;
    const parts: Buffer[] = [];
    let sizeBytes = 0;
    let through = last;
    for (const event of page) {
      if (event.sequence <= stream.through) continue;
      if (event.userId !== undefined && event.userId !== userId) continue;
      const bytes = encoded.get(event.sequence) ?? eventFrame(log.epoch, event);
      encoded.set(event.sequence, bytes);
      if (parts.length > 0 && sizeBytes + bytes.length > WRITE_BYTES_MAX) {
        through = event.sequence - 1;
        break;
      }
      parts.push(bytes);
      sizeBytes += bytes.length;
    }
    stream.through = through;
    if (parts.length > 0)
      send(stream, parts.length === 1 ? (parts[0] ?? EMPTY_FRAME) : Buffer.concat(parts), parts.length);
    if (stream.isOver) return;
    if (through >= ring.floor) this.#leave(stream, false);
    else if (stream.blocked) this.#waiting.delete(stream);
  }

  #leave(stream: EventStream, reset: boolean): void {
    this.#waiting.delete(stream);
    stream.behind = false;
    stream.reset = reset;
    this.#options.handOver(stream);
  }
}
