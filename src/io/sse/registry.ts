/**
 * The open streams, found by user, by session and by address, and the bounds on them: of one session (the oldest gives
 * way), of one address, of the node, and how often one session may connect. Memory follows the open streams.
 */
import type { SettingsReader } from '../../domain/settings.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { Channel, EventStream, StreamOrigin } from './stream.ts';

/** A session that connects more often than this within one window is told to wait: a client in a loop. */
const CONNECTS_MAX = 40;
const CONNECTS_WINDOW_MS = 10 * SECOND_MS;
/** Reading so many events of the log again (some 0.15 s of the main thread) counts as so many connects. */
const REPLAY_EVENTS = 100_000;
const REPLAY_CONNECTS = 4;

/** The bound that a new stream met. */
export type Crowding = 'node' | 'address' | 'connects';

export class StreamRegistry {
  readonly all = new Set<EventStream>();
  readonly #settings: SettingsReader;
  readonly #channels = new Map<string, Channel>();
  /** The oldest first. */
  readonly #sessions = new Map<string, Set<EventStream>>();
  readonly #addresses = new Map<string, number>();
  #connects = new Map<string, number>();
  #connectsWindow = 0;

  constructor(settings: SettingsReader) {
    this.#settings = settings;
  }

  channelOf(userId: string): Channel | undefined {
    return this.#channels.get(userId);
  }

  streamsOf(sessionId: string): EventStream[] {
    return [...(this.#sessions.get(sessionId) ?? [])];
  }

  /** The bound that keeps a stream out; undefined: there is room. Counts the attempt. */
  crowding({ sessionId, address }: StreamOrigin, nowMs: number): Crowding | undefined {
    const window = Math.floor(nowMs / CONNECTS_WINDOW_MS);
    if (window !== this.#connectsWindow) {
      this.#connectsWindow = window;
      this.#connects = new Map();
    }
    const connects = (this.#connects.get(sessionId) ?? 0) + 1;
    this.#connects.set(sessionId, connects);
    if (connects > CONNECTS_MAX) return 'connects';
    if (this.all.size >= this.#settings.get('SseStreamsMax')) return 'node';
    const atAddress = this.#addresses.get(address) ?? 0;
    return atAddress >= this.#settings.get('SseStreamsPerAddress') ? 'address' : undefined;
  }

  /** The session has so many events of the log read again: it may do so at a pace that leaves room for others. */
  chargeReplay(sessionId: string, events: number): void {
    const cost = Math.ceil(events / REPLAY_EVENTS) * REPLAY_CONNECTS;
    this.#connects.set(sessionId, (this.#connects.get(sessionId) ?? 0) + cost);
  }

  /** The streams that have to give way to one more of this session. */
  surplus(sessionId: string): EventStream[] {
    const streams = this.#sessions.get(sessionId);
    const surplus = (streams?.size ?? 0) + 1 - this.#settings.get('SseStreamsPerSession');
    return surplus > 0 ? [...(streams ?? [])].slice(0, surplus) : [];
  }

  add(stream: EventStream): void {
    const { userId, sessionId, address } = stream.origin;
    const channel = this.#channels.get(userId) ?? { userId, streams: new Set(), newest: 0, first: 0 };
    this.#channels.set(userId, channel);
    channel.streams.add(stream);
    stream.channel = channel;
    const session = this.#sessions.get(sessionId) ?? new Set();
    this.#sessions.set(sessionId, session.add(stream));
    this.#addresses.set(address, (this.#addresses.get(address) ?? 0) + 1);
    this.all.add(stream);
  }

  /** False when it was not there. */
  remove(stream: EventStream): boolean {
    if (!this.all.delete(stream)) return false;
    const { userId, sessionId, address } = stream.origin;
    stream.channel?.streams.delete(stream);
    if (stream.channel?.streams.size === 0) this.#channels.delete(userId);
    const session = this.#sessions.get(sessionId);
    session?.delete(stream);
    if (session?.size === 0) this.#sessions.delete(sessionId);
    const atAddress = (this.#addresses.get(address) ?? 1) - 1;
    if (atAddress > 0) this.#addresses.set(address, atAddress);
    else this.#addresses.delete(address);
    return true;
  }
}
