/**
 * Batches work at the end of an event-loop tick: first received items (`work`), then writes (`send`). One wake-up of the
 * receiving core then serves many writes. Measurements: docs/optimizations.md.
 */

/** Items of one batch in one tick. Further items run at once: thousands of ready sockets must not wait for each other. */
export const TICK_BATCH_MAX = 256;

type BatchPhase = 'work' | 'send' | 'end';

/** Runs all batches at the end of the tick, in three `setImmediate` callbacks. `end`: after all work of the tick. */
export class LoopTick {
  readonly #defer: (act: () => void) => unknown;
  readonly #work = () => this.#flush('work');
  readonly #send = () => {
    this.#planned = false;
    // Work that arrived meanwhile belongs to the next tick.
    if (this.#due.work.length > 0) this.#plan();
    this.#flush('send');
  };
  readonly #end = () => this.#flush('end');
  readonly #due: Record<BatchPhase, (() => void)[]> = { work: [], send: [], end: [] };
  #planned = false;

  /** `defer` runs its callbacks after the poll phase, in order, each followed by its microtasks. */
  constructor(defer: (act: () => void) => unknown = setImmediate) {
    this.#defer = defer;
  }

  /** `flush` must not throw. */
  atEnd(phase: BatchPhase, flush: () => void): void {
    this.#due[phase].push(flush);
    if (!this.#planned) this.#plan();
  }

  /**
   * The callbacks run in the same check phase with microtasks between them, so an answer that depends only on resolved
   * promises is sent in this tick. One tick later a client that half-closes after its request would count as gone.
   */
  #plan(): void {
    this.#planned = true;
    this.#defer(this.#work);
    this.#defer(this.#send);
    this.#defer(this.#end);
  }

  #flush(phase: BatchPhase): void {
    const due = this.#due[phase];
    this.#due[phase] = [];
    for (const flush of due) flush();
  }
}

/** The tick of this process, which has one event loop. */
export const LOOP_TICK = new LoopTick();

export class TickBatch<Item> {
  readonly #phase: BatchPhase;
  readonly #run: (item: Item) => void;
  readonly #tick: LoopTick;
  #items: Item[] = [];
  readonly #flush = () => {
    const items = this.#items;
    this.#items = [];
    for (const item of items) {
      try {
        this.#run(item);
      } catch (error) {
        // A bug must surface, but must not affect other requests.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  };

  /** Calls `run` once for each item in order. An error of one item is rethrown after the others have run. */
  constructor(phase: BatchPhase, run: (item: Item) => void, tick: LoopTick = LOOP_TICK) {
    this.#phase = phase;
    this.#run = run;
    this.#tick = tick;
  }

  /** Runs the item at the end of this tick, or at once when the batch is full. */
  add(item: Item): void {
    if (this.#items.length >= TICK_BATCH_MAX) {
      this.#run(item);
      return;
    }
    this.#items.push(item);
    if (this.#items.length === 1) this.#tick.atEnd(this.#phase, this.#flush);
  }
}
