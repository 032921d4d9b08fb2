/**
 * Challenges that opened something in an account, kept until they are over: what makes one good once also over a restart
 * and for several processes. One that a refused request used is known in memory alone.
 */

import { SECOND_MS } from '../../domain/time.ts';
import type { Change } from '../change.ts';
import { type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import type { UsedChallenge, UserState } from './user-types.ts';

/** Live ones that an account keeps. */
export const USED_CHALLENGES_MAX = 64;

/** Undefined where the challenge may open something here; of a command that needs none as well. */
export function refusedChallenge(
  { usedChallenges }: UserState,
  challenge: UsedChallenge | undefined,
  { nowMs }: Turn,
): Refusal | undefined {
  if (challenge === undefined) return undefined;
  if (usedChallenges.some(({ id }) => id === challenge.id)) return refuse('ChallengeExpired');
  const live = liveOnes(usedChallenges, nowMs);
  if (live.length < USED_CHALLENGES_MAX) return undefined;
  const firstEndsMs = Math.min(...live.map(({ endsMs }) => endsMs));
  const waitSeconds = Math.ceil((firstEndsMs + 1 - nowMs) / SECOND_MS);
  return refuse('AccessRateLimit', 'too many challenges used for one account', waitSeconds, 's');
}

/** Keeps the challenge in the commit of what it opens. */
export function challengeUsed(challenge: UsedChallenge | undefined, { nowMs }: Turn): Change {
  if (challenge === undefined) return { events: [] };
  return { events: [{ type: 'challengeUsed', challenge, utcMs: nowMs }] };
}

/** With one more, and without those that are over. */
export function withUsed(
  used: readonly UsedChallenge[],
  challenge: UsedChallenge,
  nowMs: number,
): readonly UsedChallenge[] {
  return [...liveOnes(used, nowMs), challenge];
}

function liveOnes(used: readonly UsedChallenge[], nowMs: number): readonly UsedChallenge[] {
  return used.filter(({ endsMs }) => nowMs <= endsMs);
}
