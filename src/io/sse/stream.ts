/**
 * One client: where it stands in the log and whether its socket takes bytes. It holds no events: what is due to it is
 * taken from the ring, or from the log while it is behind the ring. The hub decides; this is what it decides about.
 */
import type { Holder } from '../../domain/limits/holders.ts';
import type { Lease } from '../../domain/limits/shares.ts';
import type { OutgoingBody, OutgoingSource } from '../http/stream.ts';

/** Who holds the stream, and from where. */
export interface StreamOrigin {
  readonly userId: string;
  readonly sessionId: string;
  /** Whose share of the bound of streams it takes. */
  readonly holder: Holder;
  /** `Last-Event-ID` as sent; undefined: from now on. */
  readonly lastEventId: string | undefined;
}

/** What the hub hears of a stream. */
export interface StreamEvents {
  started(stream: EventStream): void;
  drained(stream: EventStream): void;
  lost(stream: EventStream): void;
}

/** All streams of one user. */
export interface Channel {
  readonly userId: string;
  readonly streams: Set<EventStream>;
  /** The newest event of this user alone since the first of the streams came; 0: none. */
  newest: number;
  /** The first one of the events that are being handed round; 0: none. */
  first: number;
}

export class EventStream implements OutgoingSource {
  readonly origin: StreamOrigin;
  /** Its place among all streams. */
  readonly lease: Lease;
  readonly #events: StreamEvents;
  #out: OutgoingBody | undefined;
  channel: Channel | undefined;
  /** Everything up to this place was sent or is not for this user. Kept up to date only while `behind`. */
  through = 0;
  /** The first frame of the ring that is due; 0: none, the client has everything. */
  next = 0;
  /** Reads the log, because the ring does not reach back to where it stands. */
  behind = false;
  /** What it asked for left the log: it is told so before anything else. */
  reset = false;
  /** In the queue of those that something is due to. */
  queued = false;
  /** Since when the socket takes nothing, Unix milliseconds; 0: it does. */
  blockedSinceMs = 0;
  /** End of its life, Unix milliseconds. */
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

  /** Hands bytes to the socket, which has to be free. */
  send(bytes: Uint8Array | string, nowMs: number): void {
    if (this.#out?.send(bytes) === false && !this.isOver) this.blockedSinceMs = nowMs;
  }

  /** Says goodbye and ends; a socket that takes nothing is cut instead. The hub has let go of the stream before. */
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
