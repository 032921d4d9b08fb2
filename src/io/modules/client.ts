/**
 * The one HTTP client to the backend modules (mcp.md "Calls to the backends"): keep-alive pools, one deadline over
 * connecting, headers and body, a cap on the answer, breakers, and bounds on what may wait. A call resolves with a
 * result and never rejects. Redirects are not followed, no proxy of the environment is used, no content coding is
 * asked for, and a POST is never sent twice.
 */
import { performance } from 'node:perf_hooks';
import type { Clock } from '../../domain/time.ts';
import { type Breakers, type CallVerdict, createBreakers, type Permit } from './breaker.ts';
import { ConnectionPool } from './connection-pool.ts';
import { Exchange } from './exchange.ts';
import type {
  ModuleCounters,
  ModuleError,
  ModuleRequest,
  ModuleResult,
  RelayRequest,
} from './module-call.ts';
import { NO_FLOW, Relay, type RelayFlow, type RelayListener } from './relay.ts';
import { requestHead } from './request-head.ts';

/** Connections per origin, as many again for relayed calls; one request at a time on each. */
export const CONNECTIONS_PER_ORIGIN = 128;
/** Calls per origin that are under way or wait for a connection; one more is refused with `Overloaded`. */
export const PENDING_PER_ORIGIN_MAX = 2_048;
/** Origins with a pool. They come from the static configuration, so this is a guard against a mistake, not a quota. */
const ORIGINS_MAX = 1_024;
/** Why a request never left: something of it cannot be written. The endpoint has no part in it. */
const UNWRITABLE = 'the request cannot be written';

export interface ModuleClient {
  call(request: ModuleRequest): Promise<ModuleResult>;
  /** The answer goes to the listener as it comes. A refusal reaches it before this returns. */
  relay(request: RelayRequest, listener: RelayListener): RelayFlow;
  counters(): ModuleCounters;
  /** Ends the calls that are under way with `ModuleFailed` and closes all connections. */
  close(): Promise<void>;
}

export interface ModuleClientOptions {
  /** For the breakers. Elapsed times come from the monotonic clock. */
  readonly clock: Clock;
  readonly connectionsPerOrigin?: number;
  readonly pendingPerOriginMax?: number;
  /** For how long connections are idle; milliseconds that never go back. */
  readonly monotonicMs?: () => number;
}

interface Tally {
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
  readonly #pendingMax: number;
  readonly #breakers: Breakers;
  readonly #monotonicMs: () => number;
  readonly #pools = new Map<string, ConnectionPool>();
  /** Connections of their own: slow readers of long answers must not hold up tool calls. */
  readonly #relayPools = new Map<string, ConnectionPool>();
  readonly #tally: Tally = {
    calls: 0,
    answered: 0,
    retried: 0,
    failed: {
      ModuleFailed: 0,
      ModuleTimedOut: 0,
      ModuleUnavailable: 0,
      ModuleAnswerTooLarge: 0,
      Overloaded: 0,
      Aborted: 0,
    },
  };
  #closed = false;

  constructor(options: ModuleClientOptions) {
    this.#connections = options.connectionsPerOrigin ?? CONNECTIONS_PER_ORIGIN;
    this.#pendingMax = options.pendingPerOriginMax ?? PENDING_PER_ORIGIN_MAX;
    this.#breakers = createBreakers(options.clock);
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
  }

  call(request: ModuleRequest): Promise<ModuleResult> {
    this.#tally.calls += 1;
    if (request.signal?.aborted === true) return this.#refuse('Aborted', 'aborted before the call');
    const entry = this.#enter(this.#pools, request.url.origin, request.endpoint);
    if ('error' in entry) return this.#refuse(entry.error, entry.reason);
    const { pool, permit } = entry;
    const { body } = request;
    const head = requestHead(request, pool.host, body === undefined ? undefined : Buffer.byteLength(body));
    if (head === undefined) {
      this.#breakers.settle(permit, 'released');
      return this.#refuse('ModuleFailed', UNWRITABLE);
    }
    return new Promise((resolve) => {
      const ended = (result: ModuleResult) => {
        this.#breakers.settle(permit, verdictOf(result));
        this.#count(result.ok ? undefined : result.error);
        resolve(result);
      };
      const opening = body === undefined ? head : head + body;
      new Exchange({ pool, request, opening, repeated: this.#repeated, ended }).begin();
    });
  }

  relay(request: RelayRequest, listener: RelayListener): RelayFlow {
    this.#tally.calls += 1;
    const entry = this.#enter(this.#relayPools, request.url.origin, request.endpoint);
    if ('error' in entry) return this.#refuseRelay(entry.error, listener);
    const { pool, permit } = entry;
    const { method, body, timeoutMs } = request;
    const size = body === undefined ? undefined : (body.declaredBytes ?? 'chunked');
    const opening = requestHead(request, pool.host, size);
    if (opening === undefined) {
      this.#breakers.settle(permit, 'released');
      return this.#refuseRelay('ModuleFailed', listener);
    }
    const relay = new Relay({
      pool,
      listener,
      opening,
      toHead: method === 'HEAD',
      body,
      timeoutMs,
      repeatable: method === 'GET',
      repeated: this.#repeated,
      settle: (verdict) => this.#breakers.settle(permit, verdict),
      isProbe: permit.probe,
      finished: (error) => this.#count(error),
    });
    relay.begin();
    return relay;
  }

  counters(): ModuleCounters {
    let pending = 0;
    for (const pool of this.#all()) pending += pool.pending;
    return {
      ...this.#tally,
      failed: { ...this.#tally.failed },
      pending,
      breakersOpen: this.#breakers.open(),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const pool of this.#all()) pool.close();
  }

  #all(): ConnectionPool[] {
    return [...this.#pools.values(), ...this.#relayPools.values()];
  }

  /** Whatever stands against a call before it is sent. */
  #enter(
    pools: Map<string, ConnectionPool>,
    origin: string,
    endpoint: string,
  ): { pool: ConnectionPool; permit: Permit } | { error: ModuleError; reason: string } {
    if (this.#closed) return { error: 'ModuleUnavailable', reason: 'client closed' };
    const pool = this.#pool(pools, origin);
    if (pool === undefined) return { error: 'Overloaded', reason: 'too many origins' };
    if (pool.pending >= this.#pendingMax)
      return { error: 'Overloaded', reason: 'too many calls to the origin' };
    const permit = this.#breakers.enter(endpoint);
    return permit === undefined ? { error: 'ModuleUnavailable', reason: 'breaker open' } : { pool, permit };
  }

  #pool(pools: Map<string, ConnectionPool>, origin: string): ConnectionPool | undefined {
    const known = pools.get(origin);
    if (known !== undefined || pools.size >= ORIGINS_MAX) return known;
    const pool = new ConnectionPool(origin, this.#connections, this.#monotonicMs);
    pools.set(origin, pool);
    return pool;
  }

  readonly #repeated = (): void => {
    this.#tally.retried += 1;
  };

  #count(error: ModuleError | undefined): void {
    if (error === undefined) this.#tally.answered += 1;
    else this.#tally.failed[error] += 1;
  }

  #refuse(error: ModuleError, reason: string): Promise<ModuleResult> {
    this.#count(error);
    return Promise.resolve({ ok: false, error, reason, elapsedMs: 0 });
  }

  #refuseRelay(error: ModuleError, listener: RelayListener): RelayFlow {
    this.#count(error);
    listener.failed(error);
    return NO_FLOW;
  }
}

/** Any whole answer shows that the endpoint lives, an error status and one that is too large too. */
function verdictOf(result: ModuleResult): CallVerdict {
  if (result.ok) return 'worked';
  if (result.error === 'Aborted') return 'released';
  return result.error === 'ModuleAnswerTooLarge' ? 'worked' : 'failed';
}
