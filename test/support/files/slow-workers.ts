/** Worker tasks of chosen names that settle when the test says so, and are late when it says so. */

import type { WorkerPort } from '../../../src/actors/runtime/ports.ts';
import type { TaskName } from '../../../src/workers/tasks.ts';
import { inlineWorkers } from '../account.ts';
import { promiseOf } from '../http.ts';

interface SlowTask {
  late(): void;
  settle(): Promise<void>;
}

export class SlowWorkers implements WorkerPort {
  readonly #workers = inlineWorkers().workers;
  readonly #slow: ReadonlySet<TaskName>;
  readonly #begun: SlowTask[] = [];
  #onBegun: () => void = () => undefined;

  constructor(...slow: readonly TaskName[]) {
    this.#slow = new Set(slow);
  }

  run: WorkerPort['run'] = async (name, input, late = () => undefined) => {
    if (!this.#slow.has(name)) return await this.#workers.run(name, input);
    const { promise: isDone, resolve: done } = promiseOf();
    await new Promise<void>((begin) => {
      const settle = async () => {
        begin();
        await isDone;
        await new Promise((resolve) => setImmediate(resolve));
      };
      this.#begun.push({ late, settle });
      this.#onBegun();
    });
    try {
      return await this.#workers.run(name, input);
    } finally {
      done();
    }
  };

  /** The next slow task, once it is given to the workers. */
  async next(): Promise<SlowTask> {
    for (let task = this.#begun.shift(); ; task = this.#begun.shift()) {
      if (task !== undefined) return task;
      await new Promise<void>((resolve) => {
        this.#onBegun = resolve;
      });
    }
  }
}
