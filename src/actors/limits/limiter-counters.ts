/** Counts decisions of the limiter for metrics: outcomes by scope, and callers that came close to the limit. */
import type { ScopeCode } from '../../domain/limits/quotas.ts';

/** Near the limit: at most a fifth of the quota is left. */
const NEAR_SHARE = 5;

/** Outcomes of one scope since the start. Every charge of a scope that is on counts in exactly one of them. */
export interface ScopeCounters {
  allowed: number;
  /** Allowed, with at least 80 % of the quota used. */
  nearLimit: number;
  limited: number;
  /** Would have been limited, but the scope is in shadow mode. */
  shadowed: number;
  /** Not judged in this scope because the keys of the window were used up. */
  untracked: number;
}

/** Counts one decision; `left` is negative for a refusal, `limit` what there was in the window. */
export function countDecision(counters: ScopeCounters, left: number, limit: number, shadow = false): void {
  if (left < 0) counters[shadow ? 'shadowed' : 'limited'] += 1;
  else if (left * NEAR_SHARE <= limit) counters.nearLimit += 1;
  else counters.allowed += 1;
}

/** Counters of the scopes by their letters, and of other limits beside them. */
export type LimiterCounters = Record<
  ScopeCode | 'provenKey' | 'unknownKey' | 'keyProof' | 'signUp',
  ScopeCounters
>;

export function countersOfAll(): LimiterCounters {
  return {
    c: noOutcomes(),
    i: noOutcomes(),
    p: noOutcomes(),
    m: noOutcomes(),
    s: noOutcomes(),
    provenKey: noOutcomes(),
    unknownKey: noOutcomes(),
    keyProof: noOutcomes(),
    signUp: noOutcomes(),
  };
}

function noOutcomes(): ScopeCounters {
  return { allowed: 0, nearLimit: 0, limited: 0, shadowed: 0, untracked: 0 };
}
