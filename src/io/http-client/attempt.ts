/**
 * One call whose answer is collected, up to the cap: one deadline over waiting, connecting, headers and body, one more
 * attempt of a GET whose connection failed before any of the answer came, and exactly one ending.
 */
import { performance } from 'node:perf_hooks';
import type { Connection, ConnectionRequest } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { ResponseHead } from './response-head.ts';
import type { ModuleError, ModuleRequest, ModuleResult } from './types.ts';

/** Largest answer that is taken from a backend, in bytes. Source: mcp.md. */
export const ANSWER_MAX_BYTES = 4 * 1024 * 1024;

const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const NOTHING = Buffer.alloc(0);

export interface AttemptOptions {
  readonly pool: ConnectionPool;
  readonly request: ModuleRequest;
  /** Head and body of the request. */
  readonly opening: string;
  readonly repeated: () => void;
  /** At most so long, where the request allows more. */
  readonly timeoutMs: number;
  /** Once. `isSent`: it had a connection; until then its time is that of a line of the gateway's own. */
  readonly ended: (result: ModuleResult, isSent: boolean) => void;
}

export class Attempt implements ConnectionRequest {
  readonly opening: string;
  readonly encoding: 'latin1' | 'utf8';
  readonly toHead: boolean;
  readonly body = undefined;
  readonly #options: AttemptOptions;
  readonly #startMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  readonly #abort = () => this.#stop('Aborted', 'aborted by the caller');
  #repeatable: boolean;
  #connection: Connection | undefined;
  #isSent = false;
  #over = false;
  #status = 0;
  #contentType = '';
  #only = NOTHING;
  #more: Buffer[] | undefined;
  #sizeBytes = 0;

  constructor(options: AttemptOptions) {
    const { request, opening } = options;
    this.#options = options;
    this.opening = opening;
    this.encoding = request.body === undefined ? 'latin1' : 'utf8';
    this.toHead = request.method === 'HEAD';
    this.#repeatable = request.method === 'GET';
    this.#timer = setTimeout(expire, options.timeoutMs, this);
    request.signal?.addEventListener('abort', this.#abort, { once: true });
  }

  begin(): void {
    const { pool, request } = this.#options;
    pool.submit(this);
    if (!this.#over) request.onBegin?.(this.#abort);
  }

  /** The deadline has passed. */
  expired(): void {
    this.#stop('ModuleTimedOut', 'deadline');
  }

  onBegin(connection: Connection): void {
    this.#connection = connection;
    this.#isSent = true;
  }

  onHead(head: ResponseHead): void {
    this.#status = head.status;
    this.#contentType = contentTypeOf(head);
    const fault = answerFault(head);
    if (fault !== undefined) this.#stop('ModuleFailed', fault);
    else if (!this.toHead && (head.contentLength ?? 0) > ANSWER_MAX_BYTES)
      this.#stop('ModuleAnswerTooLarge', 'content-length over the cap');
  }

  onData(bytes: Buffer): void {
    this.#sizeBytes += bytes.length;
    if (this.#sizeBytes > ANSWER_MAX_BYTES) this.#stop('ModuleAnswerTooLarge', 'body over the cap');
    else if (this.#sizeBytes === bytes.length) this.#only = Buffer.from(bytes);
    else {
      this.#more ??= [this.#only];
      this.#more.push(Buffer.from(bytes));
    }
  }

  onEnd(): void {
    const body = this.#more === undefined ? this.#only : Buffer.concat(this.#more, this.#sizeBytes);
    const answer = { status: this.#status, contentType: this.#contentType, body };
    this.#end({ ok: true, answer, elapsedMs: this.#elapsedMs() });
  }

  onBroken(reason: string, answerBegan: boolean): void {
    this.#connection = undefined;
    if (!this.#repeatable || answerBegan) {
      this.#fail('ModuleFailed', reason);
      return;
    }
    this.#repeatable = false;
    this.#options.repeated();
    this.#options.pool.submit(this);
  }

  /** Ends the call from outside, wherever it is: the connection that it holds is of no more use. */
  #stop(error: ModuleError, reason: string): void {
    if (this.#over) return;
    if (this.#connection === undefined) this.#options.pool.drop(this);
    else this.#connection.destroy();
    this.#fail(error, reason);
  }

  #fail(error: ModuleError, reason: string): void {
    this.#end({ ok: false, error, reason, elapsedMs: this.#elapsedMs() });
  }

  #end(result: ModuleResult): void {
    this.#over = true;
    this.#connection = undefined;
    clearTimeout(this.#timer);
    this.#options.request.signal?.removeEventListener('abort', this.#abort);
    this.#options.ended(result, this.#isSent);
  }

  #elapsedMs(): number {
    return performance.now() - this.#startMs;
  }
}

/** What no answer of a module may be: a redirect, which nobody follows, or packed. */
export function answerFault({ status, contentEncoding }: ResponseHead): string | undefined {
  if (REDIRECTS.has(status)) return `redirect ${status}`;
  // None was asked for, and nothing is ever unpacked here: a small answer must not become a large one.
  if (contentEncoding === '' || contentEncoding.toLowerCase() === 'identity') return undefined;
  return 'content-encoding';
}

/** '' for one that must not be copied into a header. */
export function contentTypeOf({ contentType }: ResponseHead): string {
  return HEADER_VALUE.test(contentType) ? contentType : '';
}

function expire(exchange: Attempt): void {
  exchange.expired();
}
