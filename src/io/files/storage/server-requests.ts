/** Requests to one storage server over kept connections. A request without progress is aborted. */
import { setTimeout as wait } from 'node:timers/promises';
import { SECOND_MS } from '../../../domain/time.ts';
import { ConnectionPool } from '../../http-client/connection-pool.ts';
import {
  type OutboundReader,
  type OutboundResult,
  type SizedBody,
  sendRequest,
} from '../../http-client/outbound-request.ts';
import type { RequestLine } from '../../http-client/request-head.ts';
import { FileBody, type ReadableFile } from './file-body.ts';

/** A request without a byte in either direction for this time is aborted. */
const STALLED_MS = 30 * SECOND_MS;
const CONNECTIONS = 64;

export type Broken = Extract<OutboundResult, { readonly kind: 'broken' }>;

interface SendOptions {
  readonly body?: string | ReadableFile | undefined;
  /** Repeats a request whose kept connection was closed. */
  readonly needsNew?: boolean;
  /** Ends it before. */
  readonly signal?: AbortSignal | undefined;
}

export interface ServerTransport {
  /** Value of the `Host` header. */
  readonly host: string;
  /** One attempt. Undefined: answered, and the reader has the answer. Throws what aborted it. */
  send(line: RequestLine, reader: OutboundReader, options: SendOptions): Promise<Broken | undefined>;
  /** Waits between two attempts. Rejects when the signal or `close` ends it. */
  wait(delayMs: number, signal: AbortSignal | undefined): Promise<void>;
  close(): void;
}

export class ServerRequests implements ServerTransport {
  readonly #pool: ConnectionPool;
  readonly #stalledMs: number;
  readonly #closing = new AbortController();

  constructor(origin: string, stalledMs = STALLED_MS) {
    this.#stalledMs = stalledMs;
    this.#pool = new ConnectionPool(origin, CONNECTIONS, () => performance.now());
  }

  get host(): string {
    return this.#pool.host;
  }

  async send(line: RequestLine, reader: OutboundReader, options: SendOptions): Promise<Broken | undefined> {
    const { body: source, needsNew = false, signal: outer } = options;
    const abort = new AbortController();
    const stalled = () => abort.abort(new Error(`nothing moved for ${this.#stalledMs} ms`));
    const stop = () => abort.abort(outer?.reason);
    const stallTimer = setTimeout(stalled, this.#stalledMs);
    const progress = () => stallTimer.refresh();
    const failed = (error: unknown) => abort.abort(error);
    const body: string | SizedBody | undefined =
      typeof source === 'object' ? new FileBody(source, { progress, failed }) : source;
    if (outer?.aborted === true) stop();
    outer?.addEventListener('abort', stop, { once: true });
    try {
      const { signal } = abort;
      const watched = watchedReader(reader, progress);
      const result = await sendRequest({
        pool: this.#pool,
        line,
        body,
        needsNew,
        reader: watched,
        signal,
      });
      if (result.kind === 'aborted') throw signal.reason;
      return result.kind === 'broken' ? result : undefined;
    } finally {
      clearTimeout(stallTimer);
      outer?.removeEventListener('abort', stop);
    }
  }

  async wait(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    const either = signal === undefined ? [] : [signal];
    await wait(delayMs, undefined, { signal: AbortSignal.any([this.#closing.signal, ...either]) });
  }

  close(): void {
    this.#closing.abort(new Error('client closed'));
    this.#pool.close();
  }
}

function watchedReader(reader: OutboundReader, progress: () => void): OutboundReader {
  return {
    head(head) {
      progress();
      return reader.head(head);
    },
    data(bytes) {
      progress();
      return reader.data(bytes);
    },
  };
}
