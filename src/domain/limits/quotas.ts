/**
 * Request quotas (spec 8.1): one fixed window for all scopes, windows start at Unix multiples of their length, quota
 * is requests per second times the window length. Pure: the time is handed in.
 */
import { SECOND_MS } from '../time.ts';

/** c connection, i address, p public key, s session, m mcp_login: the letters of `X-RateLimit`. */
export type ScopeCode = 'c' | 'i' | 'p' | 's' | 'm';

/** The setting of each scope: requests per second. */
export const SCOPE_SETTINGS = {
  c: 'ApiRPSLimit',
  i: 'IpRPSLimit',
  p: 'PubKeyApiRPSLimit',
  s: 'SessionApiRPSLimit',
  m: 'McpApiRPSLimit',
} as const satisfies Record<ScopeCode, string>;

const SCOPE_CODES = 'cipsm';

/** Letters of scopes, separated by semicolons; blanks and empty items are ignored. */
export function areScopes(text: string): boolean {
  const items = text.split(';').map((each) => each.trim());
  return items.every((item) => item.length <= 1 && SCOPE_CODES.includes(item));
}

export interface QuotaResult {
  readonly allowed: boolean;
  readonly scope: ScopeCode;
  /** Requests per window. */
  readonly quota: number;
  /** Requests left in this window, never negative. */
  readonly remaining: number;
  /** Whole seconds until the window ends, at least 1. */
  readonly resetSeconds: number;
}

/** Number of the window that `nowMs` lies in. */
export function windowIndex(nowMs: number, windowSeconds: number): number {
  return Math.floor(nowMs / (windowSeconds * SECOND_MS));
}

export function secondsToReset(nowMs: number, windowSeconds: number): number {
  const lengthMs = windowSeconds * SECOND_MS;
  return Math.max(1, Math.ceil((lengthMs - (nowMs % lengthMs)) / SECOND_MS));
}

/** The verdict on `used` requests, the present `cost` included. A refusal shows what is left without that cost. */
export function judge(
  scope: ScopeCode,
  quota: number,
  used: number,
  resetSeconds: number,
  cost = 1,
): QuotaResult {
  const allowed = used <= quota;
  const remaining = Math.max(0, quota - (allowed ? used : used - cost));
  return { allowed, scope, quota, remaining, resetSeconds };
}

/** The verdict to show: a refusal first, else the one with the least remaining. */
export function tightest(a: QuotaResult | undefined, b: QuotaResult | undefined): QuotaResult | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  if (a.allowed !== b.allowed) return a.allowed ? b : a;
  return b.remaining < a.remaining ? b : a;
}

/** One key's counter. A refused request is not counted, so that hammering does not extend anything. */
export class WindowCounter {
  #window = -1;
  #used = 0;

  /** Counted in the window of the last hit. */
  get used(): number {
    return this.#used;
  }

  /** `others`: what counts in this window besides. */
  hit(
    scope: ScopeCode,
    rps: number,
    windowSeconds: number,
    nowMs: number,
    { cost = 1, others = 0 } = {},
  ): QuotaResult {
    const window = windowIndex(nowMs, windowSeconds);
    if (window !== this.#window) {
      this.#window = window;
      this.#used = 0;
    }
    const quota = rps * windowSeconds;
    const used = this.#used + others + cost;
    const result = judge(scope, quota, used, secondsToReset(nowMs, windowSeconds), cost);
    if (result.allowed) this.#used += cost;
    return result;
  }
}
