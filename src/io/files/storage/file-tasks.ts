/** File tasks of the worker threads as calls that reject: with a system error, or with the error of the pool. */
import type { PortResult, WorkerPort } from '../../../actors/runtime/ports.ts';
import { type ErrorName, GatewayError } from '../../../domain/errors.ts';
import type { FileFault } from '../../../workers/part-files.ts';
import type { TaskInput, TaskOutput } from '../../../workers/tasks.ts';
import type { FileCalls, OnLate } from './file-calls.ts';
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
  lease: Pick<PartLease, 'keepFor'>,
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

/** A call on it, in the same way. Rejects with `TaskTimedOut` when it is late. */
export async function callOnLease<T>(calls: FileCalls, lease: PartLease, call: () => Promise<T>): Promise<T> {
  try {
    return await calls.answer((late) => {
      const settled = calls.run(call, () => {
        lease.keepFor(settled.catch(() => undefined));
        late();
      });
      return settled;
    });
  } catch (error) {
    throw lease.failure(error);
  }
}

/** Those that may wait for a sync, which holds a thread of libuv. */
const SYNCS: Readonly<Record<FileTask, boolean>> = { makePart: true, publishPart: true, copyRange: false };

export interface FileTasks {
  readonly workers: WorkerPort;
  readonly calls: FileCalls;
}

export async function runFileTask<N extends FileTask>(
  { workers, calls }: FileTasks,
  name: N,
  task: TaskInput<N>,
  late: OnLate,
): Promise<Exclude<TaskOutput<N>, FileFault>> {
  const run = (onLate: OnLate) => workers.run(name, task, onLate);
  const result = await (SYNCS[name] ? calls.sync(run, late) : run(late));
  if (!result.ok) throw new GatewayError(result.error);
  const output: TaskOutput<N> | FileFault = result.value;
  if (isFault(output)) throw Object.assign(new Error(output.message), { code: output.code });
  return output as Exclude<TaskOutput<N>, FileFault>;
}

function isFault(output: unknown): output is FileFault {
  return typeof output === 'object' && output !== null && 'message' in output;
}
