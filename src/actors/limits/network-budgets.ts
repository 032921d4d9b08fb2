/**
 * Budgets of one network in a fixed window outside the scopes of requests: failures with unknown keys, checks of
 * signatures, new accounts. Volatile, bounded, on the main thread, as the limiter is.
 */
import type { Network } from '../../domain/limits/networks.ts';
import { type QuotaResult, secondsToReset, windowIndex } from '../../domain/limits/quotas.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { type Clock, DAY_MS, MINUTE_MS, SECOND_MS } from '../../domain/time.ts';
import type { LimitExchange } from './limit-exchange.ts';
import { countDecision, type LimiterCounters, type ScopeCounters } from './limiter-counters.ts';
import { type CallerNetworks, sharedKey } from './limiter-keys.ts';
import { type SharedCounts, SharedWindow } from './shared-counts.ts';

interface NetworkBudgetOptions {
  /** Clock of the limiter. */
  readonly clock: Clock;
  /** Windows start at Unix multiples of it: those of 86,400 s are days in UTC. */
  readonly windowSeconds: number;
  /** Budget of one share, asked for at every use; 0: no budget. */
  readonly perShare: () => number;
  readonly inAll?: number;
  /** Networks that are counted one by one; further ones share counters. */
  readonly keysMax: number;
  readonly networks: CallerNetworks;
  readonly counters: ScopeCounters;
  /** Other nodes count too. */
  readonly shared?: SharedCounts | undefined;
}

class NetworkBudget {
  readonly #options: NetworkBudgetOptions;
  #window = -1;
  #used = new Map<string, number>();
  #usedInAll = 0;
  #shared: SharedWindow | undefined;

  constructor(options: NetworkBudgetOptions) {
    this.#options = options;
  }

  /** One more, which is not counted when it is refused. Undefined without a budget. */
  charge(address: string, nowMs: number): QuotaResult | undefined {
    const result = this.check(address, nowMs);
    if (result === undefined) return undefined;
    const { allowed, remaining, quota } = result;
    countDecision(this.#options.counters, allowed ? remaining : -1, quota);
    if (allowed) this.#count(address, 1);
    return result;
  }

  /** The decision that one more would get now; nothing is counted. */
  check(address: string, nowMs: number): QuotaResult | undefined {
    const { perShare, inAll = Number.POSITIVE_INFINITY, windowSeconds, networks } = this.#options;
    const quota = perShare();
    if (quota === 0) return undefined;
    this.#moveOn(nowMs);
    let left = inAll - this.#usedInAll;
    for (const network of networks.of(address)) {
      const key = this.#keyOf(network);
      const used = (this.#used.get(key) ?? 0) + (this.#shared?.others(key) ?? 0);
      left = Math.min(left, quota * network.shares - used);
    }
    const allowed = left > 0;
    const remaining = Math.min(quota, allowed ? left - 1 : 0);
    return { allowed, scope: 'i', quota, remaining, resetSeconds: secondsToReset(nowMs, windowSeconds) };
  }

  /** Takes back what was charged at `chargedMs` and was not used. */
  giveBack(address: string, chargedMs: number): void {
    if (windowIndex(chargedMs, this.#options.windowSeconds) === this.#window) this.#count(address, -1);
  }

  #count(address: string, change: 1 | -1): void {
    this.#usedInAll += change;
    for (const network of this.#options.networks.of(address)) {
      const key = this.#keyOf(network);
      const used = Math.max(0, (this.#used.get(key) ?? 0) + change);
      this.#used.set(key, used);
      this.#shared?.note(key, used, this.#options.perShare() * network.shares);
    }
  }

  #keyOf({ name, shares }: Network): string {
    return this.#used.size >= this.#options.keysMax && !this.#used.has(name) ? sharedKey(name, shares) : name;
  }

  #moveOn(nowMs: number): void {
    const { windowSeconds, clock } = this.#options;
    const window = windowIndex(nowMs, windowSeconds);
    if (window === this.#window) return;
    if (window < this.#window && windowIndex(clock(), windowSeconds) >= this.#window) return;
    this.#window = window;
    this.#used = new Map();
    this.#usedInAll = 0;
    const { shared } = this.#options;
    this.#shared = shared && new SharedWindow(shared, window);
  }
}

/** Signatures checked per second for public keys whose quota other callers have used up. */
const PROOFS_PER_SHARE = 10;
const PROOFS_IN_ALL = 100;

export interface Budgets {
  /** Logins with unknown keys a minute: the quota of a key never fires for a guesser who tries another each time. */
  readonly unknownKeys: NetworkBudget;
  readonly proofs: NetworkBudget;
  /** Accounts created in a day. */
  readonly signUps: NetworkBudget;
}

interface BudgetsOptions {
  readonly settings: SettingsReader;
  readonly clock: Clock;
  readonly exchange?: LimitExchange | undefined;
}

export function openBudgets(
  { settings, clock, exchange }: BudgetsOptions,
  networks: CallerNetworks,
  counters: LimiterCounters,
  keysMax: number,
): Budgets {
  const shared = { networks, keysMax, clock };
  return {
    unknownKeys: new NetworkBudget({
      ...shared,
      counters: counters.unknownKey,
      windowSeconds: MINUTE_MS / SECOND_MS,
      perShare: () => settings.get('UnknownKeyFailuresPerMinute'),
      shared: exchange?.counts.unknownKey,
    }),
    proofs: new NetworkBudget({
      ...shared,
      counters: counters.keyProof,
      windowSeconds: 1,
      perShare: () => PROOFS_PER_SHARE,
      inAll: PROOFS_IN_ALL,
    }),
    signUps: new NetworkBudget({
      ...shared,
      counters: counters.signUp,
      windowSeconds: DAY_MS / SECOND_MS,
      perShare: () => settings.get('SignUpsPerNetworkPerDay'),
      shared: exchange?.counts.signUp,
    }),
  };
}
