/**
 * Which upload stream of a file runs: one at a time. A newer one asks the running one to stop and begins when it has let
 * go of the bytes; of those that wait the newest stays.
 */
import { GatewayError } from '../../../domain/errors.ts';

interface StreamLock {
  /** Asks the stream that runs to end soon, without an end to its draft. */
  stop: (() => void) | undefined;
  /** Who is next: `give` hands over the seat, `overtake` tells that a newer one came. */
  next: { give(): void; overtake(): void } | undefined;
  /** Who only waits for the stream to be gone. */
  watchers: (() => void)[];
}

export class StreamLocks {
  readonly #locks = new Map<string, StreamLock>();

  /** Streams that run. */
  get size(): number {
    return this.#locks.size;
  }

  /** Resolves with the way to leave when the seat is this stream's. Rejects with `UploadConflict` when a newer one comes. */
  take(fileId: string, stop: () => void): Promise<() => void> {
    const lock = this.#locks.get(fileId) ?? { stop: undefined, next: undefined, watchers: [] };
    this.#locks.set(fileId, lock);
    lock.next?.overtake();
    return new Promise((resolve, reject) => {
      const give = () => {
        lock.next = undefined;
        lock.stop = stop;
        resolve(() => this.#leave(fileId, lock, stop));
      };
      if (lock.stop === undefined) {
        give();
        return;
      }
      lock.next = { give, overtake: () => reject(new GatewayError('UploadConflict')) };
      lock.stop();
    });
  }

  /** Stops the stream that runs; resolves when it has left its seat. */
  clear(fileId: string): Promise<void> {
    const lock = this.#locks.get(fileId);
    const { stop } = lock ?? {};
    if (lock === undefined || stop === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      lock.watchers.push(resolve);
      stop();
    });
  }

  #leave(fileId: string, lock: StreamLock, stop: () => void): void {
    if (lock.stop !== stop) return;
    lock.stop = undefined;
    const { watchers } = lock;
    lock.watchers = [];
    for (const watcher of watchers) watcher();
    if (lock.next === undefined) this.#locks.delete(fileId);
    else lock.next.give();
  }
}
