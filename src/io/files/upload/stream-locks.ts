/**
 * Which upload stream of a file runs: one at a time. A newer one asks the running one to stop and begins when it has let
 * go of the bytes; of those that wait the newest stays.
 */
import { GatewayError } from '../../../domain/errors.ts';

interface Seat {
  /** Asks the stream that runs to end soon, without an end to its draft. */
  stop: (() => void) | undefined;
  /** Who is next: `give` hands over the seat, `overtake` tells that a newer one came. */
  next: { give(): void; overtake(): void } | undefined;
  /** Who only waits for the stream to be gone. */
  watchers: (() => void)[];
}

export class StreamSeats {
  readonly #seats = new Map<string, Seat>();

  /** Streams that run. */
  get size(): number {
    return this.#seats.size;
  }

  /** Resolves with the way to leave when the seat is this stream's. Rejects with `UploadConflict` when a newer one comes. */
  take(fileId: string, stop: () => void): Promise<() => void> {
    const seat = this.#seats.get(fileId) ?? { stop: undefined, next: undefined, watchers: [] };
    this.#seats.set(fileId, seat);
    seat.next?.overtake();
    return new Promise((resolve, reject) => {
      const give = () => {
        seat.next = undefined;
        seat.stop = stop;
        resolve(() => this.#leave(fileId, seat, stop));
      };
      if (seat.stop === undefined) {
        give();
        return;
      }
      seat.next = { give, overtake: () => reject(new GatewayError('UploadConflict')) };
      seat.stop();
    });
  }

  /** Stops the stream that runs; resolves when it has left its seat. */
  clear(fileId: string): Promise<void> {
    const seat = this.#seats.get(fileId);
    const { stop } = seat ?? {};
    if (seat === undefined || stop === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      seat.watchers.push(resolve);
      stop();
    });
  }

  #leave(fileId: string, seat: Seat, stop: () => void): void {
    if (seat.stop !== stop) return;
    seat.stop = undefined;
    const { watchers } = seat;
    seat.watchers = [];
    for (const watcher of watchers) watcher();
    if (seat.next === undefined) this.#seats.delete(fileId);
    else seat.next.give();
  }
}
