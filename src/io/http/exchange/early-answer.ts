/**
 * Answers while the request's body is still arriving (RFC 9112 9.6). uWebSockets.js has no half-close, and closing at once
 * would reset the connection, so that the client would lose the answer: part of the body is read first, then none.
 */

import type { HttpResponse } from '../listen/server.ts';
import type { Reply } from '../table/route.ts';
import { corked } from './cork.ts';
import { isBodiless } from './reply.ts';
import type { RemainingBody } from './stream.ts';

const LONG_BODY_BYTES = 64 * 1024;
/** A client that sends nothing for this long after the answer has received it. */
const QUIET_MS = 200;
/** Bytes of a body that are read after its answer, and the time for them. */
const DISCARD_BYTES_MAX = 1024 * 1024;
const DISCARD_MS_MAX = 2_000;
/**
 * Milliseconds for which a connection with a complete answer waits for its client to close it; uWS's idle timeout is as
 * long.
 */
const KEEP_OPEN_MS = 10_000;
/** The same where the body is read no further. A client at a busy machine needs more than a moment to read the answer. */
const UNREAD_OPEN_MS = 2_000;
/** Longer answers are not held back: what exceeds the socket's buffer would have to be kept in memory. */
const EARLY_BYTES_MAX = 16 * 1024;

/**
 * Writes all but the last byte of `body`; the head is written. The last byte waits for the end of the request's body, a
 * silent client, or a bound; then `over` is called. Unless the body `ended`, and with `pending`, uWebSockets.js expects one
 * byte more, so that it handles no further request of the connection and the caller may close it.
 */
export function answerEarly(
  response: HttpResponse,
  rest: RemainingBody,
  body: Uint8Array,
  pending: boolean,
  over: (ended: boolean) => void,
): void {
  const last = body.length - 1;
  corked(response, () => response.tryEnd(body.subarray(0, last), body.length));
  discardWithin(rest, (ended) => {
    const total = body.length + (pending || !ended ? 1 : 0);
    corked(response, () => response.tryEnd(body.subarray(last), total));
    if (!ended) response.pause();
    over(ended);
  });
}

/** Closes the connection of a complete answer that stays pending, unless its client does so before. */
export class ConnectionCloser {
  readonly #response: HttpResponse;
  #timer: NodeJS.Timeout | undefined;

  private constructor(response: HttpResponse, timeoutMs: number) {
    this.#response = response;
    this.wait(timeoutMs);
  }

  /** Closes the connection of a short answer. Unless the request's body `ended`, no more of it is read. */
  static ofShort(response: HttpResponse, ended: boolean): ConnectionCloser {
    return new ConnectionCloser(response, ended ? KEEP_OPEN_MS : UNREAD_OPEN_MS);
  }

  /** Closes the connection of any answer. `rest` is read on within the bounds of an early answer. */
  static of(response: HttpResponse, rest: RemainingBody | undefined): ConnectionCloser {
    const closer = new ConnectionCloser(response, KEEP_OPEN_MS);
    if (rest === undefined) return closer;
    discardWithin(rest, (ended) => {
      if (ended) return;
      response.pause();
      closer.wait(UNREAD_OPEN_MS);
    });
    return closer;
  }

  /** Begins to wait anew. */
  wait(timeoutMs = KEEP_OPEN_MS): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#response.close(), timeoutMs);
  }

  /** The connection is gone. */
  cancel(): void {
    clearTimeout(this.#timer);
  }
}

/** `over` is not called when the client leaves. */
function discardWithin(rest: RemainingBody, over: (ended: boolean) => void): void {
  let discarded = 0;
  let quietMs = 0;
  let elapsedMs = 0;
  let isOver = false;
  const stop = (ended: boolean) => {
    if (isOver) return;
    isOver = true;
    clearInterval(timer);
    rest.answered();
    over(ended);
  };
  const timer = setInterval(() => {
    quietMs += QUIET_MS / 2;
    elapsedMs += QUIET_MS / 2;
    if (quietMs >= QUIET_MS || elapsedMs >= DISCARD_MS_MAX) stop(false);
  }, QUIET_MS / 2);
  rest.divert({
    data(bytes) {
      quietMs = 0;
      discarded += bytes.length;
      if (discarded >= DISCARD_BYTES_MAX) stop(false);
    },
    end: () => stop(true),
    lost: () => clearInterval(timer),
  });
}

/** Is the connection closed with an answer before the end of a body of this declared length? */
export function isLong(declaredBytes: number | undefined): boolean {
  return (declaredBytes ?? Infinity) > LONG_BODY_BYTES;
}

/** May the answer be held back until its request's body is over? */
export function isShort(reply: Reply): boolean {
  const { body } = reply;
  if (body === null || isBodiless(reply)) return false;
  return body.length > 0 && body.length <= EARLY_BYTES_MAX;
}
