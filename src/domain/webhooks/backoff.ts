/** Waiting times before a webhook attempt is repeated (spec 6.2). Pure rules. */
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../time.ts';

/** Retry delays after the first, second, … consecutive failure; the last one repeats. */
const STEPS_MS = [5 * SECOND_MS, 15 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS] as const;
const JITTER = 0.2;

/**
 * Returns the wait after failure number `failures` (from 1), in milliseconds. `chance`: 0 to 1, spreads by ±20 %. A
 * receiver's `Retry-After` is honoured within one to two steps, and up to an hour.
 */
export function backoffMs(failures: number, chance: number, retryAfterMs: number | null): number {
  const stepMs = STEPS_MS[Math.min(Math.max(failures, 1), STEPS_MS.length) - 1] ?? HOUR_MS;
  if (retryAfterMs !== null && retryAfterMs > stepMs) {
    return Math.min(retryAfterMs, 2 * stepMs, Math.max(HOUR_MS, stepMs));
  }
  return Math.round(stepMs * (1 - JITTER + 2 * JITTER * chance));
}

/** `Retry-After` (RFC 9110 10.2.3): seconds or a date. Null for anything else, and for the past. */
export function readRetryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  if (/^[0-9]{1,9}$/.test(value)) return Number(value) * SECOND_MS;
  // Only the date form of HTTP: Date.parse takes far more.
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT$/.test(value))
    return null;
  const waitMs = Date.parse(value) - nowMs;
  return Number.isFinite(waitMs) && waitMs > 0 ? waitMs : null;
}
