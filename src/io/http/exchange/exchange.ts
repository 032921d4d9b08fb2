/**
 * One request and its response: the context that a route receives, and the only code that ends a response. It answers at
 * most once, and never touches the response after its abort.
 */
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import { type ErrorName, GatewayError } from '../../../domain/errors.ts';
import { type Holder, NO_HOLDER } from '../../../domain/limits/holders.ts';
import type { Lease } from '../../../domain/limits/shares.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import type { SettingsReader } from '../../../domain/settings/settings.ts';
import type { Site } from '../../../domain/site.ts';
import type { TraceSpan } from '../../tracing/span.ts';
import { TracedActors } from '../../tracing/traced-actors.ts';
import { DISCARD, type IncomingHooks, IncomingStream } from '../body/incoming.ts';
import { OPEN_BODIES, type OpenBodies } from '../body/open-bodies.ts';
import { type BodyResult, readWholeBody } from '../body/whole-body.ts';
import { RequestCharges } from '../checks/charges.ts';
import type { InFlightRequest } from '../checks/in-flight.ts';
import type { ResolvedClient } from '../listen/client-address.ts';
import { type HttpResponse, remotePortOf, type UpgradeContext } from '../listen/server.ts';
import type { ClientInfo, HeaderList, Reply, RouteContext } from '../table/route.ts';
import type { ReadyRoute } from '../table/router.ts';
import type { Services } from '../table/services.ts';
import { corked } from './cork.ts';
import { answerEarly, ConnectionCloser, isLong, isShort } from './early-answer.ts';
import { type OutgoingLimits, OutgoingStream } from './outgoing.ts';
import { isBodiless, writeAnswer, writeHead, writeUpgrade } from './reply.ts';
import { type IncomingHead, NO_VALUES } from './request.ts';
import { type ResponseOptions, type ResponsePhase, responseOptions } from './response-options.ts';
import type { StreamReply, UpgradeReply } from './stream.ts';
import { BytesSource, type OutgoingSource, type RemainingBody } from './stream.ts';

const NO_BYTES = Buffer.alloc(0);
/** Shared by all exchanges of a pipeline. */
export interface ExchangeListener {
  /** The answer is complete, or the client left before. May be called more than once. */
  over(exchange: Exchange): void;
  /** The source of a streamed answer threw: a bug. The connection is closed. */
  bug(exchange: Exchange, error: unknown): void;
  /** Its connection is gone. */
  closed(exchange: Exchange): void;
}

export class Exchange implements RouteContext, InFlightRequest {
  readonly head: IncomingHead;
  readonly client: ClientInfo;
  /** Origin of the connection, and the client behind it. */
  readonly origin: ResolvedClient;
  readonly requestId: string;
  readonly clientRequestId: string | undefined;
  readonly nowMs: number;
  readonly limiter: RequestCharges;
  readonly idempotencyKey: string | undefined;
  readonly traceparent: string | undefined;
  readonly services: Services;
  readonly settings: SettingsReader;
  readonly site: Site;
  /** The route, from its stage on. */
  ready: ReadyRoute | undefined;
  /** Index of the stage that it passes next. */
  stage = 0;
  /** A PROXY protocol header came before it. */
  isProxied = false;
  params: Readonly<Record<string, string>> = NO_VALUES;
  query: unknown;
  body: unknown;
  /** Result of the handler, until it is sent. */
  value: unknown;
  rawBody: Buffer = NO_BYTES;
  incoming: IncomingStream | undefined;
  session: SessionContext | undefined;
  proxySendsFiles = false;
  asksForBasic = false;
  cors: HeaderList = [];
  /** The limits of its route were not charged yet. */
  inAccessCheck = true;
  /** Before `hold` it takes no part of any bound. */
  holder: Holder = NO_HOLDER;
  /** From `hold` until it is over. */
  requestLease: Lease | undefined;
  bodyLease: Lease | undefined;
  /** The handler is at work, or its result waits to be sent. */
  running = false;
  /** Bytes of the request's body in memory. */
  bodyBytes = 0;
  /** The request's body has arrived whole, or there is none. */
  bodyRead: boolean;
  /** Its body has no declared length (docs/decisions/0090). */
  readonly chunked: boolean;
  /** Chunked, or `ResolvedClient.alone`: answered in a later tick, and the last request of its connection. */
  readonly last: boolean;
  status = 0;
  /** The failure that the answer reports, or that cut it off. */
  error: ErrorName | undefined;
  sentBytes = 0;
  /** The library can make it a WebSocket. */
  upgradeContext: UpgradeContext | undefined;
  /** Span of the request, then of its handler; undefined unless it is sampled for a trace. */
  span: TraceSpan | undefined;
  /** Reported as finished. */
  settled = false;
  readonly startedMs: number;
  readonly #response: HttpResponse;
  readonly #listener: ExchangeListener;
  readonly #openBodies: OpenBodies;
  #phase: ResponsePhase = 'open';
  #isWatched = false;
  #header: RouteContext['header'] | undefined;
  #isAbandoned = false;
  #abortListeners: (() => void)[] | undefined;
  #remaining: RemainingBody | undefined;
  #outgoing: OutgoingStream | undefined;
  #closer: ConnectionCloser | undefined;

  constructor(
    response: HttpResponse,
    head: IncomingHead,
    client: ResolvedClient,
    services: Services,
    listener: ExchangeListener,
    requestId: string,
    nowMs: number,
    startedMs: number,
  ) {
    this.#response = response;
    this.#listener = listener;
    this.#openBodies = services.openBodies ?? OPEN_BODIES;
    this.startedMs = startedMs;
    this.bodyRead = !head.hasBody;
    this.chunked = !this.bodyRead && head.contentLength === undefined;
    this.last = this.chunked || client.alone;
    this.head = head;
    this.services = services;
    this.settings = services.settings;
    this.site = services.site;
    this.nowMs = nowMs;
    this.client = { address: client.address, userAgent: head.userAgent };
    this.origin = client;
    this.requestId = requestId;
    this.clientRequestId = head.clientRequestId;
    this.idempotencyKey = head.idempotencyKey;
    this.traceparent = head.traceparent;
    const port = client.forwarded ? undefined : remotePortOf(response);
    this.limiter = new RequestCharges(services.limiter, client.address, port, client.forwarded, nowMs);
  }

  get phase(): ResponsePhase {
    return this.#phase;
  }
  /** Nothing can be answered any more. */
  get isOver(): boolean {
    return this.#phase !== 'open' && this.#phase !== 'decided';
  }
  /** An answer was chosen. */
  get hasAnswer(): boolean {
    return this.#phase !== 'open' && this.#phase !== 'aborted';
  }
  get search(): string {
    return this.head.search;
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
    return this.span === undefined ? this.services.actors : new TracedActors(this.services.actors, this.span);
  }

  // Routes take these out of the context, so they may not depend on how they are called; most requests ask for none.
  get header(): (name: string) => string | undefined {
    this.#header ??= (name) => this.head.header(name);
    return this.#header;
  }
  get allHeaders(): () => Iterable<readonly [name: string, value: string]> {
    return () => this.head.all();
  }

  /** Counts it among the requests in flight, for its caller. Throws the error of the bound. */
  hold(): void {
    this.holder = this.#holderOf(this.session);
    this.services.inFlight.add(this);
  }
  identify(session: SessionContext): void {
    this.services.inFlight.identify(this, this.#holderOf(session));
  }

  noteWork(tool?: string): void {
    this.services.loopWatch?.note(this.ready?.route.path ?? '', tool);
  }

  #holderOf(session: SessionContext | undefined): Holder {
    return this.services.bounds.holders.of(this.client.address, session?.userId, session?.id);
  }

  /** For the abort of the connection; uWebSockets.js takes one handler a request. */
  watch(): void {
    if (this.#isWatched || this.isOver) return;
    this.#isWatched = true;
    this.#response.onAborted(() => this.#onAborted());
  }

  #onAborted(): void {
    this.#closer?.cancel();
    this.#listener.closed(this);
    const before = this.#phase;
    this.#phase = 'aborted';
    if (before === 'aborted') return;
    this.#remaining?.lost();
    if (before === 'ended') return;
    this.#outgoing?.lost();
    this.abandon();
    this.#listener.over(this);
  }

  /** Stops the handler: the client is gone, or was refused while it was sending. */
  abandon(): void {
    this.#isAbandoned = true;
    for (const listener of this.#abortListeners ?? []) listener();
    this.#abortListeners = undefined;
  }

  get onAbort(): (listener: () => void) => void {
    return (listener) => {
      if (this.#isAbandoned) listener();
      else if (this.#abortListeners?.push(listener) === undefined) this.#abortListeners = [listener];
    };
  }

  /** Reads the body whole, up to `maxBytes`; see `readWholeBody`. */
  readBody(maxBytes: number, isKept: boolean, onResult: (result: BodyResult) => void): void {
    const options = { reserve: (sizeBytes: number) => this.reserve(sizeBytes, maxBytes), isKept };
    this.#remaining = readWholeBody(this.#response, this.head, options, this.#openBodies, onResult);
  }

  /** Opens the body for a route that reads it as it arrives. */
  openBody(hooks: IncomingHooks): void {
    const all = {
      ...hooks,
      resumed: () => this.#outgoing?.scheduleRetry(),
      waits: () => this.#outgoing?.waiting === true,
    };
    this.incoming = new IncomingStream(this.#response, this.head, all, this.#openBodies);
    this.#remaining = this.incoming;
  }

  /** Discards a body that no route reads. */
  ignoreBody(hooks: Partial<IncomingHooks> = {}): void {
    if (this.isOver) return;
    const ended = () => {
      this.bodyRead = true;
      hooks.ended?.();
    };
    const all = { ...DISCARD, ...hooks, ended };
    this.#remaining ??= new IncomingStream(this.#response, this.head, all, this.#openBodies);
  }

  /** Counts bytes of the body before they are kept. Throws `BodyTooLarge`, or the error of the shared bound. */
  reserve(sizeBytes: number, maxBytes: number): void {
    if (this.bodyBytes + sizeBytes > maxBytes) throw new GatewayError('BodyTooLarge');
    this.services.inFlight.addBytes(this, sizeBytes);
    this.bodyBytes += sizeBytes;
  }

  /** Fixes an answer that is written in a later tick. */
  decide(reply: Reply): void {
    this.#phase = 'decided';
    this.error = reply.error;
  }

  /** Writes the answer; false when it came too late. Throws, with nothing written, when a header is invalid. */
  answer(reply: Reply, close: boolean): boolean {
    if (reply.error !== undefined) this.error = reply.error;
    if (this.isOver) return false;
    this.status = reply.status;
    // They hold what made the answer, a call to a module, as long as the exchange lives.
    this.#abortListeners = undefined;
    const options = responseOptions(this, close);
    const short = !options.headOnly && isShort(reply);
    if (options.bodyPending && short) {
      this.#answerEarly(reply, options);
      return true;
    }
    // After the answer its socket may not be touched, unless it stays pending.
    if (this.bodyRead) this.#remaining?.answered();
    if (options.staysPending) this.#answerPending(reply, { ...options, close: true }, short);
    else {
      // uWS corks its own callbacks; after a promise an explicit cork makes it one system call.
      const isLater = this.running || this.#phase === 'decided';
      this.sentBytes = isLater ? this.#corked(reply, options) : writeAnswer(this.#response, reply, options);
      this.#phase = 'ended';
    }
    return true;
  }

  /** A short answer fits into the socket's buffer, so the response ends in the same call. */
  #answerPending(reply: Reply, options: ResponseOptions, short: boolean): void {
    const { body } = reply;
    if (!short && !options.headOnly && !isBodiless(reply) && body !== null && body.length > 0) {
      const bytes = Buffer.from(body);
      corked(this.#response, () => writeHead(this.#response, reply, options));
      this.sentBytes = bytes.length;
      this.#send(new BytesSource(bytes), { lengthBytes: bytes.length }, true);
      return;
    }
    this.sentBytes = this.#corked(reply, options);
    this.#phase = 'ended';
    if (!short) this.#closer = ConnectionCloser.of(this.#response, this.#remaining);
  }

  #corked(reply: Reply, options: ResponseOptions): number {
    let sentBytes = 0;
    corked(this.#response, () => {
      sentBytes = writeAnswer(this.#response, reply, options);
    });
    return sentBytes;
  }

  /** The body is still arriving. If much of it may follow, the connection is closed with the answer. */
  #answerEarly(reply: Reply, options: ResponseOptions): void {
    const body = Buffer.from(reply.body ?? '');
    const close = options.close || isLong(this.head.contentLength);
    corked(this.#response, () => writeHead(this.#response, reply, { ...options, close }));
    this.watch();
    this.#phase = 'headersSent';
    this.sentBytes = body.length;
    this.#remaining ??= new IncomingStream(this.#response, this.head, DISCARD, this.#openBodies);
    answerEarly(this.#response, this.#remaining, body, this.last, (ended) => {
      this.#phase = 'ended';
      if (this.last || !ended) this.#closer = ConnectionCloser.ofShort(this.#response, ended);
    });
  }

  /** Starts an answer that is sent piece by piece. Throws as `answer` does; the source was not started then. */
  stream(reply: StreamReply, close: boolean): void {
    if (this.isOver) {
      reply.source.lost();
      return;
    }
    this.status = reply.status;
    const options = responseOptions(this, close || !this.bodyRead);
    try {
      corked(this.#response, () => writeHead(this.#response, reply, options));
    } catch (error) {
      reply.source.lost();
      throw error;
    }
    this.#send(reply.source, reply, options.staysPending);
  }

  /** Answers with 101; the connection belongs to the listener of the reply from then on. Throws as `answer` does. */
  upgrade(reply: UpgradeReply): void {
    const onBug = (error: unknown) => this.#listener.bug(this, error);
    writeUpgrade(this.#response, reply, this, onBug);
    this.status = reply.status;
    this.#phase = 'ended';
  }

  /** Sends the body of an answer whose head is written. */
  #send(source: OutgoingSource, limits: OutgoingLimits, pending: boolean): void {
    const { lengthBytes } = limits;
    this.#phase = 'headersSent';
    // One byte leaves with the end of its connection (outgoing.ts).
    const stays = pending && lengthBytes !== 1;
    const hooks = {
      finishing: () => {
        if (!stays || this.bodyRead) this.#remaining?.answered();
      },
      ended: (sentBytes: number) => {
        this.sentBytes = sentBytes;
        this.#abortListeners = undefined;
        const closes = this.#phase === 'headersSent' && stays;
        if (closes) this.#closer = ConnectionCloser.of(this.#response, this.#remaining);
        if (this.#phase === 'headersSent') this.#phase = 'ended';
        this.#listener.over(this);
      },
      failed: (error: unknown) => this.#listener.bug(this, error),
      cut: (error: ErrorName) => {
        this.error = error;
      },
      progress: () => this.#closer?.wait(),
    };
    const outgoing = new OutgoingStream(this.#response, source, limits, hooks, pending);
    this.#outgoing = outgoing;
    // Chunks may not share the cork of the request's own callback: uWS loses bytes of them under back-pressure.
    if (lengthBytes === undefined) setImmediate(() => outgoing.start());
    else outgoing.start();
  }

  /** Closes the connection without an answer, or in the middle of one. */
  cut(): void {
    // An answer that is being sent is ended by the abort handler.
    if (this.#phase !== 'headersSent') this.#phase = 'aborted';
    this.#response.close();
  }
}
