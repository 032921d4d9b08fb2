/** How long what a consent gave is good for. */
import { DAY_MS, SECOND_MS } from '../time.ts';

/** A code is exchanged by the next request of the host. */
export const CODE_LIFE_MS = 60 * SECOND_MS;
/** A former refresh token works once more for so long: its answer may be lost. */
export const ROTATION_GRACE_MS = 60 * SECOND_MS;
/** Of a refresh token that is not used, and of a grant at all. */
const REFRESH_IDLE_MS = 30 * DAY_MS;
const GRANT_LIFE_MS = 180 * DAY_MS;
/** Connected hosts of one account; the one used longest ago gives way. */
export const GRANTS_MAX = 50;

/** When a grant ends without a further use. */
export function grantEndMs({ createdMs, rotatedMs }: { createdMs: number; rotatedMs: number }): number {
  return Math.min(createdMs + GRANT_LIFE_MS, rotatedMs + REFRESH_IDLE_MS);
}
