/** Queues by name: of each name a limited number of calls run at once, the others wait in their order. */

interface Queue {
  running: number;
  readonly waiting: (() => void)[];
}

export class KeyedQueue {
  readonly #widthMax: number;
  readonly #queues = new Map<string, Queue>();

  constructor(widthMax: number) {
    this.#widthMax = widthMax;
  }

  /** Names with work, for counters. */
  get size(): number {
    return this.#queues.size;
  }

  async run<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const queue = this.#queues.get(name) ?? { running: 0, waiting: [] };
    this.#queues.set(name, queue);
    if (queue.running < this.#widthMax) queue.running += 1;
    else await new Promise<void>((resolve) => queue.waiting.push(resolve));
    try {
      return await work();
    } finally {
      this.#leave(name, queue);
    }
  }

  /** Hands the free slot to the first waiter directly, so that no later caller can take it in between. */
  #leave(name: string, queue: Queue): void {
    const next = queue.waiting.shift();
    if (next !== undefined) {
      next();
      return;
    }
    queue.running -= 1;
    if (queue.running === 0) this.#queues.delete(name);
  }
}
