/**
 * One relayed call: the answer of a module goes to a listener piece by piece, at the listener's pace, and how it ends is
 * told once. A time-out counts from the last byte that went either way, so that a long body is not a late one.
 */
import type { RefusedBy } from '../../domain/limits/bounds.ts';
import type { Holder } from '../../domain/limits/holders.ts';
import type { ShareRefusal } from '../../domain/limits/shares.ts';
import type { GatheringBody } from '../http/stream.ts';
import { type CallResult, callResultOf, PROBE_MS } from '../modules/breaker.ts';
import { answerFault, contentTypeOf } from './attempt.ts';
import type { Connection, ConnectionRequest } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { QueuedRelay, RelayQueue } from './relay-queue.ts';
import { RequestBody } from './request-body.ts';
import type { ResponseHead } from './response-head.ts';
import type { ModuleError } from './types.ts';

/** What a module says before the bytes of its answer. */
export interface AnswerHead {
  readonly status: number;
  /** '' when the module sent none, or one that must not be copied into a header. */
  readonly contentType: string;
  /** All of them as they came: not fit for an answer before `answerHeaders` has seen them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** `head` comes at most once and first; then pieces; then one of `ended` and `failed`, or `failed` alone. */
export interface RelayListener {
  head(head: AnswerHead): void;
  /** The bytes are the listener's from here on. */
  data(bytes: Buffer): void;
  /** The answer is complete. */
  ended(): void;
  /** `refusedBy`: of `AccessRateLimit`, whose share is used up. */
  failed(error: ModuleError, refusedBy?: RefusedBy): void;
}

/** What a listener may do to the call. */
export interface RelayFlow {
  /** Asks the module to wait; pieces that are here already may still come. */
  pause(): void;
  resume(): void;
  /** The client is gone: the listener hears `failed('Aborted')`. */
  stop(): void;
}

/** Of a call that never was. */
export const NO_FLOW: RelayFlow = {
  pause: () => undefined,
  resume: () => undefined,
  stop: () => undefined,
};

export interface RelayPermit {
  readonly isProbe: boolean;
  /** Once, with the result for the breaker: of a probe when the answer begins, of others at the end. */
  readonly settle: (result: CallResult) => void;
}

export interface RelayOptions {
  readonly pool: ConnectionPool;
  readonly queue: RelayQueue;
  readonly holder: Holder;
  readonly listener: RelayListener;
  /** The head of the request. */
  readonly opening: string;
  readonly toHead: boolean;
  readonly body: GatheringBody | undefined;
  readonly timeoutMs: number;
  /** Nothing of it was sent twice: a GET whose connection failed goes out once more. */
  readonly repeatable: boolean;
  readonly repeated: () => void;
  /** Asked when the call is to go out; undefined: the breaker is open. */
  readonly permit: (isWhole: boolean) => RelayPermit | undefined;
  readonly finished: (error: ModuleError | undefined) => void;
}

/** So much of a body is here, or all of it, before the call takes a connection. */
const GATHER_BYTES = 64 * 1024;
/** No number beyond can be passed on (RFC 9110 15). */
const STATUS_MAX = 599;

export class Relay implements RelayFlow, ConnectionRequest, QueuedRelay {
  readonly opening: string;
  readonly encoding = 'latin1';
  readonly toHead: boolean;
  readonly body: RequestBody | undefined;
  readonly #options: RelayOptions;
  readonly #timer: NodeJS.Timeout;
  #probeTimer: NodeJS.Timeout | undefined;
  #permit: RelayPermit | undefined;
  /** Its body is being read, and there is no connection yet. */
  #isGathering = false;
  #connection: Connection | undefined;
  #repeatable: boolean;
  /** The client does not take the answer. */
  #paused = false;
  #settled = false;
  #over = false;

  constructor(options: RelayOptions) {
    const { opening, toHead, body, repeatable, timeoutMs } = options;
    this.#options = options;
    this.opening = opening;
    this.toHead = toHead;
    this.#repeatable = repeatable;
    const lost = () => this.#stop('Aborted');
    this.body = body && new RequestBody(body, { progress: () => this.#progress(), lost });
    this.#timer = setTimeout(() => this.#silent(), timeoutMs);
  }

  get holder(): Holder {
    return this.#options.holder;
  }

  get isWhole(): boolean {
    return this.body === undefined || this.body.isWhole;
  }

  /** Takes its place in the line; the refusal when its caller has no share left. */
  begin(): ShareRefusal | undefined {
    const refusal = this.#options.queue.enter(this);
    if (refusal === undefined) return undefined;
    this.#over = true;
    clearTimeout(this.#timer);
    this.body?.discard();
    return refusal;
  }

  gather(): void {
    this.#isGathering = true;
    if (this.body === undefined) this.#ready();
    else this.body.gather(GATHER_BYTES, () => this.#ready());
  }

  #ready(): void {
    this.#isGathering = false;
    this.#progress();
    this.#options.queue.ready(this);
  }

  go(): void {
    if (this.#over) return;
    this.#permit = this.#options.permit(this.isWhole);
    if (this.#permit === undefined) {
      this.#fail('ModuleUnavailable');
      return;
    }
    // Whatever the caller allows: others wait for what it finds.
    if (this.#permit.isProbe) this.#probeTimer = setTimeout(() => this.#stop('ModuleTimedOut'), PROBE_MS);
    this.#options.pool.submit(this);
  }

  pause(): void {
    this.#paused = true;
    this.#connection?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#progress();
    this.#connection?.resume();
  }

  stop(): void {
    this.#stop('Aborted');
  }

  onBegin(connection: Connection): void {
    this.#connection = connection;
  }

  onHead(head: ResponseHead): void {
    this.#progress();
    if (head.status > STATUS_MAX || answerFault(head) !== undefined) {
      this.#stop('ModuleFailed');
      return;
    }
    if (this.#permit?.isProbe === true) this.#settle('worked');
    const { status } = head;
    this.#options.listener.head({ status, contentType: contentTypeOf(head), headers: head.headers() });
  }

  onData(bytes: Buffer): void {
    this.#progress();
    this.#options.listener.data(Buffer.from(bytes));
  }

  onEnd(): void {
    this.#finish('worked');
    this.#options.finished(undefined);
    this.#options.listener.ended();
  }

  onBroken(_reason: string, answerBegan: boolean): void {
    this.#connection = undefined;
    if (!this.#repeatable || answerBegan) {
      this.#fail('ModuleFailed');
      return;
    }
    this.#repeatable = false;
    this.#options.repeated();
    this.#options.pool.submit(this);
  }

  #progress(): void {
    // A timer that was cleared would start again.
    if (!this.#over) this.#timer.refresh();
  }

  /** Nothing moved for the whole time-out. Whose silence it is decides: a client's may not count against the module. */
  #silent(): void {
    // A client that sends too little is refused by the floor of bodies.
    if (this.#isGathering) this.#progress();
    else if (this.#permit === undefined) this.#stop('Overloaded');
    else if (this.#paused) this.#stop('Aborted');
    else if (this.body?.waitsForClient === true) this.#progress();
    else this.#stop('ModuleTimedOut');
  }

  /** Ends the call from outside, wherever it is. */
  #stop(error: ModuleError): void {
    if (this.#over) return;
    const isSent = this.#connection !== undefined;
    if (this.#connection === undefined) this.#options.pool.drop(this);
    else this.#connection.destroy();
    this.#fail(error, isSent);
  }

  #fail(error: ModuleError, isSent = true): void {
    this.#finish(callResultOf(error, isSent));
    this.#options.finished(error);
    this.#options.listener.failed(error);
  }

  #finish(result: CallResult): void {
    this.#over = true;
    this.#connection = undefined;
    this.body?.discard();
    clearTimeout(this.#timer);
    this.#settle(result);
    this.#options.queue.leave(this);
  }

  #settle(result: CallResult): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#probeTimer);
    this.#permit?.settle(result);
  }
}
