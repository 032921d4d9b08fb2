/**
 * HTTP client to the backend modules (docs/modules.md): keep-alive pools, one deadline, a cap on answers, breakers and
 * bounded queues. A call never rejects. No redirects, no environment proxy, no content coding, no repeated POST.
 */
import { performance } from 'node:perf_hooks';
import { type Holder, NO_HOLDER } from '../../domain/limits/holders.ts';
import type { SharedBounds } from '../../domain/limits/shared-bounds.ts';
import { Lease, type ShareRefusal } from '../../domain/limits/shares.ts';
import type { Clock } from '../../domain/time.ts';
import { Attempt } from '../http-client/attempt.ts';
import { type Breakers, callResultOf, createBreakers, PROBE_MS } from '../http-client/breaker.ts';
import { runChannelCall } from '../http-client/channel-call.ts';
import { ConnectionPool } from '../http-client/connection-pool.ts';
import {
  ModuleSocket,
  type ModuleSocketListener,
  type UpgradeRequest,
} from '../http-client/module-socket.ts';
import {
  NO_FLOW,
  Relay,
  type RelayFlow,
  type RelayListener,
  type RelayPermit,
} from '../http-client/relay.ts';
import { RelayQueue } from '../http-client/relay-queue.ts';
import { requestHead } from '../http-client/request-head.ts';
import type {
  ModuleCounters,
  ModuleError,
  ModuleRequest,
  ModuleResult,
  RelayRequest,
} from '../http-client/types.ts';

/** Connections per origin for calls, and as many for relayed calls; one request at a time on each. */
export const CONNECTIONS_PER_ORIGIN = 128;
/** Origins with a pool. They come from the static configuration, so the bound only catches mistakes. */
const ORIGINS_MAX = 1_024;
/** Reason of a request that was not sent. The endpoint is not at fault. */
const UNWRITABLE = 'the request cannot be written';

export interface ModuleClient {
  call(request: ModuleRequest): Promise<ModuleResult>;
  /** Streams the answer to the listener. A refusal is reported before this returns. */
  relay(request: RelayRequest, listener: RelayListener): RelayFlow;
  /** Opens a WebSocket. Undefined after a refusal, which the listener of the answer has received. */
  connect(request: ConnectRequest, listener: ModuleSocketListener): ModuleSocket | undefined;
  counters(): ModuleCounters;
  /** Open connections, and calls that wait or run, by origin. */
  origins(): ReadonlyMap<string, OriginCounts>;
  /** Fails the calls in flight with `ModuleFailed` and closes all connections. */
  close(): Promise<void>;
}

/** Its bound is that of WebSockets, which its caller holds a part of. */
interface ConnectRequest extends UpgradeRequest, Pick<RelayRequest, 'endpoint' | 'holder'> {}

export interface ModuleClientOptions {
  /** Clock of the breakers. Durations use the monotonic clock. */
  readonly clock: Clock;
  /** Bounds of the public listener, to which the callers' holders belong. */
  readonly bounds: SharedBounds;
  readonly connectionsPerOrigin?: number;
  /** Monotonic milliseconds, for idle connections. */
  readonly monotonicMs?: () => number;
}

interface OriginCounts {
  readonly connections: number;
  readonly pending: number;
}

interface CallCounts {
  calls: number;
  answered: number;
  retried: number;
  failed: Record<ModuleError, number>;
}

export function createModuleClient(options: ModuleClientOptions): ModuleClient {
  return new PooledClient(options);
}

class PooledClient implements ModuleClient {
  readonly #connections: number;
  readonly #breakers: Breakers;
  readonly #bounds: SharedBounds;
  readonly #monotonicMs: () => number;
  readonly #pools = new Map<string, ConnectionPool>();
  /** Separate connections: slow readers of long answers must not delay tool calls. */
  readonly #relayPools = new Map<string, ConnectionPool>();
  readonly #queues = new Map<string, RelayQueue>();
  readonly #counts: CallCounts = {
    calls: 0,
    answered: 0,
    retried: 0,
    failed: {
      ModuleFailed: 0,
      ModuleTimedOut: 0,
      ModuleUnavailable: 0,
      ModuleAnswerTooLarge: 0,
      Overloaded: 0,
      AccessRateLimit: 0,
      Aborted: 0,
    },
  };
  #channelCalls = 0;
  #closed = false;

  constructor(options: ModuleClientOptions) {
    this.#connections = options.connectionsPerOrigin ?? CONNECTIONS_PER_ORIGIN;
    this.#bounds = options.bounds;
    this.#breakers = createBreakers(options.clock);
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
  }

  call(request: ModuleRequest): Promise<ModuleResult> {
    this.#counts.calls += 1;
    if (request.signal?.aborted === true) return this.#refuse('Aborted', 'aborted before the call');
    const { origin } = request.url;
    const { holder = NO_HOLDER, body, channel } = request;
    const pool = channel ?? this.#poolFor(this.#pools, origin);
    if (typeof pool === 'string') return this.#refuse(pool, 'client closed, or too many origins');
    const lease = this.#bounds.of('moduleCalls', origin).take(holder);
    if (!(lease instanceof Lease))
      return this.#refuse(shareError(lease), 'too many calls to the origin', lease);
    const permit = this.#breakers.enter(request.endpoint, networkOf(holder), true);
    const size = body === undefined ? undefined : Buffer.byteLength(body);
    const head = pool instanceof ConnectionPool ? requestHead(request, pool.host, size) : '';
    if (permit === undefined || head === undefined) {
      lease.release();
      if (permit === undefined) return this.#refuse('ModuleUnavailable', 'breaker open');
      this.#breakers.settle(permit, 'released');
      return this.#refuse('ModuleFailed', UNWRITABLE);
    }
    const timeoutMs = permit.probe ? Math.min(PROBE_MS, request.timeoutMs) : request.timeoutMs;
    return new Promise((resolve) => {
      const ended = (result: ModuleResult, isSent: boolean) => {
        lease.release();
        this.#breakers.settle(permit, callResultOf(result.ok ? undefined : result.error, isSent));
        this.#count(result.ok ? undefined : result.error);
        resolve(result);
      };
      if (!(pool instanceof ConnectionPool)) {
        this.#channelCalls += 1;
        runChannelCall(pool, request, timeoutMs, (result, isSent) => {
          this.#channelCalls -= 1;
          ended(result, isSent);
        });
        return;
      }
      const opening = body === undefined ? head : head + body;
      new Attempt({ pool, request, opening, timeoutMs, repeated: this.#repeated, ended }).begin();
    });
  }

  relay(request: RelayRequest, listener: RelayListener): RelayFlow {
    this.#counts.calls += 1;
    const { method, body, timeoutMs, endpoint, holder = NO_HOLDER } = request;
    const { origin } = request.url;
    const pool = this.#poolFor(this.#relayPools, origin);
    if (typeof pool === 'string') return this.#refuseRelay(pool, listener);
    if (this.#breakers.refuses(endpoint)) return this.#refuseRelay('ModuleUnavailable', listener);
    const size = body === undefined ? undefined : (body.declaredBytes ?? 'chunked');
    const opening = requestHead(request, pool.host, size);
    if (opening === undefined) return this.#refuseRelay('ModuleFailed', listener);
    const relay = new Relay({
      pool,
      queue: this.#queueOf(origin),
      holder,
      listener,
      opening,
      toHead: method === 'HEAD',
      body,
      timeoutMs,
      repeatable: method === 'GET',
      repeated: this.#repeated,
      permit: (isWhole) => this.#relayPermit(endpoint, holder, isWhole),
      finished: (error) => this.#count(error),
    });
    const refusal = relay.begin();
    return refusal === undefined ? relay : this.#refuseRelay(shareError(refusal), listener, refusal);
  }

  connect(request: ConnectRequest, listener: ModuleSocketListener): ModuleSocket | undefined {
    this.#counts.calls += 1;
    const { endpoint, holder = NO_HOLDER, timeoutMs, url } = request;
    const pool = this.#poolFor(this.#relayPools, url.origin);
    if (typeof pool === 'string') return this.#refuseSocket(pool, listener);
    const permit = this.#breakers.enter(endpoint, networkOf(holder), true);
    if (permit === undefined) return this.#refuseSocket('ModuleUnavailable', listener);
    const bounded = { ...request, timeoutMs: permit.probe ? Math.min(PROBE_MS, timeoutMs) : timeoutMs };
    try {
      return new ModuleSocket(bounded, pool.address, listener, (end) => {
        const error = end === 'answered' ? undefined : end;
        this.#breakers.settle(permit, callResultOf(error, true));
        this.#count(error);
      });
    } catch (error) {
      this.#breakers.settle(permit, 'released');
      if (!(error instanceof TypeError)) throw error;
      // Node refuses a head that cannot be written.
      return this.#refuseSocket('ModuleFailed', listener);
    }
  }

  #refuseSocket(error: ModuleError, listener: ModuleSocketListener): undefined {
    this.#count(error);
    listener.answer.failed(error);
  }

  #relayPermit(endpoint: string, holder: Holder, isWhole: boolean): RelayPermit | undefined {
    const permit = this.#breakers.enter(endpoint, networkOf(holder), isWhole);
    return (
      permit && {
        isProbe: permit.probe,
        settle: (result) => this.#breakers.settle(permit, result),
      }
    );
  }

  counters(): ModuleCounters {
    let pending = this.#channelCalls;
    for (const pool of this.#all()) pending += pool.pending;
    return {
      ...this.#counts,
      failed: { ...this.#counts.failed },
      pending,
      breakersOpen: this.#breakers.open(),
    };
  }

  origins(): ReadonlyMap<string, OriginCounts> {
    const all = new Map<string, OriginCounts>();
    for (const [origin, pool] of [...this.#pools, ...this.#relayPools]) {
      const { connections, pending } = all.get(origin) ?? { connections: 0, pending: 0 };
      all.set(origin, { connections: connections + pool.open, pending: pending + pool.pending });
    }
    return all;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const pool of this.#all()) pool.close();
  }

  #all(): ConnectionPool[] {
    return [...this.#pools.values(), ...this.#relayPools.values()];
  }

  #poolFor(pools: Map<string, ConnectionPool>, origin: string): ConnectionPool | ModuleError {
    if (this.#closed) return 'ModuleUnavailable';
    const known = pools.get(origin);
    if (known !== undefined) return known;
    if (pools.size >= ORIGINS_MAX) return 'Overloaded';
    const pool = new ConnectionPool(origin, this.#connections, this.#monotonicMs);
    pools.set(origin, pool);
    return pool;
  }

  #queueOf(origin: string): RelayQueue {
    const known = this.#queues.get(origin);
    if (known !== undefined) return known;
    const queue = new RelayQueue({
      calls: this.#bounds.of('relayedCalls', origin),
      waiting: this.#bounds.of('relayedWaiting', origin),
      connections: this.#bounds.of('relayedConnections', origin),
    });
    this.#queues.set(origin, queue);
    return queue;
  }

  readonly #repeated = (): void => {
    this.#counts.retried += 1;
  };

  #count(error: ModuleError | undefined): void {
    if (error === undefined) this.#counts.answered += 1;
    else this.#counts.failed[error] += 1;
  }

  #refuse(error: ModuleError, reason: string, share?: ShareRefusal): Promise<ModuleResult> {
    this.#count(error);
    return Promise.resolve({ ok: false, error, reason, ...share, elapsedMs: 0 });
  }

  #refuseRelay(error: ModuleError, listener: RelayListener, share?: ShareRefusal): RelayFlow {
    this.#count(error);
    listener.failed(error, share?.refusedBy);
    return NO_FLOW;
  }
}

/** A full total bound is an overload; an exhausted share is the caller's rate limit. */
function shareError({ refusedBy }: ShareRefusal): ModuleError {
  return refusedBy === 'maximum' ? 'Overloaded' : 'AccessRateLimit';
}

/** The network to which a time-out is attributed; '' for the gateway itself. */
function networkOf({ networks }: Holder): string {
  return networks[0]?.name ?? '';
}
