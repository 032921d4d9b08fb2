/**
 * Issues challenges and accepts each of them once (decision 0014). Memory holds the share that a network has of the open
 * ones, and which were used; after a restart the account knows the successful ones.
 */

import { randomInt } from 'node:crypto';
import {
  CHALLENGE_RANDOM_RANGE,
  type Challenge,
  type ChallengeBinding,
  ChallengeKey,
} from '../../domain/challenges.ts';
import { GatewayError } from '../../domain/errors.ts';
import { keepNewest } from '../../domain/limits/newest.ts';
import type { Lease, ShareRefusal } from '../../domain/limits/shares.ts';
import type { ChallengeKind } from '../../domain/proofs.ts';

/** Purpose of the key derivation. Another purpose would invalidate every open challenge. */
const PURPOSE = 'challenges';
const KEY_BYTES = 32;
/** A slot becomes free when a challenge succeeds or expires. */
const RETRY_SECONDS = 5;
const TOO_MANY = 'too many open challenges';
/** Successful challenges kept in memory. Their accounts keep them too, so the oldest are dropped. */
const SPENT_MAX = 100_000;

/** The part of a request that opening and taking a challenge depend on. */
export interface ChallengeTerms {
  readonly nowMs: number;
  /** A challenge is accepted for this long after its announced end (`timestampDriftTolerance`). */
  readonly leewayMs: number;
  /** Takes a slot of the bound of open challenges. */
  readonly takeSlot: () => Lease | ShareRefusal;
}

export interface TakeChallenge extends Omit<ChallengeBinding, 'kind'> {
  readonly id: number;
  readonly kinds: readonly ChallengeKind[];
  /** Accepts also a challenge that was opened without a session (a login in a second tab). */
  readonly orAnonymous?: boolean;
  /** Until `failed` or `spent`, a repeat with the same key gets the challenge too, and then the first answer. */
  readonly idempotencyKey?: string;
}

interface Held {
  readonly lease: Lease;
  /** The challenge is not accepted after this time. */
  readonly endsMs: number;
  /** Open, used up, or in use by the request with this Idempotency-Key. */
  use: 'open' | 'used' | { readonly key: string };
}

export class Challenges {
  readonly #key: ChallengeKey;
  readonly #random: () => number;
  /** Open and failed challenges in the order of their opening; at most as many as the bound has slots. */
  readonly #held = new Map<number, Held>();
  /** Successful challenges, with the time after which they are not accepted anyway. */
  readonly #spent = new Map<number, number>();

  constructor(key: ChallengeKey, random: () => number = () => randomInt(CHALLENGE_RANDOM_RANGE)) {
    this.#key = key;
    this.#random = random;
  }

  /** Throws `AccessRateLimit` when the share of the network, or the whole bound, is used up. */
  open(binding: ChallengeBinding, lifeMs: number, terms: ChallengeTerms): Challenge {
    this.#dropExpired(terms.nowMs);
    const lease = leased(terms);
    const challenge = this.#fresh(binding, terms.nowMs + lifeMs);
    this.#held.set(challenge.id, { lease, endsMs: challenge.expiresMs + terms.leewayMs, use: 'open' });
    return challenge;
  }

  /**
   * Returns the challenge, once. Throws `ChallengeExpired` when it is unknown, used, expired, or of another kind, user or
   * session. Throws `AccessRateLimit` for a challenge of another process when no slot is free.
   */
  take(request: TakeChallenge, terms: ChallengeTerms): Challenge {
    const { nowMs, leewayMs } = terms;
    const challenge = this.#read(request, nowMs);
    if (challenge === undefined || nowMs > challenge.expiresMs + leewayMs || this.#spent.has(challenge.id))
      throw new GatewayError('ChallengeExpired');
    const held = this.#held.get(challenge.id) ?? this.#hold(challenge, terms);
    const { idempotencyKey: key } = request;
    const repeated = typeof held.use === 'object' && held.use.key === key;
    if (held.use !== 'open' && !repeated) throw new GatewayError('ChallengeExpired');
    held.use = key === undefined ? 'used' : { key };
    return challenge;
  }

  /** The request that used the challenge was refused: the challenge stays used and keeps its slot until it ends. */
  failed(id: number): void {
    const held = this.#held.get(id);
    if (held !== undefined) held.use = 'used';
  }

  /** The login or registration is on disk together with the id of the challenge, so the slot is free. */
  spent(id: number): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#drop(id, held);
    keepNewest(this.#spent, SPENT_MAX, id, held.endsMs);
  }

  #read(request: TakeChallenge, nowMs: number): Challenge | undefined {
    const { id, kinds, userId, sessionId, subject, orAnonymous } = request;
    for (const kind of kinds) {
      const bound = { kind, userId, sessionId, ...(subject === undefined ? {} : { subject }) };
      const own = this.#key.read(id, bound, nowMs);
      if (own !== undefined) return own;
      if (orAnonymous !== true || sessionId === null) continue;
      const anonymous = this.#key.read(id, { kind, userId: null, sessionId: null }, nowMs);
      if (anonymous !== undefined) return anonymous;
    }
    return undefined;
  }

  /** A challenge of an earlier run, or of another process with the same journal. */
  #hold({ id, expiresMs }: Challenge, terms: ChallengeTerms): Held {
    this.#dropExpired(terms.nowMs);
    const endsMs = expiresMs + terms.leewayMs;
    const held: Held = { lease: leased(terms), endsMs, use: 'open' };
    this.#held.set(id, held);
    return held;
  }

  #fresh(binding: ChallengeBinding, endMs: number): Challenge {
    for (;;) {
      const challenge = this.#key.issue(binding, endMs, this.#random());
      if (!this.#held.has(challenge.id) && !this.#spent.has(challenge.id)) return challenge;
    }
  }

  /** Challenges expire in the order of their opening, unless the setting changes. */
  #dropExpired(nowMs: number): void {
    for (const [id, held] of this.#held) {
      if (nowMs <= held.endsMs) break;
      this.#drop(id, held);
    }
    for (const [id, endsMs] of this.#spent) {
      if (nowMs <= endsMs) break;
      this.#spent.delete(id);
    }
  }

  #drop(id: number, { lease }: Held): void {
    this.#held.delete(id);
    lease.release();
  }
}

/** The challenges of this journal. */
export function openChallenges(cipher: {
  deriveKey(purpose: string, lengthBytes: number): Buffer;
}): Challenges {
  return new Challenges(new ChallengeKey(cipher.deriveKey(PURPOSE, KEY_BYTES)));
}

function leased({ takeSlot }: ChallengeTerms): Lease {
  const lease = takeSlot();
  if ('refusedBy' in lease) throw new GatewayError('AccessRateLimit', TOO_MANY, RETRY_SECONDS, 'i');
  return lease;
}
