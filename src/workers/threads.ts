/**
 * The threads of a pool. Piscina starts and replaces them; each runs one task that serves a message port for as long as the
 * thread lives. The only importer of piscina. A running task is never aborted.
 */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { PackedTask, QueueName } from './tasks.ts';
import { READY_ID, type ThreadAnswer, type ThreadRequest } from './thread.ts';

/**
 * Tasks of a queue at one thread. `compute`: enough that the thread is never idle between two answers, few enough that a
 * dead thread loses little. `make` and `publish`: syncs run on libuv's 16 threads, which the journal needs too.
 */
const IN_FLIGHT_MAX: Readonly<Record<QueueName, number>> = { compute: 32, make: 4, publish: 8 };

/** Of one thread. */
const HEAP_MIB_MAX = 256;

const QUEUES: readonly QueueName[] = ['compute', 'make', 'publish'];

export interface ThreadTask {
  readonly task: PackedTask;
  /** Called once: the answer, or undefined when the thread died with the task. */
  readonly settle: (answer: ThreadAnswer | undefined) => void;
}

interface ThreadsOptions {
  readonly threads: number;
  /** Exports `serve` (thread.ts). */
  readonly taskFile: URL;
  readonly onFault: (message: string) => void;
  /** A thread may take more tasks of this queue. */
  readonly onFree: (queue: QueueName) => void;
}

/** A thread, or the place of one that died. */
interface Thread {
  /** `starting`: its port takes tasks, but it has not served yet. */
  state: 'down' | 'starting' | 'serving';
  /** Undefined while it is down. */
  port: MessagePort | undefined;
  readonly inFlight: Map<number, ThreadTask>;
  /** Their number by queue. */
  readonly counts: Record<QueueName, number>;
  nextId: number;
  /** Takes the lasting task back from Piscina's queue. */
  withdraw: AbortController;
}

export class Threads {
  readonly #options: ThreadsOptions;
  readonly #pool: Piscina;
  readonly #threads: readonly Thread[];
  #lost = 0;
  #closing = false;

  constructor(options: ThreadsOptions) {
    this.#options = options;
    this.#pool = new Piscina({
      filename: options.taskFile.href,
      name: 'serve',
      minThreads: options.threads,
      maxThreads: options.threads,
      // A task that fills its heap ends its own thread, not the memory of the machine. Buffers of bytes do not count.
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
      // Descriptors that a task returns outlive their thread.
      trackUnmanagedFds: false,
      // Piscina's own queue holds lasting tasks only, while their threads start.
      maxQueue: options.threads,
    });
    this.#pool.on('error', (error: Error) => options.onFault(`thread died: ${error.message}`));
    this.#pool.on('workerDestroy', () => this.#onDeath());
    this.#threads = Array.from({ length: options.threads }, () => ({
      state: 'down',
      port: undefined,
      inFlight: new Map(),
      counts: { compute: 0, make: 0, publish: 0 },
      nextId: READY_ID + 1,
      withdraw: new AbortController(),
    }));
    for (const thread of this.#threads) this.#start(thread);
  }

  /** Threads that died since the start. */
  get lost(): number {
    return this.#lost;
  }

  /** Gives the task to the least busy thread. False when none can take it now; `onFree` follows. */
  send(task: ThreadTask): boolean {
    const thread = this.#choose(task.task.queue);
    if (thread === undefined) return false;
    const id = thread.nextId;
    thread.nextId += 1;
    thread.inFlight.set(id, task);
    thread.counts[task.task.queue] += 1;
    const request: ThreadRequest = [id, task.task.name, task.task.packed];
    try {
      thread.port?.postMessage(request);
    } catch (error) {
      // Data that cannot be cloned is a bug of the caller.
      take(thread, id);
      task.settle([id, undefined, `${task.task.name}: ${messageOf(error)}`]);
    }
    return true;
  }

  /** Call it when no task is left. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#pool.destroy();
    for (const { port } of this.#threads) port?.close();
  }

  /** The least busy thread. One that starts gets tasks only while none serves. */
  #choose(queue: QueueName): Thread | undefined {
    let isServed = false;
    for (const thread of this.#threads) {
      if (thread.state === 'down') this.#start(thread);
      isServed ||= thread.state === 'serving';
    }
    let least: Thread | undefined;
    let leastTasks = IN_FLIGHT_MAX[queue];
    for (const thread of this.#threads) {
      if (isServed && thread.state !== 'serving') continue;
      if (thread.counts[queue] >= leastTasks) continue;
      least = thread;
      leastTasks = thread.counts[queue];
    }
    return least;
  }

  #start(thread: Thread): void {
    const { port1, port2 } = new MessageChannel();
    thread.state = 'starting';
    thread.port = port1;
    thread.withdraw = new AbortController();
    port1.on('message', (answers: readonly ThreadAnswer[]) => {
      for (const answer of answers) this.#onAnswer(thread, answer);
    });
    const { signal } = thread.withdraw;
    this.#pool.run({ port: port2 }, { transferList: [port2], signal }).then(
      () => this.#onEnd(thread, new Error('it stopped serving')),
      (error: unknown) => this.#onEnd(thread, error),
    );
  }

  #onAnswer(thread: Thread, answer: ThreadAnswer): void {
    const [id] = answer;
    if (id === READY_ID) {
      thread.state = 'serving';
      return;
    }
    const sent = take(thread, id);
    if (sent === undefined) return;
    sent.settle(answer);
    this.#options.onFree(sent.task.queue);
  }

  /** A thread that never served is started again with the next task: a file that does not load costs no loop of starts. */
  #onEnd(thread: Thread, error: unknown): void {
    if (this.#closing) return;
    const { state, port } = thread;
    const lost = [...thread.inFlight.keys()].flatMap((id) => take(thread, id) ?? []);
    this.#options.onFault(`thread died with ${lost.length} tasks: ${messageOf(error)}`);
    port?.close();
    thread.state = 'down';
    if (state === 'serving') this.#start(thread);
    for (const { settle } of lost) settle(undefined);
    for (const queue of QUEUES) this.#options.onFree(queue);
  }

  /** Piscina does not replace a thread that dies while it starts: the lasting tasks that wait for it are taken back. */
  #onDeath(): void {
    if (this.#closing) return;
    this.#lost += 1;
    setImmediate(() => {
      const up = this.#threads.filter(({ state }) => state !== 'down');
      if (this.#pool.threads.length >= up.length) return;
      for (const { state, withdraw } of up) if (state === 'starting') withdraw.abort();
    });
  }
}

/** The task is with the thread no more. */
function take(thread: Thread, id: number): ThreadTask | undefined {
  const sent = thread.inFlight.get(id);
  if (sent === undefined) return undefined;
  thread.inFlight.delete(id);
  thread.counts[sent.task.queue] -= 1;
  return sent;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
