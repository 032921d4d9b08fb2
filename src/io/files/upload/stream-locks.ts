/**
 * One lock for each file: at most one upload stream of a file runs. A newer stream stops the running one and starts when
 * that one has released the lock. Of several waiting streams only the newest is kept.
 */
import { GatewayError } from '../../../domain/errors.ts';

interface StreamLock {
  /** Asks the running stream to end soon, which does not end its draft. */
  stop: (() => void) | undefined;
  /** The waiting stream: `give` grants the lock, `supersede` rejects because a newer stream arrived. */
  next: { give(): void; supersede(): void } | undefined;
  /** Called when the running stream has released the lock. */
  watchers: (() => void)[];
}

export class StreamLocks {
  readonly #locks = new Map<string, StreamLock>();

  /** Streams that run. */
  get size(): number {
    return this.#locks.size;
  }

  /** Resolves with the release function once the lock is held. Rejects with `UploadConflict` when a newer stream arrives. */
  take(fileId: string, stop: () => void): Promise<() => void> {
    const lock = this.#locks.get(fileId) ?? { stop: undefined, next: undefined, watchers: [] };
    this.#locks.set(fileId, lock);
    lock.next?.supersede();
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
      lock.next = { give, supersede: () => reject(new GatewayError('UploadConflict')) };
      lock.stop();
    });
  }

  /** Stops the stream that runs; resolves when it has released the lock. */
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
