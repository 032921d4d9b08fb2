/**
 * One request whose caller reads the answer as it arrives, for receivers of webhooks, storage servers and documents. The
 * caller bounds its time with a signal and repeats it where that is safe. Never rejects.
 */
import type { Connection, ConnectionRequest, StreamedBody } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { type RequestLine, requestHead } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';

/** Both return false when the rest of the answer is not needed; its connection is then closed. */
export interface OutboundReader {
  head(head: ResponseHead): boolean;
  /** The bytes are valid during this call only. */
  data(bytes: Buffer): boolean;
}

/** A body of known length. */
export interface SizedBody extends StreamedBody {
  readonly sizeBytes: number;
}

interface OutboundOptions {
  readonly pool: ConnectionPool;
  readonly line: RequestLine;
  readonly body: string | SizedBody | undefined;
  /** Repeats a request whose kept connection was closed. */
  readonly needsNew: boolean;
  readonly reader: OutboundReader;
  /** Ends the request in any phase. */
  readonly signal: AbortSignal;
  /** Asked when a connection is there; false aborts the request before a byte of it is sent. */
  readonly mayBegin?: (() => boolean) | undefined;
}

/**
 * - `answered`: the answer is complete, or its reader had enough. `aborted`: by the signal.
 * - `broken`: `isSent` is false when no byte of the request was sent. `wasClosed`: a kept connection ended before the first
 *   byte of an answer, so the other side had probably closed it already.
 */
export type OutboundResult =
  | { readonly kind: 'answered' }
  | { readonly kind: 'aborted' }
  | {
      readonly kind: 'broken';
      readonly reason: string;
      readonly isSent: boolean;
      readonly wasClosed: boolean;
    };

/** Throws for a head that cannot be written safely. */
export function sendRequest(options: OutboundOptions): Promise<OutboundResult> {
  const { line, body, pool } = options;
  const sizeBytes = typeof body === 'string' ? Buffer.byteLength(body) : body?.sizeBytes;
  const head = requestHead(line, pool.host, sizeBytes);
  if (head === undefined) throw new Error('the head of the request cannot be written');
  return new Promise((resolve) => new OutboundRequest(options, head, resolve).begin());
}

class OutboundRequest implements ConnectionRequest {
  readonly opening: string;
  readonly encoding = 'utf8';
  readonly toHead: boolean;
  readonly body: StreamedBody | undefined;
  readonly #options: OutboundOptions;
  readonly #ended: (result: OutboundResult) => void;
  readonly #abort = () => this.#stop({ kind: 'aborted' });
  #connection: Connection | undefined;
  #isReused = false;
  #over = false;

  constructor(options: OutboundOptions, head: string, ended: (result: OutboundResult) => void) {
    const { body, line } = options;
    this.#options = options;
    this.#ended = ended;
    this.opening = typeof body === 'string' ? head + body : head;
    this.body = typeof body === 'string' ? undefined : body;
    this.toHead = line.method === 'HEAD';
  }

  begin(): void {
    const { pool, needsNew, signal } = this.#options;
    if (signal.aborted) {
      this.#end({ kind: 'aborted' });
      return;
    }
    signal.addEventListener('abort', this.#abort, { once: true });
    pool.submit(this, needsNew);
  }

  onBegin(connection: Connection): void {
    this.#connection = connection;
    this.#isReused = connection.isReused;
    if (this.#options.mayBegin?.() === false) this.#abort();
  }

  onHead(head: ResponseHead): void {
    if (!this.#options.reader.head(head)) this.#stop({ kind: 'answered' });
  }

  onData(bytes: Buffer): void {
    if (!this.#options.reader.data(bytes)) this.#stop({ kind: 'answered' });
  }

  onEnd(): void {
    this.#end({ kind: 'answered' });
  }

  onBroken(reason: string, answerBegan: boolean): void {
    const isSent = this.#connection !== undefined;
    this.#end({ kind: 'broken', reason, isSent, wasClosed: this.#isReused && !answerBegan });
  }

  #stop(result: OutboundResult): void {
    if (this.#over) return;
    if (this.#connection === undefined) this.#options.pool.drop(this);
    else this.#connection.destroy();
    this.#end(result);
  }

  #end(result: OutboundResult): void {
    this.#over = true;
    this.#options.signal.removeEventListener('abort', this.#abort);
    this.body?.discard();
    this.#ended(result);
  }
}
