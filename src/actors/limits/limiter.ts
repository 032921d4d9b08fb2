/**
 * Windows of everything that is not bound to a session: connections, addresses and unproven public keys (spec 8.1,
 * decision 0105). Volatile: one owner on the main thread, synchronous turns, nothing written.
 * All scopes share one window; its maps are swapped at the boundary, so there is no timer and no sweep.
 */
import { type QuotaResult, SCOPE_SETTINGS, type ScopeCode, windowIndex } from '../../domain/limits/quotas.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { type Clock, SECOND_MS } from '../../domain/time.ts';
import { AddressCounters } from './address-counters.ts';
import type { LimitExchange } from './limit-exchange.ts';
import {
  countDecision,
  countersOfAll,
  type LimiterCounters,
  type ScopeCounters,
} from './limiter-counters.ts';
import {
  type CallerAddress,
  CallerNetworks,
  ConnectionOpens,
  chargeNetworks,
  sharedKey,
} from './limiter-keys.ts';
import { type Budgets, openBudgets } from './network-budgets.ts';
import { SharedWindow } from './shared-counts.ts';
import { KeyWindow } from './unknown-keys.ts';

/** Keys of all scopes in one window; further callers are counted by address alone. */
const LIMITER_KEYS_MAX = 1_000_000;

/** Scopes that live here. `s` lives in the user actors. */
type OpenScope = Exclude<ScopeCode, 's'>;

interface LimiterOptions {
  readonly settings: SettingsReader;
  /** Asked where a charge is of an earlier window: its request began there, or the clock was set back. */
  readonly clock: Clock;
  /** Connections open in the process, at the start of a window: the bound of what an address may have held before. */
  readonly connectionsOpen: () => number;
  /** `LIMITER_KEYS_MAX` unless given. */
  readonly keysMax?: number;
  /** Other nodes of a cluster count too. */
  readonly exchange?: LimitExchange | undefined;
}

interface KeyQuotaResult extends QuotaResult {
  /** Others use the key up: the caller is let through if a signature proves that it holds it (`settleProof`). */
  readonly needsProof?: true;
}

export class Limiter {
  readonly #settings: SettingsReader;
  readonly #clock: Clock;
  readonly #connectionsOpen: () => number;
  readonly #keysMax: number;
  readonly #exchange: LimitExchange | undefined;
  readonly #networks = new CallerNetworks();
  readonly #opens: ConnectionOpens;
  /** Budgets of networks outside the scopes. */
  readonly budgets: Budgets;
  readonly #counters = countersOfAll();
  #window = -1;
  #windowSeconds = 0;
  /** The window in Unix milliseconds: from its start to before its end. */
  #startMs = 0;
  #endMs = 0;
  #keys = 0;
  #connections = new AddressCounters();
  #addresses = new AddressCounters();
  #sharedAddresses: SharedWindow | undefined;
  #publicKeys = { p: new KeyWindow(), m: new KeyWindow() };

  constructor(options: LimiterOptions) {
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#connectionsOpen = options.connectionsOpen;
    this.#keysMax = options.keysMax ?? LIMITER_KEYS_MAX;
    this.#opens = new ConnectionOpens(this.#keysMax);
    this.#exchange = options.exchange;
    this.budgets = openBudgets(options, this.#networks, this.#counters, this.#keysMax);
  }

  /** A connection was accepted from this address. It is among those that are open in the process. */
  opened(address: string, nowMs: number): void {
    this.#moveOn(nowMs, 1);
    const wide = this.#networks.wideOf(address);
    if (wide === undefined) this.#opens.add(address);
    else for (const { name } of wide) this.#opens.add(name);
  }

  /** A request for which this scope is not charged: the address still holds a connection. */
  keepOpen({ address, forwarded }: CallerAddress, nowMs: number): void {
    if (forwarded) return;
    this.#moveOn(nowMs);
    const wide = this.#networks.wideOf(address);
    if (wide === undefined) this.#opens.of(address);
    else for (const { name } of wide) this.#opens.of(name);
  }

  /**
   * The connection scope. Undefined when it is off, in shadow mode, or not tracked any more in this window, and for a
   * client that a trusted proxy named: its connections are the proxy's (docs/decisions/0105).
   */
  chargeConnection(
    { address, port, forwarded }: CallerAddress,
    cost: number,
    nowMs: number,
  ): QuotaResult | undefined {
    const quota = this.#quota('c', nowMs);
    if (quota === 0 || forwarded) return undefined;
    if (port !== undefined)
      return this.#count('c', this.#connections, `${address} ${port}`, cost, quota, quota, nowMs);
    const wide = this.#networks.wideOf(address);
    if (wide === undefined) {
      const pool = quota * this.#connectionsOf(address, 1);
      return this.#count('c', this.#connections, address, cost, quota, pool, nowMs);
    }
    const limitOf = (name: string, shares: number) => quota * this.#connectionsOf(name, shares);
    const left = chargeNetworks(this.#connections, wide, cost, limitOf, this.#newSlot);
    return this.#result('c', quota, left, cost, quota, nowMs);
  }

  /** The address scope. When the keys are used up, new addresses share counters instead of going free. */
  chargeAddress(address: string, cost: number, nowMs: number): QuotaResult | undefined {
    const quota = this.#quota('i', nowMs);
    if (quota === 0) return undefined;
    const wide = this.#networks.wideOf(address);
    if (wide !== undefined) {
      const shareOf = (_name: string, shares: number) => quota * shares;
      const shared = this.#sharedAddresses;
      const left = chargeNetworks(this.#addresses, wide, cost, shareOf, this.#newSlot, shared);
      return this.#result('i', quota, left, cost, quota, nowMs);
    }
    const full = this.#keys >= this.#keysMax && this.#addresses.get(address) === undefined;
    return this.#count('i', this.#addresses, full ? sharedKey(address) : address, cost, quota, quota, nowMs);
  }

  /**
   * An unproven public key: (key, network) stops at the quota, the bare key only at ten times it. Where others have used
   * up the latter and the caller brings a signature (`provable`), the decision allows and asks for the proof.
   */
  chargeKey(
    scope: 'p' | 'm',
    publicKey: string,
    address: string,
    cost: number,
    nowMs: number,
    provable = false,
  ): KeyQuotaResult | undefined {
    const quota = this.#quota(scope, nowMs);
    if (quota === 0) return undefined;
    const network = this.#networks.narrowestOf(address);
    const keys = this.#publicKeys[scope];
    const charge = keys.charge(publicKey, network, cost, quota, this.#newSlot);
    if (charge === undefined) {
      this.#counters[scope].untracked += 1;
      return undefined;
    }
    const { left, ownLeft } = charge;
    const overloaded = left < 0 && ownLeft >= 0 && provable && !this.#isShadow(scope);
    if (!overloaded || this.budgets.proofs.charge(address, nowMs)?.allowed === false)
      return this.#result(scope, quota, left, cost, quota, nowMs);
    keys.chargeOwn(publicKey, network, cost, quota);
    const resetSeconds = this.#secondsLeft(nowMs);
    return { allowed: true, scope, quota, remaining: ownLeft, resetSeconds, needsProof: true };
  }

  /** Result of the proof that was requested; the request is counted only now. Returns the result to show. */
  settleProof(result: KeyQuotaResult, proven: boolean): QuotaResult {
    const { scope, quota, remaining, resetSeconds } = result;
    countDecision(this.#counters[scope], proven ? remaining : -1, quota);
    return { allowed: proven, scope, quota, remaining: proven ? remaining : 0, resetSeconds };
  }

  /** Counts what a user actor decided for a session or its proven key. Undefined when the scope is in shadow mode. */
  weigh(result: QuotaResult): QuotaResult | undefined {
    const { scope, allowed, remaining, quota } = result;
    const shadow = this.#isShadow(scope);
    countDecision(this.#counters[scope === 's' ? 's' : 'provenKey'], allowed ? remaining : -1, quota, shadow);
    return shadow ? undefined : result;
  }

  /** Requests per window of a scope; 0 when it is off. */
  quotaOf(scope: ScopeCode, nowMs: number): number {
    return this.#quota(scope, nowMs);
  }

  counters(): Readonly<Record<keyof LimiterCounters, Readonly<ScopeCounters>>> {
    return this.#counters;
  }

  /** Counters held now, of all scopes together. */
  readonly keys = (): number => this.#keys;

  /** Requests per window, 0 when the scope is off. Moves the window on. */
  #quota(scope: ScopeCode, nowMs: number): number {
    this.#moveOn(nowMs);
    return this.#settings.get(SCOPE_SETTINGS[scope]) * this.#windowSeconds;
  }

  /** A refused request is not counted. `limit` is the pool, `quota` what is shown. */
  #count(
    scope: 'c' | 'i',
    counters: AddressCounters,
    key: string,
    cost: number,
    quota: number,
    limit: number,
    nowMs: number,
  ): QuotaResult | undefined {
    const before = counters.get(key);
    if (before === undefined && !this.#newSlot() && scope === 'c') {
      this.#counters.c.untracked += 1;
      return undefined;
    }
    const shared = scope === 'i' ? this.#sharedAddresses : undefined;
    const used = (before ?? 0) + cost;
    const left = limit - used - (shared?.others(key) ?? 0);
    if (left >= 0) {
      counters.set(key, used);
      shared?.note(key, used, limit);
    } else if (before === undefined) counters.set(key, 0);
    return this.#result(scope, quota, left, cost, limit, nowMs);
  }

  /**
   * `left` after `cost`, negative for a refusal, which shows what is left without it. In shadow mode a scope counts
   * and refuses nothing, so it has no result either.
   */
  #result(
    scope: OpenScope,
    quota: number,
    left: number,
    cost: number,
    limit: number,
    nowMs: number,
  ): QuotaResult | undefined {
    const shadow = this.#isShadow(scope);
    countDecision(this.#counters[scope], left, limit, shadow);
    if (shadow) return undefined;
    return {
      allowed: left >= 0,
      scope,
      quota,
      remaining: Math.max(0, Math.min(quota, left >= 0 ? left : left + cost)),
      resetSeconds: this.#secondsLeft(nowMs),
    };
  }

  /** Connections whose quotas a network has: at least one for each of its shares. */
  #connectionsOf(network: string, shares: number): number {
    return Math.max(shares, this.#opens.of(network));
  }

  /** Seconds until the window ends: before its end, so at least 1. */
  #secondsLeft(nowMs: number): number {
    return Math.ceil((this.#endMs - Math.max(nowMs, this.#startMs)) / SECOND_MS);
  }

  /** The scopes' letters occur in no other item of that setting. */
  #isShadow(scope: ScopeCode): boolean {
    const scopes = this.#settings.get('RateLimitShadowScopes');
    return scopes !== '' && scopes.includes(scope);
  }

  /** Room for one counter more? Shared counters of addresses come on top, at most `SHARED_COUNTERS` of them. */
  readonly #newSlot = (): boolean => {
    if (this.#keys >= this.#keysMax) return false;
    this.#keys += 1;
    return true;
  };

  /** `opening`: connections that are being accepted in this call. A request that lasts over the end of its window counts in the next. */
  #moveOn(nowMs: number, opening = 0): void {
    const seconds = this.#settings.get('RateLimitWindowSeconds');
    const isPresent = nowMs < this.#endMs && seconds === this.#windowSeconds;
    if (isPresent && (nowMs >= this.#startMs || this.#clock() >= this.#startMs)) return;
    const window = windowIndex(nowMs, seconds);
    const passed = seconds === this.#windowSeconds ? window - this.#window : 1;
    this.#opens.moveOn(Math.max(1, passed), seconds, this.#connectionsOpen() - opening);
    this.#window = window;
    this.#windowSeconds = seconds;
    this.#startMs = window * seconds * SECOND_MS;
    this.#endMs = this.#startMs + seconds * SECOND_MS;
    this.#keys = 0;
    this.#connections = new AddressCounters();
    this.#addresses = new AddressCounters();
    const counts = this.#exchange?.counts;
    this.#sharedAddresses = counts && new SharedWindow(counts.address, window);
    this.#publicKeys = {
      p: new KeyWindow(counts && new SharedWindow(counts.publicKey, window)),
      m: new KeyWindow(counts && new SharedWindow(counts.mcpLogin, window)),
    };
  }
}
