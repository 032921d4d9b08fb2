/**
 * Bound on file system calls that run on libuv's 16 threads. A call that hangs holds one of them until it settles, and the
 * journal needs these threads too: all file work together holds at most eight.
 */
import { GatewayError } from '../../../domain/errors.ts';
import { SECOND_MS } from '../../../domain/time.ts';

const CALLS_MAX = 8;
/**
 * Tasks of worker threads, among these calls, that may wait for a sync. Two threads remain for reads while the disk
 * syncs.
 */
const SYNCS_MAX = 6;
/** Calls that wait for a thread: those of all uploads and downloads. One more is refused with `Overloaded`. */
const WAITING_MAX = 10_000;
/**
 * Intervals of a second. Intervals are counted instead of time, so that a process that was suspended finds its calls alive.
 * Afterwards a call stands still: when all do, others are refused at once.
 */
const STILL_AFTER = 5;
/** Afterwards the caller is answered. The limit of a write in the worker threads. */
const LATE_AFTER = 60;

export interface FileCallCounters {
  /** Calls that hold a thread of libuv, and calls that wait for one. */
  readonly running: number;
  readonly waiting: number;
  /** Running calls that stand still. */
  readonly stuck: number;
  /** Not begun: all calls stood still, too many waited, or it waited too long. */
  readonly refused: number;
  /** Not settled in their time: their callers were answered before. */
  readonly timedOut: number;
}

/** Called once at most, before the call settles: its caller has waited long enough. */
export type OnLate = () => void;

/** `call`: one call of the main thread. `sync`: a task of a worker thread that may sync; its pool says when it is late. */
type CallKind = 'call' | 'sync';

interface FileCall {
  readonly kind: CallKind;
  /** It frees what a former call took: it waits as long as it must. */
  readonly frees: boolean;
  readonly start: () => void;
  readonly refuse: (error: GatewayError) => void;
  readonly late: OnLate | undefined;
  /** Calls start in this order. */
  order: number;
  /** Intervals since it started; before that, since it began to wait. */
  age: number;
  isStill: boolean;
  isLate: boolean;
}

type Interval = (tick: () => void) => { cancel(): void };

export class FileCalls {
  readonly #interval: { cancel(): void };
  readonly #running: FileCall[] = [];
  readonly #waiting: Record<CallKind, FileCall[]> = { call: [], sync: [] };
  #syncs = 0;
  #still = 0;
  #stillSyncs = 0;
  #order = 0;
  #refused = 0;
  #timedOut = 0;

  constructor(interval: Interval = everySecond) {
    this.#interval = interval(() => this.#tick());
  }

  /** Running calls that stand still. */
  get stuck(): number {
    return this.#still;
  }

  /** All calls stand still: another one would be refused. */
  get standStill(): boolean {
    return this.#still === CALLS_MAX;
  }

  /** The error of what does not begin. Counted. */
  refusal(error: 'TaskTimedOut' | 'Overloaded'): GatewayError {
    this.#refused += 1;
    return new GatewayError(error);
  }

  counters(): FileCallCounters {
    return {
      running: this.#running.length,
      waiting: this.#waiting.call.length + this.#waiting.sync.length,
      stuck: this.#still,
      refused: this.#refused,
      timedOut: this.#timedOut,
    };
  }

  /**
   * Runs one call, or waits for a thread first. Rejects with `TaskTimedOut` or `Overloaded` only before it begins. When it
   * hangs, the promise does not settle: the caller is answered by `late`, because the call still uses what it was given.
   */
  run<T>(call: () => Promise<T>, late?: OnLate): Promise<T> {
    return this.#promise('call', false, call, late);
  }

  /** Runs a call that frees what a former one took, such as a close: it is never refused. */
  free(call: () => Promise<void>, late?: OnLate): Promise<void> {
    return this.#promise('call', true, call, late);
  }

  /** Runs a task of a worker thread that may sync. It calls what it gets when it is late. */
  sync<T>(task: (late: OnLate) => Promise<T>, late?: OnLate): Promise<T> {
    const work = (call: FileCall) =>
      task(() => {
        this.#onStill(call);
        this.#onLate(call);
      });
    return this.#promise('sync', false, work, late);
  }

  /**
   * Runs `work`, and rejects with `TaskTimedOut` when a call of it is late. It continues by itself; `abandoned` gets what it
   * resolves with then.
   */
  answer<T>(work: (late: OnLate) => Promise<T>, abandoned?: (value: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const late = () => {
        isAnswered = true;
        reject(new GatewayError('TaskTimedOut'));
      };
      work(late).then((value) => (isAnswered ? abandoned?.(value) : resolve(value)), reject);
    });
  }

  /** Without a promise, for a call that is made often: `start` gets what it calls when the call has settled. */
  begin(
    start: (settled: () => void) => void,
    refuse: (error: GatewayError) => void,
    late: OnLate | undefined,
  ): void {
    const call = newCall('call', false, () => start(() => this.#onSettled(call)), refuse, late);
    this.#add(call);
  }

  close(): void {
    this.#interval.cancel();
  }

  #promise<T>(
    kind: CallKind,
    frees: boolean,
    work: (call: FileCall) => Promise<T>,
    late: OnLate | undefined,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = async () => {
        try {
          resolve(await work(call));
        } catch (error) {
          reject(error);
        } finally {
          this.#onSettled(call);
        }
      };
      const call = newCall(kind, frees, () => void start(), reject, late);
      this.#add(call);
    });
  }

  #add(call: FileCall): void {
    const { kind, frees } = call;
    const waiting = this.#waiting[kind];
    if (waiting.length === 0 && this.#hasRoom(kind)) this.#start(call);
    else if (!frees && this.#standsStill(kind)) call.refuse(this.refusal('TaskTimedOut'));
    else if (!frees && waiting.length >= WAITING_MAX) call.refuse(this.refusal('Overloaded'));
    else {
      this.#order += 1;
      call.order = this.#order;
      waiting.push(call);
    }
  }

  #hasRoom(kind: CallKind): boolean {
    return this.#running.length < CALLS_MAX && (kind === 'call' || this.#syncs < SYNCS_MAX);
  }

  /** Do all calls stand still whose end a call of this kind would wait for? */
  #standsStill(kind: CallKind): boolean {
    return this.standStill || (kind === 'sync' && this.#stillSyncs === SYNCS_MAX);
  }

  #start(call: FileCall): void {
    call.age = 0;
    this.#running.push(call);
    if (call.kind === 'sync') this.#syncs += 1;
    call.start();
  }

  #onSettled(call: FileCall): void {
    this.#running.splice(this.#running.indexOf(call), 1);
    if (call.kind === 'sync') this.#syncs -= 1;
    if (call.isStill) this.#countStill(call, -1);
    for (let next = this.#takeNext(); next !== undefined; next = this.#takeNext()) this.#start(next);
  }

  /** The call that has waited longest, of those that have room. */
  #takeNext(): FileCall | undefined {
    const [first] = this.#hasRoom('call') ? this.#waiting.call : [];
    const [sync] = this.#hasRoom('sync') ? this.#waiting.sync : [];
    const next = first === undefined || (sync !== undefined && sync.order < first.order) ? sync : first;
    if (next !== undefined) this.#waiting[next.kind].shift();
    return next;
  }

  #tick(): void {
    for (const call of [...this.#running]) {
      call.age += 1;
      if (call.kind === 'sync') continue;
      if (call.age > STILL_AFTER) this.#onStill(call);
      if (call.age > LATE_AFTER) this.#onLate(call);
    }
    this.#tickWaiting('call');
    this.#tickWaiting('sync');
  }

  #tickWaiting(kind: CallKind): void {
    const waiting = this.#waiting[kind];
    const ended: FileCall[] = [];
    const kept = waiting.filter((call) => {
      call.age += 1;
      const isLate = call.age > LATE_AFTER;
      const isOver = !call.frees && (isLate || this.#standsStill(kind));
      if (isOver) ended.push(call);
      else if (isLate) this.#onLate(call);
      return !isOver;
    });
    if (ended.length === 0) return;
    waiting.splice(0, waiting.length, ...kept);
    for (const call of ended) call.refuse(this.refusal('TaskTimedOut'));
  }

  #onStill(call: FileCall): void {
    if (call.isStill) return;
    call.isStill = true;
    this.#countStill(call, 1);
  }

  #countStill({ kind }: FileCall, change: 1 | -1): void {
    this.#still += change;
    if (kind === 'sync') this.#stillSyncs += change;
  }

  #onLate(call: FileCall): void {
    if (call.isLate) return;
    call.isLate = true;
    this.#timedOut += 1;
    call.late?.();
  }
}

function newCall(
  kind: CallKind,
  frees: boolean,
  start: () => void,
  refuse: (error: GatewayError) => void,
  late: OnLate | undefined,
): FileCall {
  return { kind, frees, start, refuse, late, order: 0, age: 0, isStill: false, isLate: false };
}

function everySecond(tick: () => void): { cancel(): void } {
  const timer = setInterval(tick, SECOND_MS).unref();
  return { cancel: () => clearInterval(timer) };
}
