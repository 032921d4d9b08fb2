/** Lifetimes of the tokens and grants that a consent gives. */
import { DAY_MS, SECOND_MS } from '../time.ts';

/** A code is exchanged by the next request of the host. */
export const CODE_LIFE_MS = 60 * SECOND_MS;
/**
 * A former refresh token works for so long after its own replacement: processes of one host share a stored token and refresh at
 * the same moment.
 */
const ROTATION_GRACE_MS = 60 * SECOND_MS;
/** Former refresh tokens of one grant that may work; also the steps from one of them to the current one. */
export const FORMER_TOKENS_MAX = 8;
/** Lifetime of a refresh token that is not used, and of every grant. */
const REFRESH_IDLE_MS = 30 * DAY_MS;
const GRANT_LIFE_MS = 180 * DAY_MS;
/** Connected hosts of one account; the one used longest ago is removed. */
export const GRANTS_MAX = 50;

/** A former refresh token: SHA-256 in base64url, and the moment until which it works. */
export interface FormerToken {
  readonly hash: string;
  readonly endsMs: number;
}

/** `list` with the token that was replaced at `nowMs`; those that no longer work, and the oldest over the bound, leave. */
export function withFormer(
  list: readonly FormerToken[],
  hash: string,
  nowMs: number,
): readonly FormerToken[] {
  const kept = list.filter(({ endsMs }) => endsMs >= nowMs).slice(1 - FORMER_TOKENS_MAX);
  return [...kept, { hash, endsMs: nowMs + ROTATION_GRACE_MS }];
}

/** Returns the time at which a grant ends without a further use, Unix milliseconds. */
export function grantEndMs({ createdMs, rotatedMs }: { createdMs: number; rotatedMs: number }): number {
  return Math.min(createdMs + GRANT_LIFE_MS, rotatedMs + REFRESH_IDLE_MS);
}
