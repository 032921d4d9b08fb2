/** What the pipeline is made of, and what it counts. */
import type { Clock } from '../../domain/time.ts';
import type { FinishedRequest } from './finished.ts';
import type { InFlightCounters } from './in-flight.ts';
import type { AnyRoute } from './route.ts';
import type { Services } from './services.ts';

export interface PipelineOptions extends Omit<Services, 'inFlight'> {
  readonly routes: readonly AnyRoute[];
  readonly clock: Clock;
  /** Milliseconds that only move forward, for durations. */
  readonly elapsed: () => number;
  readonly newRequestId: () => string;
  /** CIDR blocks of proxies whose word on the client's address counts. */
  readonly trustedProxies: readonly string[];
  /** A PROXY protocol header counts from these proxies. Every other one ends its connection. */
  readonly proxyProtocol?: boolean;
  /** A throw that is no row of the error table. The caller got 500. */
  readonly onBug: (error: unknown, requestId: string) => void;
  /** An admin route was asked through a proxy that is not trusted, and refused. */
  readonly onUntrustedProxy?: (address: string) => void;
  readonly onFinished?: (record: FinishedRequest) => void;
  /** Asked at every answer: shall the connection end with it? `Server.isNearCapacity`. */
  readonly isNearCapacity?: () => boolean;
}

export interface PipelineCounters extends InFlightCounters {
  /** Connections closed by the guard. */
  readonly smuggledTotal: number;
  /** Connections closed for a PROXY protocol header that is not taken from their peer. */
  readonly proxyHeadersRefusedTotal: number;
  /** Refused because the gateway is stopping. */
  readonly stoppingTotal: number;
}
