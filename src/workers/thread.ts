/** Loop of a thread of the pool: it serves tasks from a message port and answers each one, in any order. */
import { type MessagePort, receiveMessageOnPort, threadId } from 'node:worker_threads';
import { onLoading } from './fido2.ts';
import { onRangeStep } from './file-range.ts';
import { type PackedTask, runTask } from './tasks.ts';

/** The port and the task definitions of a thread, and the words of `LIFE`. */
export interface ThreadLife {
  readonly port: MessagePort;
  readonly signs: Int32Array;
}

/** Words that a thread shares: `sign` is counted up as a sign of life, `loading` is 1 while it loads a library. */
export const LIFE = { sign: 0, loading: 1 } as const;

/** One task on its way to a thread. */
export type ThreadRequest = readonly [id: number, name: PackedTask['name'], packed: unknown];

/** Asks for a sign of life alone. */
export const PING = 'ping';

/** `bug` is the message of a thrown error, for the log only. */
export type ThreadAnswer = readonly [id: number, value: unknown, bug?: string];

/** Id of the first message, which says that the thread serves, with its number. Tasks have higher ids. */
export const READY_ID = 0;

/**
 * While more tasks wait, answers leave together after so much work: each message wakes the main thread, which costs a
 * tenth of a verification.
 */
const ANSWERS_HELD_MS = 0.3;

/** The lasting task of a thread: never resolves. A task that throws does not affect the others. */
export function serve({ port, signs }: ThreadLife, run: typeof runTask = runTask): Promise<never> {
  const showLife = () => void Atomics.add(signs, LIFE.sign, 1);
  onRangeStep(showLife);
  onLoading((isLoading) => void Atomics.store(signs, LIFE.loading, isLoading ? 1 : 0));
  const post = (answers: readonly ThreadAnswer[]) => port.postMessage(answers);
  port.on('message', (first: ThreadRequest | typeof PING) => {
    const answers: ThreadAnswer[] = [];
    const heldMs = performance.now() + ANSWERS_HELD_MS;
    let next: ThreadRequest | typeof PING | undefined = first;
    while (next !== undefined) {
      showLife();
      const answer = next === PING ? undefined : answerTo(next, run, (late) => post([late]));
      if (answer !== undefined) answers.push(answer);
      if (performance.now() > heldMs) break;
      next = receiveMessageOnPort(port)?.message;
    }
    if (answers.length > 0) post(answers);
  });
  post([[READY_ID, threadId]]);
  return new Promise(() => undefined);
}

/** Undefined where the task is asynchronous: `later` gets its answer. */
function answerTo(
  [id, name, packed]: ThreadRequest,
  run: typeof runTask,
  later: (answer: ThreadAnswer) => void,
): ThreadAnswer | undefined {
  const bug = (error: unknown): ThreadAnswer => {
    const message = error instanceof Error ? error.message : String(error);
    return [id, undefined, `${name}: ${message}`];
  };
  try {
    const value = run({ name, packed });
    if (!(value instanceof Promise)) return [id, value];
    value.then(
      (late: unknown) => later([id, late]),
      (error: unknown) => later(bug(error)),
    );
    return undefined;
  } catch (error) {
    return bug(error);
  }
}
