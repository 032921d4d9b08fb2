/** The reader of bodies that a route takes whole: bounded by its sink, without a copy where one piece is all. */

import type { HttpResponse } from '../server.ts';
import type { RemainingBody } from '../stream.ts';
import type { IncomingSink } from './incoming-body.ts';
import { MinimumRate, type OpenBodies, type OpenBody, REARM_INTERVALS, rearm } from './open-bodies.ts';

export interface BodySink {
  /** Bytes that arrived; false when they may not be kept. Called before anything is copied. */
  take(sizeBytes: number): boolean;
  /** The whole body. Valid only during the call when `borrowed`. */
  done(bytes: Buffer, borrowed: boolean): void;
  /** The client sends less than the floor. Nothing more is kept, and `done` is not called. */
  slow(): void;
}

/**
 * Reads a body. `take` is the cap: once it says no, nothing more is kept and `done` is not called. A body that
 * arrives in one piece, the common case, is handed on without a copy.
 */
export function readBody(response: HttpResponse, sink: BodySink, open: OpenBodies): RemainingBody {
  const reader = new BodyReader(response, sink, open);
  response.onData((chunk, isLast) => reader.take(chunk, isLast));
  return reader;
}

class BodyReader implements RemainingBody, OpenBody {
  readonly #response: HttpResponse;
  readonly #sink: BodySink;
  readonly #open: OpenBodies;
  #pieces: Buffer[] | undefined;
  #over = false;
  #ended = false;
  #rest: IncomingSink | undefined;
  /** Of a body that did not come with its head. */
  #floor: MinimumRate | undefined;
  #turns = 0;

  constructor(response: HttpResponse, sink: BodySink, open: OpenBodies) {
    this.#response = response;
    this.#sink = sink;
    this.#open = open;
  }

  take(chunk: ArrayBuffer, isLast: boolean): void {
    if (isLast) this.#ended = true;
    if (!this.#over && !this.#sink.take(chunk.byteLength)) this.#stop();
    if (this.#over) {
      this.#rest?.data(new Uint8Array(chunk));
      if (isLast) this.#rest?.end();
      return;
    }
    const view = Buffer.from(chunk);
    if (isLast && this.#pieces === undefined) {
      this.#over = true;
      this.#sink.done(view, true);
      return;
    }
    if (this.#pieces === undefined) {
      this.#pieces = [];
      this.#floor = new MinimumRate();
      this.#open.add(this);
    }
    this.#floor?.add(view.length);
    if (view.length > 0) this.#pieces.push(Buffer.from(view));
    if (!isLast) return;
    const pieces = this.#pieces;
    this.#stop();
    this.#sink.done(Buffer.concat(pieces), false);
  }

  /** uWS would cut the connection without a word; its clock starts anew until the floor has judged. */
  onInterval(): void {
    if (this.#over) return;
    this.#turns += 1;
    if (this.#floor?.isTooSlow() === true) {
      this.#stop();
      this.#sink.slow();
    } else if (this.#turns % REARM_INTERVALS === 0) rearm(this.#response);
  }

  divert(next: IncomingSink): void {
    this.#stop();
    this.#rest = next;
    if (this.#ended) next.end();
  }

  answered(): void {
    this.discard();
  }

  discard(): void {
    this.#stop();
    this.#rest = undefined;
  }

  lost(): void {
    this.#stop();
    this.#rest?.lost();
  }

  /** Nothing more is kept. */
  #stop(): void {
    this.#over = true;
    this.#pieces = undefined;
    if (this.#floor !== undefined) this.#open.delete(this);
  }
}
