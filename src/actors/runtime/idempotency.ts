/**
 * Repeated commands. Owns, per actor, the replies of the last 64 Idempotency-Keys; they ride in the rows and the
 * snapshots of the actor, so a repeat after a restart gets the first reply too.
 */

import { GatewayError } from '../../domain/errors.ts';
import { keepNewest } from '../../domain/limits/newest.ts';
import type { RingEntry } from './journal/port.ts';

/** Keys kept for each actor: each costs memory and a part of every snapshot. */
export const RING_SIZE = 64;

export class IdempotencyRing {
  /** Entries in order of arrival: a Map keeps it. */
  readonly #entries = new Map<string, RingEntry>();

  get(key: string): RingEntry | undefined {
    return this.#entries.get(key);
  }

  add(entries: readonly RingEntry[]): void {
    for (const entry of entries) keepNewest(this.#entries, RING_SIZE, entry[0], entry);
  }

  entries(): RingEntry[] {
    return [...this.#entries.values()];
  }
}

/** Throws `IdempotencyKeyReused` when the key was sent with another command before. */
export function requireSame(first: string | undefined, now: string | undefined): void {
  if (first !== undefined && now !== undefined && first !== now) {
    throw new GatewayError('IdempotencyKeyReused');
  }
}
