/** Queues by name: of each name so many pieces of work run at once, the others wait in their order. */

interface Lane {
  running: number;
  readonly waiting: (() => void)[];
}

export class Lanes {
  readonly #widthMax: number;
  readonly #lanes = new Map<string, Lane>();

  constructor(widthMax: number) {
    this.#widthMax = widthMax;
  }

  /** Names with work, for counters. */
  get size(): number {
    return this.#lanes.size;
  }

  async run<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const lane = this.#lanes.get(name) ?? { running: 0, waiting: [] };
    this.#lanes.set(name, lane);
    if (lane.running < this.#widthMax) lane.running += 1;
    else await new Promise<void>((resolve) => lane.waiting.push(resolve));
    try {
      return await work();
    } finally {
      this.#leave(name, lane);
    }
  }

  /** Whoever waits takes the place that is left, so that nobody can slip in between. */
  #leave(name: string, lane: Lane): void {
    const next = lane.waiting.shift();
    if (next !== undefined) {
      next();
      return;
    }
    lane.running -= 1;
    if (lane.running === 0) this.#lanes.delete(name);
  }
}
