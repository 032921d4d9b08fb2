/** What actors may ask of the world. Types only: io implements them, the entry plugs them in. */
import type { ErrorName } from '../../domain/errors.ts';
import type { TaskInput, TaskName, TaskOutput } from '../../workers/tasks.ts';

/** Ports resolve with a failure value and never reject. */
export type PortResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: ErrorName };

export interface WorkerPort {
  /** Refuses with `Overloaded` when the queue is full, with `InternalError` when the worker died. */
  run<N extends TaskName>(name: N, input: TaskInput<N>): Promise<PortResult<TaskOutput<N>>>;
}

export interface Ports {
  readonly workers: WorkerPort;
}
