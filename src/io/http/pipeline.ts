/**
 * The request pipeline, the same for every route: guard, Host, origin rules, route, session, limits, schema, handler,
 * reply. The answers of an event-loop tick are sent together at its end.
 */
import { type ErrorName, GatewayError } from '../../domain/errors.ts';
import {
  absentBody,
  answerUnrouted,
  authorize,
  chargeRefusal,
  formOf,
  replyOf,
  requireValid,
  withCurrentNames,
} from './access.ts';
import { type BodyCallback, receiveBody } from './body/receive.ts';
import { anyOriginHeaders, corsHeaders, isPreflight } from './cors.ts';
import { isShort } from './early-answer.ts';
import { Exchange, type ExchangeListener } from './exchange.ts';
import { recordOf } from './finished.ts';
import { guard } from './guard.ts';
import { InFlight } from './in-flight.ts';
import {
  type AddressReader,
  createAddressReader,
  createRangeCheck,
  directClient,
  readAddress,
} from './listen/client-address.ts';
import type { PipelineCounters, PipelineOptions } from './options.ts';
import { createHostCheck } from './origin.ts';
import { errorBody, errorReply } from './reply.ts';
import { IncomingHead, parseQuery } from './request.ts';
import { type AnyRoute, Reply } from './route.ts';
import { coerceQuery, createRouter, type Router } from './router.ts';
import { RequestScheduler } from './scheduler.ts';
import type { HttpRequest, HttpResponse, RequestHandler, UpgradeContext } from './server.ts';
import type { Services } from './services.ts';
import { failure } from './stages/failure.ts';
import { StreamReply, UpgradeReply } from './stream.ts';

/** Errors that close the connection: more of the body may follow, or the gateway stops. */
const CLOSING: ReadonlySet<ErrorName> = new Set<ErrorName>(['BodyTooLarge', 'BodyTooSlow', 'Stopping']);

export type { FinishedRequest } from './finished.ts';
export type { PipelineCounters, PipelineOptions } from './options.ts';
export type { Services } from './services.ts';

export interface Pipeline {
  readonly handle: RequestHandler;
  counters(): PipelineCounters;
  /** Every answer closes its connection from now on, so that clients open one to another node. */
  closeConnections(): void;
  /** Answers new requests with 503; resolves with the number in flight: 0, or the rest at the deadline. */
  drain(timeoutMs: number): Promise<number>;
}

export function createPipeline(options: PipelineOptions): Pipeline {
  return new RequestPipeline(options);
}

class RequestPipeline implements Pipeline {
  readonly handle: RequestHandler = (response, request, upgrade) => this.#accept(response, request, upgrade);
  readonly #options: PipelineOptions;
  readonly #services: Services;
  readonly #router: Router;
  readonly #addresses: AddressReader;
  readonly #checkHost: (head: IncomingHead) => void;
  readonly #isAdminAddress: (address: string) => boolean;
  readonly #inFlight: InFlight;
  readonly #exchangeListener: ExchangeListener = {
    over: (exchange) => this.#settle(exchange),
    bug: (exchange, error) => this.#bug(exchange, error),
    closed: ({ origin }) => this.#options.connections?.noteClosed(origin.peer),
  };
  readonly #onBody: BodyCallback = (exchange, failure) => {
    if (failure !== undefined) this.#fail(exchange, failure.error);
    else if (exchange.route?.body === 'stream') this.#scheduler.run(exchange);
    else this.#scheduler.add(exchange);
  };
  readonly #scheduler: RequestScheduler;
  #smuggledTotal = 0;
  #proxyHeadersRefusedTotal = 0;
  #stoppingTotal = 0;
  #stopping = false;
  #closing = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#inFlight = new InFlight(options.bounds);
    this.#services = { ...options, inFlight: this.#inFlight };
    this.#scheduler = new RequestScheduler({
      answer: (exchange, value) => this.#finish(exchange, replyOf(value), false),
      fail: (exchange, error) => this.#fail(exchange, error),
      done: (exchange) => exchange.settled && this.#release(exchange),
    });
    this.#router = createRouter(options.routes);
    this.#addresses = createAddressReader(options.trustedProxies, options.proxyProtocol);
    this.#checkHost = createHostCheck(options.site);
    this.#isAdminAddress = createRangeCheck(options.site.adminAllow);
  }

  counters(): PipelineCounters {
    const own = {
      smuggledTotal: this.#smuggledTotal,
      proxyHeadersRefusedTotal: this.#proxyHeadersRefusedTotal,
      stoppingTotal: this.#stoppingTotal,
    };
    return { ...this.#inFlight.counters(), ...own };
  }

  closeConnections(): void {
    this.#closing = true;
  }

  drain(timeoutMs: number): Promise<number> {
    this.#stopping = true;
    return this.#inFlight.drained(timeoutMs);
  }

  #accept(response: HttpResponse, request: HttpRequest, upgrade: UpgradeContext | undefined): void {
    const head = new IncomingHead(request);
    const peer = readAddress(response.getRemoteAddress());
    const exchange = this.#open(response, head, peer);
    // uWS accepts PROXY protocol headers of any peer before any request, without an option to refuse them.
    const isProxied = response.getProxiedRemoteAddressAsText().byteLength > 0;
    if (isProxied && !this.#addresses.takesProxyHeader(peer)) {
      this.#proxyHeadersRefusedTotal += 1;
      this.#cut(exchange);
      return;
    }
    exchange.upgradeContext = upgrade;
    exchange.noteWork();
    const decision = guard(head);
    if (decision === 'close') {
      this.#smuggledTotal += 1;
      this.#cut(exchange);
      return;
    }
    if (exchange.last || head.hasBody) exchange.watch();
    try {
      if (decision === 'tooLarge') {
        const error = errorBody('InvalidInput', 'the URL is too long or there are too many headers');
        this.#finish(exchange, Reply.json(431, { error }), true);
      } else this.#dispatch(exchange);
    } catch (error) {
      this.#fail(exchange, chargeRefusal(exchange, error));
    }
    // Only a listener that is registered in this call receives the end of the body.
    if (head.hasBody) exchange.ignoreBody();
  }

  #cut(exchange: Exchange): void {
    exchange.cut();
    this.#settle(exchange);
  }

  #open(response: HttpResponse, head: IncomingHead, peer: string): Exchange {
    const found = this.#addresses.trustsAny
      ? this.#addresses.resolve(peer, {
          proxied: readAddress(response.getProxiedRemoteAddress()),
          forwardedFor: head.joined('x-forwarded-for', ','),
        })
      : directClient(peer);
    const client = this.#isNearCapacity() ? { ...found, alone: true } : found;
    const { clock, elapsed, newRequestId, sendfileHeader } = this.#options;
    // Before anything else reads the head: no module may see the field.
    const asksForFiles = sendfileHeader !== undefined && head.take(sendfileHeader);
    const listener = this.#exchangeListener;
    const id = newRequestId();
    const exchange = new Exchange(response, head, client, this.#services, listener, id, clock(), elapsed());
    exchange.proxySendsFiles = asksForFiles && this.#addresses.trusts(peer);
    const { tracing } = this.#options;
    if (tracing !== undefined) exchange.span = tracing.begin(exchange, this.#addresses.trusts(peer));
    return exchange;
  }

  /** Checks the head, then receives the body or runs the handler. */
  #dispatch(exchange: Exchange): void {
    const { head, site } = exchange;
    if (this.#stopping) {
      this.#stoppingTotal += 1;
      // The route determines the form of the error.
      const { ready } = { ready: undefined, ...this.#router.match(head.method, head.path) };
      exchange.route = ready?.route;
      throw new GatewayError('Stopping');
    }
    if (site.checkHost) this.#checkHost(head);
    exchange.cors = corsHeaders(site, head);
    const match = this.#router.match(head.method, head.path, head.method === 'OPTIONS' && isPreflight(head));
    if (match.found !== 'route') {
      this.#finish(exchange, answerUnrouted(exchange, match), false);
      return;
    }
    const { ready } = match;
    const { route } = ready;
    exchange.route = route;
    this.#services.loopWatch?.label(route.path);
    if (route.anyOrigin === true) exchange.cors = anyOriginHeaders(head);
    exchange.params = match.params;
    if (route.auth === 'admin' || route.adminAddresses === true) this.#requireAdminAddress(exchange);
    authorize(exchange, route);
    this.#requireFeature(route);
    if (ready.queryCheck !== undefined) {
      const query = withCurrentNames(route, parseQuery(head.rawQuery), 'query') as Readonly<
        Record<string, string>
      >;
      exchange.query = coerceQuery(ready, query);
      requireValid(ready.queryCheck, exchange.query, 'query');
    }
    exchange.hold();
    if (head.hasBody) {
      receiveBody(exchange, ready, this.#onBody);
    } else {
      exchange.body = absentBody(ready);
      this.#scheduler.add(exchange);
    }
  }

  /** After the session and the limits: who may not call the route does not learn more, and repeats are counted. */
  #requireFeature({ feature }: AnyRoute): void {
    if (feature !== undefined && this.#options.missingFeatures?.has(feature) === true)
      throw new GatewayError('NotWithCluster', feature);
  }

  /** A client that no trusted proxy names has the proxy's address, which `Admin.allow` may contain. */
  #requireAdminAddress({ head, client, limiter, origin }: Exchange): void {
    const { address } = client;
    if (origin.unknown) throw new GatewayError('Forbidden');
    const isUnknown = !limiter.forwarded && head.header('x-forwarded-for') !== undefined;
    if (isUnknown && !this.#addresses.trusts(address)) {
      this.#options.onUntrustedProxy?.(address);
      throw new GatewayError('Forbidden');
    }
    if (!this.#isAdminAddress(address)) throw new GatewayError('Forbidden');
  }

  /** Answers an error of the table; anything else is a bug, which is logged and never shown to the caller. */
  #fail(exchange: Exchange, thrown: unknown): void {
    if (exchange.phase === 'decided' || (exchange.last && exchange.hasAnswer)) return;
    const known = thrown instanceof GatewayError ? thrown : this.#bug(exchange, thrown);
    const reply = failure(exchange, known, (error) => formOf(error, exchange));
    this.#finish(exchange, reply, CLOSING.has(known.row));
  }

  #bug(exchange: Exchange, thrown: unknown): GatewayError {
    this.#options.onBug(thrown, exchange.requestId);
    return new GatewayError('InternalError');
  }

  /**
   * The last request of a connection is answered in the next event-loop tick: uWebSockets.js reads on, and closes the
   * connection at a further head because an answer is pending (docs/decisions/0090). The first answer counts. A long answer
   * waits likewise for a body that came with its head: a body that is still arriving then ends its connection.
   */
  #finish(exchange: Exchange, reply: Reply, close: boolean): void {
    if (!exchange.last && (exchange.bodyRead || isShort(reply))) this.#write(exchange, reply, close);
    else if (exchange.phase === 'open') {
      exchange.decide(reply);
      setImmediate(() => this.#write(exchange, reply, close || exchange.last));
    } else if (reply instanceof StreamReply) reply.source.lost();
    else if (reply instanceof UpgradeReply) reply.listener.lost();
  }

  /** An answer with an invalid header is a bug too; nothing of it was written. */
  #write(exchange: Exchange, reply: Reply, close: boolean): void {
    const { connections } = this.#options;
    const closing = close || this.#stopping || this.#closing || this.#isNearCapacity();
    const before = connections?.open ?? 0;
    try {
      if (reply instanceof StreamReply) {
        this.#stream(exchange, reply, closing);
        return;
      }
      if (reply instanceof UpgradeReply) {
        this.#upgrade(exchange, reply);
        return;
      }
      exchange.answer(reply, closing);
    } catch (error) {
      exchange.answer(errorReply(this.#bug(exchange, error)), true);
    }
    this.#settle(exchange);
    // Nothing but this answer ended a connection meanwhile, and no callback of its request reports it.
    const isClosed = (connections?.open ?? 0) < before && exchange.phase !== 'aborted';
    if (isClosed) connections?.noteClosed(exchange.origin.peer);
  }

  #isNearCapacity(): boolean {
    return this.#options.connections?.isNearCapacity() === true;
  }

  /** A streamed answer is over when its last byte was sent or its client left. */
  #stream(exchange: Exchange, reply: StreamReply, closing: boolean): void {
    if (exchange.method === 'HEAD') {
      reply.source.lost();
      this.#write(exchange, reply.withoutBody(), closing);
      return;
    }
    exchange.watch();
    exchange.stream(reply, closing);
    if (!reply.longLived) return;
    exchange.head.forget();
    this.#release(exchange);
  }

  /** The request is over with its answer; its fields would take memory for as long as the connection lives. */
  #upgrade(exchange: Exchange, reply: UpgradeReply): void {
    try {
      if (exchange.isOver) reply.listener.lost();
      else exchange.upgrade(reply);
      this.#settle(exchange);
      exchange.head.forget();
    } catch (error) {
      reply.listener.lost();
      throw error;
    }
  }

  /** Reports the request as finished, once. A handler that runs on after an abort still counts as in flight. */
  #settle(exchange: Exchange): void {
    if (exchange.settled) return;
    exchange.settled = true;
    const record = recordOf(exchange, this.#options.elapsed());
    if (exchange.span !== undefined) this.#options.tracing?.end(exchange.span.root, record);
    this.#options.onFinished?.(record);
    if (!exchange.running) this.#release(exchange);
  }

  #release(exchange: Exchange): void {
    this.#inFlight.remove(exchange);
  }
}
