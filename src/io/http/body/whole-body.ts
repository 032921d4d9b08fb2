/** Reads bodies that a route takes whole: within a bound, and without a copy where one piece is all. */

import { GatewayError } from '../../../domain/errors.ts';
import type { RemainingBody } from '../exchange/stream.ts';
import type { HttpResponse } from '../listen/server.ts';
import { type BodyHead, sendContinue } from './continue.ts';
import type { IncomingSink } from './incoming-body.ts';
import { MinimumRate, type OpenBodies, type OpenBody, REARM_INTERVALS, rearm } from './open-bodies.ts';

/** The bytes of a body, or why it was not read to its end: the client left, or the error to answer. */
export type BodyResult = Buffer | 'aborted' | { readonly refused: unknown };

interface WholeBodyOptions {
  /** Called with the size of each piece before it is kept. Throws what refuses the body. */
  reserve(sizeBytes: number): void;
  /** The bytes are used after `onResult` has returned; otherwise they may be the socket's own memory. */
  readonly isKept: boolean;
}

/** Calls `onResult` once, with all bytes or the reason why they were not read. */
export function readWholeBody(
  response: HttpResponse,
  head: BodyHead,
  options: WholeBodyOptions,
  open: OpenBodies,
  onResult: (result: BodyResult) => void,
): RemainingBody {
  sendContinue(response, head);
  const reader = new WholeBodyReader(response, options, open, onResult);
  response.onData((chunk, isLast) => reader.take(chunk, isLast));
  return reader;
}

class WholeBodyReader implements RemainingBody, OpenBody {
  openAt = -1;
  readonly #response: HttpResponse;
  readonly #options: WholeBodyOptions;
  readonly #open: OpenBodies;
  readonly #onResult: (result: BodyResult) => void;
  #pieces: Buffer[] | undefined;
  /** Nothing more is kept. */
  #isStopped = false;
  #ended = false;
  /** Takes what follows after an early answer. */
  #diverted: IncomingSink | undefined;
  /** Minimum rate of a body that did not come with its head. */
  #minimumRate: MinimumRate | undefined;
  #intervals = 0;

  constructor(
    response: HttpResponse,
    options: WholeBodyOptions,
    open: OpenBodies,
    onResult: (result: BodyResult) => void,
  ) {
    this.#response = response;
    this.#options = options;
    this.#open = open;
    this.#onResult = onResult;
  }

  take(chunk: ArrayBuffer, isLast: boolean): void {
    if (isLast) this.#ended = true;
    if (!this.#isStopped) this.#reserve(chunk.byteLength);
    if (this.#isStopped) {
      this.#diverted?.data(new Uint8Array(chunk));
      if (isLast) this.#diverted?.end();
      return;
    }
    const view = Buffer.from(chunk);
    if (isLast && this.#pieces === undefined) {
      this.#isStopped = true;
      this.#onResult(this.#options.isKept ? Buffer.from(view) : view);
      return;
    }
    this.#keep(view);
    if (!isLast) return;
    const pieces = this.#pieces ?? [];
    this.#stop();
    this.#onResult(Buffer.concat(pieces));
  }

  #reserve(sizeBytes: number): void {
    try {
      this.#options.reserve(sizeBytes);
    } catch (refused) {
      this.#refuse(refused);
    }
  }

  #keep(view: Buffer): void {
    if (this.#pieces === undefined) {
      this.#pieces = [];
      this.#minimumRate = new MinimumRate();
      this.#open.add(this);
    }
    this.#minimumRate?.add(view.length);
    if (view.length > 0) this.#pieces.push(Buffer.from(view));
  }

  #refuse(refused: unknown): void {
    this.#stop();
    this.#onResult({ refused });
  }

  /** uWS would close the connection without an answer; its timeout restarts until the minimum rate has decided. */
  onInterval(): void {
    if (this.#isStopped) return;
    this.#intervals += 1;
    if (this.#minimumRate?.isTooSlow() === true) this.#refuse(new GatewayError('BodyTooSlow'));
    else if (this.#intervals % REARM_INTERVALS === 0) rearm(this.#response);
  }

  divert(next: IncomingSink): void {
    this.#stop();
    this.#diverted = next;
    if (this.#ended) next.end();
  }

  answered(): void {
    this.discard();
  }

  discard(): void {
    this.#stop();
    this.#diverted = undefined;
  }

  lost(): void {
    const isWanted = !this.#isStopped;
    this.#stop();
    this.#diverted?.lost();
    if (isWanted) this.#onResult('aborted');
  }

  #stop(): void {
    this.#isStopped = true;
    this.#pieces = undefined;
    if (this.#minimumRate !== undefined) this.#open.delete(this);
  }
}
