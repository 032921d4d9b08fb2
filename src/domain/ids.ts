/**
 * Identifiers and tokens. A gateway id is an int64 "tick": Unix milliseconds times 2^20 plus a counter, a decimal
 * string on the wire and in the code. Tokens (`sid`, `sessionId`) are 2 bytes of partition and 32 random bytes in
 * base64url, 46 characters; only their SHA-256 is ever stored.
 */
import { hash } from 'node:crypto';

/** Largest id that fits int64, and the smallest number that does. */
export const ID_MAX = 2n ** 63n - 1n;
export const ID_MIN = -(2n ** 63n);
const COUNTER_BITS = 20n;
const COUNTER_MASK = (1n << COUNTER_BITS) - 1n;
/** Counters from here on are of derived ids: ticks pass them over. */
const DERIVED_COUNTER = 2 ** 19;
const DERIVED_BIT = BigInt(DERIVED_COUNTER);
/** Nodes of a cluster; the number of a node is the lowest 6 bits of its ids (decision 0206). */
export const NODES_MAX = 64;
export const PARTITIONS = 256;
const TOKEN_LENGTH = 46;
const TOKEN_PATTERN = /^[A-Za-z0-9_-]+$/;
const DECIMAL_PATTERN = /^(?:0|[1-9][0-9]{0,18})$/;

/**
 * Strictly increasing ticks. Starts above `floor`, so ids stay unique when the clock was set back. Of a node: 8,192 in a
 * millisecond, none of them an id of another node. More than fit take ids of the next millisecond.
 */
export class TickSource {
  /** The highest of its ids that is given or not above the floor. */
  #last = -1n;
  readonly #node: bigint;
  readonly #step: bigint;

  /** `node`: 0 to 63; undefined where there is one machine. */
  constructor(floor = 0n, node?: number) {
    if (node !== undefined && !(Number.isInteger(node) && node >= 0 && node < NODES_MAX))
      throw new RangeError(`a node is 0 to ${NODES_MAX - 1}`);
    this.#node = BigInt(node ?? 0);
    this.#step = node === undefined ? 1n : BigInt(NODES_MAX);
    this.raise(floor);
  }

  /** Ids from now on are above that one too. */
  raise(floor: bigint): void {
    const own = floor - (floor % this.#step) + this.#node;
    const below = own > floor ? own - this.#step : own;
    if (below > this.#last) this.#last = below;
  }

  next(nowMs: number): bigint {
    const fromClock = tickAt(nowMs) | this.#node;
    if (fromClock > this.#last) this.#last = fromClock;
    else {
      const next = this.#last + this.#step;
      this.#last = (next & DERIVED_BIT) === 0n ? next : ((next | COUNTER_MASK) + 1n) | this.#node;
    }
    return this.#last;
  }

  get last(): bigint {
    return this.#last;
  }
}

/** The first id that a clock gives at that moment, without the number of a node. */
export function tickAt(utcMs: number): bigint {
  return BigInt(Math.trunc(utcMs)) << COUNTER_BITS;
}

/** Returns the time at which an id was given, by the clock that gave it. Unix milliseconds. */
export function msOfId(id: string): number {
  return Number(BigInt(id) >> COUNTER_BITS);
}

/** An id of that moment that is computed and not counted. The lowest 19 bits of `bits` go in: none of the ticks is the same. */
export function derivedId(utcMs: number, bits: number): string {
  const counter = DERIVED_COUNTER + (bits % DERIVED_COUNTER);
  return String((BigInt(utcMs) << COUNTER_BITS) | BigInt(counter));
}

/** Reads an id from a decimal string or a safe integer; undefined when it is neither, negative or above int64. */
export function parseId(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? String(value) : undefined;
  if (typeof value !== 'string' || !DECIMAL_PATTERN.test(value)) return undefined;
  return BigInt(value) <= ID_MAX ? value : undefined;
}

/** Strict canonical base64url: one spelling per byte string, exact length where one is given. */
export function decodeBase64url(text: string, byteLength?: number): Buffer | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  if (byteLength !== undefined && bytes.length !== byteLength) return undefined;
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** The partition of a user, 0 to 255: leads every token, so that any node finds the owner without a look-up. */
export function partitionOf(userId: string): number {
  // One character a byte: the shortest way out of the hash.
  return hash('sha256', userId, 'binary').charCodeAt(0) % PARTITIONS;
}

/** A fresh token for `userId` from 32 random bytes. */
export function makeToken(userId: string, random: Uint8Array): string {
  if (random.length !== 32) throw new RangeError('a token takes 32 random bytes');
  const bytes = Buffer.alloc(34);
  bytes.writeUInt16BE(partitionOf(userId), 0);
  bytes.set(random, 2);
  return bytes.toString('base64url');
}

export function isToken(text: string): boolean {
  return text.length === TOKEN_LENGTH && TOKEN_PATTERN.test(text);
}

/** SHA-256 of a token in base64url: the only form in which it is stored. Undefined when it cannot be a token. */
export function hashToken(token: string): string | undefined {
  if (!isToken(token)) return undefined;
  return hash('sha256', token, 'base64url');
}
