/**
 * The log position up to which applications that are not marked as behind have no backlog. It is stored periodically,
 * so that a start does not scan the log for idle applications and these store no cursor of their own. One machine has one;
 * nodes have one for each partition, which its next owner continues.
 */
import type { Administration } from '../../actors/runtime/administration.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { PARTITIONS } from '../../domain/ids.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { Subscriptions } from './subscriptions.ts';

const META_KEY = 'webhooks';
const INTERVAL_MS = 30 * SECOND_MS;

interface CheckpointOptions {
  readonly administration: Pick<Administration, 'metaGet' | 'metaPut'>;
  readonly schedule: Pick<Schedule, 'timer'>;
  readonly subscriptions: Subscriptions;
  /** Partition of an application; undefined on one machine. */
  readonly partitionOf: ((appId: string) => number) | undefined;
  /** Events up to this position have been routed. */
  readonly routed: () => number;
  /** True while an application could not be loaded: it may have a backlog before any position. */
  readonly isHeld: () => boolean;
  readonly onError: (error: unknown) => void;
}

export class Checkpoint {
  readonly #options: CheckpointOptions;
  /** Positions by key. */
  readonly #positions = new Map<string, number>();
  #cancel: (() => void) | undefined;
  #stopped = false;

  constructor(options: CheckpointOptions) {
    this.#options = options;
  }

  /**
   * Position of the checkpoint on one machine: undefined before the first one, never smaller than the stored one. A
   * journal that nodes wrote has one for each partition instead: it is read from the beginning, and cursors say which
   * events were delivered.
   */
  get position(): number | undefined {
    return this.#positionAt(META_KEY) ?? (this.#isFromNodes ? 0 : undefined);
  }

  get #isFromNodes(): boolean {
    const { administration } = this.#options;
    for (let partition = 0; partition < PARTITIONS; partition += 1)
      if (administration.metaGet(keyOf(partition)) !== undefined) return true;
    return false;
  }

  positionOf(appId: string): number | undefined {
    return this.#positionAt(keyOf(this.#options.partitionOf?.(appId)));
  }

  /** Schedules a write; changes until then are written together. */
  moved(): void {
    if (this.#cancel !== undefined || this.#stopped) return;
    this.#cancel = this.#options.schedule.timer(INTERVAL_MS, () => {
      this.#cancel = undefined;
      this.write().catch(this.#options.onError);
    });
  }

  /** Other nodes may have written some of them. */
  ownershipChanged(): void {
    this.#positions.clear();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  /** Applications that are behind store their own cursor, so one that fails for days does not hold the checkpoint. */
  async write(): Promise<void> {
    const { subscriptions, routed, isHeld, administration, partitionOf } = this.#options;
    if (isHeld()) return;
    const positions = new Map<number | undefined, number>();
    if (partitionOf === undefined) positions.set(undefined, routed());
    for (const { backlog, view } of subscriptions.all()) {
      const partition = partitionOf?.(view.appId);
      const position = positions.get(partition) ?? routed();
      const holds = backlog.from !== null && !view.behind;
      positions.set(partition, holds ? Math.min(position, backlog.from) : position);
    }
    const writes: Promise<void>[] = [];
    for (const [partition, position] of positions) {
      const key = keyOf(partition);
      const known = this.#positionAt(key);
      if (known !== undefined && position <= known) continue;
      this.#positions.set(key, position);
      writes.push(administration.metaPut(key, position, partition));
    }
    await Promise.all(writes);
  }

  /** A partition without one continues from that of the machine that the cluster began with. */
  #positionAt(key: string): number | undefined {
    const known = this.#positions.get(key);
    if (known !== undefined) return known;
    const { administration } = this.#options;
    const stored = administration.metaGet(key) ?? administration.metaGet(META_KEY);
    if (typeof stored !== 'number') return undefined;
    this.#positions.set(key, stored);
    return stored;
  }
}

/** `partition`: undefined on one machine. */
function keyOf(partition: number | undefined): string {
  return partition === undefined ? META_KEY : `${META_KEY}.${partition}`;
}
