/** Typed API of the worker threads: a bounded queue of tasks. Each task is a message of its own (docs/optimizations.md). */
import type { ErrorName } from '../domain/errors.ts';
import { type PackedTask, packTask, type TaskInput, type TaskName, type TaskOutput } from './tasks.ts';
import type { ThreadAnswer } from './thread.ts';
import { SILENT_MAX, Threads, type ThreadTask } from './threads.ts';

const INTERVAL_MS = 1_000;

export interface WorkerPoolOptions {
  /** Number of threads, at least 1. */
  readonly threads: number;
  /** Tasks waiting or running; one more is refused with `Overloaded`. */
  readonly queueMax: number;
  /** The file whose `serve` the threads call. Tests pass one that dies. */
  readonly taskFile?: URL;
  /** Called for every thread that is dead or replaced, and every task that throws. */
  readonly onFault?: (message: string) => void;
  /** Calls `tick` in intervals until it is cancelled. Every second unless given. */
  readonly interval?: (tick: () => void) => { cancel(): void };
}

/** The same shape as `PortResult` of actors/runtime/ports.ts. */
type WorkerResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: ErrorName };

export interface WorkerCounters {
  readonly completed: number;
  /** Refused because the queue was full. */
  readonly overloaded: number;
  /** Answered `InternalError`: the task threw, or its thread died, twice where it could run again. */
  readonly failed: number;
  /** Not done in their time. */
  readonly timedOut: number;
  /** Threads that died since the start. */
  readonly threadsLost: number;
  /** Threads that were replaced since the start because they showed no sign of life. */
  readonly threadsReplaced: number;
  /** Waiting or running now. */
  readonly pending: number;
  /** Not done in their time and not settled yet, threads that show no sign of life, replaced ones that have not ended. */
  readonly stuck: number;
}

export interface WorkerPool {
  /**
   * Never rejects. `Overloaded` when the queue is full, `InternalError` when the task threw or its thread died, twice
   * where it is pure, `TaskTimedOut` when it was not done in its time, `Stopping` after `close`. A task that holds a file
   * resolves only when no thread uses it any more; `late` is called before, when the caller has waited long enough.
   */
  run<N extends TaskName>(
    name: N,
    input: TaskInput<N>,
    late?: () => void,
  ): Promise<WorkerResult<TaskOutput<N>>>;
  counters(): WorkerCounters;
  /** Refuses new tasks, waits for the accepted ones, then ends the threads. */
  close(): Promise<void>;
}

export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  checkOptions(options);
  const queue = new TaskQueue(options);
  let closing: Promise<void> | undefined;
  return {
    run<N extends TaskName>(name: N, input: TaskInput<N>, late?: () => void) {
      if (closing !== undefined) return Promise.resolve({ ok: false as const, error: 'Stopping' as const });
      return queue.add(packTask(name, input), late) as Promise<WorkerResult<TaskOutput<N>>>;
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
  readonly #interval: { cancel(): void };
  /** Tasks that no thread can take yet. */
  readonly #waiting: ThreadTask[] = [];
  #pending = 0;
  #lateNow = 0;
  #onIdle: (() => void) | undefined;
  #completed = 0;
  #overloaded = 0;
  #failed = 0;
  #timedOut = 0;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    const { threads, taskFile = new URL('./thread.js', import.meta.url), interval = everySecond } = options;
    this.#threads = new Threads({
      threads,
      taskFile,
      onFault: (message) => options.onFault?.(message),
      onFree: () => this.#sendWaiting(),
      onReturned: (tasks) => {
        // Behind those that no thread had yet; the oldest one, which is the likeliest cause, after all others.
        this.#waiting.push(...tasks.toReversed());
      },
    });
    this.#interval = interval(() => this.#tick());
  }

  add(task: PackedTask, late: (() => void) | undefined): Promise<WorkerResult<unknown>> {
    if (this.#pending >= this.#options.queueMax) {
      this.#overloaded += 1;
      return Promise.resolve({ ok: false, error: 'Overloaded' });
    }
    this.#pending += 1;
    return new Promise((resolve) => {
      const sent: ThreadTask = {
        task,
        age: 0,
        isLate: false,
        isRepeated: false,
        settle: (answer) => resolve(this.#result(sent, answer)),
        late: () => {
          this.#timedOut += 1;
          this.#lateNow += 1;
          late?.();
        },
      };
      if (this.#waiting.length > 0 || !this.#threads.send(sent)) this.#waiting.push(sent);
    });
  }

  counters(): WorkerCounters {
    const { lost, replaced } = this.#threads.ended;
    return {
      completed: this.#completed,
      overloaded: this.#overloaded,
      failed: this.#failed,
      timedOut: this.#timedOut,
      threadsLost: lost,
      threadsReplaced: replaced,
      pending: this.#pending,
      stuck: this.#lateNow + this.#threads.stuck,
    };
  }

  async close(): Promise<void> {
    if (this.#pending > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    this.#interval.cancel();
    await this.#threads.close();
  }

  #tick(): void {
    this.#threads.tick();
    const waiting = this.#waiting;
    const expired = waiting.filter((sent) => {
      sent.age += 1;
      return sent.age > sent.task.limitSeconds + SILENT_MAX;
    });
    if (expired.length === 0) return;
    const gone = new Set(expired);
    waiting.splice(0, waiting.length, ...waiting.filter((sent) => !gone.has(sent)));
    for (const sent of expired) sent.settle('TaskTimedOut');
  }

  #sendWaiting(): void {
    for (;;) {
      const [next] = this.#waiting;
      if (next === undefined || !this.#threads.send(next)) return;
      this.#waiting.shift();
    }
  }

  #result({ isLate }: ThreadTask, answer: ThreadAnswer | ErrorName): WorkerResult<unknown> {
    this.#pending -= 1;
    if (this.#pending === 0) this.#onIdle?.();
    if (isLate) this.#lateNow -= 1;
    if (answer === 'TaskTimedOut' && !isLate) this.#timedOut += 1;
    if (typeof answer === 'string' && answer !== 'InternalError') return { ok: false, error: answer };
    if (typeof answer !== 'string' && answer[2] === undefined) {
      this.#completed += 1;
      return { ok: true, value: answer[1] };
    }
    this.#failed += 1;
    if (typeof answer !== 'string') this.#options.onFault?.(answer[2] ?? '');
    return { ok: false, error: 'InternalError' };
  }
}

function everySecond(tick: () => void): { cancel(): void } {
  const timer = setInterval(tick, INTERVAL_MS).unref();
  return { cancel: () => clearInterval(timer) };
}

function checkOptions({ threads, queueMax }: WorkerPoolOptions): void {
  if (!Number.isSafeInteger(threads) || threads < 1) throw new RangeError('threads is a whole number from 1');
  if (!Number.isSafeInteger(queueMax) || queueMax < 1)
    throw new RangeError('queueMax is a whole number from 1');
}
