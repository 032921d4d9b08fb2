/**
 * The answers of one batch. They are gathered in the order of their messages within a bound on all of them together, and
 * the event loop is given back between slices, so that one POST neither fills the memory nor holds up other callers.
 */
import { setImmediate } from 'node:timers/promises';
import type { ErrorName } from '../../domain/errors.ts';
import { errorEnvelope, type RpcAnswer, RpcFailure } from './rpc.ts';

/** Bytes of an answer to a batch. Source: mcp.md. */
export const BATCH_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Kept free for each answer that is still due, besides its id: what was carried out and answers shortly (an order, a
 * payment) always has its answer, whatever lists stand in front of it.
 */
export const RESERVED_BYTES = 8 * 1024;
/** Messages that are begun in one turn of the loop: the dearest, a call whose arguments are checked, takes some 0.3 ms. */
export const SLICE_MESSAGES = 8;

/** Gives the event loop back. */
export type YieldToLoop = () => Promise<unknown>;
export const yieldToLoop: YieldToLoop = () => setImmediate();

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

export class BatchAnswers {
  /** In the order of the messages; undefined while one is on its way. */
  readonly #answers: (Buffer | undefined)[] = [];
  readonly #waits: Promise<void>[] = [];
  #leftBytes = BATCH_BYTES_MAX - OPEN.length - CLOSE.length;
  #reservedBytes = 0;
  #isFull = false;
  /** What was no answer at all: a bug. */
  #failure: { readonly error: unknown } | undefined;
  #error: ErrorName | undefined;

  /** `ids`: JSON texts of those that get an answer. */
  constructor(ids: readonly (string | undefined)[]) {
    for (const id of ids) this.#reservedBytes += reserveOf(id);
  }

  /** An answer was too large: what was not begun yet is not begun any more. */
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
      this.#place(index, id, answer);
      return;
    }
    const failed = (error: unknown) => {
      this.#failure ??= { error };
    };
    this.#waits.push(answer.then((text) => this.#place(index, id, text)).catch(failed));
  }

  addTooLarge(id: string | undefined): void {
    this.add(id, tooLarge(id));
  }

  /** The array of all answers; undefined when none was due. Rejects with what was no answer. */
  async whole(): Promise<Buffer | undefined> {
    await Promise.all(this.#waits);
    if (this.#failure !== undefined) throw this.#failure.error;
    const answers = this.#answers.filter((each) => each !== undefined);
    if (answers.length === 0) return undefined;
    const parts = answers.flatMap((each, index) => (index === 0 ? [OPEN, each] : [COMMA, each]));
    return Buffer.concat([...parts, CLOSE]);
  }

  #place(index: number, id: string | undefined, answer: RpcAnswer): void {
    if (answer instanceof RpcFailure) this.#error = answer.error;
    const text = answer instanceof RpcFailure ? answer.text : answer;
    this.#reservedBytes -= reserveOf(id);
    const room = this.#leftBytes - this.#reservedBytes - COMMA.length;
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const fits = bytes.length <= room;
    if (!fits) this.#isFull = true;
    const kept = fits ? bytes : Buffer.from(tooLarge(id));
    this.#answers[index] = kept;
    this.#leftBytes -= kept.length + COMMA.length;
  }
}

function reserveOf(id: string | undefined): number {
  return RESERVED_BYTES + Buffer.byteLength(id ?? '');
}

function tooLarge(id: string | undefined): string {
  return errorEnvelope(id, 'ToolFailed', 'answer too large, ask alone');
}
