/**
 * Open streams by user and by session, and their bounds: per session (the oldest stream is closed), user, network and
 * node, and the connect rate per session. Memory is proportional to the open streams.
 */

import { Lease, type SharedBound } from '../../domain/limits/shares.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { Channel, EventStream, StreamOrigin } from './stream.ts';

/** Connects of one session within one window; more are refused, because the client reconnects in a loop. */
const CONNECTS_MAX = 40;
const CONNECTS_WINDOW_MS = 10 * SECOND_MS;
/** A replay of so many events (about 0.15 s of the main thread) counts as so many connects. */
const REPLAY_EVENTS = 100_000;
const REPLAY_CONNECTS = 4;

/** The bound that refuses a new stream. */
export type StreamRefusal = 'node' | 'user' | 'address' | 'connects';

const REFUSAL_OF = { maximum: 'node', user: 'user', network: 'address', session: 'user' } as const;

export class StreamRegistry {
  readonly all = new Set<EventStream>();
  readonly #settings: SettingsReader;
  readonly #bound: SharedBound;
  readonly #channels = new Map<string, Channel>();
  /** The oldest first. */
  readonly #sessions = new Map<string, Set<EventStream>>();
  #connects = new Map<string, number>();
  #connectsWindow = 0;

  constructor(settings: SettingsReader, bound: SharedBound) {
    this.#settings = settings;
    this.#bound = bound;
  }

  channelOf(userId: string): Channel | undefined {
    return this.#channels.get(userId);
  }

  streamsOf(sessionId: string): EventStream[] {
    return [...(this.#sessions.get(sessionId) ?? [])];
  }

  /** The lease of one more stream, or the bound that refuses it. Counts the attempt. */
  take({ sessionId, holder }: StreamOrigin, nowMs: number): Lease | StreamRefusal {
    const window = Math.floor(nowMs / CONNECTS_WINDOW_MS);
    if (window !== this.#connectsWindow) {
      this.#connectsWindow = window;
      this.#connects = new Map();
    }
    const connects = (this.#connects.get(sessionId) ?? 0) + 1;
    this.#connects.set(sessionId, connects);
    if (connects > CONNECTS_MAX) return 'connects';
    // Without the session's bound: there the oldest stream is closed instead.
    const lease = this.#bound.take({ ...holder, session: undefined });
    return lease instanceof Lease ? lease : REFUSAL_OF[lease.refusedBy];
  }

  chargeReplay(sessionId: string, events: number): void {
    const cost = Math.ceil(events / REPLAY_EVENTS) * REPLAY_CONNECTS;
    this.#connects.set(sessionId, (this.#connects.get(sessionId) ?? 0) + cost);
  }

  /** The streams that must be closed before another one of this session opens. */
  overflow(sessionId: string): EventStream[] {
    const streams = this.#sessions.get(sessionId);
    const overflow = (streams?.size ?? 0) + 1 - this.#settings.get('SseStreamsPerSession');
    return overflow > 0 ? [...(streams ?? [])].slice(0, overflow) : [];
  }

  add(stream: EventStream): void {
    const { userId, sessionId } = stream.origin;
    const channel = this.#channels.get(userId) ?? { userId, streams: new Set(), newest: 0, first: 0 };
    this.#channels.set(userId, channel);
    channel.streams.add(stream);
    stream.channel = channel;
    const session = this.#sessions.get(sessionId) ?? new Set();
    this.#sessions.set(sessionId, session.add(stream));
    this.all.add(stream);
  }

  /** False for an unknown stream. The lease is released in either case. */
  remove(stream: EventStream): boolean {
    stream.lease.release();
    if (!this.all.delete(stream)) return false;
    const { userId, sessionId } = stream.origin;
    stream.channel?.streams.delete(stream);
    if (stream.channel?.streams.size === 0) this.#channels.delete(userId);
    const session = this.#sessions.get(sessionId);
    session?.delete(stream);
    if (session?.size === 0) this.#sessions.delete(sessionId);
    return true;
  }
}
