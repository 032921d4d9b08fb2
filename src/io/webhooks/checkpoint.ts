/**
 * The position of the event log up to which nothing waits for any application that is not marked as behind: written
 * down now and then, so that a start need not look through the log for idle applications, and idle applications need
 * not write a place of their own.
 */
import type { Administration } from '../../actors/runtime/administration.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { Subscriptions } from './subscriptions.ts';

const META_KEY = 'webhooks';
const INTERVAL_MS = 30 * SECOND_MS;

export interface CheckpointOptions {
  readonly administration: Pick<Administration, 'metaGet' | 'metaPut'>;
  readonly schedule: Pick<Schedule, 'timer'>;
  readonly subscriptions: Subscriptions;
  /** Up to here every event has found its applications. */
  readonly routed: () => number;
  /** An application could not be read: it may have events before any position. */
  readonly isHeld: () => boolean;
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
    const { subscriptions, routed, isHeld, administration } = this.#options;
    if (isHeld()) return;
    let position = routed();
    for (const { backlog, view } of subscriptions.all()) {
      if (backlog.from !== null && !view.behind) position = Math.min(position, backlog.from);
    }
    if (this.#position !== undefined && position <= this.#position) return;
    this.#position = position;
    await administration.metaPut(META_KEY, position);
  }
}
