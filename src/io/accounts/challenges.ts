/**
 * Issues challenges and takes each of them once (auth.md A4). Keeps in memory what needs no disk: the share that a
 * network has of the open ones, and which were used. After a restart the account knows those that opened something.
 */
import { randomInt } from 'node:crypto';
import {
  CHALLENGE_RANDOM_RANGE,
  type Challenge,
  type ChallengeBinding,
  ChallengeKey,
} from '../../domain/challenges.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { Lease, ShareRefusal } from '../../domain/limits/shares.ts';
import type { ChallengeKind } from '../../domain/proofs.ts';

/** Purpose under which the key is derived. Another one here would make every open challenge unknown. */
const PURPOSE = 'challenges';
const KEY_BYTES = 32;
/** A place becomes free when a challenge opens something or expires. */
const RETRY_SECONDS = 5;
const TOO_MANY = 'too many open challenges';
/** Used ones whose accounts keep them too: the oldest may go. */
const SPENT_MAX = 100_000;

/** What both calls need of a request. */
export interface ChallengeTerms {
  readonly nowMs: number;
  /** A challenge is taken for so long beyond its announced end (`timestampDriftTolerance`). */
  readonly leewayMs: number;
  /** Takes a place in the bound of open challenges. */
  readonly place: () => Lease | ShareRefusal;
}

export interface TakeChallenge extends Omit<ChallengeBinding, 'kind'> {
  readonly id: number;
  readonly kinds: readonly ChallengeKind[];
  /** A challenge that was opened without a session is taken with one too (a login in a second tab). */
  readonly orAnonymous?: boolean;
  /** While the first is under way, a repeat with the same key gets the challenge too, and then the first answer. */
  readonly idempotencyKey?: string;
}

interface Held {
  readonly lease: Lease;
  /** Nothing takes it any more. */
  readonly endsMs: number;
  /** Open; or the Idempotency-Key of the request that is using it; or used up. */
  use: 'open' | 'used' | { readonly key: string };
}

export class Challenges {
  readonly #key: ChallengeKey;
  readonly #random: () => number;
  /** Open and failed ones, in the order of their opening. As many as the bound has places. */
  readonly #held = new Map<number, Held>();
  /** Those that opened something, and when nothing takes them any more. */
  readonly #spent = new Map<number, number>();

  constructor(key: ChallengeKey, random: () => number = () => randomInt(CHALLENGE_RANDOM_RANGE)) {
    this.#key = key;
    this.#random = random;
  }

  /** Throws `AccessRateLimit` when the network has its share of the open ones, or all are taken. */
  open(binding: ChallengeBinding, lifeMs: number, terms: ChallengeTerms): Challenge {
    this.#dropExpired(terms.nowMs);
    const lease = leased(terms);
    const challenge = this.#fresh(binding, terms.nowMs + lifeMs);
    this.#held.set(challenge.id, { lease, endsMs: challenge.expiresMs + terms.leewayMs, use: 'open' });
    return challenge;
  }

  /**
   * The challenge, once. Throws `ChallengeExpired` where it is unknown, used, over, or of another kind, user or session;
   * `AccessRateLimit` for one of another process that finds no place here.
   */
  take(asked: TakeChallenge, terms: ChallengeTerms): Challenge {
    const { nowMs, leewayMs } = terms;
    const challenge = this.#read(asked, nowMs);
    if (challenge === undefined || nowMs > challenge.expiresMs + leewayMs || this.#spent.has(challenge.id))
      throw new GatewayError('ChallengeExpired');
    const held = this.#held.get(challenge.id) ?? this.#hold(challenge, terms);
    const { idempotencyKey: key } = asked;
    const repeated = typeof held.use === 'object' && held.use.key === key;
    if (held.use !== 'open' && !repeated) throw new GatewayError('ChallengeExpired');
    held.use = key === undefined ? 'used' : { key };
    return challenge;
  }

  /** The request that used it was refused: it is used up, and keeps its place until it ends. */
  failed(id: number): void {
    const held = this.#held.get(id);
    if (held !== undefined) held.use = 'used';
  }

  /** What it opened is on disk, and its id with it: its place is free. */
  spent(id: number): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#drop(id, held);
    const oldest = this.#spent.size < SPENT_MAX ? undefined : this.#spent.keys().next().value;
    if (oldest !== undefined) this.#spent.delete(oldest);
    this.#spent.set(id, held.endsMs);
  }

  #read({ id, kinds, userId, sessionId, orAnonymous }: TakeChallenge, nowMs: number): Challenge | undefined {
    for (const kind of kinds) {
      const own = this.#key.read(id, { kind, userId, sessionId }, nowMs);
      if (own !== undefined) return own;
      if (orAnonymous !== true || sessionId === null) continue;
      const anonymous = this.#key.read(id, { kind, userId: null, sessionId: null }, nowMs);
      if (anonymous !== undefined) return anonymous;
    }
    return undefined;
  }

  /** Of the process before a restart, or of another one with the same journal. */
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

  /** Ids opened one after the other expire one after the other, but for a change of the setting. */
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

function leased({ place }: ChallengeTerms): Lease {
  const lease = place();
  if ('refusedBy' in lease) throw new GatewayError('AccessRateLimit', TOO_MANY, RETRY_SECONDS, 'i');
  return lease;
}
