/**
 * State of one client: its position in the log and whether its socket is blocked. It holds no events; due frames come from
 * the ring, or from the log while the stream is behind the ring.
 */
import type { Holder } from '../../domain/limits/holders.ts';
import type { Lease } from '../../domain/limits/shares.ts';
import type { OutgoingBody, OutgoingSource } from '../http/exchange/stream.ts';

/** User, session and start position of a stream. */
export interface StreamOrigin {
  readonly userId: string;
  readonly sessionId: string;
  /** The holder whose share of streams it uses. */
  readonly holder: Holder;
  /** `Last-Event-ID` as sent; undefined: from now on. */
  readonly lastEventId: string | undefined;
}

interface StreamEvents {
  started(stream: EventStream): void;
  drained(stream: EventStream): void;
  lost(stream: EventStream): void;
}

/** All streams of one user. */
export interface Channel {
  readonly userId: string;
  readonly streams: Set<EventStream>;
  /** The newest event for this user only since the first stream opened; 0: none. */
  newest: number;
  /** The first of the events that are being distributed; 0: none. */
  first: number;
}

export class EventStream implements OutgoingSource {
  readonly origin: StreamOrigin;
  /** Its share of the bound of streams. */
  readonly lease: Lease;
  readonly #events: StreamEvents;
  #out: OutgoingBody | undefined;
  channel: Channel | undefined;
  /** Events up to this position were sent or are not for this user. Maintained only while `behind`. */
  through = 0;
  /** The first due frame of the ring; 0: none, the client is up to date. */
  next = 0;
  /** Replays the log, because the ring starts after its position; or waits, because the ring has yet to reach that. */
  behind = false;
  /** The requested events left the log: a `reset` event is sent first. */
  reset = false;
  /** Queued for its due frames. */
  queued = false;
  /** Since when the socket is blocked, Unix milliseconds; 0: it is writable. */
  blockedSinceMs = 0;
  /** End of its lifetime, Unix milliseconds. */
  endsMs = 0;
  isOver = false;

  constructor(origin: StreamOrigin, lease: Lease, events: StreamEvents) {
    this.origin = origin;
    this.lease = lease;
    this.#events = events;
  }

  get blocked(): boolean {
    return this.blockedSinceMs > 0;
  }

  start(out: OutgoingBody): void {
    this.#out = out;
    this.#events.started(this);
  }

  drained(): void {
    this.blockedSinceMs = 0;
    if (!this.isOver) this.#events.drained(this);
  }

  lost(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#out = undefined;
    this.#events.lost(this);
  }

  /** Writes bytes to the socket, which must not be blocked. */
  send(bytes: Uint8Array | string, nowMs: number): void {
    if (this.#out?.send(bytes) === false && !this.isOver) this.blockedSinceMs = nowMs;
  }

  /** Sends the `bye` event and ends; a blocked socket is closed instead. The hub has removed the stream before. */
  finish(goodbye: string | undefined): void {
    const out = this.#out;
    this.isOver = true;
    this.#out = undefined;
    if (this.blocked || goodbye === undefined) {
      out?.cut();
      return;
    }
    out?.send(goodbye);
    out?.end();
  }
}
