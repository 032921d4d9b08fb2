/**
 * An answer that is given while its request's body is still arriving (RFC 9112 9.6). Ending it at once may end the
 * connection, and bytes that nobody read then make the system throw the answer away before the client has seen it. So
 * its last byte waits until the body is over, or the client has stopped sending, or enough was thrown away.
 */
import { corked } from './cork.ts';
import type { HttpResponse } from './server.ts';
import type { RemainingBody } from './stream.ts';

/** A client that sent nothing for so long after the answer has seen it. */
const QUIET_MS = 200;
/** What is thrown away for one answer, at most. */
const DISCARD_BYTES_MAX = 64 * 1024 * 1024;
const DISCARD_MS_MAX = 10_000;
/** Longer answers are not held back: what does not fit into the socket's buffer would have to be kept as well. */
export const EARLY_BYTES_MAX = 16 * 1024;

/**
 * Writes all but the last byte of `body`; the head is written. `over` is called once the answer is complete. `pending`:
 * uWebSockets.js goes on waiting for one byte more, so that it handles nothing that follows on the connection.
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
