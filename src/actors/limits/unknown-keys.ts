/**
 * One window of public keys without proof of possession. A network stops at the quota of a key, all networks together
 * at ten times it, so that one network cannot lock out the owner of a key.
 */

import type { SharedWindow } from './shared-counts.ts';

/** All networks together may use a public key so many times its quota. */
const BARE_KEY_FACTOR = 10;

/** One public key's window: by all networks, by the first one, and by the others (rare). */
interface KeyUse {
  bare: number;
  readonly network: string;
  own: number;
  others: Map<string, number> | undefined;
}

interface KeyCharge {
  /** After the charge; negative: refused, and nothing was counted. */
  readonly left: number;
  /** Budget that the caller's own network has left after it, whatever others used. */
  readonly ownLeft: number;
}

export class KeyWindow {
  readonly #uses = new Map<string, KeyUse>();
  readonly #shared: SharedWindow | undefined;

  /** `shared`: other nodes count too. */
  constructor(shared?: SharedWindow) {
    this.#shared = shared;
  }

  /** Undefined when there was no room for a counter. */
  charge(
    publicKey: string,
    network: string,
    cost: number,
    quota: number,
    newSlot: () => boolean,
  ): KeyCharge | undefined {
    const use = this.#uses.get(publicKey) ?? this.#newKey(publicKey, network, newSlot);
    if (use === undefined) return undefined;
    const before = usedBy(use, network);
    if (before === undefined && !newSlot()) return undefined;
    const used = (before ?? 0) + cost;
    const bare = use.bare + cost;
    const quotaOfAll = quota * BARE_KEY_FACTOR;
    const shared = this.#shared;
    const ownLeft = quota - used - (shared?.others(nameOf(publicKey, network)) ?? 0);
    const left = Math.min(ownLeft, quotaOfAll - bare - (shared?.others(publicKey) ?? 0));
    note(use, network, left >= 0 ? used : (before ?? 0));
    if (left < 0) return { left, ownLeft };
    use.bare = bare;
    shared?.note(nameOf(publicKey, network), used, quota);
    shared?.note(publicKey, bare, quotaOfAll);
    return { left, ownLeft };
  }

  /** A charge that counts for the network alone: all together are over their share, and the caller may prove the key. */
  chargeOwn(publicKey: string, network: string, cost: number, quota: number): void {
    const use = this.#uses.get(publicKey);
    if (use === undefined) return;
    const used = (usedBy(use, network) ?? 0) + cost;
    note(use, network, used);
    this.#shared?.note(nameOf(publicKey, network), used, quota);
  }

  #newKey(publicKey: string, network: string, newSlot: () => boolean): KeyUse | undefined {
    if (!newSlot()) return undefined;
    const use: KeyUse = { bare: 0, network, own: 0, others: undefined };
    this.#uses.set(publicKey, use);
    return use;
  }
}

/** Names a pair of key and network, among the names of keys. */
function nameOf(publicKey: string, network: string): string {
  return `${publicKey} ${network}`;
}

function usedBy(use: KeyUse, network: string): number | undefined {
  return use.network === network ? use.own : use.others?.get(network);
}

function note(use: KeyUse, network: string, used: number): void {
  if (use.network === network) {
    use.own = used;
    return;
  }
  use.others ??= new Map();
  use.others.set(network, used);
}
