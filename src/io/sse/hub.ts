/**
 * Life cycle of event streams: admission, start position, heartbeat with a session check, and the end. The fan-out sends
 * the events.
 */
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { type EventLog, missedAfter } from '../../domain/events/events.ts';
import type { SharedBounds } from '../../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { type Clock, SECOND_MS } from '../../domain/time.ts';
import { type HubCounters, newStreamCounters, type StreamCounters } from './counters.ts';
import { Fanout, SLICE_STREAMS } from './fanout.ts';
import {
  type ByeReason,
  byeFrame,
  HELLO_FRAME,
  parseCursor,
  positionFrame,
  RETRY_MS,
  resetFrame,
} from './frames.ts';
import { HeartbeatWheel } from './heartbeat-wheel.ts';
import { StreamRegistry } from './registry.ts';
import { RING_BOUNDS, type RingBounds } from './ring.ts';
import { EventStream, type StreamOrigin } from './stream.ts';

/** A heartbeat every 20 s ± 20 %, a lifetime of 600 s × 0.8 to 1 (docs/event-streams.md). */
const HEARTBEAT_MS = 20 * SECOND_MS;
const LIFETIME_MS = 600 * SECOND_MS;
/** A socket that was blocked for this time was closed as stalled (the transport waits 8 to 11 s). */
const STALL_MS = 5 * SECOND_MS;
/** Leases for which a client is waited with that has seen more than this node has applied: it is expelled by then, or up to date. */
const AHEAD_LEASES = 2;
const LEASE_CHECKS = 5;

/** Facts about a node of a cluster that its streams depend on. */
interface StreamNode {
  /** Its lease runs. */
  readonly admits: () => boolean;
  readonly leaseMs: number;
}

export interface HubOptions {
  readonly log: EventLog;
  readonly settings: SettingsReader;
  readonly bounds: SharedBounds;
  readonly clock: Clock;
  readonly schedule: Schedule;
  /** Random number, at least 0, below 1. */
  readonly random: () => number;
  /** True if the session is still valid; checked at each heartbeat. */
  readonly isSessionValid: (origin: StreamOrigin) => boolean;
  readonly ring?: RingBounds;
  readonly node?: StreamNode | undefined;
}

export class StreamHub {
  readonly #options: HubOptions;
  readonly #registry: StreamRegistry;
  readonly #fanout: Fanout;
  readonly #heartbeats: HeartbeatWheel<EventStream>;
  readonly #counts: StreamCounters = newStreamCounters();
  #stopLeaseChecks = (): void => undefined;
  #closed = false;

  constructor(options: HubOptions) {
    this.#options = options;
    this.#registry = new StreamRegistry(options.settings, options.bounds.of('eventStreams'));
    this.#fanout = new Fanout({
      ...options,
      bounds: options.ring ?? RING_BOUNDS,
      registry: this.#registry,
      counts: this.#counts,
      onLag: (stream) => this.#drop(stream),
    });
    this.#heartbeats = new HeartbeatWheel<EventStream>(options.clock());
    const beat = (stream: EventStream) => this.#heartbeat(stream);
    this.#heartbeats.start({ ...options, sliceStreams: SLICE_STREAMS, beat });
    if (options.node !== undefined) this.#checkLease(options.node, 0);
  }

  /** A stream that starts with its answer; undefined when a bound refuses it or the hub is stopping. */
  admit(origin: StreamOrigin): EventStream | undefined {
    const lease = this.#closed ? 'stopping' : this.#registry.take(origin, this.#options.clock());
    if (typeof lease === 'string') {
      this.#counts.refused[lease] += 1;
      return undefined;
    }
    return new EventStream(origin, lease, {
      started: (stream) => this.#open(stream),
      drained: (stream) => this.#fanout.drained(stream),
      lost: (stream) => this.#lost(stream),
    });
  }

  /** Reconnect delay on overload. Milliseconds. */
  overloadRetryMs(): number {
    return this.#between(5, 20) * SECOND_MS;
  }

  /** Ends the streams of an ended session at once. */
  sessionEnded(sessionId: string): void {
    for (const stream of this.#registry.streamsOf(sessionId)) this.#end(stream, 'session', RETRY_MS);
  }

  /** Refuses new streams and ends all open ones in slices. Resolves with the number of remaining streams: 0. */
  async drain(): Promise<number> {
    this.#closed = true;
    this.#fanout.stop();
    this.#heartbeats.stop();
    this.#stopLeaseChecks();
    await this.#sendAway();
    return 0;
  }

  /** Ends all streams in slices; their clients come back elsewhere with their position. */
  async #sendAway(): Promise<void> {
    while (this.#registry.all.size > 0) {
      let left = SLICE_STREAMS;
      for (const stream of this.#registry.all) {
        if (left === 0) break;
        left -= 1;
        this.#end(stream, 'drain', this.#drainRetryMs());
      }
      await new Promise<void>((resolve) => this.#options.schedule.immediate(resolve));
    }
  }

  /** A node that has had no lease for as long as one lasts may be cut off for long, and applies no events meanwhile. */
  #checkLease(node: StreamNode, missed: number): void {
    this.#stopLeaseChecks = this.#options.schedule.timer(node.leaseMs / LEASE_CHECKS, () => {
      const now = node.admits() ? 0 : missed + 1;
      if (now === LEASE_CHECKS) void this.#sendAway();
      this.#checkLease(node, now);
    });
  }

  counters(): HubCounters {
    const { frames: ringFrames, sizeBytes: ringBytes } = this.#fanout.ring.size;
    const streams = this.#registry.all.size;
    return { ...this.#counts, streams, ...this.#fanout.sizes, ringFrames, ringBytes };
  }

  #open(stream: EventStream): void {
    const { log, clock, node } = this.#options;
    for (const oldest of this.#registry.overflow(stream.origin.sessionId)) {
      this.#end(oldest, 'evicted', this.#between(30, 60) * SECOND_MS);
    }
    this.#registry.add(stream);
    this.#counts.opened += 1;
    const nowMs = clock();
    stream.endsMs = nowMs + LIFETIME_MS * this.#between(0.8, 1);
    this.#heartbeats.arm(stream, nowMs, HEARTBEAT_MS * this.#between(0.8, 1.2));
    const { newest, floor } = this.#fanout.ring;
    const sent = stream.origin.lastEventId;
    const asked = sent === undefined ? newest : this.#positionOf(sent);
    stream.through = asked ?? newest;
    if (asked === undefined) {
      this.#counts.resets += 1;
      this.#fanout.send(stream, HELLO_FRAME + resetFrame(log.epoch, log.oldest, newest), 0);
      return;
    }
    this.#fanout.send(stream, HELLO_FRAME + positionFrame(log.epoch, asked), 0);
    if (node !== undefined && asked > newest) {
      this.#fanout.waitFor(stream, AHEAD_LEASES * node.leaseMs, () => this.#late(stream, node));
      return;
    }
    if (sent !== undefined) this.#counts.resumed += 1;
    if (asked < floor) {
      this.#registry.chargeReplay(stream.origin.sessionId, floor - asked);
      this.#fanout.catchUp(stream);
    } else this.#fanout.goLive(stream);
  }

  /**
   * Ends a stream that a node without a lease cannot serve: events that it has not applied are no loss, because another
   * node may have them.
   */
  #late(stream: EventStream, node: StreamNode): void {
    if (node.admits()) this.#fanout.reached(stream, true);
    else this.#end(stream, 'drain', this.#drainRetryMs());
  }

  /** Undefined: unknown, too old, or of another epoch. */
  #positionOf(lastEventId: string): number | undefined {
    const { log, node } = this.#options;
    const cursor = parseCursor(lastEventId);
    if (cursor === undefined || cursor.epoch !== log.epoch) return undefined;
    if (node === undefined && cursor.sequence > this.#fanout.ring.newest) return undefined;
    return missedAfter(log, cursor.sequence) > 0 ? undefined : cursor.sequence;
  }

  #lost(stream: EventStream): void {
    const { blockedSinceMs } = stream;
    if (blockedSinceMs > 0 && this.#options.clock() - blockedSinceMs >= STALL_MS) this.#counts.stall += 1;
    this.#forget(stream);
  }

  /** Closes a lagging stream; the client reconnects and replays the log. */
  #drop(stream: EventStream): void {
    this.#counts.lag += 1;
    this.#forget(stream);
    stream.finish(undefined);
  }

  #end(stream: EventStream, reason: ByeReason, retryMs: number): void {
    if (!this.#forget(stream)) return;
    this.#counts.ended[reason] += 1;
    stream.finish(byeFrame(reason, retryMs));
  }

  #forget(stream: EventStream): boolean {
    this.#fanout.forget(stream);
    return this.#registry.remove(stream);
  }

  #heartbeat(stream: EventStream): void {
    const nowMs = this.#options.clock();
    if (!this.#options.isSessionValid(stream.origin)) this.#end(stream, 'session', RETRY_MS);
    else if (nowMs >= stream.endsMs) this.#end(stream, 'lifetime', this.#between(0.2, 1) * SECOND_MS);
    else {
      this.#heartbeats.arm(stream, nowMs, HEARTBEAT_MS * this.#between(0.8, 1.2));
      this.#fanout.heartbeat(stream);
    }
  }

  #drainRetryMs(): number {
    return this.#between(1, 5) * SECOND_MS;
  }

  #between(low: number, high: number): number {
    return low + (high - low) * this.#options.random();
  }
}
