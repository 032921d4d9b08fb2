/** Units of time, and the type of a clock. Nothing in domain or in a turn reads a clock itself. */

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Milliseconds since the Unix epoch. Injected everywhere, so that tests own the time. */
export type Clock = () => number;

let lastMs = Number.NaN;
let lastText = '';

/** ISO 8601 UTC with milliseconds, the form of every timestamp on the wire. The text of the last one is remembered. */
export function toIso(timeMs: number): string {
  if (timeMs !== lastMs) {
    lastText = new Date(timeMs).toISOString();
    lastMs = timeMs;
  }
  return lastText;
}
