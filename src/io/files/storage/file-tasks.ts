/** File tasks of the worker threads as calls that reject: with a system error, or with the error of the pool. */
import type { PortResult, WorkerPort } from '../../../actors/runtime/ports.ts';
import { type ErrorName, GatewayError } from '../../../domain/errors.ts';
import type { FileFault } from '../../../workers/part-files.ts';
import type { TaskInput, TaskOutput } from '../../../workers/tasks.ts';
import type { PartLease } from './port.ts';

type FileTask = 'makePart' | 'publishPart' | 'copyRange';
type LeaseTask = 'writeBuffer' | 'hashRange' | 'sha256Range';

/** `settled`: the task is late and still uses descriptor and buffer until then. */
export type LeaseAnswer<T> =
  | Extract<PortResult<T>, { ok: true }>
  | { readonly ok: false; readonly error: ErrorName; readonly settled?: Promise<unknown> };

/** A task on the descriptor of a lease. When it is late, the answer is `TaskTimedOut` and the lease is kept for it. */
export function runOnLease<N extends LeaseTask>(
  workers: WorkerPort,
  lease: PartLease,
  name: N,
  input: TaskInput<N>,
): Promise<LeaseAnswer<TaskOutput<N>>> {
  return new Promise((resolve) => {
    const settled = workers.run(name, input, () => {
      lease.keepFor(settled);
      resolve({ ok: false, error: 'TaskTimedOut', settled });
    });
    void settled.then(resolve);
  });
}

export async function runFileTask<N extends FileTask>(
  workers: WorkerPort,
  name: N,
  task: TaskInput<N>,
  late?: () => void,
): Promise<Exclude<TaskOutput<N>, FileFault>> {
  const result = await workers.run(name, task, late);
  if (!result.ok) throw new GatewayError(result.error);
  const output: TaskOutput<N> | FileFault = result.value;
  if (isFault(output)) throw Object.assign(new Error(output.message), { code: output.code });
  return output as Exclude<TaskOutput<N>, FileFault>;
}

function isFault(output: unknown): output is FileFault {
  return typeof output === 'object' && output !== null && 'message' in output;
}
