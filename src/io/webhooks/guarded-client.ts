/**
 * HTTP client for addresses that users name: connects only to checked addresses, follows no redirect, uses no proxy from the
 * environment, reads a bounded part of an answer.
 */
import type { WebhookRules } from '../../domain/webhooks/target.ts';
import { ConnectionPool } from '../http-client/connection-pool.ts';
import { type OutboundResult, sendRequest } from '../http-client/outbound-request.ts';
import type { RequestLine } from '../http-client/request-head.ts';
import type { ResponseHead } from '../http-client/response-head.ts';
import { createGuardedLookup, type Resolve } from './ssrf-guard.ts';

/** Origins with connections. Users name them: above it, the one that was used longest ago loses its idle connections. */
const ORIGINS_MAX = 512;

interface GuardedClientOptions {
  readonly rules: () => WebhookRules;
  readonly resolve: Resolve;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** Connections to one origin. */
  readonly connections: number;
  readonly originsMax?: number;
}

interface GuardedRequest extends RequestLine {
  /** Must be checked by `judgeWebhookUrl`, because no look-up happens for an IP literal. */
  readonly url: URL;
  readonly body?: string;
  /** Bytes read of the answer; then the connection is closed. */
  readonly answerMaxBytes: number;
  readonly signal: AbortSignal;
  /** The same as in `sendRequest`. */
  readonly mayBegin?: (() => boolean) | undefined;
}

interface GuardedAnswer {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
  /** There are more bytes than were read. */
  readonly isCut: boolean;
}

export type GuardedResult =
  | ({ readonly kind: 'answered' } & GuardedAnswer)
  | Exclude<OutboundResult, { readonly kind: 'answered' }>;

export class GuardedClient {
  readonly #options: GuardedClientOptions;
  readonly #pools = new Map<string, ConnectionPool>();

  constructor(options: GuardedClientOptions) {
    this.#options = options;
  }

  /**
   * A kept connection that the receiver had closed costs one repetition on a new one, also of a POST: the receiver sent
   * nothing, and knows a delivery by its `webhook-id`. Rejects for a head that cannot be written.
   */
  async request(request: GuardedRequest): Promise<GuardedResult> {
    const result = await this.#send(request, false);
    return result.kind === 'broken' && result.wasClosed ? this.#send(request, true) : result;
  }

  close(): void {
    for (const pool of this.#pools.values()) pool.close();
  }

  async #send(request: GuardedRequest, needsNew: boolean): Promise<GuardedResult> {
    const { url, body, answerMaxBytes, signal, mayBegin } = request;
    const pool = this.#poolOf(url.origin);
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    let found: ResponseHead | undefined;
    const reader = {
      head(head: ResponseHead) {
        found = head;
        return true;
      },
      data(bytes: Buffer) {
        sizeBytes += bytes.length;
        chunks.push(Buffer.from(bytes));
        return sizeBytes <= answerMaxBytes;
      },
    };
    const result = await sendRequest({ pool, line: request, body, needsNew, reader, signal, mayBegin });
    if (result.kind !== 'answered') return result;
    if (found === undefined) throw new Error('an answer without a head');
    const isCut = sizeBytes > answerMaxBytes;
    const { status } = found;
    return { kind: 'answered', status, headers: found.headers(), bytes: Buffer.concat(chunks), isCut };
  }

  #poolOf(origin: string): ConnectionPool {
    const { connections, elapsed, resolve, rules, originsMax = ORIGINS_MAX } = this.#options;
    const pool =
      this.#pools.get(origin) ??
      new ConnectionPool(origin, connections, elapsed, createGuardedLookup(resolve, rules));
    // The order of the map is that of the last use.
    this.#pools.delete(origin);
    this.#pools.set(origin, pool);
    if (this.#pools.size > originsMax) this.#dropOldest();
    return pool;
  }

  /** Requests in flight are bounded by the callers, so a pool without any is found. */
  #dropOldest(): void {
    for (const [origin, pool] of this.#pools) {
      if (pool.pending > 0) continue;
      this.#pools.delete(origin);
      pool.close();
      return;
    }
  }
}
