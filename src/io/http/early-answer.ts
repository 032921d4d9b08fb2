/**
 * Answers while the request's body is still arriving (RFC 9112 9.6). Closing at once would reset the connection, and the
 * client would lose the answer: its last byte waits for the end of the body, a silent client, or a bound.
 */
import { corked } from './cork.ts';
import { isBodiless } from './reply.ts';
import type { Reply } from './route.ts';
import type { HttpResponse } from './server.ts';
import type { RemainingBody } from './stream.ts';

/** A client that sends nothing for this long after the answer has received it. */
const QUIET_MS = 200;
/** Bytes discarded for one answer. */
const DISCARD_BYTES_MAX = 64 * 1024 * 1024;
const DISCARD_MS_MAX = 10_000;
/** Longer answers are not held back: what exceeds the socket's buffer would have to be kept in memory. */
const EARLY_BYTES_MAX = 16 * 1024;

/**
 * Writes all but the last byte of `body`; the head is written. `over` is called once the answer is complete. `pending`:
 * uWebSockets.js expects one byte more, so that it handles no further request of the connection.
 */
export function answerEarly(
  response: HttpResponse,
  rest: RemainingBody,
  body: Uint8Array,
  pending: boolean,
  over: () => void,
): void {
  const last = body.length - 1;
  corked(response, () => response.tryEnd(body.subarray(0, last), body.length));
  let discarded = 0;
  let quietMs = 0;
  let elapsedMs = 0;
  const complete = () => {
    clearInterval(timer);
    rest.answered();
    over();
    corked(response, () => response.tryEnd(body.subarray(last), body.length + (pending ? 1 : 0)));
  };
  const timer = setInterval(() => {
    quietMs += QUIET_MS / 2;
    elapsedMs += QUIET_MS / 2;
    if (quietMs >= QUIET_MS || elapsedMs >= DISCARD_MS_MAX || discarded >= DISCARD_BYTES_MAX) complete();
  }, QUIET_MS / 2);
  rest.divert({
    data(bytes) {
      quietMs = 0;
      discarded += bytes.length;
    },
    end: complete,
    lost() {
      clearInterval(timer);
      over();
    },
  });
}

/** May the answer be held back until its request's body is over? */
export function isShort(reply: Reply): boolean {
  const { body } = reply;
  if (body === null || isBodiless(reply)) return false;
  return body.length > 0 && body.length <= EARLY_BYTES_MAX;
}
