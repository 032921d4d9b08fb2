/**
 * What leaves the process in one turn of the event loop, sent together at its end. A send wakes its receiver on another
 * core, which costs as much as the rest of a small request: the first of a row pays for all of them, because the
 * receiver is awake by the second. The loop's poll phase comes first, its check phase (`setImmediate`) right behind it,
 * so nothing waits longer than for what arrived with it. Source: docs/decisions/0066.
 */

/** In one turn. What comes beyond it is not held back: thousands of ready sockets must not wait for each other. */
export const TURN_BATCH_MAX = 256;

export class TurnBatch<Item> {
  readonly #run: (item: Item) => void;
  readonly #atEndOfTurn: (act: () => void) => unknown;
  readonly #flush = () => this.#empty();
  #items: Item[] = [];
  #planned = false;

  /** `run` is called once for each item, in their order; a throw of one is thrown again when the others have run. */
  constructor(
    run: (item: Item) => void,
    atEndOfTurn: (act: () => void) => unknown = (act) => setImmediate(act),
  ) {
    this.#run = run;
    this.#atEndOfTurn = atEndOfTurn;
  }

  /** Runs it at the end of this turn, or at once when the batch is full. */
  add(item: Item): void {
    if (this.#items.length >= TURN_BATCH_MAX) {
      this.#run(item);
      return;
    }
    this.#items.push(item);
    if (this.#planned) return;
    this.#planned = true;
    this.#atEndOfTurn(this.#flush);
  }

  #empty(): void {
    const items = this.#items;
    this.#items = [];
    this.#planned = false;
    const faults: unknown[] = [];
    for (const item of items) {
      try {
        this.#run(item);
      } catch (error) {
        faults.push(error);
      }
    }
    if (faults.length > 0) throw faults[0];
  }
}
