/** What a thread of the pool runs: it serves tasks from a message port and answers each one, in any order. */
import type { MessagePort } from 'node:worker_threads';
import { type PackedTask, runTask } from './tasks.ts';

/** One task on its way to a thread. */
export type ThreadRequest = readonly [id: number, name: PackedTask['name'], packed: unknown];

/** `bug` is the message of a thrown error, for the log only. */
export type ThreadAnswer = readonly [id: number, value: unknown, bug?: string];

/** Of the first message, which says that the thread serves. Tasks have higher ids. */
export const READY_ID = 0;

/** The lasting task of a thread: never resolves. A task that throws does not affect the others. */
export function serve(
  { port }: { readonly port: MessagePort },
  run: typeof runTask = runTask,
): Promise<never> {
  const answer = (answer: ThreadAnswer) => port.postMessage(answer);
  port.on('message', ([id, name, packed]: ThreadRequest) => {
    const bug = (error: unknown) =>
      answer([id, undefined, `${name}: ${error instanceof Error ? error.message : String(error)}`]);
    try {
      const value = run({ name, packed });
      if (value instanceof Promise) value.then((late: unknown) => answer([id, late]), bug);
      else answer([id, value]);
    } catch (error) {
      bug(error);
    }
  });
  answer([READY_ID, undefined]);
  return new Promise(() => undefined);
}
