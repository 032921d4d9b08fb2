/**
 * One relayed call: streams a module's answer to a listener with back-pressure and reports its end once. The time-out
 * counts from the last byte in either direction, so that a long body does not time out (decision 0056).
 */
import type { RefusedBy } from '../../domain/limits/bounds.ts';
import type { Holder } from '../../domain/limits/holders.ts';
import type { ShareRefusal } from '../../domain/limits/shares.ts';
import type { PrebufferableBody } from '../http/body/incoming-body.ts';
import { answerFault, contentTypeOf } from './attempt.ts';
import { type CallResult, callResultOf, PROBE_MS } from './breaker.ts';
import type { Connection, ConnectionRequest } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { QueuedRelay, QueueEntry, RelayQueue } from './relay-queue.ts';
import { RequestBody } from './request-body.ts';
import type { ResponseHead } from './response-head.ts';
import type { ModuleError } from './types.ts';

/** Status and headers of a module's answer. */
export interface AnswerHead {
  readonly status: number;
  /** '' when the module sent none, or one that must not be copied into a header. */
  readonly contentType: string;
  /** Bytes of the body, if the module declares them. */
  readonly lengthBytes: number | undefined;
  /** Lower-case name, value, name, value …, unfiltered; `answerHeaders` selects those that may be sent to a client. */
  readonly fields: readonly string[];
}

/** Order of calls: `head` at most once, then `data`, then either `ended` or `failed`; or `failed` alone. */
export interface RelayListener {
  head(head: AnswerHead): void;
  /** The listener owns the bytes. */
  data(bytes: Buffer): void;
  ended(): void;
  /** `refusedBy`: with `AccessRateLimit`, the exhausted share. */
  failed(error: ModuleError, refusedBy?: RefusedBy): void;
}

/** Flow control of a call by its listener. */
export interface RelayFlow {
  /** Applies back-pressure; pieces that have arrived may still be delivered. */
  pause(): void;
  resume(): void;
  /** The client disconnected: the listener receives `failed('Aborted')`. */
  stop(): void;
}

/** Flow of a call that was refused at once. */
export const NO_FLOW: RelayFlow = {
  pause: () => undefined,
  resume: () => undefined,
  stop: () => undefined,
};

export interface RelayPermit {
  readonly isProbe: boolean;
  /** Called once with the result for the breaker: for a probe when the answer begins, otherwise at the end. */
  readonly settle: (result: CallResult) => void;
}

interface RelayOptions {
  readonly pool: ConnectionPool;
  readonly queue: RelayQueue;
  readonly holder: Holder;
  readonly listener: RelayListener;
  readonly opening: string;
  readonly toHead: boolean;
  readonly body: PrebufferableBody | undefined;
  readonly timeoutMs: number;
  /** A GET that was not repeated yet: it is sent again once when its connection fails. */
  readonly repeatable: boolean;
  readonly repeated: () => void;
  /** Called before the call is sent; undefined while the breaker is open. */
  readonly permit: (isWhole: boolean) => RelayPermit | undefined;
  readonly finished: (error: ModuleError | undefined) => void;
}

/** Bytes of a body that are buffered before the call takes a connection (decision 0056). */
const GATHER_BYTES = 64 * 1024;
/** Larger status codes cannot be forwarded (RFC 9110 15). */
const STATUS_MAX = 599;

export class Relay implements RelayFlow, ConnectionRequest, QueuedRelay {
  readonly opening: string;
  readonly encoding = 'latin1';
  readonly toHead: boolean;
  readonly body: RequestBody | undefined;
  entry: QueueEntry | undefined;
  readonly #options: RelayOptions;
  readonly #timer: NodeJS.Timeout;
  #probeTimer: NodeJS.Timeout | undefined;
  #permit: RelayPermit | undefined;
  /** Its body is being buffered; it has no connection yet. */
  #isGathering = false;
  #connection: Connection | undefined;
  #repeatable: boolean;
  /** The client does not read the answer. */
  #paused = false;
  #settled = false;
  #over = false;

  constructor(options: RelayOptions) {
    const { opening, toHead, body, repeatable, timeoutMs } = options;
    this.#options = options;
    this.opening = opening;
    this.toHead = toHead;
    this.#repeatable = repeatable;
    this.body =
      body && new RequestBody(body, { progress: () => this.#progress(), lost: () => this.#stop('Aborted') });
    this.#timer = setTimeout(() => this.#silent(), timeoutMs);
  }

  get holder(): Holder {
    return this.#options.holder;
  }

  get isWhole(): boolean {
    return this.body === undefined || this.body.isWhole;
  }

  /** Enters the queue; returns the refusal when its caller's share is exhausted. */
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
    // Independent of the caller's time-out: other calls depend on the probe's result.
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
    const { status, contentLength: lengthBytes, fields } = head;
    this.#options.listener.head({ status, contentType: contentTypeOf(head), lengthBytes, fields });
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
    // `refresh` would restart a cleared timer.
    if (!this.#over) this.#timer.refresh();
  }

  /** No progress for the whole time-out. A client's silence must not count against the module. */
  #silent(): void {
    // A client that sends too slowly is refused by the minimum rate of bodies.
    if (this.#isGathering) this.#progress();
    else if (this.#permit === undefined) this.#stop('Overloaded');
    else if (this.#paused) this.#stop('Aborted');
    else if (this.body?.waitsForClient === true) this.#progress();
    else this.#stop('ModuleTimedOut');
  }

  /** Ends the call in any phase. */
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
