/**
 * The log position up to which applications that are not marked as behind have no backlog. It is stored periodically,
 * so that a start does not scan the log for idle applications and these store no cursor of their own.
 */
import type { Administration } from '../../actors/runtime/administration.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { Subscriptions } from './subscriptions.ts';

const META_KEY = 'webhooks';
const INTERVAL_MS = 30 * SECOND_MS;

interface CheckpointOptions {
  readonly administration: Pick<Administration, 'metaGet' | 'metaPut'>;
  readonly schedule: Pick<Schedule, 'timer'>;
  readonly subscriptions: Subscriptions;
  /** Events up to this position have been routed. */
  readonly routed: () => number;
  /** True while an application could not be loaded: it may have a backlog before any position. */
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

  /** Undefined before the first checkpoint. Never smaller than the stored one. */
  get position(): number | undefined {
    return this.#position;
  }

  /** Schedules a write; changes until then are written together. */
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

  /** Applications that are behind store their own cursor, so one that fails for days does not hold the checkpoint. */
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
