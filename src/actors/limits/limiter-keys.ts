/**
 * Keys that the limiter counts by: networks of addresses, shared counters when keys run out, connections that were
 * opened.
 */
import { SILENT_LIFE_SECONDS } from '../../domain/limits/bounds.ts';
import { type Network, networksOf } from '../../domain/limits/networks.ts';
import { AddressCounters, ipv4Bits, NO_IPV4 } from './address-counters.ts';
import type { SharedWindow } from './shared-counts.ts';

export interface CallerAddress {
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

  /** Undefined for an IPv4 address, which is its own key: most addresses are, and nothing is allocated for them. */
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

  /** Returns the network that one caller usually holds: an IPv4 address, a /64. */
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
 * Connections of each network that count for its pool (decision 0105). These are all it opened in this window, and
 * earlier ones up to the number open in the whole process when the window began.
 */
export class ConnectionOpens {
  readonly #keysMax: number;
  #current = new AddressCounters();
  /** Earlier windows, the newest first. A network that is in none of them holds no silent connection any more. */
  #earlier: AddressCounters[] = [];
  #earlierMax = 0;
  /** Networks of one window; those of all windows together are at most `keysMax`. */
  #room: number;

  constructor(keysMax: number) {
    this.#keysMax = keysMax;
    this.#room = keysMax;
  }

  /** One more connection of the network. */
  add(network: string): void {
    this.#note(network, this.of(network) + 1);
  }

  /** Connections of a network that makes a request now; 0 where none is known. */
  of(network: string): number {
    const known = this.#current.get(network);
    if (known !== undefined) return known;
    const kept = Math.min(this.#before(network), this.#earlierMax);
    if (kept > 0) this.#note(network, kept);
    return kept;
  }

  /**
   * `windows` of `windowSeconds` each have passed. `open`: connections of the process at the start of the new one. A
   * connection outlives its last request by at most `SILENT_LIFE_SECONDS`, and so many windows are remembered.
   */
  moveOn(windows: number, windowSeconds: number, open: number): void {
    const kept = 1 + Math.floor(SILENT_LIFE_SECONDS / windowSeconds);
    const passed = Array.from({ length: Math.min(windows - 1, kept) }, () => new AddressCounters());
    this.#earlier = [...passed, this.#current, ...this.#earlier].slice(0, kept);
    this.#current = new AddressCounters();
    this.#earlierMax = open;
    this.#room = Math.ceil(this.#keysMax / (kept + 1));
  }

  #before(network: string): number {
    for (const window of this.#earlier) {
      const count = window.get(network);
      if (count !== undefined) return count;
    }
    return 0;
  }

  #note(network: string, count: number): void {
    if (this.#current.size < this.#room || this.#current.get(network) !== undefined)
      this.#current.set(network, count);
  }
}

/**
 * One charge of a caller of several networks. Each has a limit and the tightest decides; a refusal counts in none.
 * `shared`: other nodes count too. Returns what is left after it, negative for a refusal.
 */
export function chargeNetworks(
  counters: AddressCounters,
  networks: readonly Network[],
  cost: number,
  limitOf: (name: string, shares: number) => number,
  newSlot: () => boolean,
  shared?: SharedWindow,
): number {
  let left = Number.POSITIVE_INFINITY;
  const counts = networks.map(({ name, shares }) => {
    const key = counters.get(name) === undefined && !newSlot() ? sharedKey(name, shares) : name;
    const used = counters.get(key) ?? 0;
    const limit = limitOf(name, shares);
    left = Math.min(left, limit - used - (shared?.others(key) ?? 0) - cost);
    return { key, used, limit };
  });
  for (const { key, used, limit } of counts) {
    counters.set(key, left >= 0 ? used + cost : used);
    if (left >= 0) shared?.note(key, used + cost, limit);
  }
  return left;
}
