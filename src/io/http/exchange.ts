/**
 * One request and its answer: the context that a route sees, and the only place that ends a response. It answers at
 * most once, never touches a response after its abort, and tells the pipeline when it is over.
 */
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { ErrorName } from '../../domain/errors.ts';
import { type Holder, NO_HOLDER } from '../../domain/limits/holders.ts';
import type { Lease } from '../../domain/limits/shares.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import type { Site } from '../../domain/site.ts';
import type { IncomingHooks, IncomingStream } from './body/incoming.ts';
import { OPEN_BODIES } from './body/open-bodies.ts';
import type { BodySink } from './body/whole-body.ts';
import { RequestCharges } from './charges.ts';
import type { InFlightRequest } from './in-flight.ts';
import type { ResolvedClient } from './listen/client-address.ts';
import type { ResponseOptions } from './reply.ts';
import { type IncomingHead, NO_VALUES } from './request.ts';
import type { AnyRoute, ClientInfo, HeaderList, Reply, RouteContext } from './route.ts';
import { type HttpResponse, remotePortOf } from './server.ts';
import type { Services } from './services.ts';
import type { StreamReply } from './stream.ts';
import { type StreamListener, Wire } from './wire.ts';

const NO_BYTES = Buffer.alloc(0);

export class Exchange implements RouteContext, InFlightRequest {
  readonly head: IncomingHead;
  readonly client: ClientInfo;
  readonly requestId: string;
  readonly clientRequestId: string | undefined;
  readonly nowMs: number;
  readonly limiter: RequestCharges;
  readonly idempotencyKey: string | undefined;
  readonly traceparent: string | undefined;
  readonly services: Services;
  route: AnyRoute | undefined;
  params: Readonly<Record<string, string>> = NO_VALUES;
  query: unknown;
  body: unknown;
  /** What its handler came to. */
  value: unknown;
  rawBody: Buffer = NO_BYTES;
  incoming: IncomingStream | undefined;
  session: SessionContext | undefined;
  /** CORS fields of the answer. */
  cors: HeaderList = [];
  /** The answer is written, or the client is gone. */
  over = false;
  aborted = false;
  /** The limits of its route were not asked yet. */
  inAccessCheck = true;
  /** Before its admission it holds no part of any bound. */
  holder: Holder = NO_HOLDER;
  /** Its place among the requests in flight, from its admission until it is over. */
  requestLease: Lease | undefined;
  bodyLease: Lease | undefined;
  /** Its handler is at work, or what it came to waits for the end of the turn. */
  running = false;
  /** Bytes of its body that are in memory. */
  bodyBytes = 0;
  /** The body has arrived whole (or there is none). */
  bodyRead: boolean;
  /** Its body has no declared length (docs/decisions/0090). */
  readonly chunked: boolean;
  /** Chunked, or `ResolvedClient.alone`: answered in a later tick, and nothing behind it on its connection is handled. */
  readonly last: boolean;
  /** Of such a request: its answer waits for that tick. */
  decided = false;
  status = 0;
  sentBytes = 0;
  /** Reported as finished. */
  settled = false;
  readonly startedMs: number;
  readonly #wire: Wire;
  #listeners: (() => void)[] | undefined;
  #error: ErrorName | undefined;

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
    this.bodyRead = !head.hasBody;
    this.chunked = !this.bodyRead && head.contentLength === undefined;
    this.last = this.chunked || client.alone;
    this.#wire = new Wire(response, head.contentLength, this.last, services.openBodies ?? OPEN_BODIES);
    this.head = head;
    this.services = services;
    this.nowMs = nowMs;
    this.client = { address: client.address, userAgent: head.userAgent };
    this.requestId = newRequestId();
    this.clientRequestId = head.clientRequestId;
    this.idempotencyKey = head.idempotencyKey;
    this.traceparent = head.traceparent;
    const port = client.forwarded ? undefined : remotePortOf(response);
    this.limiter = new RequestCharges(services.limiter, client.address, port, client.forwarded, nowMs);
  }

  /** The failure that the answer reports, or that cut it off. */
  get error(): ErrorName | undefined {
    return this.#error;
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
  get actors(): ActorSystem {
    return this.services.actors;
  }
  get settings(): SettingsReader {
    return this.services.settings;
  }
  get site(): Site {
    return this.services.site;
  }

  // Routes take these out of the context, so they may not depend on how they are called; most requests ask for none.
  get header(): (name: string) => string | undefined {
    return (name) => this.head.header(name);
  }
  get allHeaders(): () => Iterable<readonly [name: string, value: string]> {
    return () => this.head.all();
  }

  /** Counts it among the requests in flight, for its caller. Throws the row of the bound. */
  hold(): void {
    this.holder = this.#holderOf(this.session);
    this.services.inFlight.add(this);
  }

  identify(session: SessionContext): void {
    this.services.inFlight.identify(this, this.#holderOf(session));
  }

  #holderOf(session: SessionContext | undefined): Holder {
    return this.services.bounds.holders.of(this.client.address, session?.userId, session?.id);
  }

  /** Asks to be told of an abort; `lost` runs after it. */
  watch(lost: () => void): void {
    this.#wire.watch(() => {
      this.over = true;
      this.abandon();
      lost();
    });
  }

  /** Nobody waits for its handler any more: the client is gone, or was refused while it was sending. */
  abandon(): void {
    this.aborted = true;
    for (const listener of this.#listeners ?? []) listener();
    this.#listeners = undefined;
  }

  /** Opens the body for a route that reads it as it arrives. */
  openBody(hooks: IncomingHooks): void {
    this.incoming = this.#wire.openBody(hooks);
  }

  /** Throws a body away that no route reads. */
  ignoreBody(): void {
    this.#wire.ignoreBody(() => {
      this.bodyRead = true;
    });
  }

  /** Reads the body; see `readBody`. */
  read(sink: BodySink): void {
    this.#wire.read(sink);
  }

  get onAbort(): (listener: () => void) => void {
    return (listener) => {
      if (this.aborted) listener();
      else if (this.#listeners === undefined) this.#listeners = [listener];
      else this.#listeners.push(listener);
    };
  }

  /** Fixes the answer of a request that is the last of its connection, before it is written. */
  decide(reply: Reply): void {
    this.decided = true;
    this.#error = reply.error;
  }

  /** Writes the answer; false when it came too late. Throws, with nothing written, when a header is unfit. */
  answer(reply: Reply, close: boolean): boolean {
    if (reply.error !== undefined) this.#error = reply.error;
    if (this.over) return false;
    this.sentBytes = this.#wire.answer(reply, this.#factsOf(close), this.running);
    this.over = true;
    this.status = reply.status;
    return true;
  }

  /** Starts an answer that leaves piece by piece. Throws as `answer` does. */
  stream(reply: StreamReply, close: boolean, listener: Omit<StreamListener, 'cut'>): void {
    if (this.over) {
      reply.source.lost();
      return;
    }
    const facts = this.#factsOf(close);
    this.over = true;
    this.status = reply.status;
    try {
      this.#wire.stream(reply, facts, {
        ended: (sentBytes) => {
          this.sentBytes = sentBytes;
          listener.ended(sentBytes);
        },
        failed: listener.failed,
        cut: (error) => {
          this.#error = error;
        },
      });
    } catch (error) {
      this.over = false;
      reply.source.lost();
      throw error;
    }
  }

  #factsOf(close: boolean): ResponseOptions {
    return {
      requestId: this.requestId,
      strictTransport: this.services.site.strictTransport,
      cors: this.cors,
      quotaResult: this.limiter.quotaResult,
      windowSeconds: this.services.settings.get('RateLimitWindowSeconds'),
      headOnly: this.head.method === 'HEAD',
      close,
      bodyPending: !this.bodyRead,
      staysPending: this.last,
    };
  }

  /** Cuts the connection without a word. */
  cut(): void {
    this.over = true;
    this.#wire.cut();
  }
}
