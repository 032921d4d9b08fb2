/**
 * A request's body as it arrives: hands pieces to the route's sink, pauses and resumes the client, keeps the timers of
 * uWebSockets.js from cutting a body that is merely slow, and notices a client that left or fell silent while paused.
 */

import type { HttpResponse } from '../server.ts';
import type { RemainingBody } from '../stream.ts';
import type { IncomingSink, PrebufferableBody, PrebufferResult } from './incoming-body.ts';
import { MinimumRate, OPEN_BODIES, type OpenBodies, type OpenBody, REARM_INTERVALS } from './open-bodies.ts';
import { BodyPrebuffer } from './prebuffer.ts';

/** A client that may send and does not, for so long, is gone (files.md "Upload cases that must hold"). */
const SILENT_SECONDS = 30;

export interface IncomingHooks {
  /** May these bytes be kept until somebody reads? False: the request was refused. */
  keep(sizeBytes: number): boolean;
  /** Kept bytes were handed on. */
  release(sizeBytes: number): void;
  /** The last byte is here. */
  ended(): void;
  /** Reading goes on: uWS has then forgotten that somebody waits for room to write. */
  resumed?(): void;
  /** An answer waits for room: how long it may is uWS's to judge. */
  waits?(): boolean;
  /** The sink threw: a bug. The rest of the body is thrown away. */
  failed(error: unknown): void;
  /** The client sends less than the floor; the sink has heard `lost`. Absent: the route has a floor of its own. */
  slow?(): void;
}

/** Of a body that no route reads. */
export const DISCARD: IncomingHooks = {
  keep: () => false,
  release: () => undefined,
  ended: () => undefined,
  failed: () => undefined,
};

export class IncomingStream implements PrebufferableBody, RemainingBody, OpenBody {
  readonly declaredBytes: number | undefined;
  readonly #response: HttpResponse;
  readonly #hooks: IncomingHooks;
  readonly #open: OpenBodies;
  readonly #minimumRate: MinimumRate | undefined;
  #sink: IncomingSink | undefined;
  readonly #prebuffer = new BodyPrebuffer();
  #paused = false;
  /** The client had to wait in this second. */
  #hasPaused = false;
  /** Somebody else throws the rest away, and bounds that by itself. */
  #diverted = false;
  /** The end of the body resumed the connection, and so started uWS's clock, which cuts the wait for the answer. */
  #clockRuns = false;
  #ended = false;
  /** The sink hears nothing more: body over, client gone, or rest thrown away. */
  #closed = false;
  /** The client went before anybody read. */
  #lost = false;
  #silentSeconds = 0;
  #intervals = 0;

  /** Call it in the turn of the request: uWS delivers to whoever listens by then. */
  constructor(
    response: HttpResponse,
    declaredBytes: number | undefined,
    hooks: IncomingHooks,
    open: OpenBodies = OPEN_BODIES,
  ) {
    this.#response = response;
    this.#hooks = hooks;
    this.#open = open;
    this.#minimumRate = hooks.slow === undefined ? undefined : new MinimumRate();
    this.declaredBytes = declaredBytes;
    // A throw may not cross the native frame.
    response.onData((chunk, isLast) => {
      try {
        this.#take(chunk, isLast);
      } catch (error) {
        this.discard();
        hooks.failed(error);
      }
    });
    open.add(this);
  }

  get ended(): boolean {
    return this.#ended;
  }

  prebuffer(sizeBytes: number, ready: (found: PrebufferResult) => void): void {
    this.#prebuffer.expect(sizeBytes, ready);
    if (this.#closed || this.#diverted) this.#prebuffer.notify('gone');
    else if (this.#ended || this.#prebuffer.isEnough) this.#prebuffer.notify('enough');
    else this.resume();
  }

  read(sink: IncomingSink): void {
    // The answer came before the route had read.
    if (this.#diverted) {
      sink.lost();
      return;
    }
    if (this.#sink !== undefined) throw new Error('a body is read once');
    this.#sink = sink;
    const held = this.#prebuffer.take();
    // First: the sink may want to pause at its first piece.
    this.resume();
    for (const piece of held) {
      this.#hooks.release(piece.length);
      if (!this.#closed) sink.data(piece);
    }
    if (this.#lost) sink.lost();
    else if (this.#ended) this.#finish();
  }

  divert(sink: IncomingSink): void {
    this.#diverted = true;
    this.#drop();
    this.#sink = sink;
    this.resume();
    if (this.#lost) {
      sink.lost();
      return;
    }
    // The route may have thrown the body away: whoever takes it over has to hear of its end all the same.
    this.#closed = false;
    this.#open.add(this);
    if (this.#ended) this.#finish();
  }

  pause(): void {
    if (this.#paused || this.#closed || this.#ended) return;
    this.#paused = true;
    this.#hasPaused = true;
    this.#response.pause();
  }

  resume(): void {
    // A resume without a pause hangs the connection.
    if (!this.#paused) return;
    this.#paused = false;
    this.#silentSeconds = 0;
    if (!this.#closed && !this.#ended) this.#read();
  }

  answered(): void {
    this.discard();
    this.#clockRuns = false;
    this.#open.delete(this);
  }

  discard(): void {
    if (this.#closed) return;
    this.resume();
    this.#close();
  }

  /** The client is gone; the response may not be touched any more. */
  lost(): void {
    this.#clockRuns = false;
    this.#open.delete(this);
    if (this.#closed) return;
    this.#lost = true;
    this.#close();
    this.#sink?.lost();
  }

  /** Once a second for every open body. */
  onInterval(): void {
    if (this.#clockRuns) {
      if (this.#hooks.waits?.() !== true) this.#rearm();
      return;
    }
    if (this.#closed || this.#ended) return;
    if (this.#paused) {
      this.#read();
      // Two turns of the loop: one to see what the socket has, one for its end.
      setImmediate(() => setImmediate(() => this.#stayPaused()));
      return;
    }
    this.#silentSeconds += 1;
    const hasPaused = this.#hasPaused;
    this.#hasPaused = false;
    if (this.#silentSeconds >= SILENT_SECONDS) this.#response.close();
    else if (!hasPaused && !this.#diverted && this.#minimumRate?.isTooSlow() === true) this.#slow();
    else this.#rearm();
  }

  /** Turns are counted apart: bytes that trickle in are no silence, and uWS's clock runs on under them. */
  #rearm(): void {
    this.#intervals += 1;
    if (this.#intervals % REARM_INTERVALS !== 0) return;
    this.#response.pause();
    this.#read();
  }

  /** For its sink the client is gone. */
  #slow(): void {
    this.#close();
    this.#sink?.lost();
    this.#hooks.slow?.();
  }

  #read(): void {
    this.#response.resume();
    this.#hooks.resumed?.();
  }

  #stayPaused(): void {
    if (this.#paused && !this.#closed && !this.#ended) this.#response.pause();
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#ended) return;
    if (!this.#closed && chunk.byteLength > 0) this.#deliver(chunk, isLast);
    if (!isLast) return;
    // A connection that stays paused never reads its next request.
    const wasPaused = this.#paused;
    this.resume();
    this.#ended = true;
    this.#clockRuns = wasPaused;
    if (!wasPaused) this.#open.delete(this);
    this.#hooks.ended();
    if (this.#sink !== undefined) this.#finish();
    else this.#prebuffer.notify('enough');
  }

  #deliver(chunk: ArrayBuffer, isLast: boolean): void {
    this.#silentSeconds = 0;
    this.#minimumRate?.add(chunk.byteLength);
    if (this.#sink !== undefined) {
      this.#sink.data(new Uint8Array(chunk));
      return;
    }
    if (!this.#hooks.keep(chunk.byteLength)) return;
    this.#prebuffer.add(chunk);
    if (!this.#prebuffer.isEnough) return;
    // Nothing follows the last piece, and resuming would start uWS's clock.
    if (!isLast) this.pause();
    this.#prebuffer.notify('enough');
  }

  #finish(): void {
    const closed = this.#closed;
    this.#close();
    if (!closed) this.#sink?.end();
  }

  #close(): void {
    this.#closed = true;
    if (!this.#clockRuns) this.#open.delete(this);
    this.#drop();
  }

  #drop(): void {
    for (const piece of this.#prebuffer.take()) this.#hooks.release(piece.length);
    this.#prebuffer.notify('gone');
  }
}
