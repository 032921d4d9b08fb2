/**
 * Typed API of the worker threads: a bounded queue of tasks, and the replacement of dead threads. The only importer of
 * piscina. Waiting tasks share messages to the threads (docs/optimizations.md); a running task is never aborted.
 */
import { Piscina } from 'piscina';
import type { ErrorName } from '../domain/errors.ts';
import {
  type PackedTask,
  packTask,
  type TaskInput,
  type TaskName,
  type TaskOutput,
  type TaskResult,
} from './tasks.ts';

/** Tasks of one message. 16 verifications take 2 ms of a thread; more gained nothing. */
const BATCH_TASKS_MAX = 16;
/** Messages at a thread: one that runs and one that waits, so that the thread is never idle between two. */
const BATCHES_PER_THREAD = 2;

export interface WorkerPoolOptions {
  /** At least 1. */
  readonly threads: number;
  /** Tasks waiting or running; one more is refused with `Overloaded`. */
  readonly queueMax: number;
  /** The file whose `runBatch` the threads call. Tests pass one that dies. */
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
  /** Messages to threads; `completed / batches` tasks shared one on average. */
  readonly batches: number;
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

type Settle = (result: WorkerResult<unknown>) => void;
interface QueuedTask {
  readonly task: PackedTask;
  readonly settle: Settle;
}

export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  checkOptions(options);
  const queue = new BatchQueue(options);
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

class BatchQueue {
  readonly #options: WorkerPoolOptions;
  readonly #batchesMax: number;
  #threads: Piscina;
  #waiting: QueuedTask[] = [];
  #running = 0;
  #batchesRunning = 0;
  #flushScheduled = false;
  #closing = false;
  #onIdle: (() => void) | undefined;
  #completed = 0;
  #overloaded = 0;
  #failed = 0;
  #batches = 0;
  #threadsLost = 0;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#batchesMax = options.threads * BATCHES_PER_THREAD;
    this.#threads = this.#startThreads();
  }

  add(task: PackedTask): Promise<WorkerResult<unknown>> {
    if (this.#waiting.length + this.#running >= this.#options.queueMax) {
      this.#overloaded += 1;
      return Promise.resolve({ ok: false, error: 'Overloaded' });
    }
    return new Promise((settle) => {
      this.#waiting.push({ task, settle });
      this.#schedule();
    });
  }

  counters(): WorkerCounters {
    return {
      completed: this.#completed,
      overloaded: this.#overloaded,
      failed: this.#failed,
      batches: this.#batches,
      threadsLost: this.#threadsLost,
      pending: this.#waiting.length + this.#running,
    };
  }

  async close(): Promise<void> {
    this.#closing = true;
    if (this.#waiting.length + this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    await this.#threads.destroy();
  }

  /** At the end of the event-loop tick, so that all tasks of the tick share messages. */
  #schedule(): void {
    if (this.#flushScheduled || this.#batchesRunning >= this.#batchesMax) return;
    this.#flushScheduled = true;
    setImmediate(() => {
      this.#flushScheduled = false;
      this.#flush();
    });
  }

  /** Distributes waiting tasks evenly, so that no thread is idle beside a long batch. */
  #flush(): void {
    while (this.#waiting.length > 0 && this.#batchesRunning < this.#batchesMax) {
      const free = this.#batchesMax - this.#batchesRunning;
      const size = Math.min(BATCH_TASKS_MAX, Math.ceil(this.#waiting.length / free));
      void this.#runBatch(this.#waiting.splice(0, size));
    }
  }

  async #runBatch(batch: readonly QueuedTask[]): Promise<void> {
    this.#running += batch.length;
    this.#batchesRunning += 1;
    this.#batches += 1;
    const results = await this.#send(batch);
    this.#running -= batch.length;
    this.#batchesRunning -= 1;
    for (const [index, { settle }] of batch.entries()) settle(this.#result(results?.[index]));
    if (this.#waiting.length > 0) this.#flush();
    else if (this.#running === 0) this.#onIdle?.();
  }

  /** Undefined when the thread died with the batch. */
  async #send(batch: readonly QueuedTask[]): Promise<readonly TaskResult[] | undefined> {
    try {
      return await this.#threads.run(batch.map(({ task }) => task));
    } catch (error) {
      this.#fault(`batch of ${batch.length} lost: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  #result(result: TaskResult | undefined): WorkerResult<unknown> {
    if (result?.ok === true) {
      this.#completed += 1;
      return result;
    }
    this.#failed += 1;
    if (result !== undefined) this.#fault(result.bug);
    return { ok: false, error: 'InternalError' };
  }

  #startThreads(): Piscina {
    const { threads, taskFile = new URL('./tasks.js', import.meta.url) } = this.#options;
    const pool = new Piscina({
      filename: taskFile.href,
      name: 'runBatch',
      minThreads: threads,
      maxThreads: threads,
      concurrentTasksPerWorker: BATCHES_PER_THREAD,
      // Piscina's own queue holds batches only while a thread is being replaced.
      maxQueue: this.#batchesMax,
    });
    pool.on('error', (error: Error) => this.#fault(`thread died: ${error.message}`));
    pool.on('workerDestroy', () => {
      if (this.#closing && this.#running === 0) return;
      this.#threadsLost += 1;
      setImmediate(() => this.#replaceIfEmpty(pool));
    });
    return pool;
  }

  /**
   * Piscina replaces a dead thread, but stops for good when the new one dies while it starts. A pool without threads is
   * destroyed, which fails its batches, and replaced. Only while there is work, so that a file that does not load costs
   * one start a request and no loop of starts.
   */
  #replaceIfEmpty(pool: Piscina): void {
    if (pool !== this.#threads || pool.threads.length > 0 || this.#batchesRunning === 0) return;
    this.#threads = this.#startThreads();
    pool.destroy().catch((error: unknown) => this.#fault(`old pool: ${String(error)}`));
  }

  #fault(message: string): void {
    this.#options.onFault?.(message);
  }
}

function checkOptions({ threads, queueMax }: WorkerPoolOptions): void {
  if (!Number.isSafeInteger(threads) || threads < 1) throw new RangeError('threads is a whole number from 1');
  if (!Number.isSafeInteger(queueMax) || queueMax < 1)
    throw new RangeError('queueMax is a whole number from 1');
}
