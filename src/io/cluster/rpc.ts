/**
 * Calls over a link: verb and arguments there, a value or a row of the error table back, with the position that the answer
 * was given at. Every call ends: by its answer, with its link, or in time.
 */

import { ownerUnavailable, type RemoteReply } from '../../actors/routed-system.ts';
import { NotOwner } from '../../actors/runtime/not-owner.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { ERRORS, type ErrorName, GatewayError } from '../../domain/errors.ts';
import type { ScopeCode } from '../../domain/limits/quotas.ts';
import { BadFrame } from './frames.ts';
import { type Link, QUEUED_FRAMES_MAX } from './link.ts';

/** First element of a frame of a call. */
export const CALL = 1;
const VALUE = 2;
const REFUSAL = 3;
const MOVED = 4;

/** Calls without an answer on one link, at either end. One more is refused with 503. */
export const CALLS_MAX = QUEUED_FRAMES_MAX;
/** A call waits this long for its answer, at most. */
export const CALL_MS = 5_000;
/** The same of verbs that wait for a third machine: for a delivery under way to a receiver, and for one more. */
const SLOW_MS: Readonly<Record<string, number>> = { webhookPing: 12_000 };
/** Interval at which calls are checked for their end. */
const CHECK_MS = 250;

/** Answers a call. A row of the error table may be thrown or rejected with; so may `NotOwner`. */
type Verb = (...args: readonly unknown[]) => unknown;
export type Verbs = Readonly<Record<string, Verb>>;

/** Calls by how they ended at the side that made them. */
export interface CallCounts {
  answered: number;
  timedOut: number;
  /** The link was lost after the call had left. */
  lost: number;
  /** The link or the number of calls was at its bound: nothing was sent. */
  full: number;
}

interface Waiting {
  readonly resolve: (reply: RemoteReply) => void;
  readonly reject: (error: Error) => void;
  /** Number of the check after which it has waited too long. */
  readonly lastCheck: number;
}

/** The calls that this node makes over one link. */
export class Calls {
  readonly #link: Link;
  readonly #schedule: Schedule;
  readonly #counts: CallCounts;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #checks = 0;
  #cancelCheck: (() => void) | undefined;

  constructor(link: Link, schedule: Schedule, counts: CallCounts) {
    this.#link = link;
    this.#schedule = schedule;
    this.#counts = counts;
    link.onClose(() => this.#fail());
  }

  /** Rejects when there is no answer: the call may have had its effect, except at a bound. */
  call(verb: string, ...args: readonly unknown[]): Promise<RemoteReply> {
    if (this.#link.closed !== undefined) return Promise.reject(ownerUnavailable());
    const id = this.#lastId + 1;
    if (this.#waiting.size >= CALLS_MAX || !this.#link.send([CALL, id, verb, ...args])) {
      this.#counts.full += 1;
      return Promise.reject(new GatewayError('Overloaded'));
    }
    this.#lastId = id;
    const checks = (SLOW_MS[verb] ?? CALL_MS) / CHECK_MS;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, lastCheck: this.#checks + checks });
      this.#cancelCheck ??= this.#schedule.timer(CHECK_MS, this.#check);
    });
  }

  /** Takes a frame of an answer. Throws `BadFrame` for any other. An answer that is late is ignored. */
  take(frame: unknown): void {
    if (!Array.isArray(frame)) throw new BadFrame('no answer');
    const [type, id, position] = frame as unknown[];
    if (typeof id !== 'number' || typeof position !== 'number') throw new BadFrame('no answer');
    const reply = replyOf(type, position, frame);
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    this.#counts.answered += 1;
    waiting.resolve(reply);
  }

  readonly #check = (): void => {
    this.#checks += 1;
    for (const [id, { reject, lastCheck }] of this.#waiting) {
      if (lastCheck > this.#checks) continue;
      this.#waiting.delete(id);
      this.#counts.timedOut += 1;
      reject(ownerUnavailable());
    }
    this.#cancelCheck = this.#waiting.size > 0 ? this.#schedule.timer(CHECK_MS, this.#check) : undefined;
  };

  #fail(): void {
    this.#cancelCheck?.();
    const lost = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#counts.lost += lost.length;
    for (const { reject } of lost) reject(ownerUnavailable());
  }
}

function replyOf(type: unknown, position: number, [, , , ...rest]: readonly unknown[]): RemoteReply {
  if (type === VALUE) return { position, value: rest[0] };
  if (type === MOVED) return { position, error: new NotOwner() };
  if (type === REFUSAL) return { position, error: errorOf(rest) };
  throw new BadFrame('no answer');
}

/** A row that only a newer program knows is an internal error to this one. */
function errorOf([row, detail, retryAfterSeconds, scope]: readonly unknown[]): GatewayError {
  if (typeof row !== 'string' || !Object.hasOwn(ERRORS, row)) return new GatewayError('InternalError');
  return new GatewayError(
    row as ErrorName,
    typeof detail === 'string' ? detail : undefined,
    typeof retryAfterSeconds === 'number' ? retryAfterSeconds : undefined,
    typeof scope === 'string' ? (scope as ScopeCode) : undefined,
  );
}

interface AnswererOptions {
  readonly link: Link;
  readonly verbs: Verbs;
  /** Position of the log that this node has applied. */
  readonly position: () => number;
  /** Called with what a verb threw that is no row of the error table. */
  readonly onBug: (verb: string, error: unknown) => void;
}

/** Answers the calls of another node over one link. */
export class Answerer {
  readonly #options: AnswererOptions;
  #underWay = 0;

  constructor(options: AnswererOptions) {
    this.#options = options;
  }

  /** `frame` begins with `CALL`. Throws `BadFrame` when it is none. */
  take(frame: readonly unknown[]): void {
    const [, id, name, ...args] = frame;
    if (typeof id !== 'number' || typeof name !== 'string') throw new BadFrame('no call');
    const verb = Object.hasOwn(this.#options.verbs, name) ? this.#options.verbs[name] : undefined;
    if (verb === undefined) {
      // A newer program knows the verb.
      this.#refuse(id, name, new GatewayError('InternalError'));
    } else if (this.#underWay >= CALLS_MAX) this.#refuse(id, name, new GatewayError('Overloaded'));
    else this.#run(id, name, () => verb(...args));
  }

  #run(id: number, name: string, run: () => unknown): void {
    let result: unknown;
    try {
      result = run();
    } catch (error) {
      this.#refuse(id, name, error);
      return;
    }
    if (!(result instanceof Promise)) {
      this.#answer(id, name, result);
      return;
    }
    this.#underWay += 1;
    result.then(
      (value: unknown) => {
        this.#underWay -= 1;
        this.#answer(id, name, value);
      },
      (error: unknown) => {
        this.#underWay -= 1;
        this.#refuse(id, name, error);
      },
    );
  }

  #answer(id: number, name: string, value: unknown): void {
    const { link, position } = this.#options;
    try {
      link.answer([VALUE, id, position(), value]);
    } catch (error) {
      this.#refuse(id, name, error);
    }
  }

  #refuse(id: number, name: string, error: unknown): void {
    const { link, position, onBug } = this.#options;
    if (error instanceof NotOwner) {
      link.answer([MOVED, id, position()]);
      return;
    }
    if (!(error instanceof GatewayError)) onBug(name, error);
    const refusal = error instanceof GatewayError ? error : new GatewayError('InternalError');
    const { row, detail, retryAfterSeconds, scope } = refusal;
    link.answer([REFUSAL, id, position(), row, detail, retryAfterSeconds, scope]);
  }
}
