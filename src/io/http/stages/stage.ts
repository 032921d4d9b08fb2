/** Interface of the stages of a request, and the context that all requests of a pipeline share. */
import type { GatewayError } from '../../../domain/errors.ts';
import type { InFlight } from '../checks/in-flight.ts';
import type { Exchange, ExchangeListener } from '../exchange/exchange.ts';
import type { IncomingHead } from '../exchange/request.ts';
import type { AddressReader } from '../listen/client-address.ts';
import type { PipelineOptions } from '../table/options.ts';
import type { ReadyRoute, Router } from '../table/router.ts';
import type { Services } from '../table/services.ts';

/** A request whose route is known, as the stages after `route` receive it. */
export type RoutedExchange = Exchange & { readonly ready: ReadyRoute };

/** One row of the list that a request passes (pipeline.ts). */
export interface Stage {
  readonly name: 'receive' | 'route' | 'authenticate' | 'limit' | 'parse' | 'validate' | 'handle' | 'send';
  /** It runs at the end of the event-loop tick, with all requests that are as far. */
  readonly batch?: 'work' | 'send';
  /**
   * True: the next stage follows. False: the request is answered, or the stage calls `proceed` later. Throws `GatewayError` for
   * a refusal; anything else is a bug.
   */
  run(exchange: RoutedExchange, pipeline: PipelineContext): boolean;
}

export interface PipelineContext {
  readonly options: PipelineOptions;
  readonly services: Services;
  readonly inFlight: InFlight;
  readonly router: Router;
  readonly addresses: AddressReader;
  readonly listener: ExchangeListener;
  readonly checkHost: (head: IncomingHead) => void;
  readonly isAdminAddress: (address: string) => boolean;
  readonly counts: { smuggledTotal: number; proxyHeadersRefusedTotal: number; stoppingTotal: number };
  /** New requests are refused. */
  readonly stopping: boolean;
  /** Every answer closes its connection. */
  readonly closing: boolean;
  /** Runs the stages that are left. */
  proceed(exchange: Exchange): void;
  /** Answers an error. */
  fail(exchange: Exchange, error: unknown): void;
  /** Logs what is no error of the table. Returns what its caller is shown. */
  bug(exchange: Exchange, thrown: unknown): GatewayError;
}
