/**
 * One attempt of a backend call: collects the answer up to the cap and tells exactly once how it ended. It is the
 * handler that the HTTP client drives; nothing here throws into it.
 */
import type { CallVerdict } from './breaker.ts';
import type { ModuleAnswer, ModuleError } from './module-call.ts';

/** Largest answer that is taken from a backend, in bytes. Source: mcp.md. */
export const ANSWER_MAX_BYTES = 4 * 1024 * 1024;

/** The HTTP client's own refusal of a request, before anything was sent: the endpoint has no part in it. */
export const INVALID_REQUEST = 'UND_ERR_INVALID_ARG';
export const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const NOTHING = Buffer.alloc(0);

export type Ending =
  | { readonly ok: true; readonly answer: ModuleAnswer }
  | {
      readonly ok: false;
      readonly error: ModuleError;
      /** For the log: never shown to a caller. */
      readonly reason: string;
      /** False when the connection failed before any of the answer arrived: the one case where a GET may be repeated. */
      readonly answerBegan: boolean;
    };

interface Controller {
  abort(reason: Error): void;
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

export class Exchange {
  readonly #ended: (ending: Ending) => void;
  readonly #released: () => void;
  #controller: Controller | undefined;
  #over = false;
  #status = 0;
  #contentType = '';
  #headers: Headers = {};
  #answerBegan = false;
  #chunks: Buffer[] = [];
  #sizeBytes = 0;

  /** `ended` is called once; `released` once, when the connection or the queue no longer holds the attempt. */
  constructor(ended: (ending: Ending) => void, released: () => void) {
    this.#ended = ended;
    this.#released = released;
  }

  /** Ends the attempt from outside (time-out, caller gone). A queued attempt is dropped when its turn comes. */
  stop(error: ModuleError, reason: string): void {
    this.#fail(error, reason);
  }

  onRequestStart(controller: Controller): void {
    if (this.#over) controller.abort(new Error('abandoned'));
    else this.#controller = controller;
  }

  onResponseStart(_controller: Controller, status: number, headers: Headers): void {
    // 1xx is a word on the way (RFC 9110 15.2): the answer comes after it.
    if (status < 200) return;
    this.#answerBegan = true;
    this.#status = status;
    this.#headers = headers;
    const contentType = first(headers['content-type']);
    this.#contentType = HEADER_VALUE.test(contentType) ? contentType : '';
    const fault = answerFault(status, headers);
    if (fault !== undefined) this.#fail('ModuleFailed', fault);
    else if (Number(first(headers['content-length'])) > ANSWER_MAX_BYTES)
      this.#fail('ModuleAnswerTooLarge', 'content-length over the cap');
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    if (this.#over) return;
    this.#sizeBytes += chunk.length;
    if (this.#sizeBytes > ANSWER_MAX_BYTES) this.#fail('ModuleAnswerTooLarge', 'body over the cap');
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#released();
    if (this.#over) return;
    this.#over = true;
    const [only = NOTHING] = this.#chunks;
    const body = this.#chunks.length <= 1 ? only : Buffer.concat(this.#chunks, this.#sizeBytes);
    this.#chunks = [];
    const answer = {
      status: this.#status,
      contentType: this.#contentType,
      headers: this.#headers,
      body,
    };
    this.#ended({ ok: true, answer });
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    this.#released();
    this.#fail('ModuleFailed', 'code' in error ? String(error.code) : error.name);
  }

  #fail(error: ModuleError, reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#chunks = [];
    this.#ended({ ok: false, error, reason, answerBegan: this.#answerBegan });
    this.#controller?.abort(new Error(reason));
  }
}

/** What no answer of a module may be: a redirect, which nobody follows, or packed. */
export function answerFault(status: number, headers: Headers): string | undefined {
  if (REDIRECTS.has(status)) return `redirect ${status}`;
  const encoding = first(headers['content-encoding']).toLowerCase();
  // None was asked for, and nothing is ever unpacked here: a small answer must not become a large one.
  return encoding === '' || encoding === 'identity' ? undefined : 'content-encoding';
}

export function first(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

/** Nothing of an answer came: the one case in which a GET may be sent again. */
export function connectionFailed(ending: Ending): boolean {
  return !ending.ok && connectionBroke(ending.error, ending.reason, ending.answerBegan);
}

export function connectionBroke(error: ModuleError, reason: string, answerBegan: boolean): boolean {
  return !answerBegan && error === 'ModuleFailed' && reason !== INVALID_REQUEST;
}

/** Any whole answer shows that the endpoint lives, an error status and one that is too large too. */
export function verdictOf(ending: Ending): CallVerdict {
  if (ending.ok) return 'worked';
  if (ending.error === 'Aborted' || ending.reason === INVALID_REQUEST) return 'released';
  return ending.error === 'ModuleAnswerTooLarge' ? 'worked' : 'failed';
}
