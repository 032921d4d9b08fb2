/**
 * All WebSockets of a gateway: their bounds, heartbeats on both sides, and the ends that the gateway decides: session, idle
 * time and drain (docs/modules.md).
 */
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { SharedBounds } from '../../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { type Clock, SECOND_MS } from '../../domain/time.ts';
import { CLOSE, SOCKET_ENDS, type SocketEnd } from '../../domain/web-sockets.ts';
import type { RouteContext } from '../http/table/route.ts';
import { HeartbeatWheel } from '../sse/heartbeat-wheel.ts';
import { type RelayEvents, SocketRelay } from './socket-relay.ts';

/** Each socket's session is checked, and its silence looked at, so often. Spread, so that few are due at once. */
const BEAT_MS = 20 * SECOND_MS;
/** Sockets that are looked at or ended in one event-loop tick. */
const SLICE_SOCKETS = 500;
/** At a drain, the longest wait for the close frames of the other sides. */
const CLOSING_MS = 2 * SECOND_MS;

const SIDES = ['client', 'module'] as const;

interface WebSocketsOptions {
  readonly settings: SettingsReader;
  readonly bounds: SharedBounds;
  readonly clock: Clock;
  readonly schedule: Schedule;
  /** Random number, at least 0, below 1. */
  readonly random: () => number;
  /** True if this process may act on its state: a node of a cluster without its lease may not. */
  readonly admits: () => boolean;
  readonly isSessionValid: (session: { readonly userId: string; readonly id: string }) => boolean;
}

interface Traffic {
  to_module: number;
  to_client: number;
}

interface WebSocketCounters {
  /** Open now, and those whose handshake or end is under way. */
  readonly open: number;
  readonly openedTotal: number;
  readonly ended: Readonly<Record<SocketEnd, number>>;
  readonly messages: Readonly<Traffic>;
  readonly bytes: Readonly<Traffic>;
}

export class WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #all = new Set<SocketRelay>();
  readonly #bySession = new Map<string, Set<SocketRelay>>();
  readonly #heartbeats: HeartbeatWheel<SocketRelay>;
  readonly #ended = Object.fromEntries(SOCKET_ENDS.map((end) => [end, 0])) as Record<SocketEnd, number>;
  readonly #messages: Traffic = { to_module: 0, to_client: 0 };
  readonly #bytes: Traffic = { to_module: 0, to_client: 0 };
  readonly #events: RelayEvents = {
    opened: (relay) => this.#opened(relay),
    relays: (relay, direction, bytes) => this.#relays(relay, direction, bytes),
    ended: (relay, end) => this.#forget(relay, end),
  };
  #openedTotal = 0;
  #closed = false;
  #onEmpty: (() => void) | undefined;

  constructor(options: WebSocketsOptions) {
    this.#options = options;
    this.#heartbeats = new HeartbeatWheel<SocketRelay>(options.clock());
    const beat = (relay: SocketRelay) => this.#beat(relay);
    this.#heartbeats.start({ ...options, sliceStreams: SLICE_SOCKETS, beat });
  }

  /** A relay that holds a part of the bound. Throws the error of the bound, and `Stopping`. */
  admit({ session, holder }: Pick<RouteContext, 'session' | 'holder'>): SocketRelay {
    if (this.#closed) throw new GatewayError('Stopping');
    const lease = this.#options.bounds.of('webSockets').require(holder);
    const relay = new SocketRelay(
      { session: session && { userId: session.userId, id: session.id }, lease },
      this.#events,
    );
    this.#all.add(relay);
    return relay;
  }

  /** Ends the sockets of an ended session at once. */
  sessionEnded(sessionId: string): void {
    for (const relay of [...(this.#bySession.get(sessionId) ?? [])]) relay.end('session', CLOSE.policy);
  }

  /** Refuses new sockets and ends all open ones in slices. Resolves with the number that did not answer in time. */
  async drain(): Promise<number> {
    this.#closed = true;
    this.#heartbeats.stop();
    let left = SLICE_SOCKETS;
    for (const relay of [...this.#all]) {
      relay.end('drain', CLOSE.restart);
      left -= 1;
      if (left > 0) continue;
      left = SLICE_SOCKETS;
      await new Promise<void>((resolve) => this.#options.schedule.immediate(resolve));
    }
    if (this.#all.size > 0) {
      await new Promise<void>((resolve) => {
        const stopWaiting = this.#options.schedule.timer(CLOSING_MS, resolve);
        this.#onEmpty = () => {
          stopWaiting();
          resolve();
        };
      });
    }
    const unanswered = this.#all.size;
    for (const relay of [...this.#all]) relay.cut();
    return unanswered;
  }

  counters(): WebSocketCounters {
    return {
      open: this.#all.size,
      openedTotal: this.#openedTotal,
      ended: { ...this.#ended },
      messages: { ...this.#messages },
      bytes: { ...this.#bytes },
    };
  }

  #opened(relay: SocketRelay): void {
    const { session } = relay.origin;
    this.#openedTotal += 1;
    if (session !== undefined) {
      const sockets = this.#bySession.get(session.id) ?? new Set();
      this.#bySession.set(session.id, sockets.add(relay));
    }
    const nowMs = this.#options.clock();
    relay.heardMs.client = nowMs;
    relay.heardMs.module = nowMs;
    // The session may have ended during the handshake.
    if (this.#endsWithSession(relay)) return;
    if (this.#closed) relay.end('drain', CLOSE.restart);
    else this.#arm(relay, nowMs);
  }

  /** Without its lease a node cannot know whether a session has ended elsewhere: no message passes on an old state. */
  #relays(relay: SocketRelay, direction: keyof Traffic, bytes: number): boolean {
    if (!this.#options.admits()) {
      relay.end('unavailable', CLOSE.tryLater);
      return false;
    }
    this.#messages[direction] += 1;
    this.#bytes[direction] += bytes;
    return true;
  }

  #forget(relay: SocketRelay, end: SocketEnd | undefined): void {
    if (end !== undefined) this.#ended[end] += 1;
    const { session } = relay.origin;
    const sockets = session && this.#bySession.get(session.id);
    sockets?.delete(relay);
    if (session !== undefined && sockets?.size === 0) this.#bySession.delete(session.id);
    this.#all.delete(relay);
    if (this.#all.size === 0) this.#onEmpty?.();
  }

  #endsWithSession(relay: SocketRelay): boolean {
    const { session } = relay.origin;
    if (session === undefined || this.#options.isSessionValid(session)) return false;
    relay.end('session', CLOSE.policy);
    return true;
  }

  get #idleMs(): number {
    return this.#options.settings.get('WebSocketIdleSeconds') * SECOND_MS;
  }

  #arm(relay: SocketRelay, nowMs: number): void {
    const spread = 0.8 + 0.4 * this.#options.random();
    this.#heartbeats.arm(relay, nowMs, Math.min(BEAT_MS, this.#idleMs / 4) * spread);
  }

  /** From half of the idle time on a silent side is sent a ping with each beat. */
  #beat(relay: SocketRelay): void {
    if (this.#endsWithSession(relay)) return;
    const nowMs = this.#options.clock();
    for (const side of SIDES) {
      if (relay.heard[side]) relay.heardMs[side] = nowMs;
      relay.heard[side] = false;
      const silentMs = nowMs - relay.heardMs[side];
      if (silentMs >= this.#idleMs) {
        if (side === 'client') relay.end('idle', CLOSE.goingAway);
        else relay.end('cut', CLOSE.badGateway);
        return;
      }
      if (silentMs >= this.#idleMs / 2) relay.ping(side);
    }
    this.#arm(relay, nowMs);
  }
}
