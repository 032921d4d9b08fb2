/** Typed API of the worker threads: a bounded queue of tasks. Each task is a message of its own (docs/optimizations.md). */
import type { ErrorName } from '../domain/errors.ts';
import {
  type PackedTask,
  packTask,
  type QueueName,
  type TaskInput,
  type TaskName,
  type TaskOutput,
} from './tasks.ts';
import type { ThreadAnswer } from './thread.ts';
import { Threads, type ThreadTask } from './threads.ts';

export interface WorkerPoolOptions {
  /** At least 1. */
  readonly threads: number;
  /** Tasks waiting or running; one more is refused with `Overloaded`. */
  readonly queueMax: number;
  /** The file whose `serve` the threads call. Tests pass one that dies. */
  readonly taskFile?: URL;
  /** Called for every dead thread and every task that throws: bugs, which callers see as `InternalError`. */
  readonly onFault?: (message: string) => void;
}

/** The same shape as `PortResult` of actors/runtime/ports.ts. */
type WorkerResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: ErrorName };

export interface WorkerCounters {
  readonly completed: number;
  /** Refused because the queue was full. */
  readonly overloaded: number;
  /** Answered `InternalError`: the task threw or its thread died. */
  readonly failed: number;
  /** Threads that died since the start. */
  readonly threadsLost: number;
  /** Waiting or running now. */
  readonly pending: number;
}

export interface WorkerPool {
  /**
   * Never rejects. `Overloaded` when the queue is full, `InternalError` when the task threw or its thread died,
   * `Stopping` after `close`.
   */
  run<N extends TaskName>(name: N, input: TaskInput<N>): Promise<WorkerResult<TaskOutput<N>>>;
  counters(): WorkerCounters;
  /** Refuses new tasks, waits for the accepted ones, then ends the threads. */
  close(): Promise<void>;
}

export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  checkOptions(options);
  const queue = new TaskQueue(options);
  let closing: Promise<void> | undefined;
  return {
    run<N extends TaskName>(name: N, input: TaskInput<N>): Promise<WorkerResult<TaskOutput<N>>> {
      if (closing !== undefined) return Promise.resolve({ ok: false, error: 'Stopping' });
      return queue.add(packTask(name, input)) as Promise<WorkerResult<TaskOutput<N>>>;
    },
    counters: () => queue.counters(),
    close() {
      closing ??= queue.close();
      return closing;
    },
  };
}

class TaskQueue {
  readonly #options: WorkerPoolOptions;
  readonly #threads: Threads;
  /** Tasks that no thread can take yet. */
  readonly #waiting: Record<QueueName, ThreadTask[]> = { compute: [], make: [], publish: [] };
  #pending = 0;
  #onIdle: (() => void) | undefined;
  #completed = 0;
  #overloaded = 0;
  #failed = 0;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    const { threads, taskFile = new URL('./thread.js', import.meta.url) } = options;
    this.#threads = new Threads({
      threads,
      taskFile,
      onFault: (message) => options.onFault?.(message),
      onFree: (queue) => this.#sendWaiting(queue),
    });
  }

  add(task: PackedTask): Promise<WorkerResult<unknown>> {
    if (this.#pending >= this.#options.queueMax) {
      this.#overloaded += 1;
      return Promise.resolve({ ok: false, error: 'Overloaded' });
    }
    this.#pending += 1;
    return new Promise((resolve) => {
      const sent = { task, settle: (answer: ThreadAnswer | undefined) => resolve(this.#result(answer)) };
      const waiting = this.#waiting[task.queue];
      if (waiting.length > 0 || !this.#threads.send(sent)) waiting.push(sent);
    });
  }

  counters(): WorkerCounters {
    return {
      completed: this.#completed,
      overloaded: this.#overloaded,
      failed: this.#failed,
      threadsLost: this.#threads.lost,
      pending: this.#pending,
    };
  }

  async close(): Promise<void> {
    if (this.#pending > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    await this.#threads.close();
  }

  #sendWaiting(queue: QueueName): void {
    const waiting = this.#waiting[queue];
    for (;;) {
      const [next] = waiting;
      if (next === undefined || !this.#threads.send(next)) return;
      waiting.shift();
    }
  }

  #result(answer: ThreadAnswer | undefined): WorkerResult<unknown> {
    this.#pending -= 1;
    if (this.#pending === 0) this.#onIdle?.();
    if (answer !== undefined && answer[2] === undefined) {
      this.#completed += 1;
      return { ok: true, value: answer[1] };
    }
    this.#failed += 1;
    if (answer?.[2] !== undefined) this.#options.onFault?.(answer[2]);
    return { ok: false, error: 'InternalError' };
  }
}

function checkOptions({ threads, queueMax }: WorkerPoolOptions): void {
  if (!Number.isSafeInteger(threads) || threads < 1) throw new RangeError('threads is a whole number from 1');
  if (!Number.isSafeInteger(queueMax) || queueMax < 1)
    throw new RangeError('queueMax is a whole number from 1');
}
