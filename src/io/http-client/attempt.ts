/**
 * One call whose answer is buffered up to a cap. One deadline covers queue, connect, headers and body; a GET is repeated
 * once when its connection fails before the answer begins. Ends exactly once.
 */
import { performance } from 'node:perf_hooks';
import type { Connection, ConnectionRequest } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { ResponseHead } from './response-head.ts';
import type { AnswerReader, ModuleError, ModuleRequest, ModuleResult } from './types.ts';

/** Largest answer of a module, in bytes (docs/modules.md). */
export const ANSWER_MAX_BYTES = 4 * 1024 * 1024;

const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const NOTHING = Buffer.alloc(0);

interface AttemptOptions {
  readonly pool: ConnectionPool;
  readonly request: ModuleRequest;
  /** Head and body of the request. */
  readonly opening: string;
  readonly repeated: () => void;
  /** Upper bound on the request's own time-out. */
  readonly timeoutMs: number;
  /** Called once. `isSent`: it had a connection; before that, time is spent in the gateway's own queue. */
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
  #reader: AnswerReader | undefined;
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
    else this.#reader = this.#options.request.readerOf?.(this.#status, this.#contentType);
  }

  onData(bytes: Buffer): void {
    this.#sizeBytes += bytes.length;
    if (this.#sizeBytes > ANSWER_MAX_BYTES) this.#stop('ModuleAnswerTooLarge', 'body over the cap');
    else if (this.#reader !== undefined) {
      const fault = this.#reader.read(bytes);
      if (fault !== undefined) this.#stop('ModuleFailed', fault);
    } else if (this.#sizeBytes === bytes.length) this.#only = Buffer.from(bytes);
    else {
      this.#more ??= [this.#only];
      this.#more.push(Buffer.from(bytes));
    }
  }

  onEnd(): void {
    const body = this.#body();
    if (body === undefined) {
      this.#fail('ModuleFailed', 'no result at the end of a stream');
      return;
    }
    const answer = { status: this.#status, contentType: this.#contentType, body };
    this.#end({ ok: true, answer, elapsedMs: this.#elapsedMs() });
  }

  #body(): Buffer | undefined {
    if (this.#reader !== undefined) return this.#reader.end();
    return this.#more === undefined ? this.#only : Buffer.concat(this.#more, this.#sizeBytes);
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

  /** Ends the call in any phase; its connection cannot be used again. */
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

/** Faults of a module's answer: a redirect, which is never followed, or a content coding. */
export function answerFault({
  status,
  contentEncoding,
}: Pick<ResponseHead, 'status' | 'contentEncoding'>): string | undefined {
  if (REDIRECTS.has(status)) return `redirect ${status}`;
  // None was requested, and none is decoded: a small answer must not expand into a large one.
  if (contentEncoding === '' || contentEncoding.toLowerCase() === 'identity') return undefined;
  return 'content-encoding';
}

/** '' for a value that must not be copied into a header. */
export function contentTypeOf({ contentType }: Pick<ResponseHead, 'contentType'>): string {
  return HEADER_VALUE.test(contentType) ? contentType : '';
}

function expire(attempt: Attempt): void {
  attempt.expired();
}
