/** `100 Continue` for clients that wait for it in another case than uWebSockets.js knows (RFC 9110 10.1.1). */
import { corked } from '../exchange/cork.ts';
import type { IncomingHead } from '../exchange/request.ts';
import type { HttpResponse } from '../listen/server.ts';

export type BodyHead = Pick<IncomingHead, 'contentLength' | 'awaitsContinue'>;

/** Those that were asked to continue, until their final answer. */
const continued = new WeakSet<HttpResponse>();

/** The first byte of the body is awaited. Call it at most once, before the answer. */
export function sendContinue(response: HttpResponse, { awaitsContinue }: BodyHead): void {
  if (!awaitsContinue) return;
  continued.add(response);
  // There is no call for an interim answer. uWebSockets.js takes the status for written from here on.
  corked(response, () => response.writeStatus('100 Continue\r\n'));
}

/** Then the status line of the final answer has to be written with its first field. */
export function isContinued(response: HttpResponse): boolean {
  return continued.has(response);
}
