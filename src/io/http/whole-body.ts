/** The reader of bodies that a route takes whole: bounded by its sink, without a copy where one piece is all. */
import type { HttpResponse } from './server.ts';
import type { IncomingSink, RestOfBody } from './stream.ts';

export interface BodySink {
  /** Bytes that arrived; false when they may not be kept. Called before anything is copied. */
  take(sizeBytes: number): boolean;
  /** The whole body. Valid only during the call when `borrowed`. */
  done(bytes: Buffer, borrowed: boolean): void;
}

/**
 * Reads a body. `take` is the cap: once it says no, nothing more is kept and `done` is not called. A body that
 * arrives in one piece, the common case, is handed on without a copy.
 */
export function readBody(response: HttpResponse, sink: BodySink): RestOfBody {
  const reader = new BodyReader(sink);
  response.onData((chunk, isLast) => reader.take(chunk, isLast));
  return reader;
}

class BodyReader implements RestOfBody {
  readonly #sink: BodySink;
  #pieces: Buffer[] | undefined;
  #over = false;
  #rest: IncomingSink | undefined;

  constructor(sink: BodySink) {
    this.#sink = sink;
  }

  take(chunk: ArrayBuffer, isLast: boolean): void {
    if (!this.#over && !this.#sink.take(chunk.byteLength)) {
      this.#over = true;
      this.#pieces = undefined;
    }
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
    this.#pieces ??= [];
    if (view.length > 0) this.#pieces.push(Buffer.from(view));
    if (!isLast) return;
    this.#over = true;
    this.#sink.done(Buffer.concat(this.#pieces), false);
  }

  divert(next: IncomingSink): void {
    this.#over = true;
    this.#rest = next;
  }

  discard(): void {
    this.#over = true;
    this.#rest = undefined;
  }

  lost(): void {
    this.#rest?.lost();
  }
}
