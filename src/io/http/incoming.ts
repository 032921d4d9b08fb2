/**
 * A request's body as it arrives (files.md "What uWebSockets.js does with bodies"): hands pieces to the route's sink,
 * pauses and resumes the client, keeps the connection's timers from cutting a body that is merely slow, and notices a
 * client that left or fell silent while it was paused.
 */

import type { HttpResponse } from './server.ts';
import type { IncomingBody, IncomingSink, RestOfBody } from './stream.ts';

/** Paused bodies are let through for a turn so often: a paused socket does not report that its client left. */
const NUDGE_MS = 1_000;
/** uWS cuts a body of less than 16 KB/s after 10 s; pausing and resuming at once starts its clock anew. */
const REARM_TURNS = 4;
/** A client that may send and does not, for so long, is gone (files.md "Upload cases that must hold"). */
const SILENT_TURNS = 30;

export interface IncomingHooks {
  /** May these bytes be kept until somebody reads? False: the request was refused. */
  keep(sizeBytes: number): boolean;
  /** Kept bytes were handed on. */
  release(sizeBytes: number): void;
  /** The last byte is here. */
  ended(): void;
  /** Reading goes on: uWS has then forgotten that somebody waits for room to write. */
  resumed?(): void;
  /** The sink threw: a bug. The rest of the body is thrown away. */
  failed(error: unknown): void;
}

export class IncomingStream implements IncomingBody, RestOfBody {
  readonly declaredBytes: number | undefined;
  readonly #response: HttpResponse;
  readonly #hooks: IncomingHooks;
  #sink: IncomingSink | undefined;
  /** Copies of what arrived before anybody read. */
  #held: Buffer[] = [];
  #paused = false;
  #ended = false;
  /** The sink hears nothing more: body over, client gone, or rest thrown away. */
  #closed = false;
  /** The client went before anybody read. */
  #lost = false;
  #silentTurns = 0;
  #turns = 0;

  /** Call it in the turn of the request: uWS delivers to whoever listens by then. */
  constructor(response: HttpResponse, declaredBytes: number | undefined, hooks: IncomingHooks) {
    this.#response = response;
    this.#hooks = hooks;
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
    OPEN.add(this);
  }

  get ended(): boolean {
    return this.#ended;
  }

  read(sink: IncomingSink): void {
    if (this.#sink !== undefined) throw new Error('a body is read once');
    this.#sink = sink;
    const held = this.#held;
    this.#held = [];
    // Before anything is handed over: the sink may want to pause at its first piece.
    this.resume();
    for (const piece of held) {
      this.#hooks.release(piece.length);
      if (!this.#closed) sink.data(piece);
    }
    if (this.#lost) sink.lost();
    else if (this.#ended) this.#finish();
  }

  divert(sink: IncomingSink): void {
    this.#drop();
    this.#sink = sink;
    this.resume();
    if (this.#lost) {
      sink.lost();
      return;
    }
    // The route may have thrown the body away: whoever takes it over has to hear of its end all the same.
    this.#closed = false;
    OPEN.add(this);
    if (this.#ended) this.#finish();
  }

  pause(): void {
    if (this.#paused || this.#closed || this.#ended) return;
    this.#paused = true;
    this.#response.pause();
  }

  resume(): void {
    // A resume without a pause hangs the connection.
    if (!this.#paused) return;
    this.#paused = false;
    this.#silentTurns = 0;
    if (!this.#closed && !this.#ended) this.#read();
  }

  discard(): void {
    if (this.#closed) return;
    this.resume();
    this.#close();
  }

  /** The client is gone; the response may not be touched any more. */
  lost(): void {
    if (this.#closed) return;
    this.#lost = true;
    this.#close();
    this.#sink?.lost();
  }

  /** Once a second for every open body. */
  turn(): void {
    if (this.#closed || this.#ended) return;
    if (this.#paused) {
      this.#read();
      // Two turns of the loop: one to see what the socket has, one for its end.
      setImmediate(() => setImmediate(() => this.#stayPaused()));
      return;
    }
    this.#silentTurns += 1;
    // Counted apart: bytes that trickle in are no silence, and uWS's clock runs on under them.
    this.#turns += 1;
    if (this.#silentTurns >= SILENT_TURNS) this.#response.close();
    else if (this.#turns % REARM_TURNS === 0) {
      this.#response.pause();
      this.#read();
    }
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
    if (!this.#closed && chunk.byteLength > 0) this.#deliver(chunk);
    if (!isLast) return;
    // A connection that stays paused never reads its next request.
    this.resume();
    this.#ended = true;
    this.#hooks.ended();
    if (this.#sink !== undefined) this.#finish();
  }

  #deliver(chunk: ArrayBuffer): void {
    this.#silentTurns = 0;
    if (this.#sink !== undefined) {
      this.#sink.data(new Uint8Array(chunk));
      return;
    }
    if (!this.#hooks.keep(chunk.byteLength)) return;
    this.#held.push(Buffer.from(Buffer.from(chunk)));
    this.pause();
  }

  #finish(): void {
    const closed = this.#closed;
    this.#close();
    if (!closed) this.#sink?.end();
  }

  #close(): void {
    this.#closed = true;
    OPEN.delete(this);
    this.#drop();
  }

  #drop(): void {
    for (const piece of this.#held) this.#hooks.release(piece.length);
    this.#held = [];
  }
}

/** One timer for all bodies; it does not keep the process alive. */
class OpenBodies {
  readonly #bodies = new Set<IncomingStream>();
  #timer: NodeJS.Timeout | undefined;

  add(body: IncomingStream): void {
    this.#bodies.add(body);
    this.#timer ??= setInterval(() => this.#turn(), NUDGE_MS).unref();
  }

  delete(body: IncomingStream): void {
    this.#bodies.delete(body);
    if (this.#bodies.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #turn(): void {
    for (const body of [...this.#bodies]) body.turn();
  }
}

const OPEN = new OpenBodies();
