/**
 * One window of public keys without proof of possession. A network stops at the quota of a key, all networks together
 * at ten times it, so that one network cannot lock out the owner of a key.
 */

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
  /** What the caller's own network has left after it, whatever others used. */
  readonly ownLeft: number;
}

export class KeyWindow {
  readonly #uses = new Map<string, KeyUse>();

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
    const ownLeft = quota - used;
    const left = Math.min(ownLeft, quota * BARE_KEY_FACTOR - bare);
    if (left >= 0) use.bare = bare;
    note(use, network, left >= 0 ? used : (before ?? 0));
    return { left, ownLeft };
  }

  /** A charge that counts for the network alone: all together are over their share, and the caller may prove the key. */
  chargeOwn(publicKey: string, network: string, cost: number): void {
    const use = this.#uses.get(publicKey);
    if (use !== undefined) note(use, network, (usedBy(use, network) ?? 0) + cost);
  }

  #newKey(publicKey: string, network: string, newSlot: () => boolean): KeyUse | undefined {
    if (!newSlot()) return undefined;
    const use: KeyUse = { bare: 0, network, own: 0, others: undefined };
    this.#uses.set(publicKey, use);
    return use;
  }
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
