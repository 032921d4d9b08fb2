/** What the limiter counts by: addresses folded to what one caller usually holds, and shared counters when keys run out. */
import { networkOf } from '../domain/networks.ts';
import { AddressCounters, ipv4Bits, NO_IPV4 } from './address-counters.ts';

/** When the keys of a window are used up, new addresses share so many counters: bounded, and still limited. */
export const SHARED_COUNTERS = 65_536;

/** IPv4 as it is, v4-mapped folded; IPv6 by its /64, which one household or machine usually holds whole. */
export class AddressPrefixes {
  #known = new Map<string, string>();

  of(address: string): string {
    if (ipv4Bits(address) !== NO_IPV4 || !address.includes(':')) return address;
    const known = this.#known.get(address);
    if (known !== undefined) return known;
    if (this.#known.size >= SHARED_COUNTERS) this.#known = new Map();
    const prefix = networkOf(address);
    this.#known.set(address, prefix);
    return prefix;
  }
}

/** One of the shared counters for this key: FNV-1a over the text. */
export function sharedKey(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return `#${(hash >>> 0) % SHARED_COUNTERS}`;
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

  of(prefix: string): number {
    return this.#current.get(prefix) ?? this.#last.get(prefix) ?? this.#before.get(prefix) ?? 0;
  }

  /** The address was active in this window, with so many opens so far. */
  note(prefix: string, opens: number): void {
    if (this.#current.size < this.#keysMax || this.#current.get(prefix) !== undefined)
      this.#current.set(prefix, opens);
  }

  /** `windows` have passed. */
  moveOn(windows: number): void {
    this.#before = windows === 1 ? this.#last : windows === 2 ? this.#current : new AddressCounters();
    this.#last = windows === 1 ? this.#current : new AddressCounters();
    this.#current = new AddressCounters();
  }
}

/** One public key's window: by all addresses, by the first one, and by the others (rare). */
export interface KeyUse {
  bare: number;
  readonly address: string;
  own: number;
  others: Map<string, number> | undefined;
}
