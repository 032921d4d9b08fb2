/**
 * The socket side of one exchange: the only place that touches its response. Reads the body, writes the answer, whole or
 * piece by piece, and is silent once the client is gone.
 */

import type { ErrorName } from '../../domain/errors.ts';
import { type IncomingHooks, IncomingStream } from './body/incoming.ts';
import type { OpenBodies } from './body/open-bodies.ts';
import { type BodySink, readBody } from './body/whole-body.ts';
import { corked } from './cork.ts';
import { answerEarly, EARLY_BYTES_MAX } from './early-answer.ts';
import { OutgoingStream } from './outgoing.ts';
import { type ResponseOptions, writeAnswer, writeHead } from './reply.ts';
import type { Reply } from './route.ts';
import type { HttpResponse } from './server.ts';
import type { OutgoingBody, OutgoingSource, RemainingBody, StreamReply } from './stream.ts';

/** Of a body longer than this nobody waits for the end: the connection goes with an answer that came before it. */
const LONG_BODY_BYTES = 64 * 1024;
/** A connection that ends with its answer waits so long for its client to close, as uWS does with an idle one. */
const KEEP_OPEN_MS = 10_000;
const NO_INTAKE: IncomingHooks = {
  keep: () => false,
  release: () => undefined,
  ended: () => undefined,
  failed: () => undefined,
};

const NO_LISTENER: StreamListener = { ended: () => undefined, failed: () => undefined, cut: () => undefined };

/** What a streamed answer tells. */
export interface StreamListener {
  ended(sentBytes: number): void;
  /** The source threw: a bug. The connection is cut. */
  failed(error: unknown): void;
  /** The connection is about to be closed because of this failure. */
  cut(error: ErrorName): void;
}

export class Wire {
  readonly #response: HttpResponse;
  /** `Content-Length`; undefined for a chunked body. */
  readonly #declaredBytes: number | undefined;
  /**
   * Of a chunked request: uWebSockets.js is not told that its answer is complete, because it would then handle what
   * follows on the connection. While an answer is pending it closes the connection instead (docs/decisions/0090).
   */
  readonly #pending: boolean;
  readonly #openBodies: OpenBodies;
  #watching = false;
  /** The answer was begun, or the client is gone. */
  #over = false;
  /** Something of the answer is still to be sent. */
  #leaving = false;
  #outgoing: OutgoingStream | undefined;
  #rest: RemainingBody | undefined;
  #gone = false;
  #farewell: NodeJS.Timeout | undefined;

  constructor(
    response: HttpResponse,
    declaredBytes: number | undefined,
    pending: boolean,
    openBodies: OpenBodies,
  ) {
    this.#response = response;
    this.#declaredBytes = declaredBytes;
    this.#pending = pending;
    this.#openBodies = openBodies;
  }

  /** `lost` is called once when the client goes before the answer is complete. uWS takes one abort handler a request. */
  watch(lost: () => void): void {
    if (this.#watching || this.#over) return;
    this.#watching = true;
    this.#response.onAborted(() => {
      this.#gone = true;
      clearTimeout(this.#farewell);
      if (this.#over && !this.#leaving) return;
      this.#over = true;
      this.#outgoing?.lost();
      this.#rest?.lost();
      lost();
    });
  }

  /** Opens the body for a route that reads it as it arrives. */
  openBody(hooks: IncomingHooks): IncomingStream {
    const resumed = () => this.#outgoing?.scheduleRetry();
    const all = { ...hooks, resumed, waits: () => this.#outgoing?.waiting === true };
    const incoming = new IncomingStream(this.#response, this.#declaredBytes, all, this.#openBodies);
    this.#rest = incoming;
    return incoming;
  }

  /** Throws a body away that no route reads, and tells of its end. */
  ignoreBody(ended: () => void): void {
    this.#rest ??= this.#throwAway({ ...NO_INTAKE, ended });
  }

  #throwAway(hooks: IncomingHooks): IncomingStream {
    return new IncomingStream(this.#response, undefined, hooks, this.#openBodies);
  }

  /** Reads the body whole; see `readBody`. */
  read(sink: BodySink): void {
    this.#rest = readBody(this.#response, sink, this.#openBodies);
  }

  /**
   * Writes an answer; the bytes of its body. Throws, with nothing written, when a header is unfit. uWS corks for its own
   * callbacks; after a promise it takes an explicit `cork` to leave in one system call.
   */
  answer(reply: Reply, facts: ResponseOptions, cork: boolean): number {
    const short = !facts.headOnly && isShort(reply);
    if (facts.bodyPending && short) return this.#answerEarly(reply, facts);
    // What is left of the body is thrown away; once the answer is written its socket is out of reach.
    this.#rest?.answered();
    if (this.#pending) return this.#answerPending(reply, facts, short);
    const sentBytes = cork ? this.#corked(reply, facts) : writeAnswer(this.#response, reply, facts);
    this.#over = true;
    return sentBytes;
  }

  /** A short answer fits the socket's buffer, so the connection ends in the same call. */
  #answerPending(reply: Reply, facts: ResponseOptions, short: boolean): number {
    const { body } = reply;
    if (!short && !facts.headOnly && !isBodiless(reply) && body !== null && body.length > 0) {
      const bytes = Buffer.from(body);
      this.#leave(reply, facts, new WholeSource(bytes), bytes.length, NO_LISTENER);
      return bytes.length;
    }
    const sentBytes = this.#corked(reply, facts);
    this.#over = true;
    if (!short) this.#keepOpen();
    return sentBytes;
  }

  /** All is written: the client closes, or the time ends. */
  #keepOpen(): void {
    if (this.#gone) return;
    clearTimeout(this.#farewell);
    this.#farewell = setTimeout(() => this.#response.close(), KEEP_OPEN_MS);
  }

  #corked(reply: Reply, facts: ResponseOptions): number {
    let sentBytes = 0;
    corked(this.#response, () => {
      sentBytes = writeAnswer(this.#response, reply, facts);
    });
    return sentBytes;
  }

  /** The body is still arriving. Where much of it may follow the connection ends with the answer. */
  #answerEarly(reply: Reply, facts: ResponseOptions): number {
    const body = Buffer.from(reply.body ?? '');
    const close = facts.close || (this.#declaredBytes ?? Infinity) > LONG_BODY_BYTES;
    corked(this.#response, () => writeHead(this.#response, reply, { ...facts, close }));
    this.watch(() => undefined);
    this.#over = true;
    this.#leaving = true;
    this.#rest ??= this.#throwAway(NO_INTAKE);
    answerEarly(this.#response, this.#rest, body, this.#pending, () => {
      this.#leaving = false;
      if (this.#pending) this.#keepOpen();
    });
    return body.length;
  }

  /** Starts an answer that leaves piece by piece. Throws as `answer` does; the source has heard nothing then. */
  stream(reply: StreamReply, facts: ResponseOptions, listener: StreamListener): void {
    this.#leave(reply, facts, reply.source, reply.lengthBytes, listener);
  }

  #leave(
    reply: Reply,
    facts: ResponseOptions,
    source: OutgoingSource,
    lengthBytes: number | undefined,
    listener: StreamListener,
  ): void {
    corked(this.#response, () => writeHead(this.#response, reply, facts));
    this.#over = true;
    this.#leaving = true;
    const hooks = {
      finishing: () => this.#rest?.answered(),
      ended: (sentBytes: number) => {
        this.#leaving = false;
        listener.ended(sentBytes);
        if (this.#pending) this.#keepOpen();
      },
      failed: (error: unknown) => listener.failed(error),
      cut: (error: ErrorName) => listener.cut(error),
      left: () => this.#keepOpen(),
    };
    const outgoing = new OutgoingStream(this.#response, source, lengthBytes, hooks, this.#pending);
    this.#outgoing = outgoing;
    // Chunks may not share the cork of the request's own callback (events.md, uWS and long responses, item 1).
    if (lengthBytes === undefined) setImmediate(() => outgoing.start());
    else outgoing.start();
  }

  /** Cuts the connection without a word (smuggling). */
  cut(): void {
    this.#over = true;
    this.#response.close();
  }
}

/** An answer that is in memory as a whole. */
class WholeSource implements OutgoingSource {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  start(out: OutgoingBody): void {
    out.send(this.#bytes);
  }

  drained(): void {}
  lost(): void {}
}

function isBodiless({ status }: Reply): boolean {
  return status === 204 || status === 304;
}

function isShort(reply: Reply): boolean {
  const { body } = reply;
  if (body === null || isBodiless(reply)) return false;
  return body.length > 0 && body.length <= EARLY_BYTES_MAX;
}
