/**
 * Challenges that are computed and not stored. The id carries the end, randomness and a check value; all
 * else is a MAC of it, bound to kind, user and session, so any process with the key can judge a challenge.
 */
import { type BinaryToTextEncoding, createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { derivedId } from './ids.ts';
import type { ChallengeKind } from './proofs.ts';
import { SECOND_MS } from './time.ts';

/**
 * The 53 bits of an id, the highest first: the end in seconds modulo 2^14, randomness, the check value. The end is read
 * as the nearest to the present, which a life and a leeway of at most an hour each leave clear.
 */
const END_RANGE = 2 ** 14;
const RANDOM_RANGE = 2 ** 23;
const CHECK_RANGE = 2 ** 16;
const KEY_BYTES = 32;
/** Leads every MAC. A change of the id's layout takes another. */
const CONTEXT = 'challenge 1';

/** Values of `random` that `issue` takes: whole numbers below this. */
export const CHALLENGE_RANDOM_RANGE = RANDOM_RANGE;

/** The use that a challenge is bound to, with the session that asked for it and its user; both null without one. */
export interface ChallengeBinding {
  readonly kind: ChallengeKind;
  readonly userId: string | null;
  readonly sessionId: string | null;
  /** Hash of the request that is confirmed, where the kind does not say it. */
  readonly subject?: string;
}

export interface Challenge extends ChallengeBinding {
  /** Id below 2^53: a JSON number. */
  readonly id: number;
  /** Bytes to be signed: 32 bytes, base64url. */
  readonly challenge: string;
  /** Unguessable handle that goes with the id, base64url of 32 bytes. */
  readonly code: string;
  /** Id and authenticator handle of the account that a sign-up with this challenge creates. */
  readonly newUserId: string;
  readonly newHandle: string;
  /** End as announced, a whole second; it is taken a little longer. */
  readonly expiresMs: number;
}

export class ChallengeKey {
  readonly #key: KeyObject;

  /** `key`: 32 bytes. */
  constructor(key: Uint8Array) {
    if (key.length !== KEY_BYTES) throw new RangeError(`the key of challenges has ${KEY_BYTES} bytes`);
    this.#key = createSecretKey(key);
  }

  /** A challenge that ends at `endMs`, rounded up to a second. `random`: below `CHALLENGE_RANDOM_RANGE`. */
  issue(binding: ChallengeBinding, endMs: number, random: number): Challenge {
    const endSeconds = Math.ceil(endMs / SECOND_MS);
    return this.#derive(this.#idOf(binding, endSeconds, random), binding, endSeconds, random);
  }

  /**
   * The challenge with this id and binding, whether it is over or not. Undefined when none was issued: an id that was
   * made up passes with a chance of 2^-16 and gives a challenge that no caller has seen.
   */
  read(id: number, binding: ChallengeBinding, nowMs: number): Challenge | undefined {
    const upper = Math.floor(id / CHECK_RANGE);
    const random = upper % RANDOM_RANGE;
    const endSeconds = nearest(Math.floor(upper / RANDOM_RANGE), nowMs);
    if (this.#idOf(binding, endSeconds, random) !== id) return undefined;
    return this.#derive(id, binding, endSeconds, random);
  }

  #idOf(binding: ChallengeBinding, endSeconds: number, random: number): number {
    const check = Number.parseInt(this.#mac('id', 'hex', binding, endSeconds, random).slice(0, 4), 16);
    return ((endSeconds % END_RANGE) * RANDOM_RANGE + random) * CHECK_RANGE + check;
  }

  #derive(id: number, binding: ChallengeBinding, endSeconds: number, random: number): Challenge {
    const mac = (use: string, encoding: BinaryToTextEncoding = 'base64url') =>
      this.#mac(use, encoding, binding, endSeconds, random);
    const expiresMs = endSeconds * SECOND_MS;
    return {
      ...binding,
      id,
      challenge: mac('challenge'),
      expiresMs,
      // Each is a MAC of its own, which most logins never read.
      get code() {
        return mac('code');
      },
      get newUserId() {
        const account = mac('account', 'hex');
        const withinMs = Number.parseInt(account.slice(0, 8), 16) % SECOND_MS;
        return derivedId(expiresMs + withinMs, Number.parseInt(account.slice(8, 16), 16));
      },
      get newHandle() {
        return mac('handle');
      },
    };
  }

  /** HMAC-SHA-256 over lines. None of the parts holds a line feed, so no two sets of parts give one text. */
  #mac(
    use: string,
    encoding: BinaryToTextEncoding,
    { kind, userId, sessionId, subject }: ChallengeBinding,
    endSeconds: number,
    random: number,
  ): string {
    const parts = [CONTEXT, use, kind, userId ?? '', sessionId ?? '', endSeconds, random];
    if (subject !== undefined) parts.push(subject);
    return createHmac('sha256', this.#key).update(parts.join('\n')).digest(encoding);
  }
}

/** The time in seconds that is nearest to now and has this remainder. */
function nearest(remainder: number, nowMs: number): number {
  const now = Math.floor(nowMs / SECOND_MS);
  const ahead = (((remainder - now) % END_RANGE) + END_RANGE) % END_RANGE;
  return ahead < END_RANGE / 2 ? now + ahead : now + ahead - END_RANGE;
}
