/**
 * The position of the event log up to which nothing waits for any application that is not marked as behind: written
 * down now and then, so that a start need not look through the log for idle applications, and idle applications need
 * not write a place of their own.
 */
import type { Administration } from '../../actors/runtime/administration.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { Directory } from './subscriptions.ts';

const META_KEY = 'webhooks';
const INTERVAL_MS = 30 * SECOND_MS;

export interface CheckpointOptions {
  readonly administration: Pick<Administration, 'metaGet' | 'metaPut'>;
  readonly schedule: Pick<Schedule, 'timer'>;
  readonly directory: Directory;
  /** Up to here every event has found its applications. */
  readonly routed: () => number;
  /** An application could not be read: it may have events before any position. */
  readonly held: () => boolean;
  readonly onError: (error: unknown) => void;
}

export class Checkpoint {
  readonly #options: CheckpointOptions;
  #position: number | undefined;
  #cancel: (() => void) | undefined;
  #stopped = false;

  constructor(options: CheckpointOptions) {
    this.#options = options;
    const stored = options.administration.metaGet(META_KEY);
    this.#position = typeof stored === 'number' ? stored : undefined;
  }

  /** Undefined before the first one. Never smaller than what is on disk. */
  get position(): number | undefined {
    return this.#position;
  }

  /** Something moved: written in a while, together with what moves until then. */
  moved(): void {
    if (this.#cancel !== undefined || this.#stopped) return;
    this.#cancel = this.#options.schedule.timer(INTERVAL_MS, () => {
      this.#cancel = undefined;
      this.write().catch(this.#options.onError);
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  /** Applications that are behind keep their own place on disk: one that fails for days holds nothing back. */
  async write(): Promise<void> {
    const { directory, routed, held, administration } = this.#options;
    if (held()) return;
    let position = routed();
    for (const { pending, view } of directory.all()) {
      if (pending.from !== null && !view.behind) position = Math.min(position, pending.from);
    }
    if (this.#position !== undefined && position <= this.#position) return;
    this.#position = position;
    await administration.metaPut(META_KEY, position);
  }
}
