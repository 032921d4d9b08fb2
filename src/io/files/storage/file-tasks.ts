/** File tasks of the worker threads as calls that reject: with a system error, or with the error of the pool. */
import type { WorkerPort } from '../../../actors/runtime/ports.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { FileFault } from '../../../workers/part-files.ts';
import type { TaskInput, TaskOutput } from '../../../workers/tasks.ts';

type FileTask = 'makePart' | 'publishPart' | 'copyRange';

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
