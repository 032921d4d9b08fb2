/**
 * The one HTTP client to the backend modules (mcp.md "Calls to the backends"): keep-alive pools, one deadline over
 * connecting, headers and body, a cap on the answer, breakers, and bounds on what may wait. A call resolves with a
 * result and never rejects. Redirects are not followed, no proxy of the environment is used, no content coding is
 * asked for, and a POST is never sent twice.
 */
import { performance } from 'node:perf_hooks';
import { Pool } from 'undici';
import type { Clock } from '../../domain/time.ts';
import { type Breakers, createBreakers, type Permit } from './breaker.ts';
import { connectionFailed, type Ending, Exchange, verdictOf } from './exchange.ts';
import { endToEndHeaders } from './headers.ts';
import type {
  ModuleCounters,
  ModuleError,
  ModuleRequest,
  ModuleResult,
  RelayRequest,
} from './module-call.ts';
import { NO_FLOW, Relay, type RelayFlow, type RelayListener } from './relay.ts';

/** Connections per origin, as many again for relayed calls; one request at a time on each. */
export const CONNECTIONS_PER_ORIGIN = 128;
/** Calls per origin that are under way or wait for a connection; one more is refused with `Overloaded`. */
export const PENDING_PER_ORIGIN_MAX = 2_048;
/** Origins with a pool. They come from the static configuration, so this is a guard against a mistake, not a quota. */
const ORIGINS_MAX = 1_024;
/** A module that does not take a connection within this is down, whatever the time-out of the call. */
const CONNECT_TIMEOUT_MS = 5_000;

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
}

interface Origin {
  readonly pool: Pool;
  pending: number;
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
  readonly #origins = new Map<string, Origin>();
  /** Connections of their own: slow readers of long answers must not hold up tool calls. */
  readonly #relayOrigins = new Map<string, Origin>();
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
  }

  call(request: ModuleRequest): Promise<ModuleResult> {
    this.#tally.calls += 1;
    if (request.signal?.aborted === true) return this.#refuse('Aborted', 'aborted before the call');
    const entry = this.#enter(this.#origins, request.url.origin, request.endpoint);
    if ('error' in entry) return this.#refuse(entry.error, entry.reason);
    return this.#run(entry.origin, request, entry.permit);
  }

  relay(request: RelayRequest, listener: RelayListener): RelayFlow {
    this.#tally.calls += 1;
    const entry = this.#enter(this.#relayOrigins, request.url.origin, request.endpoint);
    if ('error' in entry) {
      this.#tally.failed[entry.error] += 1;
      listener.failed(entry.error);
      return NO_FLOW;
    }
    const { origin, permit } = entry;
    const headers = endToEndHeaders(request.headers);
    if (request.bodyBytes !== undefined) headers['content-length'] = String(request.bodyBytes);
    const { method, url, timeoutMs } = request;
    const body = request.body?.stream ?? null;
    const path = `${url.pathname}${url.search}`;
    const relay = new Relay({
      listener,
      timeoutMs,
      waitsForClient: () => request.body?.waitsForClient() === true,
      repeatable: method === 'GET',
      send: (attempt) => {
        origin.pending += 1;
        origin.pool.dispatch({ method, path, headers, body }, attempt);
      },
      repeated: () => {
        this.#tally.retried += 1;
      },
      settle: (verdict) => this.#breakers.settle(permit, verdict),
      isProbe: permit.probe,
      finished: (error) => {
        if (error === undefined) this.#tally.answered += 1;
        else this.#tally.failed[error] += 1;
      },
      released: () => {
        origin.pending -= 1;
      },
    });
    relay.begin();
    return relay;
  }

  counters(): ModuleCounters {
    let pending = 0;
    for (const origin of this.#all()) pending += origin.pending;
    return {
      ...this.#tally,
      failed: { ...this.#tally.failed },
      pending,
      breakersOpen: this.#breakers.open(),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#all().map(({ pool }) => pool.destroy()));
  }

  #all(): Origin[] {
    return [...this.#origins.values(), ...this.#relayOrigins.values()];
  }

  /** Whatever stands against a call before it is sent. */
  #enter(
    origins: Map<string, Origin>,
    name: string,
    endpoint: string,
  ): { origin: Origin; permit: Permit } | { error: ModuleError; reason: string } {
    if (this.#closed) return { error: 'ModuleUnavailable', reason: 'client closed' };
    const origin = this.#origin(origins, name);
    if (origin === undefined) return { error: 'Overloaded', reason: 'too many origins' };
    if (origin.pending >= this.#pendingMax)
      return { error: 'Overloaded', reason: 'too many calls to the origin' };
    const permit = this.#breakers.enter(endpoint);
    return permit === undefined ? { error: 'ModuleUnavailable', reason: 'breaker open' } : { origin, permit };
  }

  #origin(origins: Map<string, Origin>, name: string): Origin | undefined {
    const known = origins.get(name);
    if (known !== undefined || origins.size >= ORIGINS_MAX) return known;
    const origin: Origin = {
      // The deadline of the call is the only timer: undici's own are off, but the one for connecting.
      pool: new Pool(name, {
        connections: this.#connections,
        pipelining: 1,
        headersTimeout: 0,
        bodyTimeout: 0,
        connect: { timeout: CONNECT_TIMEOUT_MS },
      }),
      pending: 0,
    };
    origins.set(name, origin);
    return origin;
  }

  #run(origin: Origin, request: ModuleRequest, permit: Permit): Promise<ModuleResult> {
    const startMs = performance.now();
    return new Promise((resolve) => {
      let attempt: Exchange;
      let repeatable = request.method === 'GET';
      const abort = () => attempt.stop('Aborted', 'aborted by the caller');
      const timer = setTimeout(() => attempt.stop('ModuleTimedOut', 'deadline'), request.timeoutMs);
      request.signal?.addEventListener('abort', abort, { once: true });
      const ended = (ending: Ending) => {
        if (repeatable && connectionFailed(ending) && !this.#closed) {
          repeatable = false;
          this.#tally.retried += 1;
          attempt = this.#send(origin, request, ended);
          return;
        }
        clearTimeout(timer);
        request.signal?.removeEventListener('abort', abort);
        this.#breakers.settle(permit, verdictOf(ending));
        resolve(this.#result(ending, performance.now() - startMs));
      };
      attempt = this.#send(origin, request, ended);
      request.onBegin?.(abort);
    });
  }

  #send(origin: Origin, request: ModuleRequest, ended: (ending: Ending) => void): Exchange {
    origin.pending += 1;
    let held = true;
    const exchange = new Exchange(ended, () => {
      if (held) origin.pending -= 1;
      held = false;
    });
    // Not undici's `request`: it is this call with a stream around the answer, which is collected here anyway.
    origin.pool.dispatch(
      {
        method: request.method,
        path: `${request.url.pathname}${request.url.search}`,
        headers: endToEndHeaders(request.headers),
        body: request.body ?? null,
      },
      exchange,
    );
    return exchange;
  }

  #result(ending: Ending, elapsedMs: number): ModuleResult {
    if (ending.ok) {
      this.#tally.answered += 1;
      return { ok: true, answer: ending.answer, elapsedMs };
    }
    this.#tally.failed[ending.error] += 1;
    return { ok: false, error: ending.error, reason: ending.reason, elapsedMs };
  }

  #refuse(error: ModuleError, reason: string): Promise<ModuleResult> {
    this.#tally.failed[error] += 1;
    return Promise.resolve({ ok: false, error, reason, elapsedMs: 0 });
  }
}
