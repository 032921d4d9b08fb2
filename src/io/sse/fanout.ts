/**
 * Moves events from the log to the sockets: fills the ring, marks the recipients, writes in slices. New events are taken
 * only after all writable streams have the previous ones, so a burst never overruns a client (decision 0052).
 */
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { type EventLog, missedAfter } from '../../domain/events/events.ts';
import type { Clock } from '../../domain/time.ts';
import type { StreamCounters } from './counters.ts';
import { EMPTY_FRAME, heartbeatFrame, resetFrame } from './frames.ts';
import type { StreamRegistry } from './registry.ts';
import { Replay } from './replay.ts';
import { FrameRing, type RingBounds } from './ring.ts';
import type { Channel, EventStream } from './stream.ts';

/** Streams written to before other work of the event loop runs. */
export const SLICE_STREAMS = 500;
/** Events taken from the log at once. */
const INTAKE_EVENTS = 256;

interface FanoutOptions {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly bounds: RingBounds;
  readonly registry: StreamRegistry;
  readonly counts: StreamCounters;
  /** Called when due frames left the ring while the stream's socket was blocked. */
  readonly onLag: (stream: EventStream) => void;
}

export class Fanout {
  readonly ring: FrameRing;
  readonly #options: FanoutOptions;
  readonly #replay: Replay;
  /** Streams whose clients have seen events that this node has not applied yet, each with the end of its timer. */
  readonly #ahead = new Map<EventStream, () => void>();
  /** Streams with due frames; those before `#dueAt` have been served. */
  #due: EventStream[] = [];
  #dueAt = 0;
  readonly #blocked = new Set<EventStream>();
  #pumping = false;
  #stopped = false;
  #heartbeatFrame: { readonly sequence: number; readonly bytes: Buffer } | undefined;
  readonly #stopReading: () => void;

  constructor(options: FanoutOptions) {
    const { log, bounds } = options;
    this.#options = options;
    // The newest events are loaded into the ring: clients that reconnect after a restart need no replay.
    this.ring = new FrameRing(log.epoch, Math.max(0, log.newest - bounds.framesMax, log.oldest - 1), bounds);
    for (const event of log.page(this.ring.newest, bounds.framesMax)) this.ring.append(event, event.sequence);
    this.#replay = new Replay({
      log,
      ring: this.ring,
      send: (stream, bytes, frames) => this.send(stream, bytes, frames),
      handOver: (stream) => this.goLive(stream),
    });
    this.#stopReading = log.subscribe(() => this.#pump());
  }

  stop(): void {
    this.#stopped = true;
    this.#stopReading();
  }

  get sizes(): { readonly blocked: number; readonly behind: number } {
    return { blocked: this.#blocked.size, behind: this.#replay.size + this.#ahead.size };
  }

  /** The stream replays the log until it reaches the ring. */
  catchUp(stream: EventStream): void {
    stream.behind = true;
    if (stream.blocked || stream.isOver) return;
    this.#replay.add(stream);
    this.#pump();
  }

  /** The stream continues once the ring has reached its position. `onLate` is called when that takes longer than `waitMs`. */
  waitFor(stream: EventStream, waitMs: number, onLate: () => void): void {
    stream.behind = true;
    this.#ahead.set(stream, this.#options.schedule.timer(waitMs, onLate));
    this.#pump();
  }

  /** Ends the wait of a stream for its position; `reset`: what it has missed will not come. */
  reached(stream: EventStream, reset: boolean): void {
    this.#ahead.get(stream)?.();
    this.#ahead.delete(stream);
    stream.behind = false;
    stream.reset = reset;
    if (!reset) this.#options.counts.resumed += 1;
    this.goLive(stream);
  }

  /** The ring holds everything after `through`; otherwise the stream gets a `reset` event. */
  goLive(stream: EventStream): void {
    const { userId } = stream.origin;
    stream.next = stream.reset ? 0 : this.ring.nextFor(userId, stream.through);
    // Events of the user from before the user's first stream.
    if (stream.next > 0 && stream.channel !== undefined) {
      stream.channel.newest = Math.max(stream.channel.newest, this.ring.newestOf(userId));
    }
    this.#enqueue(stream);
  }

  /** The socket must not be blocked. */
  send(stream: EventStream, bytes: Buffer | string, frames: number): void {
    const { counts, clock } = this.#options;
    counts.frames += frames;
    counts.bytes += bytes.length;
    counts.writes += 1;
    stream.send(bytes, clock());
    if (stream.blocked && !stream.isOver) this.#blocked.add(stream);
  }

  /** The socket is writable again. */
  drained(stream: EventStream): void {
    this.#blocked.delete(stream);
    if (this.#ahead.has(stream)) return;
    if (stream.behind) this.catchUp(stream);
    else this.#enqueue(stream);
  }

  /** Skips blocked streams: each write would restart the 10 s timer after which uWebSockets.js closes a stalled client. */
  heartbeat(stream: EventStream): void {
    if (stream.blocked) return;
    if (stream.behind || stream.reset || stream.next > 0) {
      this.send(stream, EMPTY_FRAME, 0);
      return;
    }
    const { newest } = this.ring;
    if (this.#heartbeatFrame?.sequence !== newest) {
      this.#heartbeatFrame = { sequence: newest, bytes: heartbeatFrame(this.#options.log.epoch, newest) };
    }
    this.send(stream, this.#heartbeatFrame.bytes, 0);
  }

  forget(stream: EventStream): void {
    this.#blocked.delete(stream);
    this.#replay.remove(stream);
    this.#ahead.get(stream)?.();
    this.#ahead.delete(stream);
  }

  #enqueue(stream: EventStream): void {
    if (stream.queued || stream.blocked || stream.isOver || (stream.next === 0 && !stream.reset)) return;
    stream.queued = true;
    this.#due.push(stream);
    this.#pump();
  }

  /** Continues in the next event-loop tick: a cork within another response's handler has no effect. */
  #pump(): void {
    if (this.#pumping || this.#stopped) return;
    this.#pumping = true;
    this.#options.schedule.immediate(() => this.#serveSlice());
  }

  #serveSlice(): void {
    this.#pumping = false;
    if (this.#stopped) return;
    const { log } = this.#options;
    if (this.#due.length === 0 && log.newest > this.ring.newest) this.#takeIn();
    const until = Math.min(this.#due.length, this.#dueAt + SLICE_STREAMS);
    for (; this.#dueAt < until; this.#dueAt += 1) {
      const stream = this.#due[this.#dueAt];
      if (stream === undefined) continue;
      stream.queued = false;
      if (!stream.isOver && !stream.blocked) this.#serve(stream);
    }
    if (this.#dueAt === this.#due.length) {
      this.#due = [];
      this.#dueAt = 0;
    }
    if (this.#replay.size > 0) this.#replay.step();
    if (this.#due.length > 0 || this.#replay.size > 0 || log.newest > this.ring.newest) this.#pump();
  }

  /** One write to one stream. */
  #serve(stream: EventStream): void {
    const { log, counts } = this.#options;
    if (stream.reset) {
      stream.reset = false;
      stream.next = 0;
      counts.resets += 1;
      this.send(stream, resetFrame(log.epoch, log.oldest, this.ring.newest), 0);
      return;
    }
    const newestOwn = stream.channel?.newest ?? 0;
    const { bytes, frames, next } = this.ring.collect(stream.origin.userId, newestOwn, stream.next);
    stream.next = next;
    if (bytes !== undefined) this.send(stream, bytes, frames);
    this.#enqueue(stream);
  }

  /** Appends new events to the ring without evicting frames before this page, then marks the recipients. */
  #takeIn(): void {
    const { log, registry, onLag } = this.#options;
    const { ring } = this;
    if (missedAfter(log, ring.newest) > 0) this.#markReset();
    const before = ring.newest;
    let firstForAll = 0;
    const touched: Channel[] = [];
    for (const event of log.page(before, INTAKE_EVENTS)) {
      if (!ring.append(event, before)) break;
      if (event.userId === undefined) firstForAll ||= event.sequence;
      else this.#markChannel(event.userId, event.sequence, touched);
    }
    if (firstForAll > 0) for (const stream of registry.all) this.#mark(stream, firstForAll);
    for (const channel of touched) {
      for (const stream of channel.streams) this.#mark(stream, channel.first);
      channel.first = 0;
    }
    for (const stream of this.#blocked) if (stream.next > 0 && stream.next <= ring.floor) onLag(stream);
    for (const stream of this.#ahead.keys())
      if (stream.through <= ring.newest) this.reached(stream, missedAfter(log, stream.through) > 0);
  }

  #markChannel(userId: string, sequence: number, touched: Channel[]): void {
    const channel = this.#options.registry.channelOf(userId);
    if (channel === undefined) return;
    channel.newest = sequence;
    if (channel.first > 0) return;
    channel.first = sequence;
    touched.push(channel);
  }

  #mark(stream: EventStream, first: number): void {
    if (stream.behind) return;
    if (stream.next === 0 || first < stream.next) stream.next = first;
    this.#enqueue(stream);
  }

  /** Events left the log before they were read: every live stream gets a `reset` event. */
  #markReset(): void {
    const { log, registry } = this.#options;
    this.ring.skipTo(log.oldest - 1);
    for (const stream of registry.all) {
      if (stream.behind) continue;
      stream.reset = true;
      this.#enqueue(stream);
    }
  }
}
