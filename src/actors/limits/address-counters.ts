/**
 * Counts requests by address in one window. Every request asks twice, and the cost of a question is the memory it
 * touches: a Map misses the caches three times (docs/optimizations.md). IPv4 addresses are pairs of numbers in one flat
 * table; others are in a Map.
 */
import { randomInt } from 'node:crypto';

const FIRST_SLOTS = 64;
/** Eight neighbours are one row of 64 bytes, a cache line: many callers of one network share few lines. */
const ROW_BITS = 3;
const ROW_LAST = 2 ** ROW_BITS - 1;
/**
 * A count stops here, so that it and one more fit 32 bits: no address can send so many requests in the longest
 * window.
 */
const COUNT_MAX = 2 ** 32 - 2;
export const NO_IPV4 = -1;
/** The hash is seeded per process so that an attacker cannot choose addresses that collide. */
const SEED = randomInt(2 ** 32);

export class AddressCounters {
  /** Slots of two: the address, and its count plus one. 0 there: the slot is free. A power of two of them. */
  #slots = new Uint32Array(2 * FIRST_SLOTS);
  #taken = 0;
  /** Slot at which the last question ended: a request asks and then counts. */
  #at = 0;
  #others: Map<string, number> | undefined;

  get size(): number {
    return this.#taken + (this.#others?.size ?? 0);
  }

  /** Undefined for an address that was not counted yet. */
  get(address: string): number | undefined {
    const bits = ipv4Bits(address);
    if (bits === NO_IPV4) return this.#others?.get(address);
    const count = this.#slots[this.#indexOf(bits) + 1] as number;
    return count === 0 ? undefined : count - 1;
  }

  /** `count` is an integer from 0. */
  set(address: string, count: number): void {
    const bits = ipv4Bits(address);
    if (bits === NO_IPV4) {
      this.#others ??= new Map();
      this.#others.set(address, count);
      return;
    }
    const index = this.#indexOf(bits);
    if (this.#slots[index + 1] === 0) this.#taken += 1;
    this.#slots[index] = bits;
    this.#slots[index + 1] = Math.min(count, COUNT_MAX) + 1;
    if (this.#taken * 4 > this.#slots.length) this.#grow();
  }

  /** Finds the slot of the address, or the free one for it: at least half of the slots are free, so the walk ends. */
  #indexOf(bits: number): number {
    const slots = this.#slots;
    if (slots[this.#at] === bits && slots[this.#at + 1] !== 0) return this.#at;
    const last = slots.length - 1;
    let index = ((scattered(bits >>> ROW_BITS) << (ROW_BITS + 1)) | ((bits & ROW_LAST) << 1)) & last;
    while (slots[index + 1] !== 0 && slots[index] !== bits) index = (index + 2) & last;
    this.#at = index;
    return index;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Uint32Array(2 * before.length);
    for (let from = 0; from < before.length; from += 2) {
      if (before[from + 1] === 0) continue;
      const index = this.#indexOf(before[from] as number);
      this.#slots[index] = before[from] as number;
      this.#slots[index + 1] = before[from + 1] as number;
    }
  }
}

/** The finalizer of MurmurHash3 between two uses of the seed. */
function scattered(bits: number): number {
  let hash = bits ^ SEED;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13) ^ SEED, 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

const DOT = 46;
const ZERO = 48;
/** `0.0.0.0` and `255.255.255.255`. */
const SHORTEST = 7;
const LONGEST = 15;

let lastText = '';
let lastBits = NO_IPV4;

/**
 * The 32 bits of an IPv4 address in its one canonical text, so that two texts are never one address; `NO_IPV4` for any
 * other text. Those of the last text are remembered: all that a request is charged is one address's.
 */
export function ipv4Bits(text: string): number {
  if (text !== lastText) {
    lastBits = parsed(text);
    lastText = text;
  }
  return lastBits;
}

function parsed(text: string): number {
  const { length } = text;
  if (length < SHORTEST || length > LONGEST) return NO_IPV4;
  let bits = 0;
  let part = 0;
  let digits = 0;
  let dots = 0;
  for (let at = 0; at < length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (digits === 0) return NO_IPV4;
      bits = (bits << 8) | part;
      dots += 1;
      part = 0;
      digits = 0;
      continue;
    }
    const digit = code - ZERO;
    // No other character, and no zero in front.
    if (digit < 0 || digit > 9 || (digits > 0 && part === 0)) return NO_IPV4;
    part = part * 10 + digit;
    digits += 1;
    if (part > 255) return NO_IPV4;
  }
  return dots === 3 && digits > 0 ? ((bits << 8) | part) >>> 0 : NO_IPV4;
}
