/**
 * Regular work for the whole cluster, done by one node: partitions of the log, a checkpoint when enough of the log lies
 * after the newest one, and the bounds of audit records. Reads of a round that fail are tried again in the next one.
 */
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { MINUTE_MS } from '../../domain/time.ts';
import type { Checkpoints, ReplicaCheckpoint } from './checkpoints.ts';
import type { LogPartitions } from './log-partitions.ts';

interface UpkeepOptions {
  readonly partitions: Pick<LogPartitions, 'maintain'>;
  readonly checkpoints: Pick<Checkpoints, 'newest' | 'logAfter'>;
  /** Every node compares the newest checkpoint with its own state. */
  readonly compare: (newest: ReplicaCheckpoint) => Promise<unknown>;
  readonly storeState: () => Promise<unknown>;
  /** Removes audit records of calls that are beyond their bounds. */
  readonly trimAudit: () => Promise<void>;
  /** The node with the lowest number does the work, while its lease runs. */
  readonly isInCharge: () => boolean;
  readonly schedule: Pick<Schedule, 'timer'>;
  readonly onError: (error: unknown) => void;
}

const INTERVAL_MS = MINUTE_MS;
/** Bytes of the log after which a checkpoint is due: fetching and applying them takes a few seconds. */
const CHECKPOINT_BYTES = 64 * 1024 * 1024;

export class ClusterUpkeep {
  readonly #options: UpkeepOptions;
  /** The part of the log that has been measured: from a checkpoint up to a position. */
  #measured = { from: -1, to: 0, bytes: 0 };
  #cancel: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(options: UpkeepOptions) {
    this.#options = options;
    this.#wait();
  }

  /** Resolves when the round that runs has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#running;
  }

  #wait(): void {
    if (this.#stopped) return;
    this.#cancel = this.#options.schedule.timer(INTERVAL_MS, () => {
      this.#running = this.#round()
        .catch((error: unknown) => this.#options.onError(error))
        .finally(() => this.#wait());
    });
  }

  async #round(): Promise<void> {
    const { isInCharge, partitions, storeState, checkpoints, compare, trimAudit } = this.#options;
    const newest = await checkpoints.newest();
    if (newest !== undefined) await compare(newest);
    if (!isInCharge()) return;
    await partitions.maintain();
    if ((await this.#bytesAfterCheckpoint()) >= CHECKPOINT_BYTES && isInCharge()) await storeState();
    await trimAudit();
  }

  async #bytesAfterCheckpoint(): Promise<number> {
    const { checkpoints } = this.#options;
    const from = (await checkpoints.newest())?.position ?? 0;
    const known = this.#measured.from === from ? this.#measured : { from, to: from, bytes: 0 };
    const { position, bytes } = await checkpoints.logAfter(known.to);
    this.#measured = { from, to: position, bytes: known.bytes + bytes };
    return this.#measured.bytes;
  }
}
