/**
 * The life of a request, the same for every route and for WebSockets: one ordered list of stages, and what walks it. Handlers run
 * and answers leave together at the end of an event-loop tick.
 */
import { GatewayError } from '../../domain/errors.ts';
import { TickBatch } from '../batch.ts';
import { InFlight } from './checks/in-flight.ts';
import { createHostCheck } from './checks/origin.ts';
import type { Exchange, ExchangeListener } from './exchange/exchange.ts';
import type { IncomingHead } from './exchange/request.ts';
import { type AddressReader, createAddressReader, createRangeCheck } from './listen/client-address.ts';
import type { RequestHandler } from './listen/server.ts';
import { authenticate } from './stages/authenticate.ts';
import { fail } from './stages/failure.ts';
import { handle } from './stages/handle.ts';
import { limit } from './stages/limit.ts';
import { parse } from './stages/parse.ts';
import { openExchange, receive } from './stages/receive.ts';
import { route } from './stages/route.ts';
import { handled, send, settle } from './stages/send.ts';
import type { PipelineContext, RoutedExchange, Stage } from './stages/stage.ts';
import { validate } from './stages/validate.ts';
import type { PipelineCounters, PipelineOptions } from './table/options.ts';
import { createRouter, type Router } from './table/router.ts';
import type { Services } from './table/services.ts';

export type { FinishedRequest } from './exchange/finished.ts';
export type { PipelineCounters, PipelineOptions } from './table/options.ts';
export type { Services } from './table/services.ts';

/** Stages that a request passes, in this order. */
const STAGES: readonly Stage[] = [
  { name: 'receive', run: receive },
  { name: 'route', run: route },
  { name: 'authenticate', run: authenticate },
  { name: 'limit', run: limit },
  { name: 'parse', run: parse },
  { name: 'validate', run: validate },
  { name: 'handle', run: handle, batch: 'work' },
  { name: 'send', run: send, batch: 'send' },
];

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

class RequestPipeline implements Pipeline, PipelineContext {
  readonly handle: RequestHandler = (response, request, upgrade) => {
    const exchange = openExchange(response, request, upgrade, this);
    this.#walk(exchange);
    // Only a listener that is registered in this call receives the end of the body.
    if (exchange.head.hasBody) exchange.ignoreBody();
  };
  readonly options: PipelineOptions;
  readonly services: Services;
  readonly inFlight: InFlight;
  readonly router: Router;
  readonly addresses: AddressReader;
  readonly checkHost: (head: IncomingHead) => void;
  readonly isAdminAddress: (address: string) => boolean;
  readonly counts = { smuggledTotal: 0, proxyHeadersRefusedTotal: 0, stoppingTotal: 0 };
  readonly listener: ExchangeListener = {
    over: (exchange) => settle(exchange, this),
    bug: (exchange, error) => this.bug(exchange, error),
    closed: ({ origin }) => this.options.connections?.noteClosed(origin.peer),
  };
  readonly #walk = (exchange: Exchange): void => {
    try {
      for (let stage = STAGES[exchange.stage]; stage !== undefined; stage = STAGES[exchange.stage]) {
        exchange.stage += 1;
        if (!stage.run(exchange as RoutedExchange, this) || this.#waits(exchange)) return;
      }
    } catch (error) {
      try {
        fail(exchange, this, error);
      } finally {
        handled(exchange, this);
      }
    }
  };
  readonly #batches = { work: new TickBatch('work', this.#walk), send: new TickBatch('send', this.#walk) };
  stopping = false;
  closing = false;

  constructor(options: PipelineOptions) {
    this.options = options;
    this.inFlight = new InFlight(options.bounds);
    this.services = { ...options, inFlight: this.inFlight };
    this.router = createRouter(options.routes);
    this.addresses = createAddressReader(options.trustedProxies, options.proxyProtocol);
    this.checkHost = createHostCheck(options.site);
    this.isAdminAddress = createRangeCheck(options.site.adminAllow);
  }

  counters(): PipelineCounters {
    return { ...this.inFlight.counters(), ...this.counts };
  }

  closeConnections(): void {
    this.closing = true;
  }

  drain(timeoutMs: number): Promise<number> {
    this.stopping = true;
    return this.inFlight.drained(timeoutMs);
  }

  proceed(exchange: Exchange): void {
    if (!this.#waits(exchange)) this.#walk(exchange);
  }

  /** Adds it to the batch of its next stage, unless that runs at once: a handler that reads the body as it arrives does. */
  #waits(exchange: Exchange): boolean {
    const batch = STAGES[exchange.stage]?.batch;
    if (batch === undefined || (batch === 'work' && exchange.incoming !== undefined)) return false;
    this.#batches[batch].add(exchange);
    return true;
  }

  fail(exchange: Exchange, error: unknown): void {
    fail(exchange, this, error);
  }

  bug(exchange: Exchange, thrown: unknown): GatewayError {
    this.options.onBug(thrown, exchange.requestId);
    return new GatewayError('InternalError');
  }
}
