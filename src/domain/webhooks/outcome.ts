/** Effects of an attempt's result on an application (spec 6.2). Pure rules. */
import { DAY_MS, HOUR_MS } from '../time.ts';
import type { AttemptResult } from './types.ts';

/**
 * - `delivered`: 2xx. `rejected`: the receiver cannot take these events (400, 413, 422). `gone`: it wants no more
 *   (410). `blocked`: try the same again later (everything else).
 */
type OutcomeClass = 'delivered' | 'rejected' | 'gone' | 'blocked';

const REJECTING: ReadonlySet<number> = new Set([400, 413, 422]);
const GONE = 410;

export function classify({ status }: Pick<AttemptResult, 'status'>): OutcomeClass {
  if (status === null) return 'blocked';
  if (status >= 200 && status < 300) return 'delivered';
  if (REJECTING.has(status)) return 'rejected';
  return status === GONE ? 'gone' : 'blocked';
}

/** Failures since the last success. */
export interface FailureRun {
  readonly attempts: number;
  readonly firstMs: number;
  /** The latest attempt. */
  readonly lastMs: number;
}

const DISABLE_AFTER_MS = 3 * DAY_MS;
const DISABLE_ATTEMPTS_MIN = 20;
const DISABLE_SPREAD_MIN_MS = 12 * HOUR_MS;

/**
 * Failures only, for 72 hours and in at least 20 attempts. The attempts before this one must themselves be spread over
 * 12 hours: a gateway that was switched off over a week-end has not tried.
 */
export function isHopeless(before: FailureRun | null, nowMs: number): boolean {
  if (before === null) return false;
  const { attempts, firstMs, lastMs } = before;
  const tried = attempts + 1 >= DISABLE_ATTEMPTS_MIN && lastMs - firstMs >= DISABLE_SPREAD_MIN_MS;
  return tried && nowMs - firstMs >= DISABLE_AFTER_MS;
}

export function extended(run: FailureRun | null, nowMs: number): FailureRun {
  return { attempts: (run?.attempts ?? 0) + 1, firstMs: run?.firstMs ?? nowMs, lastMs: nowMs };
}

/**
 * Events of the next delivery at most, while a refused one is searched. `suspects`: events from the cursor on of
 * which one was refused; 0 while none is known.
 */
export interface Search {
  readonly suspects: number;
  readonly limit: number;
}

export function afterRejection(length: number): Search {
  return { suspects: length, limit: Math.max(1, Math.floor(length / 2)) };
}

/** A delivery of `length` events went through: the poisoned one is among the rest. */
export function afterSuccess({ suspects }: Search, length: number, eventsMax: number): Search {
  const left = suspects - length;
  if (left <= 0) return { suspects: 0, limit: eventsMax };
  return { suspects: left, limit: Math.max(1, Math.floor(left / 2)) };
}
