/**
 * Repeated commands. Owns, per actor, the replies of the last 64 Idempotency-Keys; they ride in the rows and the
 * snapshots of the actor, so a repeat after a restart gets the first reply too.
 */
import type { RingEntry } from './journal-port.ts';

/** Keys kept for each actor. Source: architecture.md "The actor contract". */
export const RING_SIZE = 64;

export class IdempotencyRing {
  /** In order of arrival: a Map keeps it. */
  readonly #replies = new Map<string, unknown>();

  has(key: string): boolean {
    return this.#replies.has(key);
  }

  reply(key: string): unknown {
    return this.#replies.get(key);
  }

  add(entries: readonly RingEntry[]): void {
    for (const [key, reply] of entries) {
      this.#replies.delete(key);
      this.#replies.set(key, reply);
      if (this.#replies.size > RING_SIZE) {
        for (const oldest of this.#replies.keys()) {
          this.#replies.delete(oldest);
          break;
        }
      }
    }
  }

  entries(): RingEntry[] {
    return [...this.#replies];
  }
}
