/**
 * One relayed call: the answer of a module goes to a listener piece by piece, at the listener's pace, and how it ends is
 * told once. A time-out counts from the last byte that went either way, so that a long body is not a late one.
 */
import type { CallVerdict } from './breaker.ts';
import {
  answerFault,
  connectionBroke,
  first,
  HEADER_VALUE,
  type Headers,
  INVALID_REQUEST,
} from './exchange.ts';
import type { ModuleError } from './module-call.ts';

/** What a module says before the bytes of its answer. */
export interface AnswerHead {
  readonly status: number;
  /** '' when the module sent none, or one that must not be copied into a header. */
  readonly contentType: string;
  /** All of them as they came: not fit for an answer before `answerHeaders` has seen them. */
  readonly headers: Headers;
}

/** `head` comes at most once and first; then pieces; then one of `ended` and `failed`, or `failed` alone. */
export interface RelayListener {
  head(head: AnswerHead): void;
  /** The bytes are the listener's from here on. */
  data(bytes: Buffer): void;
  /** The answer is complete. */
  ended(): void;
  failed(error: ModuleError): void;
}

/** What a listener may do to the call. */
export interface RelayFlow {
  /** Asks the module to wait; pieces that are here already may still come. */
  pause(): void;
  resume(): void;
  /** Bytes of the request left for the module: it is not silent, it listens. */
  progress(): void;
  /** The client is gone: the listener hears `failed('Aborted')`. */
  stop(): void;
}

/** Of a call that never was. */
export const NO_FLOW: RelayFlow = {
  pause: () => undefined,
  resume: () => undefined,
  progress: () => undefined,
  stop: () => undefined,
};

export interface RelayOptions {
  readonly listener: RelayListener;
  readonly timeoutMs: number;
  /** The rest of the request is the client's to send; one that is silent for too long is cut by the HTTP front. */
  readonly waitsForClient: () => boolean;
  /** Nothing of it was sent twice: a GET whose connection failed goes out once more. */
  readonly repeatable: boolean;
  /** Hands the attempt to the HTTP client. */
  readonly send: (attempt: RelayAttempt) => void;
  readonly repeated: () => void;
  /** Once, with the verdict for the breaker: of a probe when the answer begins, of others at the end. */
  readonly settle: (verdict: CallVerdict) => void;
  readonly isProbe: boolean;
  readonly finished: (error: ModuleError | undefined) => void;
  /** Once an attempt, when no connection and no queue holds it any longer. */
  readonly released: () => void;
}

/** No number beyond can be passed on (RFC 9110 15). */
const STATUS_MAX = 599;

interface Controller {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

export class Relay implements RelayFlow {
  readonly #options: RelayOptions;
  readonly #timer: NodeJS.Timeout;
  #attempt: RelayAttempt;
  #repeatable: boolean;
  /** The client does not take the answer. */
  #paused = false;
  #settled = false;
  #over = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#repeatable = options.repeatable;
    this.#timer = setTimeout(() => this.#silent(), options.timeoutMs);
    this.#attempt = new RelayAttempt(this);
  }

  begin(): void {
    this.#options.send(this.#attempt);
  }

  pause(): void {
    this.#paused = true;
    this.#attempt.pause();
  }

  resume(): void {
    this.#paused = false;
    this.progress();
    this.#attempt.resume();
  }

  progress(): void {
    // A timer that was cleared would start again.
    if (!this.#over) this.#timer.refresh();
  }

  stop(): void {
    this.#attempt.stop('Aborted', 'the client is gone');
  }

  released(): void {
    this.#options.released();
  }

  head(head: AnswerHead): void {
    this.progress();
    if (this.#options.isProbe) this.#settle('worked');
    this.#options.listener.head(head);
  }

  data(bytes: Buffer): void {
    this.progress();
    this.#options.listener.data(bytes);
  }

  ended(): void {
    this.#finish('worked');
    this.#options.finished(undefined);
    this.#options.listener.ended();
  }

  failed(error: ModuleError, reason: string, answerBegan: boolean): void {
    if (this.#repeatable && connectionBroke(error, reason, answerBegan)) {
      this.#repeatable = false;
      this.#options.repeated();
      this.#attempt = new RelayAttempt(this);
      this.begin();
      return;
    }
    this.#finish(error === 'Aborted' || reason === INVALID_REQUEST ? 'released' : 'failed');
    this.#options.finished(error);
    this.#options.listener.failed(error);
  }

  /** Nothing moved for the whole time-out. Whose silence it is decides: a client's may not count against the module. */
  #silent(): void {
    if (this.#paused) this.#attempt.stop('Aborted', 'the client does not read');
    else if (this.#options.waitsForClient()) this.progress();
    else this.#attempt.stop('ModuleTimedOut', 'silence');
  }

  #finish(verdict: CallVerdict): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#settle(verdict);
  }

  #settle(verdict: CallVerdict): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#options.settle(verdict);
  }
}

/** One try of a relayed call: the handler that the HTTP client drives; nothing here throws into it. */
export class RelayAttempt {
  readonly #relay: Relay;
  #controller: Controller | undefined;
  #over = false;
  #answerBegan = false;
  #held = true;

  constructor(relay: Relay) {
    this.#relay = relay;
  }

  pause(): void {
    if (!this.#over) this.#controller?.pause();
  }

  resume(): void {
    if (!this.#over) this.#controller?.resume();
  }

  /** Ends the attempt from outside. A queued one is dropped when its turn comes. */
  stop(error: ModuleError, reason: string): void {
    this.#fail(error, reason);
  }

  onRequestStart(controller: Controller): void {
    if (this.#over) controller.abort(new Error('abandoned'));
    else this.#controller = controller;
  }

  onResponseStart(_controller: Controller, status: number, headers: Headers): void {
    // 1xx is a word on the way (RFC 9110 15.2): the answer comes after it.
    if (status < 200 || this.#over) return;
    this.#answerBegan = true;
    const fault = status > STATUS_MAX ? `status ${status}` : answerFault(status, headers);
    if (fault !== undefined) {
      this.#fail('ModuleFailed', fault);
      return;
    }
    const contentType = first(headers['content-type']);
    this.#relay.head({ status, contentType: HEADER_VALUE.test(contentType) ? contentType : '', headers });
  }

  onResponseData(_controller: Controller, bytes: Buffer): void {
    if (!this.#over) this.#relay.data(bytes);
  }

  onResponseEnd(): void {
    this.#release();
    if (this.#over) return;
    this.#over = true;
    this.#relay.ended();
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    this.#release();
    this.#fail('ModuleFailed', 'code' in error ? String(error.code) : error.name);
  }

  #fail(error: ModuleError, reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#controller?.abort(new Error(reason));
    this.#relay.failed(error, reason, this.#answerBegan);
  }

  #release(): void {
    if (this.#held) this.#relay.released();
    this.#held = false;
  }
}
