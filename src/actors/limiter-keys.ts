/** What the limiter counts by: networks of addresses, shared counters when keys run out, connections that were opened. */
import { type Network, networksOf } from '../domain/networks.ts';
import { AddressCounters, ipv4Bits, NO_IPV4 } from './address-counters.ts';

export interface Caller {
  /** Canonical text. */
  readonly address: string;
  /** Port of the peer, where the HTTP server names it. */
  readonly port: number | undefined;
  /** Named by a trusted proxy: the socket is not the client's. */
  readonly forwarded: boolean;
}

/** When the keys of a window are used up, new callers share so many counters of each kind: bounded, and still limited. */
export const SHARED_COUNTERS = 65_536;

/** The networks of IPv6 addresses: /64, /56 and /48 (networks.ts). */
export class CallerNetworks {
  #known = new Map<string, readonly Network[]>();

  /** Undefined for an IPv4 address, which is counted as it is: by far the most are, and nothing is made for them. */
  wideOf(address: string): readonly Network[] | undefined {
    if (ipv4Bits(address) !== NO_IPV4 || !address.includes(':')) return undefined;
    const known = this.#known.get(address);
    if (known !== undefined) return known;
    if (this.#known.size >= SHARED_COUNTERS) this.#known = new Map();
    const found = networksOf(address);
    this.#known.set(address, found);
    return found;
  }

  of(address: string): readonly Network[] {
    return this.wideOf(address) ?? [{ name: address, shares: 1 }];
  }

  /** What one caller usually holds: an IPv4 address, a /64. */
  narrowestOf(address: string): string {
    return this.wideOf(address)?.[0]?.name ?? address;
  }
}

/** One of the shared counters for this key, FNV-1a over the text; networks of more shares have counters of their own. */
export function sharedKey(text: string, shares = 1): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return `#${shares}:${(hash >>> 0) % SHARED_COUNTERS}`;
}

/**
 * Connections that an address opened since it was last silent for two windows (events.md, connection scope). Three
 * generations, moved on with the window: an address that is in none of them was silent for two.
 */
export class ConnectionOpens {
  readonly #keysMax: number;
  #current = new AddressCounters();
  #last = new AddressCounters();
  #before = new AddressCounters();

  constructor(keysMax: number) {
    this.#keysMax = keysMax;
  }

  of(network: string): number {
    return this.#current.get(network) ?? this.#last.get(network) ?? this.#before.get(network) ?? 0;
  }

  /** The same of a caller that is active now. */
  used(network: string): number {
    const opens = this.of(network);
    if (opens > 0) this.note(network, opens);
    return opens;
  }

  /** The address was active in this window, with so many opens so far. */
  note(network: string, opens: number): void {
    if (this.#current.size < this.#keysMax || this.#current.get(network) !== undefined)
      this.#current.set(network, opens);
  }

  /** `windows` have passed. */
  moveOn(windows: number): void {
    this.#before = windows === 1 ? this.#last : windows === 2 ? this.#current : new AddressCounters();
    this.#last = windows === 1 ? this.#current : new AddressCounters();
    this.#current = new AddressCounters();
  }
}

/**
 * One charge of a caller of several networks. Each has a limit and the tightest decides; a refusal counts in none.
 * Returns what is left after it, negative for a refusal.
 */
export function chargeNetworks(
  counters: AddressCounters,
  networks: readonly Network[],
  cost: number,
  limitOf: (name: string, shares: number) => number,
  newSlot: () => boolean,
): number {
  let left = Number.POSITIVE_INFINITY;
  const counts = networks.map(({ name, shares }) => {
    const key = counters.get(name) === undefined && !newSlot() ? sharedKey(name, shares) : name;
    const used = counters.get(key) ?? 0;
    left = Math.min(left, limitOf(name, shares) - used - cost);
    return { key, used };
  });
  for (const { key, used } of counts) counters.set(key, left >= 0 ? used + cost : used);
  return left;
}
