/**
 * Worker threads of a simulation: some live, some stand still. A task of these is late after its time, and settles later
 * or never, as the pool promises (src/workers/pool.ts).
 */
import type { WorkerPort } from '../../../src/actors/runtime/ports.ts';
import type { LeaseAnswer } from '../../../src/io/files/storage/file-tasks.ts';
import { runOnLease } from '../../../src/io/files/storage/file-tasks.ts';
import type { PartLease } from '../../../src/io/files/storage/port.ts';
import type { ManualClock } from './actors.ts';

const LATE_MS = 61_000;
const STANDING_SHARE = 0.4;

interface StandingThreadsOptions {
  readonly random: () => number;
  readonly clock: ManualClock;
  /** Ends a task when the simulation likes. */
  readonly later: (end: () => void) => void;
  /** A planted fault: a pool that tells no caller that its task is late. */
  readonly isSilent: boolean;
}

export class StandingThreads implements WorkerPort {
  readonly #options: StandingThreadsOptions;
  /** False: from now on all threads live. */
  stands = true;
  /** Callers without an answer. */
  waiting = 0;
  /** Tasks that are not settled, and leases that are kept for these. */
  #late = 0;
  #kept = 0;

  constructor(options: StandingThreadsOptions) {
    this.#options = options;
  }

  /** A descriptor that is free although a task uses it, or the other way round. */
  get isDescriptorFree(): boolean {
    return this.#late !== this.#kept;
  }

  readonly run: WorkerPort['run'] = (_name, _input, late) => {
    const { random, clock, later, isSilent } = this.#options;
    const done = { ok: true, value: undefined as never } as const;
    if (!this.stands || random() >= STANDING_SHARE)
      return new Promise((resolve) => later(() => resolve(done)));
    const settles = random() < 0.5;
    return new Promise((resolve) => {
      clock.timer(LATE_MS, () => {
        if (isSilent) return;
        this.#late += 1;
        late?.();
        if (!settles) return;
        later(() => {
          this.#late -= 1;
          resolve({ ok: false, error: 'TaskTimedOut' });
        });
      });
    });
  };

  /** The process ends with all its threads. */
  crash(): void {
    this.waiting = 0;
    this.#late = 0;
    this.#kept = 0;
  }

  /** A task on the descriptor of a file, as the storage runs it. */
  async task(): Promise<LeaseAnswer<unknown>> {
    this.waiting += 1;
    const answer = await runOnLease(this, this.#lease(), 'hashRange', { fd: 0, position: 0, length: 0 });
    this.waiting -= 1;
    return answer;
  }

  #lease(): Pick<PartLease, 'keepFor'> {
    return {
      keepFor: (task) => {
        this.#kept += 1;
        void task.finally(() => {
          this.#kept -= 1;
        });
      },
    };
  }
}
