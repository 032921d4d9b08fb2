/**
 * One request and its answer: the context that a route sees, and the only place that ends a response. It answers at
 * most once, never touches a response after its abort, and tells the pipeline when it is over.
 */

import type { Limiter } from '../../actors/limiter.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { ErrorName } from '../../domain/errors.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings.ts';
import type { Site } from '../../domain/site.ts';
import { RequestCharges } from './charges.ts';
import type { ResolvedClient } from './client-address.ts';
import { type AnswerFacts, writeAnswer } from './reply.ts';
import { type BodySink, type IncomingHead, readBody } from './request.ts';
import type { AnyRoute, ClientFacts, HeaderList, Reply, RouteContext, SessionGate } from './route.ts';
import type { HttpResponse } from './server.ts';
import type { IncomingBody } from './stream.ts';

const NO_BYTES = Buffer.alloc(0);
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze(Object.create(null));
const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;
const TRACEPARENT_PATTERN = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const IDEMPOTENCY_KEY_PATTERN = /^[\x21-\x7e]{1,128}$/;

/** What all requests of a pipeline share. */
export interface Services {
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
  readonly gate: SessionGate;
  readonly site: Site;
  readonly limiter: Limiter;
}

/** What is known of a request once it is over. */
export interface FinishedRequest {
  readonly method: string;
  /** The route's pattern; '' when none matched. */
  readonly route: string;
  /** As sent, without the query: codes and tokens may stand in a query. */
  readonly path: string;
  /** 0 when the client went away before the answer. */
  readonly status: number;
  readonly error: ErrorName | undefined;
  readonly milliseconds: number;
  /** Bytes of the answer's body. */
  readonly sizeBytes: number;
  readonly address: string;
  readonly userAgent: string;
  readonly userId: string | undefined;
  readonly requestId: string;
  readonly traceparent: string | undefined;
}

export class Exchange implements RouteContext {
  readonly head: IncomingHead;
  readonly client: ClientFacts;
  readonly requestId: string;
  readonly nowMs: number;
  readonly limiter: RequestCharges;
  readonly services: Services;
  route: AnyRoute | undefined;
  params: Readonly<Record<string, string>> = NO_PARAMS;
  query: unknown;
  body: unknown;
  rawBody: Buffer = NO_BYTES;
  incoming: IncomingBody | undefined;
  session: SessionContext | undefined;
  /** CORS fields of the answer. */
  cors: HeaderList = [];
  error: ErrorName | undefined;
  /** The answer is written, or the client is gone. */
  over = false;
  aborted = false;
  /** The limits of its route were not asked yet. */
  atDoor = true;
  /** Counted among the requests in flight. */
  counted = false;
  /** A handler's promise is open. */
  running = false;
  /** Bytes of its body that are counted as in flight. */
  bodyBytes = 0;
  /** The body has arrived whole (or there is none). */
  bodyRead: boolean;
  status = 0;
  sentBytes = 0;
  /** Reported as finished. */
  settled = false;
  readonly startedMs: number;
  readonly #response: HttpResponse;
  #watching = false;
  #listeners: (() => void)[] = [];

  constructor(
    response: HttpResponse,
    head: IncomingHead,
    client: ResolvedClient,
    services: Services,
    nowMs: number,
    startedMs: number,
    newRequestId: () => string,
  ) {
    this.startedMs = startedMs;
    this.#response = response;
    this.head = head;
    this.services = services;
    this.nowMs = nowMs;
    this.client = { address: client.address, userAgent: head.userAgent };
    this.bodyRead = !head.hasBody;
    const sent = head.header('x-request-id');
    this.requestId = sent !== undefined && REQUEST_ID_PATTERN.test(sent) ? sent : newRequestId();
    const port = client.forwarded ? undefined : portOf(response);
    this.limiter = new RequestCharges(services.limiter, client.address, port, client.forwarded, nowMs);
  }

  get rawQuery(): string {
    return this.head.rawQuery;
  }
  get rawPath(): string {
    return this.head.path;
  }
  get method(): string {
    return this.head.method;
  }
  get repeatedHeaders(): ReadonlySet<string> {
    return this.head.repeatedHeaders;
  }
  get gate(): SessionGate {
    return this.services.gate;
  }
  get actors(): ActorSystem {
    return this.services.actors;
  }
  get settings(): SettingsReader {
    return this.services.settings;
  }
  get site(): Site {
    return this.services.site;
  }
  get idempotencyKey(): string | undefined {
    const key = this.head.header('idempotency-key');
    return key !== undefined && IDEMPOTENCY_KEY_PATTERN.test(key) ? key : undefined;
  }
  get traceparent(): string | undefined {
    const parent = this.head.header('traceparent');
    return parent !== undefined && TRACEPARENT_PATTERN.test(parent) ? parent : undefined;
  }

  // Routes take these out of the context, so they may not depend on how they are called.
  readonly header = (name: string): string | undefined => this.head.header(name);
  readonly allHeaders = () => this.head.all();

  /** Asks to be told of an abort; `lost` runs after it. uWS takes one abort handler per request. */
  watch(lost: () => void): void {
    if (this.#watching || this.over) return;
    this.#watching = true;
    this.#response.onAborted(() => {
      this.#abort();
      lost();
    });
  }

  /** Reads the body; see `readBody`. */
  read(sink: BodySink): void {
    readBody(this.#response, sink);
  }

  readonly onAbort = (listener: () => void): void => {
    if (this.aborted) listener();
    else this.#listeners.push(listener);
  };

  /** The client is gone: nothing may touch the response from here on. */
  #abort(): void {
    if (this.over) return;
    this.over = true;
    this.aborted = true;
    for (const listener of this.#listeners) listener();
    this.#listeners = [];
  }

  /** Writes the answer; false when it came too late. Throws, with nothing written, when a header is unfit. */
  answer(reply: Reply, close: boolean): boolean {
    if (this.over) return false;
    const facts: AnswerFacts = {
      requestId: this.requestId,
      cors: this.cors,
      verdict: this.limiter.verdict,
      windowSeconds: this.services.settings.get('RateLimitWindowSeconds'),
      headOnly: this.head.method === 'HEAD',
      close,
      bodyPending: !this.bodyRead,
    };
    // uWS corks for its own callbacks; after a promise it takes an explicit cork to leave in one system call.
    if (this.running) this.#writeCorked(reply, facts);
    else this.sentBytes = writeAnswer(this.#response, reply, facts);
    this.over = true;
    this.status = reply.status;
    return true;
  }

  /** A throw may not cross the native frame of the cork. */
  #writeCorked(reply: Reply, facts: AnswerFacts): void {
    let failure: unknown;
    this.#response.cork(() => {
      try {
        this.sentBytes = writeAnswer(this.#response, reply, facts);
      } catch (error) {
        failure = error ?? new Error('unknown failure of the writer');
      }
    });
    if (failure !== undefined) throw failure;
  }

  /** What is told of it once it is over. */
  record(elapsedMs: number): FinishedRequest {
    return {
      method: this.head.method,
      route: this.route?.path ?? '',
      path: this.head.path,
      status: this.status,
      error: this.error,
      milliseconds: elapsedMs - this.startedMs,
      sizeBytes: this.sentBytes,
      address: this.client.address,
      userAgent: this.client.userAgent,
      userId: this.session?.userId,
      requestId: this.requestId,
      traceparent: this.traceparent,
    };
  }

  /** Cuts the connection without a word (smuggling). */
  cut(): void {
    this.over = true;
    this.#response.close();
  }
}

/** Newer builds of uWebSockets.js name the peer's port; the pinned one does not. Asked of the first response alone. */
let portIsNamed: boolean | undefined;

function portOf(response: HttpResponse): number | undefined {
  portIsNamed ??= typeof response['getRemotePort'] === 'function';
  if (!portIsNamed) return undefined;
  const port: unknown = response['getRemotePort']();
  return typeof port === 'number' ? port : undefined;
}
