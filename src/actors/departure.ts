/**
 * Gives up the place of a node in a cluster on a stop: its health says so, then calls for its actors wait while its own
 * writes end, and go to the new owners as soon as it has left.
 */
import { NotOwner } from './runtime/not-owner.ts';
import type { Schedule } from './runtime/runtime-context.ts';
import type { RunningSystem } from './runtime/system.ts';

/** Time for writes under way to be answered; what lasts longer is answered 503. */
const HAND_OVER_MS = 500;
/** Time for the row of the leave: a database that does not answer must not hold a stop. The others expel the node. */
const LEAVE_MS = 5_000;

export class Departure {
  readonly #schedule: Schedule;
  #isAnnounced = false;
  #leaving: Promise<void> | undefined;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  /** Health is no longer reported, so that proxies send connections to other nodes. Everything is still served. */
  get isAnnounced(): boolean {
    return this.#isAnnounced;
  }

  announce(): void {
    this.#isAnnounced = true;
  }

  /** Calls for actors of this node wait: they are to go to the owner that is known then. */
  get isLeaving(): boolean {
    return this.#leaving !== undefined;
  }

  /** Runs a call for an actor of this node. While the node leaves it rejects with `NotOwner`, once that is over. */
  hold<T>(run: () => T): T | Promise<never> {
    if (this.#leaving === undefined) return run();
    return this.#leaving.then(() => {
      throw new NotOwner();
    });
  }

  /** Resolves when the other nodes own everything, or after a time without an answer of the database. */
  leave(local: Pick<RunningSystem, 'drain'>, leave: () => Promise<void>): Promise<void> {
    this.#isAnnounced = true;
    this.#leaving ??= this.#leave(local, leave);
    return this.#leaving;
  }

  async #leave(local: Pick<RunningSystem, 'drain'>, leave: () => Promise<void>): Promise<void> {
    await local.drain(HAND_OVER_MS);
    let cancel = (): void => undefined;
    const late = new Promise<void>((resolve) => {
      cancel = this.#schedule.timer(LEAVE_MS, resolve);
    });
    // A failed write has ended the process with its reason already.
    await Promise.race([leave().catch(() => undefined), late]);
    cancel();
  }
}
