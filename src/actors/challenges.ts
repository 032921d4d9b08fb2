/**
 * Open challenges of registrations and logins. Volatile and bounded: a restart makes them expire, a flood of one network
 * is refused. A challenge is used once, taken out before anything is verified, and belongs to its kind, user and session
 * (auth.md A4).
 */
import type { ChallengeKind } from '../domain/proofs.ts';
import type { Lease, ShareRefusal } from '../domain/shares.ts';
import { SECOND_MS } from '../domain/time.ts';
import { defineActor, type Refusal, refuse, type Turn } from './runtime/actor.ts';

/** The one instance. */
export const CHALLENGES_ID = 'all';

const SECRET_BYTES = 32;
/** A place becomes free when a challenge is used or expires. */
const RETRY_SECONDS = 5;
const TOO_MANY = 'too many open challenges';

export interface Challenge {
  /** Random, below 2^53: a JSON number. */
  readonly id: number;
  readonly kind: ChallengeKind;
  /** Of the session that asked; null without one. */
  readonly userId: string | null;
  readonly sessionId: string | null;
  /** 32 random bytes, base64url. */
  readonly challenge: string;
  /** Unguessable handle that goes with the id, base64url of 32 bytes. */
  readonly code: string;
  /** Id and authenticator handle of the account that a sign-up with this challenge creates. */
  readonly newUserId: string;
  readonly newHandle: string;
  /** As announced; it is taken a little longer. */
  readonly expiresMs: number;
}

export type ChallengeCommand =
  | {
      readonly type: 'openChallenge';
      readonly kind: ChallengeKind;
      readonly userId: string | null;
      readonly sessionId: string | null;
      /** Takes its place in the bound of open challenges; refused when a network has its share. */
      readonly take: () => Lease | ShareRefusal;
      /** Taken for so long beyond its announced end (`timestampDriftTolerance`). */
      readonly leewayMs: number;
    }
  | {
      readonly type: 'consumeChallenge';
      readonly id: number;
      readonly kinds: readonly ChallengeKind[];
      readonly userId: string | null;
      readonly sessionId: string | null;
      /** A challenge that was opened without a session is taken with one too (a login in a second tab). */
      readonly orAnonymous?: boolean;
      /** While the first is under way, a repeat with the same key gets the challenge too, and then the first answer. */
      readonly idempotencyKey?: string;
    }
  /** The request that used it has its answer, good or bad: a repeat gets that of the account, or none. */
  | { readonly type: 'spendChallenge'; readonly id: number };

interface Open {
  readonly challenge: Challenge;
  readonly lease: Lease;
  readonly endsMs: number;
  /** Idempotency-Key of the request that used it. */
  usedBy: string | undefined;
}

interface OpenChallenges {
  /** In order of opening. */
  readonly byId: Map<number, Open>;
}

export const challenges = defineActor<null, never, never, never, OpenChallenges>({
  kind: 'challenges',
  version: 1,
  /** Never idle: what is open would be lost. */
  limits: { mailbox: 1, snapshotEvery: 1, idleMs: Number.POSITIVE_INFINITY },
  initial: () => null,
  volatile: () => ({ byId: new Map() }),
  decide: () => refuse('InternalError'),
  evolve: () => null,

  decideNow(_state, open, command, turn) {
    const asked = command as ChallengeCommand;
    if (asked.type === 'openChallenge') return openChallenge(open, asked, turn);
    return asked.type === 'consumeChallenge' ? consume(open, asked, turn) : spend(open, asked.id);
  },
});

function openChallenge(
  open: OpenChallenges,
  command: Extract<ChallengeCommand, { type: 'openChallenge' }>,
  turn: Turn,
): Challenge | Refusal {
  const { kind, userId, sessionId, take, leewayMs } = command;
  dropExpired(open, turn.nowMs);
  const lease = take();
  if ('refusedBy' in lease) return refuse('AccessRateLimit', TOO_MANY, RETRY_SECONDS);
  const challenge: Challenge = {
    id: freshId(open, turn),
    kind,
    userId,
    sessionId,
    challenge: secret(turn),
    code: secret(turn),
    newUserId: turn.tick(),
    newHandle: secret(turn),
    expiresMs: turn.nowMs + turn.settings.get('ChallengeSeconds') * SECOND_MS,
  };
  open.byId.set(challenge.id, {
    challenge,
    lease,
    endsMs: challenge.expiresMs + leewayMs,
    usedBy: undefined,
  });
  return challenge;
}

/** The challenge, once. Unknown, used, expired, of another kind, user or session: `ChallengeExpired`. */
function consume(
  open: OpenChallenges,
  command: Extract<ChallengeCommand, { type: 'consumeChallenge' }>,
  turn: Turn,
): Challenge | Refusal {
  const found = open.byId.get(command.id);
  if (found === undefined || !belongs(found.challenge, command)) return refuse('ChallengeExpired');
  if (turn.nowMs > found.endsMs) {
    drop(open, command.id);
    return refuse('ChallengeExpired');
  }
  const { idempotencyKey } = command;
  if (found.usedBy !== undefined)
    return found.usedBy === idempotencyKey ? found.challenge : refuse('ChallengeExpired');
  if (idempotencyKey === undefined) drop(open, command.id);
  else found.usedBy = idempotencyKey;
  return found.challenge;
}

function spend(open: OpenChallenges, id: number): null {
  if (open.byId.get(id)?.usedBy !== undefined) drop(open, id);
  return null;
}

function belongs(
  challenge: Challenge,
  command: Extract<ChallengeCommand, { type: 'consumeChallenge' }>,
): boolean {
  if (!command.kinds.includes(challenge.kind)) return false;
  if (command.orAnonymous === true && challenge.sessionId === null) return true;
  return challenge.userId === command.userId && challenge.sessionId === command.sessionId;
}

/** Ids opened one after the other expire one after the other, but for a change of the setting. */
function dropExpired(open: OpenChallenges, nowMs: number): void {
  for (const [id, { endsMs }] of open.byId) {
    if (nowMs <= endsMs) return;
    drop(open, id);
  }
}

function drop(open: OpenChallenges, id: number | undefined): void {
  const found = id === undefined ? undefined : open.byId.get(id);
  if (id === undefined || found === undefined) return;
  open.byId.delete(id);
  found.lease.release();
}

function freshId(open: OpenChallenges, turn: Turn): number {
  for (;;) {
    const id = Number(Buffer.from(turn.randomBytes(8)).readBigUInt64BE() >> 11n);
    if (!open.byId.has(id)) return id;
  }
}

function secret(turn: Turn): string {
  return Buffer.from(turn.randomBytes(SECRET_BYTES)).toString('base64url');
}
