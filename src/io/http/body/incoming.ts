/**
 * Streams a request's body to its sink with back-pressure. Keeps uWebSockets.js from closing a body that is only slow, and
 * detects a client that left or fell silent.
 */

import type { RemainingBody } from '../exchange/stream.ts';
import type { HttpResponse } from '../listen/server.ts';
import { type BodyHead, sendContinue } from './continue.ts';
import type { IncomingSink, PrebufferableBody, PrebufferResult } from './incoming-body.ts';
import { MinimumRate, OPEN_BODIES, type OpenBodies, type OpenBody, REARM_INTERVALS } from './open-bodies.ts';
import { BodyPrebuffer } from './prebuffer.ts';

/** A client that is not paused and sends nothing for this long counts as gone. */
const SILENT_SECONDS = 30;

export interface IncomingHooks {
  /** May these bytes be buffered until the route reads? False: the request was refused. */
  keep(sizeBytes: number): boolean;
  /** Buffered bytes were passed on or discarded. */
  release(sizeBytes: number): void;
  /** The last byte has arrived. */
  ended(): void;
  /** Reading was resumed, which makes uWS forget that an answer waits for room. */
  resumed?(): void;
  /** Does an answer wait for room? Then uWS's own write timeout applies. */
  waits?(): boolean;
  /** An answer waits for it, though no route reads it. */
  readonly isAwaited?: true;
  /** The sink threw: a bug. The rest of the body is discarded. */
  failed(error: unknown): void;
  /** The client sends less than the minimum rate; the sink has received `lost`. Absent: the route has its own rate. */
  slow?(): void;
}

/** Hooks for a body that no route reads. */
export const DISCARD: IncomingHooks = {
  keep: () => false,
  release: () => undefined,
  ended: () => undefined,
  failed: () => undefined,
};

export class IncomingStream implements PrebufferableBody, RemainingBody, OpenBody {
  readonly declaredBytes: number | undefined;
  openAt = -1;
  readonly #response: HttpResponse;
  readonly #head: BodyHead;
  readonly #hooks: IncomingHooks;
  readonly #open: OpenBodies;
  readonly #minimumRate: MinimumRate | undefined;
  #sink: IncomingSink | undefined;
  readonly #prebuffer = new BodyPrebuffer();
  #paused = false;
  /** The client was paused in this second. */
  #hasPaused = false;
  /** An early answer discards the rest, within its own bounds. */
  #diverted = false;
  /** The end of the body resumed the connection, so uWS's idle timeout runs while the answer is awaited. */
  #clockRuns = false;
  #ended = false;
  /** Invited, or here without it. */
  #began = false;
  /** The sink receives nothing more: the body is over, the client gone, or the rest discarded. */
  #closed = false;
  /** The client left before the route read. */
  #lost = false;
  #silentSeconds = 0;
  #intervals = 0;

  /** Must be called in the request's own callback: uWS delivers only to listeners that are registered by then. */
  constructor(response: HttpResponse, head: BodyHead, hooks: IncomingHooks, open: OpenBodies = OPEN_BODIES) {
    this.#response = response;
    this.#head = head;
    this.#hooks = hooks;
    this.#open = open;
    this.#minimumRate = hooks.slow === undefined ? undefined : new MinimumRate();
    this.declaredBytes = head.contentLength;
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
    if (hooks.isAwaited === true) this.sendContinue();
  }

  get ended(): boolean {
    return this.#ended;
  }

  sendContinue(): void {
    if (this.#began || this.#closed || this.#diverted) return;
    this.#began = true;
    sendContinue(this.#response, this.#head);
  }

  prebuffer(sizeBytes: number, ready: (found: PrebufferResult) => void): void {
    this.sendContinue();
    this.#prebuffer.expect(sizeBytes, ready);
    if (this.#closed || this.#diverted) this.#prebuffer.notify('gone');
    else if (this.#ended || this.#prebuffer.isEnough) this.#prebuffer.notify('enough');
    else this.resume();
  }

  read(sink: IncomingSink, early?: 'early'): void {
    // The answer was sent before the route read.
    if (this.#diverted) {
      sink.lost();
      return;
    }
    if (this.#sink !== undefined) throw new Error('a body is read once');
    this.#sink = sink;
    if (early === undefined) this.sendContinue();
    const held = this.#prebuffer.take();
    // Reading resumes before the first piece, at which the sink may pause.
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
    // The route may have discarded the body, but the new sink must receive its end.
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
    // In uWS a resume without a pause stalls the connection.
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

  /** The client is gone; the response may not be touched. */
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
      // Two ticks of the event loop: one for the socket's data, one for its end.
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

  /** Independent of silence: uWS's timeout also closes a body that arrives slowly. */
  #rearm(): void {
    this.#intervals += 1;
    if (this.#intervals % REARM_INTERVALS !== 0) return;
    this.#response.pause();
    this.#read();
  }

  /** The sink is notified as if the client had left. */
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
    this.#began ||= chunk.byteLength > 0;
    if (!this.#closed && chunk.byteLength > 0) this.#deliver(chunk, isLast);
    if (!isLast) return;
    // A paused connection would never read its next request.
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
    // Nothing follows the last piece, and a resume would start uWS's timeout.
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
