/**
 * The socket side of one exchange: the only place that touches its response. Reads the body, writes the answer, whole or
 * piece by piece, and is silent once the client is gone.
 */
import { answerEarly, EARLY_BYTES_MAX } from './early-answer.ts';
import { type IncomingHooks, IncomingStream } from './incoming.ts';
import { corked, OutgoingStream } from './outgoing.ts';
import { type AnswerFacts, writeAnswer, writeHead } from './reply.ts';
import type { Reply } from './route.ts';
import type { HttpResponse } from './server.ts';
import type { RestOfBody, StreamReply } from './stream.ts';
import { type BodySink, readBody } from './whole-body.ts';

/** Of a body longer than this nobody waits for the end: the connection goes with an answer that came before it. */
const LONG_BODY_BYTES = 64 * 1024;
const NO_INTAKE: IncomingHooks = {
  keep: () => false,
  release: () => undefined,
  ended: () => undefined,
  failed: () => undefined,
};

/** What a streamed answer tells. */
export interface StreamListener {
  ended(sentBytes: number): void;
  /** The source threw: a bug. The connection is cut. */
  failed(error: unknown): void;
}

export class Wire {
  readonly #response: HttpResponse;
  /** `Content-Length`; undefined for a chunked body. */
  readonly #declaredBytes: number | undefined;
  /** Nothing may be read of the connection after this request. */
  readonly #last: boolean;
  #lost = false;
  #watching = false;
  /** The answer was begun, or the client is gone. */
  #over = false;
  /** Something of the answer is still to be sent. */
  #leaving = false;
  #outgoing: OutgoingStream | undefined;
  #rest: RestOfBody | undefined;

  constructor(response: HttpResponse, declaredBytes: number | undefined, last = false) {
    this.#response = response;
    this.#declaredBytes = declaredBytes;
    this.#last = last;
  }

  /** `lost` is called once when the client goes before the answer is complete. uWS takes one abort handler a request. */
  watch(lost: () => void): void {
    if (this.#watching || this.#over) return;
    this.#watching = true;
    this.#response.onAborted(() => {
      if (this.#over && !this.#leaving) return;
      this.#lost = true;
      this.#over = true;
      this.#outgoing?.lost();
      this.#rest?.lost();
      lost();
    });
  }

  /** Opens the body for a route that reads it as it arrives. */
  openBody(hooks: IncomingHooks): IncomingStream {
    const resumed = () => this.#outgoing?.poke();
    const incoming = new IncomingStream(this.#response, this.#declaredBytes, { ...hooks, resumed });
    this.#rest = incoming;
    return incoming;
  }

  /** Reads the body whole; see `readBody`. */
  read(sink: BodySink): void {
    this.#rest = readBody(this.#response, sink);
  }

  /**
   * Writes an answer; the bytes of its body. Throws, with nothing written, when a header is unfit. uWS corks for its own
   * callbacks; after a promise it takes an explicit `cork` to leave in one system call.
   */
  answer(reply: Reply, facts: AnswerFacts, cork: boolean): number {
    if (facts.bodyPending && !facts.headOnly && isShort(reply)) return this.#answerEarly(reply, facts);
    // What is left of the body is thrown away; once the answer is written its socket is out of reach.
    this.#rest?.discard();
    this.#stopReading();
    const sentBytes = cork ? this.#corked(reply, facts) : writeAnswer(this.#response, reply, facts);
    this.#over = true;
    return sentBytes;
  }

  #corked(reply: Reply, facts: AnswerFacts): number {
    let sentBytes = 0;
    corked(this.#response, () => {
      sentBytes = writeAnswer(this.#response, reply, facts);
    });
    return sentBytes;
  }

  /** The body is still arriving. Where much of it may follow the connection ends with the answer. */
  #answerEarly(reply: Reply, facts: AnswerFacts): number {
    const body = Buffer.from(reply.body ?? '');
    const close = facts.close || (this.#declaredBytes ?? Infinity) > LONG_BODY_BYTES;
    corked(this.#response, () => writeHead(this.#response, reply, { ...facts, close }));
    this.watch(() => undefined);
    this.#over = true;
    this.#leaving = true;
    this.#rest ??= new IncomingStream(this.#response, undefined, NO_INTAKE);
    answerEarly(this.#response, this.#rest, body, () => {
      this.#leaving = false;
      if (!this.#lost) this.#stopReading();
    });
    return body.length;
  }

  /** Starts an answer that leaves piece by piece. Throws as `answer` does; the source has heard nothing then. */
  stream(reply: StreamReply, facts: AnswerFacts, listener: StreamListener): void {
    corked(this.#response, () => writeHead(this.#response, reply, facts));
    this.#over = true;
    this.#leaving = true;
    const outgoing = new OutgoingStream(this.#response, reply.source, reply.lengthBytes, {
      finishing: () => {
        this.#rest?.discard();
        this.#stopReading();
      },
      ended: (sentBytes) => {
        this.#leaving = false;
        listener.ended(sentBytes);
      },
      failed: (error) => listener.failed(error),
    });
    this.#outgoing = outgoing;
    // Chunks may not share the cork of the request's own callback (events.md, uWS and long responses, item 1).
    if (reply.lengthBytes === undefined) setImmediate(() => outgoing.start());
    else outgoing.start();
  }

  /**
   * Before the last byte of an answer. uWS closes only after some of its answers; a connection that stays paused is
   * closed by its time-out within 12 s.
   */
  #stopReading(): void {
    if (this.#last) this.#response.pause();
  }

  /** Cuts the connection without a word (smuggling). */
  cut(): void {
    this.#over = true;
    this.#response.close();
  }
}

function isShort({ body, status }: Reply): boolean {
  if (body === null || status === 204 || status === 304) return false;
  return body.length > 0 && body.length <= EARLY_BYTES_MAX;
}
