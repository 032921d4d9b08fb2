/** Units of time and the one place where a clock is described. Nothing in domain or in a turn reads a clock itself. */

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Milliseconds since the Unix epoch. Injected everywhere, so that tests own the time. */
export type Clock = () => number;

/** ISO 8601 UTC with milliseconds, the form of every timestamp on the wire. */
export function toIso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
