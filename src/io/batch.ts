/**
 * Work of one turn of the event loop, done in rows at its end: first what arrived (`work`), then what leaves (`send`).
 * A send wakes its receiver on another core, which costs as much as the rest of a small request: the first of a row pays
 * for all of them, because the receiver is awake by the second. And a row of the same work finds its code in the
 * processor's caches. The loop's poll phase comes first, its check phase (`setImmediate`) right behind it, so nothing
 * waits longer than for what arrived with it. Source: docs/optimizations.md.
 */

/** Of one batch in one turn. What comes beyond it is not held back: thousands of ready sockets must not wait for each other. */
export const TICK_BATCH_MAX = 256;

export type BatchPhase = 'work' | 'send';

/** The end of the turn, two appointments for all batches. */
export class LoopTick {
  readonly #defer: (act: () => void) => unknown;
  readonly #work = () => this.#flush('work');
  readonly #send = () => {
    this.#planned = false;
    // What came while the work ran, or behind it, is the next turn's.
    if (this.#due.work.length > 0) this.#plan();
    this.#flush('send');
  };
  readonly #due: Record<BatchPhase, (() => void)[]> = { work: [], send: [] };
  #planned = false;

  /** `later` runs what it is given when the loop has taken what is there, in order, with the microtasks of each behind it. */
  constructor(defer: (act: () => void) => unknown = (act) => setImmediate(act)) {
    this.#defer = defer;
  }

  /** `flush` may not throw. */
  atEnd(phase: BatchPhase, flush: () => void): void {
    this.#due[phase].push(flush);
    if (!this.#planned) this.#plan();
  }

  /**
   * An appointment for each row, both in the same check phase: between them run the microtasks, so that what a handler
   * comes to by promises that are kept already still leaves in this turn. A turn later its client could be gone: one
   * that closes its side behind its request is read as gone by then.
   */
  #plan(): void {
    this.#planned = true;
    this.#defer(this.#work);
    this.#defer(this.#send);
  }

  #flush(phase: BatchPhase): void {
    const due = this.#due[phase];
    this.#due[phase] = [];
    for (const flush of due) flush();
  }
}

const LOOP_TICK = new LoopTick();

export class TickBatch<Item> {
  readonly #phase: BatchPhase;
  readonly #run: (item: Item) => void;
  readonly #tick: LoopTick;
  readonly #flush = () => this.#empty();
  #items: Item[] = [];

  /** `run` is called once for each item, in their order; a throw of one is thrown for itself when the others have run. */
  constructor(phase: BatchPhase, run: (item: Item) => void, tick: LoopTick = LOOP_TICK) {
    this.#phase = phase;
    this.#run = run;
    this.#tick = tick;
  }

  /** Runs it at the end of this turn, or at once when the batch is full. */
  add(item: Item): void {
    if (this.#items.length >= TICK_BATCH_MAX) {
      this.#run(item);
      return;
    }
    this.#items.push(item);
    if (this.#items.length === 1) this.#tick.atEnd(this.#phase, this.#flush);
  }

  #empty(): void {
    const items = this.#items;
    this.#items = [];
    for (const item of items) {
      try {
        this.#run(item);
      } catch (error) {
        // A bug must show, but nobody else's request may suffer from it.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
