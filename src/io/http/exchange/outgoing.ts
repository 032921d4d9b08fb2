/**
 * Sends the body of one streamed answer: a known length through `tryEnd`, otherwise in chunks that are small enough that
 * uWebSockets.js loses none.
 */
import type { ErrorName } from '../../../domain/errors.ts';
import type { HttpResponse } from '../listen/server.ts';
import { corked, writePiece } from './cork.ts';
import { endHeadPending, endPending } from './reply.ts';
import type { OutgoingBody, OutgoingSource } from './stream.ts';

/** Several writes of more than 16 KB in one cork lose bytes under back-pressure: one write of this size per cork. */
const PIECE_BYTES = 15 * 1024;
/** 20 ms × 500 = 10 s, uWS's own timeout for a client that does not read. */
const RETRY_MS = 20;
const RETRIES_MAX = 500;
/** A failed write starts uWS's clock of 10 s again, which looks every 4 s: this is soon enough. */
const REARM_MS = 4_000;
/** uWS takes as much into its own buffer from a cork, and says that it was sent. */
const CORK_BYTES = 16 * 1024;
/** Too short for two calls of `tryEnd`, as an answer that stays pending needs them. */
const ONE_BYTE = 1;

export interface OutgoingLimits {
  /** Length of the whole body; undefined: chunked. */
  readonly lengthBytes: number | undefined;
  /** Milliseconds that a client may read nothing of a body with a length; about 10 s unless given. */
  readonly unreadMs?: number | undefined;
}

interface OutgoingHooks {
  /** The last byte is about to be written; afterwards the response may not be touched. */
  finishing(): void;
  /** The answer is complete, cut or aborted; `sentBytes` of its body were given to the socket. */
  ended(sentBytes: number): void;
  /** The source threw: a bug. The connection is closed. */
  failed(error: unknown): void;
  /** The connection is about to be closed because of this failure. */
  cut(error: ErrorName): void;
  /** Called after the end of an answer that stays pending: the socket has taken more of it. */
  progress(): void;
}

export class OutgoingStream implements OutgoingBody {
  readonly #response: HttpResponse;
  readonly #source: OutgoingSource;
  readonly #hooks: OutgoingHooks;
  /** Undefined: chunked. */
  readonly #lengthBytes: number | undefined;
  /** uWS does not learn that the answer is complete (docs/decisions/0090). */
  readonly #pending: boolean;
  /** Milliseconds that the client may take nothing; undefined: until uWS closes the connection, about 10 s. */
  readonly #unreadMs: number | undefined;
  #rearmTimer: NodeJS.Timeout | undefined;
  /** Counted by intervals, not by the clock: a process that was stopped must not cut healthy clients. */
  #unreadIntervals = 0;
  /** Bytes that the socket did not take yet, and the position of the first one in the body. */
  #rest: Uint8Array | undefined;
  #restOffset = 0;
  #waiting = false;
  #ending = false;
  #over = false;
  #sentBytes = 0;
  #retryScheduled = false;
  /** Retries since the socket last had room. */
  #retries = 0;

  constructor(
    response: HttpResponse,
    source: OutgoingSource,
    { lengthBytes, unreadMs }: OutgoingLimits,
    hooks: OutgoingHooks,
    pending = false,
  ) {
    this.#response = response;
    this.#source = source;
    this.#hooks = hooks;
    this.#lengthBytes = lengthBytes;
    this.#unreadMs = unreadMs;
    this.#pending = pending;
    response.onWritable((offset) => {
      this.#writable(offset);
      return true;
    });
  }

  get waiting(): boolean {
    return this.#waiting;
  }

  /** The head is written. */
  start(): void {
    if (this.#over) return;
    if (this.#lengthBytes === 0) {
      this.#hooks.finishing();
      corked(this.#response, () => {
        if (this.#pending) endHeadPending(this.#response, 0);
        else this.#response.end();
      });
      this.#finish();
    }
    this.#guarded(() => this.#source.start(this));
  }

  send(bytes: Uint8Array | string): boolean {
    if (this.#over || this.#ending) return false;
    if (this.#waiting) throw new Error('sent without waiting for room');
    if (bytes.length === 0) return true;
    const piece = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    this.#sentBytes += piece.length;
    if (this.#lengthBytes === undefined) this.#writeChunks(piece);
    else {
      if (this.#sentBytes > this.#lengthBytes) throw new Error('more was sent than was promised');
      if (this.#sentBytes === this.#lengthBytes) this.#hooks.finishing();
      if (this.#pending && this.#lengthBytes === ONE_BYTE) {
        corked(this.#response, () => this.#response.end(piece, true));
        this.#finish();
      } else this.#tryEnd(piece, this.#sentBytes - piece.length);
    }
    return !this.#waiting;
  }

  end(): void {
    if (this.#over) return;
    if (this.#lengthBytes !== undefined) {
      // A known length ends with its last byte; an incomplete body may not look complete.
      if (this.#sentBytes !== this.#lengthBytes) this.cut();
      return;
    }
    this.#ending = true;
    if (this.#waiting) return;
    this.#hooks.finishing();
    // A plain end: with the close flag "Connection: close" would land in the body.
    corked(this.#response, () => {
      if (!this.#pending) this.#response.end();
      else if (this.#sentBytes === 0) endHeadPending(this.#response, 0);
      else endPending(this.#response);
    });
    this.#finish();
  }

  cut(error?: ErrorName): void {
    if (this.#over) return;
    this.#ending = true;
    if (error !== undefined) this.#hooks.cut(error);
    // `close` calls onAborted and `lost`. Within the callback of a chunked body uWS would read on after it.
    const close = () => this.#over || this.#response.close();
    if (this.#pending) setImmediate(close);
    else close();
  }

  /** The client is gone; the response may not be touched. */
  lost(): void {
    if (this.#over) return;
    this.#finish();
    this.#source.lost();
  }

  /**
   * Resuming the request's body makes uWS 20.51 forget that the answer waits for room. A retry continues or asks for the
   * event again. Each may buffer one more piece for a client that does not read, so their number is bounded.
   */
  scheduleRetry(): void {
    if (!this.#waiting || this.#retryScheduled || this.#retries >= RETRIES_MAX) return;
    this.#retryScheduled = true;
    this.#retries += 1;
    setTimeout(() => {
      this.#retryScheduled = false;
      if (!this.#over) this.#continue(this.#lengthBytes === undefined ? 0 : this.#response.getWriteOffset());
    }, RETRY_MS);
  }

  #writable(offset: number): void {
    this.#retries = 0;
    this.#unreadIntervals = 0;
    if (this.#over) {
      corked(this.#response, () => undefined);
      this.#hooks.progress();
      return;
    }
    this.#continue(offset);
  }

  #continue(offset: number): void {
    if (this.#over || !this.#waiting) return;
    const rest = this.#rest;
    this.#rest = undefined;
    this.#waiting = false;
    if (this.#lengthBytes === undefined) {
      // Without a write in this handler the end of the buffer is not sent; an empty cork flushes it.
      corked(this.#response, () => undefined);
      if (rest !== undefined) this.#writeChunks(rest);
    } else if (rest !== undefined) this.#sendRest(rest.subarray(offset - this.#restOffset), offset);
    if (this.#waiting) return;
    if (this.#ending) this.end();
    else this.#guarded(() => this.#source.drained());
  }

  /** Keeps a client that reads nothing for `unreadMs`. Each look is one write that the socket does not take. */
  #rearmLater(unreadMs: number): void {
    this.#rearmTimer ??= setTimeout(() => {
      this.#rearmTimer = undefined;
      if (this.#over || !this.#waiting) return;
      const offset = this.#response.getWriteOffset();
      this.#unreadIntervals = offset > this.#restOffset ? 0 : this.#unreadIntervals + 1;
      if (this.#unreadIntervals * REARM_MS >= unreadMs) this.cut();
      else this.#continue(offset);
    }, REARM_MS);
  }

  /**
   * The last bytes that uWS would buffer go in two writes, the second one only when the socket has taken the first: the
   * answer would be over for this class, and uWS would cut it after its 10 s.
   */
  #sendRest(bytes: Uint8Array, offset: number): void {
    const isTail = offset + bytes.length === this.#lengthBytes;
    if (!isTail || bytes.length === 1 || bytes.length > CORK_BYTES) {
      this.#tryEnd(bytes, offset);
      return;
    }
    this.#tryEnd(bytes.subarray(0, -1), offset);
    if (this.#waiting) this.#rest = bytes;
    else this.#tryEnd(bytes.subarray(-1), offset + bytes.length - 1);
  }

  /** A throw closes the connection: an incomplete answer would look complete otherwise. */
  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#hooks.failed(error);
      this.cut('InternalError');
    }
  }

  /** Writes pieces until the socket is full; the rest waits for `onWritable`. */
  #writeChunks(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const fits = at === 0 && bytes.length <= PIECE_BYTES;
      if (writePiece(this.#response, fits ? bytes : bytes.subarray(at, at + PIECE_BYTES))) continue;
      this.#waiting = true;
      const next = at + PIECE_BYTES;
      if (next < bytes.length) this.#rest = bytes.subarray(next);
      return;
    }
  }

  /** `offset`: position of `bytes` in the body. What the socket does not take is kept for `onWritable`. */
  #tryEnd(bytes: Uint8Array, offset: number): void {
    let done = false;
    corked(this.#response, () => {
      const [hasRoom, isDone] = this.#pending
        ? this.#tryPending(bytes, offset)
        : this.#response.tryEnd(bytes, this.#lengthBytes ?? 0);
      done = isDone || (this.#pending && hasRoom && offset + bytes.length === this.#lengthBytes);
      this.#waiting = !hasRoom && !isDone;
    });
    if (done) this.#finish();
    else if (this.#waiting) {
      this.#rest = bytes;
      this.#restOffset = offset;
      if (this.#unreadMs !== undefined) this.#rearmLater(this.#unreadMs);
    }
  }

  /** The head has the length of the first call, which is never the last; later calls announce one byte more. */
  #tryPending(bytes: Uint8Array, offset: number): [boolean, boolean] {
    const lengthBytes = this.#lengthBytes ?? 0;
    if (offset > 0) return this.#response.tryEnd(bytes, lengthBytes + 1);
    if (bytes.length < lengthBytes) return this.#response.tryEnd(bytes, lengthBytes);
    const first = this.#response.tryEnd(bytes.subarray(0, -1), lengthBytes);
    return first[0] ? this.#response.tryEnd(bytes.subarray(-1), lengthBytes + 1) : first;
  }

  #finish(): void {
    this.#over = true;
    this.#rest = undefined;
    clearTimeout(this.#rearmTimer);
    this.#hooks.ended(this.#sentBytes);
  }
}
