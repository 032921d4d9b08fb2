/**
 * Limits the connections of each network (docs/decisions/0104). uWebSockets.js does not identify a closed connection, so a
 * network is charged its recent opens, without those whose end a request saw, plus its requests and streams.
 */
import { AddressCounters } from '../../../actors/limits/address-counters.ts';
import { CallerNetworks } from '../../../actors/limits/limiter-keys.ts';
import { networkLimit, SILENT_LIFE_SECONDS } from '../../../domain/limits/bounds.ts';
import type { SharedBounds } from '../../../domain/limits/shared-bounds.ts';
import type { SharedBound } from '../../../domain/limits/shares.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import { createRangeCheck } from './client-address.ts';

/** Seconds of the longest life of a silent connection, and the current one. */
const SLOTS = SILENT_LIFE_SECONDS + 1;
/** Networks counted in one second. Above it, only the cap applies. */
const NETWORKS_MAX = 16_384;
/** Up to this share of the cap, shares are not enforced and connections stay open. */
export const FREE_SHARE = 1 / 2;

interface ConnectionSharesOptions {
  readonly bounds: SharedBounds;
  /** Addresses and CIDR blocks without a share, because they forward many clients. */
  readonly trustedProxies: readonly string[];
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number;
}

export class ConnectionShares {
  readonly #bound: SharedBound;
  /** Bounds whose holders may outlive a silent connection. */
  readonly #kept: readonly SharedBound[];
  readonly #bounds: SharedBounds;
  readonly #isTrusted: (address: string) => boolean;
  readonly #elapsed: () => number;
  readonly #networks = new CallerNetworks();
  /** Opens by network in one second each; second `n` at `n % SLOTS`. */
  readonly #slots = Array.from({ length: SLOTS }, () => new AddressCounters());
  #second = 0;

  constructor({ bounds, trustedProxies, elapsed }: ConnectionSharesOptions) {
    this.#bounds = bounds;
    this.#bound = bounds.of('connections');
    this.#kept = [bounds.of('requests'), bounds.of('eventStreams'), bounds.of('webSockets')];
    this.#isTrusted = createRangeCheck(trustedProxies);
    this.#elapsed = elapsed;
  }

  /** Is a connection accepted? `open` includes it. A refused one is not counted for its network. */
  accepts(address: string, open: number): boolean {
    const { maximum, network } = this.#bound.limits();
    if (open > maximum) {
      this.#bound.countRefusal('maximum');
      return false;
    }
    if (network >= maximum || this.#isTrusted(address)) return true;
    this.#advance();
    if (open > maximum * FREE_SHARE && this.#isOver(address)) {
      this.#bound.countRefusal('network');
      return false;
    }
    this.#count(address);
    return true;
  }

  /**
   * A connection of this peer has ended. The oldest open of its network counts no longer: which one ended is unknown, and
   * the younger ones count for longer.
   */
  closed(address: string): void {
    const { maximum, network } = this.#bound.limits();
    if (network >= maximum || this.#isTrusted(address)) return;
    this.#advance();
    for (const { name } of this.#networks.of(address)) {
      for (let second = this.#second - SLOTS + 1; second <= this.#second; second += 1) {
        const slot = this.#slots[(second + SLOTS) % SLOTS];
        const count = slot?.get(name) ?? 0;
        if (count === 0) continue;
        slot?.set(name, count - 1);
        break;
      }
    }
  }

  #isOver(address: string): boolean {
    const limits = this.#bound.limits();
    const { networks: accounts } = this.#bounds.holders.of(address);
    return this.#networks.of(address).some(({ name, shares }, index) => {
      let held = 1;
      for (const bound of this.#kept) held += bound.heldBy(accounts[index]);
      for (const slot of this.#slots) held += slot.get(name) ?? 0;
      return held > networkLimit(limits, shares);
    });
  }

  #count(address: string): void {
    const slot = this.#slots[this.#second % SLOTS];
    if (slot === undefined || slot.size >= NETWORKS_MAX) return;
    const wide = this.#networks.wideOf(address);
    if (wide === undefined) slot.set(address, (slot.get(address) ?? 0) + 1);
    else for (const { name } of wide) slot.set(name, (slot.get(name) ?? 0) + 1);
  }

  #advance(): void {
    const second = Math.floor(this.#elapsed() / SECOND_MS);
    for (let passed = Math.min(second - this.#second, SLOTS); passed > 0; passed -= 1)
      this.#slots[(second - passed + 1) % SLOTS] = new AddressCounters();
    this.#second = second;
  }
}
