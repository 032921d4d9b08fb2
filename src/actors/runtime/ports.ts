/** What actors may ask of the world. Types only: io implements them, the entry plugs them in. */
import type { Channel } from '../../domain/contacts.ts';
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

/** One-time codes: what is secret about them stays behind this port (auth.md A13). */
export interface CodePort {
  /** Sends the code of this seed. Any failure may be tried again: the same seed is the same code. */
  deliver(message: CodeMessage): Promise<PortResult<null>>;
  /** Is this the code of the seed? Compared in constant time. */
  matches(seed: string, code: string): Promise<PortResult<boolean>>;
}

export interface CodeMessage {
  readonly channel: Channel;
  readonly address: string;
  /** 32 random bytes, base64url. */
  readonly seed: string;
}

export interface Ports {
  readonly workers: WorkerPort;
  /** Absent: no module delivers codes. */
  readonly codes?: CodePort;
}
