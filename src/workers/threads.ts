/**
 * The threads of a pool. Piscina starts and replaces them; each runs one task that serves a message port for as long as the
 * thread lives. The only importer of piscina. A thread that shows no sign of life is replaced.
 */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { ErrorName } from '../domain/errors.ts';
import type { PackedTask } from './tasks.ts';
import { LIFE, PING, READY_ID, type ThreadAnswer, type ThreadLife, type ThreadRequest } from './thread.ts';

/**
 * Tasks at one thread: enough that it is never idle between two answers, few enough that a dead thread loses little. Those
 * that may sync are fewer: their caller bounds them (io/files/storage/file-calls.ts).
 */
const IN_FLIGHT_MAX = 32;

/** MiB of heap of one thread. */
const HEAP_MIB_MAX = 256;

/**
 * Intervals, each with a ping, without a sign of life: then the thread is replaced. Intervals are counted instead of time,
 * so that a process that was suspended finds its threads alive.
 */
export const SILENT_MAX = 5;
/** Tasks of a thread that starts or loads a library are not late before: that takes seconds on a busy machine. */
const STARTING_MAX = 60;
/** From here on a thread counts as silent: one ping was not answered for a whole interval. */
const SILENT_FROM = 2;
/** Replaced threads that have not ended, because a system call holds them. With so many, none is replaced any more. */
const HELD_MAX = 8;

export interface ThreadTask {
  readonly task: PackedTask;
  /** Called once: the answer, or why there is none. Nothing uses descriptor and buffer of the task any more. */
  readonly settle: (answer: ThreadAnswer | ErrorName) => void;
  /** Called once at most, before `settle`: the caller has waited long enough. */
  readonly late: () => void;
  /** Intervals since it was taken on, or sent again. */
  age: number;
  isLate: boolean;
  /** Its thread died or stood still with it: it runs once more, alone, so that no other task dies with it. */
  isRepeated: boolean;
}

interface ThreadsOptions {
  readonly threads: number;
  /** Exports `serve` (thread.ts). */
  readonly taskFile: URL;
  readonly onFault: (message: string) => void;
  readonly onFree: () => void;
  readonly onReturned: (tasks: readonly ThreadTask[]) => void;
}

/** A thread, or the place of one that died. */
interface Thread {
  /** `starting`: its port takes tasks, but it has not served yet. */
  state: 'down' | 'starting' | 'serving';
  /** Undefined while it is down. */
  port: MessagePort | undefined;
  readonly inFlight: Map<number, ThreadTask>;
  /** Number of tasks that run for the second time: one at most. */
  repeated: number;
  nextId: number;
  /** Thread id that Node gives; undefined until it serves. */
  threadId: number | undefined;
  /** Takes the lasting task back from Piscina: from its queue, or together with the thread. */
  withdraw: AbortController;
  /** The words of `LIFE`: the sign is counted up with each message and each step of a long read. */
  signs: Int32Array;
  lastSign: number;
  /** Intervals since the last sign. */
  silent: number;
  /** Intervals in which it was loading a library. */
  loading: number;
}

export class Threads {
  readonly #options: ThreadsOptions;
  readonly #pool: Piscina;
  readonly #threads: readonly Thread[];
  #lost = 0;
  #replaced = 0;
  #held = 0;
  #isReplacing = false;
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
      repeated: 0,
      nextId: READY_ID + 1,
      threadId: undefined,
      withdraw: new AbortController(),
      signs: lifeSigns(),
      lastSign: 0,
      silent: 0,
      loading: 0,
    }));
    for (const thread of this.#threads) this.#start(thread);
  }

  /** Counts since the start: threads that died, and threads that were replaced because they showed no sign of life. */
  get ended(): { readonly lost: number; readonly replaced: number } {
    return { lost: this.#lost, replaced: this.#replaced };
  }

  /** Threads that show no sign of life, and replaced ones that have not ended. */
  get stuck(): number {
    return this.#held + this.#threads.filter((thread) => isSilent(thread)).length;
  }

  /** Gives the task to the least busy thread. False when none can take it now; `onFree` follows. */
  send(sent: ThreadTask): boolean {
    const { task } = sent;
    const thread = this.#choose(sent);
    if (thread === undefined) return false;
    const id = thread.nextId;
    thread.nextId += 1;
    thread.inFlight.set(id, sent);
    if (sent.isRepeated) thread.repeated += 1;
    const request: ThreadRequest = [id, task.name, task.packed];
    try {
      thread.port?.postMessage(request);
    } catch (error) {
      // Data that cannot be cloned is a bug of the caller.
      take(thread, id);
      sent.settle([id, undefined, `${task.name}: ${messageOf(error)}`]);
    }
    return true;
  }

  /** An interval of a second has passed. */
  tick(): void {
    for (const thread of this.#threads) {
      if (thread.state === 'down') continue;
      const sign = Atomics.load(thread.signs, LIFE.sign);
      thread.silent = sign === thread.lastSign ? thread.silent + 1 : 0;
      thread.lastSign = sign;
      if (thread.state === 'starting' && thread.silent < STARTING_MAX) continue;
      if (isLoading(thread)) {
        thread.silent = 0;
        continue;
      }
      this.#ageTasks(thread);
      if (thread.state === 'starting') continue;
      if (thread.silent >= SILENT_MAX && this.#held < HELD_MAX) this.#replace(thread);
      else thread.port?.postMessage(PING);
    }
  }

  /** Call it when no task is left. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#pool.destroy();
    for (const { port } of this.#threads) port?.close();
  }

  /** The least busy thread. One that starts gets tasks only while none serves. */
  #choose({ isRepeated }: ThreadTask): Thread | undefined {
    let isServed = false;
    for (const thread of this.#threads) {
      if (thread.state === 'down') this.#start(thread);
      isServed ||= thread.state === 'serving';
    }
    let least: Thread | undefined;
    let leastTasks = isRepeated ? 1 : IN_FLIGHT_MAX;
    for (const thread of this.#threads) {
      if (isServed && thread.state !== 'serving') continue;
      if (thread.inFlight.size >= leastTasks || thread.repeated > 0) continue;
      least = thread;
      leastTasks = thread.inFlight.size;
    }
    return least;
  }

  #start(thread: Thread): void {
    const { port1, port2 } = new MessageChannel();
    thread.state = 'starting';
    thread.port = port1;
    thread.withdraw = new AbortController();
    thread.signs = lifeSigns();
    thread.lastSign = 0;
    thread.silent = 0;
    thread.loading = 0;
    port1.on('message', (answers: readonly ThreadAnswer[]) => {
      if (thread.port === port1) for (const answer of answers) this.#onAnswer(thread, answer);
    });
    const { signal } = thread.withdraw;
    const life: ThreadLife = { port: port2, signs: thread.signs };
    const ended = (error: unknown) => {
      if (thread.port === port1) this.#onEnd(thread, error);
    };
    this.#pool
      .run(life, { transferList: [port2], signal })
      .then(() => ended(new Error('it stopped serving')), ended);
  }

  #onAnswer(thread: Thread, answer: ThreadAnswer): void {
    const [id, value] = answer;
    if (id === READY_ID) {
      thread.threadId = value as number;
      thread.state = 'serving';
      thread.silent = 0;
      this.#options.onFree();
      return;
    }
    const sent = take(thread, id);
    if (sent === undefined) return;
    sent.settle(answer);
    this.#options.onFree();
  }

  /** A thread that never served is started again with the next task: a file that does not load costs no loop of starts. */
  #onEnd(thread: Thread, error: unknown): void {
    if (this.#closing) return;
    const { state, port } = thread;
    const tasks = takeAll(thread);
    this.#options.onFault(`thread died with ${tasks.length} tasks: ${messageOf(error)}`);
    port?.close();
    thread.port = undefined;
    thread.state = 'down';
    if (state === 'serving') this.#start(thread);
    this.#giveBack(tasks, 'InternalError');
  }

  /**
   * Piscina terminates the thread and starts another one at once. A thread that a system call holds ends when that call
   * returns: until then its tasks that hold a file are not settled.
   */
  #replace(thread: Thread): void {
    const { port, withdraw, silent } = thread;
    const tasks = takeAll(thread);
    const isHolding = ({ task }: ThreadTask) => task.holdsFile;
    const held = tasks.filter(isHolding);
    this.#options.onFault(`thread replaced with ${tasks.length} tasks: no sign of life for ${silent} s`);
    this.#replaced += 1;
    this.#held += 1;
    const ended = () => {
      this.#held -= 1;
      this.#giveBack(held, 'TaskTimedOut');
    };
    // Its port closes before: the end of a thread waits for the system calls that libuv runs for it.
    const worker = this.#pool.threads.find(({ threadId }) => threadId === thread.threadId);
    if (worker === undefined) port?.once('close', ended);
    else worker.once('exit', ended);
    port?.unref();
    this.#start(thread);
    this.#isReplacing = true;
    withdraw.abort();
    this.#isReplacing = false;
    for (const sent of held) makeLate(sent);
    this.#giveBack(
      tasks.filter((sent) => !isHolding(sent)),
      'TaskTimedOut',
    );
  }

  /** Tasks whose thread has ended: pure ones run once more. */
  #giveBack(tasks: readonly ThreadTask[], error: ErrorName): void {
    const returned: ThreadTask[] = [];
    for (const sent of tasks) {
      if (sent.task.isPure && !sent.isRepeated && !sent.isLate) returned.push(sent);
      else sent.settle(error);
    }
    for (const sent of returned) {
      sent.isRepeated = true;
      sent.age = 0;
    }
    this.#options.onReturned(returned);
    this.#options.onFree();
  }

  /** While its thread may be replaced, a pure task waits for that. */
  #ageTasks(thread: Thread): void {
    const isReplaceable = thread.state === 'serving' && isSilent(thread) && this.#held < HELD_MAX;
    for (const [id, sent] of thread.inFlight) {
      sent.age += 1;
      if (sent.age <= sent.task.limitSeconds) continue;
      if (sent.task.holdsFile) makeLate(sent);
      else if (!isReplaceable) {
        take(thread, id);
        sent.settle('TaskTimedOut');
        this.#options.onFree();
      }
    }
  }

  /** Piscina does not replace a thread that dies while it starts: the lasting tasks that wait for it are taken back. */
  #onDeath(): void {
    if (this.#closing || this.#isReplacing) return;
    this.#lost += 1;
    setImmediate(() => {
      const up = this.#threads.filter(({ state }) => state !== 'down');
      if (this.#pool.threads.length >= up.length) return;
      for (const { state, withdraw } of up) if (state === 'starting') withdraw.abort();
    });
  }
}

function lifeSigns(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(Object.keys(LIFE).length * Int32Array.BYTES_PER_ELEMENT));
}

/** Counts the intervals too: a library that never loads is late as a thread that never starts. */
function isLoading(thread: Thread): boolean {
  if (Atomics.load(thread.signs, LIFE.loading) === 0) return false;
  thread.loading += 1;
  return thread.loading < STARTING_MAX;
}

function isSilent({ state, silent }: Thread): boolean {
  return state === 'serving' ? silent >= SILENT_FROM : silent >= STARTING_MAX;
}

function makeLate(sent: ThreadTask): void {
  if (sent.isLate) return;
  sent.isLate = true;
  sent.late();
}

/** The task is with the thread no more. */
function take(thread: Thread, id: number): ThreadTask | undefined {
  const sent = thread.inFlight.get(id);
  if (sent === undefined) return undefined;
  thread.inFlight.delete(id);
  if (sent.isRepeated) thread.repeated -= 1;
  return sent;
}

function takeAll(thread: Thread): ThreadTask[] {
  return [...thread.inFlight.keys()].flatMap((id) => take(thread, id) ?? []);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
