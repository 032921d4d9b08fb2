/**
 * Bounds the refusals of callers without an account in the audit log. Beyond a share of each minute they are only
 * counted. An attacker thus cannot push acts of admins and users out of the log.
 */
import { networkLimit } from '../../../domain/limits/bounds.ts';
import { type Network, networksOf } from '../../../domain/limits/networks.ts';
import { MINUTE_MS } from '../../../domain/time.ts';
import type { AuditRecord } from '../actor.ts';

/** Refusals of one share of a network in a minute, so that one guesser does not use up what all share. */
const REFUSALS_PER_NETWORK_MAX = 10;

export class RefusalBudget {
  #minute = -1;
  #recorded = 0;
  #left = 0;
  readonly #byNetwork = new Map<string, number>();

  /**
   * May this refusal be recorded? `caller`: an address, or a text that stands for itself. `max` is the share of all
   * callers in one minute; the networks that are remembered are bounded by it.
   */
  take(caller: string, max: number, nowMs: number): boolean {
    this.#moveOn(nowMs);
    const networks = networksOf(caller);
    const limits = { maximum: max, network: REFUSALS_PER_NETWORK_MAX };
    const isOver = ({ name, shares }: Network) =>
      (this.#byNetwork.get(name) ?? 0) >= networkLimit(limits, shares);
    if (this.#recorded >= max || networks.some(isOver)) {
      this.#left += 1;
      return false;
    }
    this.#recorded += 1;
    for (const { name } of networks) this.#byNetwork.set(name, (this.#byNetwork.get(name) ?? 0) + 1);
    return true;
  }

  /** The one record of those that were left out, once their minute is over. */
  summary(nowMs: number): AuditRecord | undefined {
    if (this.#left === 0 || Math.floor(nowMs / MINUTE_MS) === this.#minute) return undefined;
    const fields = { count: this.#left, fromUtcMs: this.#minute * MINUTE_MS };
    this.#left = 0;
    return { utcMs: nowMs, event: 'refusals_left_out', userId: null, fields };
  }

  #moveOn(nowMs: number): void {
    const minute = Math.floor(nowMs / MINUTE_MS);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.#recorded = 0;
    this.#byNetwork.clear();
  }
}
