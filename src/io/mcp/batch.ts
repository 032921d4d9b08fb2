/**
 * Collects the answers of one batch in the order of its messages. A bound on their total size protects the memory, and
 * yields between slices keep other callers responsive.
 */
import { setImmediate } from 'node:timers/promises';
import type { ErrorName } from '../../domain/errors.ts';
import { type RpcAnswer, RpcFailure, rpcFailure } from './rpc.ts';

/** Bytes of an answer to a batch. */
export const BATCH_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Bytes reserved for each answer that is still due, beside its id. So a call that was executed (an order, a payment) always
 * has its short answer, however long the lists before it are.
 */
export const RESERVED_BYTES = 8 * 1024;
/** Messages started in one event-loop tick. The most expensive, a call with an argument check, takes about 0.3 ms. */
export const SLICE_MESSAGES = 8;

/** Resolves in a later event-loop tick. */
export type YieldToLoop = () => Promise<unknown>;
export const yieldToLoop: YieldToLoop = () => setImmediate();

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

export class BatchAnswers {
  /** Answers in the order of the messages; undefined while an answer is pending. */
  readonly #answers: (Buffer | undefined)[] = [];
  readonly #waits: Promise<void>[] = [];
  #leftBytes = BATCH_BYTES_MAX - OPEN.length - CLOSE.length;
  #reservedBytes = 0;
  #isFull = false;
  /** A rejection that is no answer: a bug. */
  #failure: { readonly error: unknown } | undefined;
  #error: ErrorName | undefined;

  /** `ids`: JSON texts of the ids of the messages that get an answer. */
  constructor(ids: readonly (string | undefined)[]) {
    for (const id of ids) this.#reservedBytes += reserveOf(id);
  }

  /** An answer did not fit: messages that have not started are not started any more. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** The last failure among the answers, for the log. */
  get error(): ErrorName | undefined {
    return this.#error;
  }

  add(id: string | undefined, answer: RpcAnswer | Promise<RpcAnswer>): void {
    const index = this.#answers.push(undefined) - 1;
    if (!(answer instanceof Promise)) {
      this.#insert(index, id, answer);
      return;
    }
    const failed = (error: unknown) => {
      this.#failure ??= { error };
    };
    this.#waits.push(answer.then((text) => this.#insert(index, id, text)).catch(failed));
  }

  addTooLarge(id: string | undefined): void {
    this.add(id, tooLarge(id));
  }

  /** The JSON array of all answers; undefined when none was due. Rejects after a bug. */
  async whole(): Promise<Buffer | undefined> {
    await Promise.all(this.#waits);
    if (this.#failure !== undefined) throw this.#failure.error;
    const answers = this.#answers.filter((each) => each !== undefined);
    if (answers.length === 0) return undefined;
    const parts = answers.flatMap((each, index) => (index === 0 ? [OPEN, each] : [COMMA, each]));
    return Buffer.concat([...parts, CLOSE]);
  }

  #insert(index: number, id: string | undefined, answer: RpcAnswer): void {
    const text = this.#textOf(answer);
    this.#reservedBytes -= reserveOf(id);
    const room = this.#leftBytes - this.#reservedBytes - COMMA.length;
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const fits = bytes.length <= room;
    if (!fits) this.#isFull = true;
    const kept = fits ? bytes : Buffer.from(this.#textOf(tooLarge(id)));
    this.#answers[index] = kept;
    this.#leftBytes -= kept.length + COMMA.length;
  }

  /** Remembers the error of a failure. */
  #textOf(answer: RpcAnswer): Exclude<RpcAnswer, RpcFailure> {
    if (!(answer instanceof RpcFailure)) return answer;
    this.#error = answer.error;
    return answer.text;
  }
}

function reserveOf(id: string | undefined): number {
  return RESERVED_BYTES + Buffer.byteLength(id ?? '');
}

function tooLarge(id: string | undefined): RpcFailure {
  return rpcFailure(id, 'ToolFailed', 'answer too large, ask alone');
}
