/** Dependencies and counters of the pipeline. */
import type { Feature } from '../../../domain/features.ts';
import type { Clock } from '../../../domain/time.ts';
import type { Tracing } from '../../tracing/tracing.ts';
import type { InFlightCounters } from '../checks/in-flight.ts';
import type { FinishedRequest } from '../exchange/finished.ts';
import type { Server } from '../listen/server.ts';
import type { AnyRoute } from './route.ts';
import type { Services } from './services.ts';

export interface PipelineOptions extends Omit<Services, 'inFlight'> {
  readonly routes: readonly AnyRoute[];
  /** Routes of these answer `NotWithCluster`; none by default. */
  readonly missingFeatures?: () => ReadonlySet<Feature>;
  readonly clock: Clock;
  /** Milliseconds that only move forward, for durations. */
  readonly elapsed: () => number;
  readonly newRequestId: () => string;
  /** CIDR blocks of proxies that may name the client's address. */
  readonly trustedProxies: readonly string[];
  /** These proxies may send a PROXY protocol header. One of any other peer closes its connection. */
  readonly proxyProtocol?: boolean;
  /**
   * Lower-case name of the field by which a trusted proxy says that it sends files itself (`SendfileBehind`). It is taken
   * out of every request.
   */
  readonly sendfileHeader?: string | undefined;
  /** Called with an error outside the error table. The caller received 500. */
  readonly onBug: (error: unknown, requestId: string) => void;
  /** A request for an admin route was refused because its proxy is not trusted. */
  readonly onUntrustedProxy?: (address: string) => void;
  /** Undefined: no request is traced. */
  readonly tracing?: Tracing | undefined;
  /** Receive the record of every finished request. */
  readonly observers?: readonly { observe(record: FinishedRequest): void }[];
  /** Asked at every answer: does the connection close with it? */
  readonly connections?: Pick<Server, 'isNearCapacity' | 'open' | 'noteClosed'>;
}

export interface PipelineCounters extends InFlightCounters {
  /** Connections closed by the guard. */
  readonly smuggledTotal: number;
  /** Connections closed for a PROXY protocol header that is not taken from their peer. */
  readonly proxyHeadersRefusedTotal: number;
  /** Refused because the gateway is stopping. */
  readonly stoppingTotal: number;
}
