/**
 * Windows of everything that is not bound to a session: connections, addresses and unproven public keys (spec 8.1,
 * events.md "Rate limiter"). Volatile by design: one owner on the main thread, synchronous turns, nothing written.
 * All scopes share one window; its maps are swapped at the boundary, so there is no timer and no sweep.
 */
import { type ScopeCode, type Verdict, windowIndex } from '../domain/quotas.ts';
import type { SettingsReader } from '../domain/settings.ts';
import { SECOND_MS } from '../domain/time.ts';
import { AddressCounters } from './address-counters.ts';
import { countersOfAll, type ScopeCounters, tally } from './limiter-counters.ts';
import { AddressPrefixes, ConnectionOpens, type KeyUse, sharedKey } from './limiter-keys.ts';
import { UnknownKeyBudget } from './unknown-keys.ts';

/** Keys of all scopes in one window; further callers are counted by address alone. */
export const LIMITER_KEYS_MAX = 1_000_000;
/** All addresses together may use a public key so many times its quota: nobody can lock its owner out. */
const BARE_KEY_FACTOR = 10;

/** Scopes that live here. `s` lives in the user actors. */
export type OpenScope = Exclude<ScopeCode, 's'>;

export interface LimiterOptions {
  readonly settings: SettingsReader;
  /** Connections open in the process: the bound of an address's pool. */
  readonly connectionsOpen: () => number;
  /** `LIMITER_KEYS_MAX` unless given. */
  readonly keysMax?: number;
}

export interface Caller {
  /** Canonical text. */
  readonly address: string;
  /** Port of the peer, where the HTTP server names it. */
  readonly port: number | undefined;
  /** Named by a trusted proxy: the socket is not the client's. */
  readonly forwarded: boolean;
}

const QUOTA_SETTING = {
  c: 'ApiRPSLimit',
  i: 'IpRPSLimit',
  p: 'PubKeyApiRPSLimit',
  m: 'McpApiRPSLimit',
} as const satisfies Record<OpenScope, string>;

export class Limiter {
  readonly #settings: SettingsReader;
  readonly #connectionsOpen: () => number;
  readonly #keysMax: number;
  readonly #prefixes = new AddressPrefixes();
  readonly #opens: ConnectionOpens;
  readonly #unknownKeys: UnknownKeyBudget;
  readonly #counters = countersOfAll();
  #window = -1;
  #windowSeconds = 0;
  /** The window in Unix milliseconds: from its start to before its end. */
  #startMs = 0;
  #endMs = 0;
  #keys = 0;
  #connections = new AddressCounters();
  #addresses = new AddressCounters();
  #publicKeys = { p: new Map<string, KeyUse>(), m: new Map<string, KeyUse>() };

  constructor(options: LimiterOptions) {
    this.#settings = options.settings;
    this.#connectionsOpen = options.connectionsOpen;
    this.#keysMax = options.keysMax ?? LIMITER_KEYS_MAX;
    this.#opens = new ConnectionOpens(this.#keysMax);
    this.#unknownKeys = new UnknownKeyBudget(options.settings, this.#keysMax);
  }

  /** A connection was accepted from this address. */
  opened(address: string, nowMs: number): void {
    this.#moveOn(nowMs);
    const prefix = this.#prefixes.of(address);
    this.#opens.note(prefix, this.#opens.of(prefix) + 1);
  }

  /** The connection scope. Undefined when it is off, in shadow mode, or not tracked any more in this window. */
  chargeConnection(caller: Caller, cost: number, nowMs: number): Verdict | undefined {
    const quota = this.#quota('c', nowMs);
    if (quota === 0) return undefined;
    const prefix = this.#prefixes.of(caller.address);
    if (caller.forwarded || caller.port !== undefined) {
      const key = caller.forwarded ? prefix : `${caller.address} ${caller.port}`;
      return this.#count('c', this.#connections, key, cost, quota, quota, nowMs);
    }
    const opens = this.#opens.of(prefix);
    if (opens > 0) this.#opens.note(prefix, opens);
    const pool = quota * Math.max(1, Math.min(opens, this.#connectionsOpen()));
    return this.#count('c', this.#connections, prefix, cost, quota, pool, nowMs);
  }

  /** The address scope. When the keys are used up, new addresses share counters instead of going free. */
  chargeAddress(address: string, cost: number, nowMs: number): Verdict | undefined {
    const quota = this.#quota('i', nowMs);
    if (quota === 0) return undefined;
    const prefix = this.#prefixes.of(address);
    const full = this.#keys >= this.#keysMax && this.#addresses.get(prefix) === undefined;
    return this.#count('i', this.#addresses, full ? sharedKey(prefix) : prefix, cost, quota, quota, nowMs);
  }

  /** An unproven public key: (key, address) stops at the quota, the bare key only at ten times it. */
  chargeKey(
    scope: 'p' | 'm',
    publicKey: string,
    address: string,
    cost: number,
    nowMs: number,
  ): Verdict | undefined {
    const quota = this.#quota(scope, nowMs);
    if (quota === 0) return undefined;
    const prefix = this.#prefixes.of(address);
    const use = this.#publicKeys[scope].get(publicKey) ?? this.#newKey(scope, publicKey, prefix);
    const first = use?.address === prefix;
    const before = first ? use.own : use?.others?.get(prefix);
    if (use === undefined || (before === undefined && !this.#newSlot())) {
      this.#counters[scope].untracked += 1;
      return undefined;
    }
    const used = (before ?? 0) + cost;
    const bare = use.bare + cost;
    const left = Math.min(quota - used, quota * BARE_KEY_FACTOR - bare);
    if (left >= 0) {
      use.bare = bare;
      if (first) use.own = used;
    }
    if (!first) {
      use.others ??= new Map();
      use.others.set(prefix, left >= 0 ? used : (before ?? 0));
    }
    return this.#verdict(scope, quota, left, cost, quota, nowMs);
  }

  /** Counts what a user actor decided for a session or its proven key. Undefined when the scope is in shadow mode. */
  weigh(verdict: Verdict): Verdict | undefined {
    const { scope, allowed, remaining, quota } = verdict;
    const shadow = this.#isShadow(scope);
    tally(this.#counters[scope === 's' ? 's' : 'provenKey'], allowed ? remaining : -1, quota, shadow);
    return shadow ? undefined : verdict;
  }

  /** One login with an unknown key. The verdict refuses from the budget's end on. */
  chargeUnknownKey(address: string, nowMs: number): Verdict | undefined {
    const verdict = this.#unknownKeys.charge(this.#prefixes.of(address), nowMs);
    if (verdict !== undefined) {
      tally(this.#counters.unknownKey, verdict.allowed ? verdict.remaining : -1, verdict.quota);
    }
    return verdict;
  }

  /** Refuses while that budget is spent, so that a guesser learns nothing from then on. Counts nothing. */
  checkUnknownKeys(address: string, nowMs: number): Verdict | undefined {
    return this.#unknownKeys.check(this.#prefixes.of(address), nowMs);
  }

  counters(): Readonly<Record<ScopeCode | 'provenKey' | 'unknownKey', Readonly<ScopeCounters>>> {
    return this.#counters;
  }

  /** Counters held now, of all scopes together. */
  readonly keys = (): number => this.#keys;

  /** Requests per window, 0 when the scope is off. Moves the window on. */
  #quota(scope: OpenScope, nowMs: number): number {
    this.#moveOn(nowMs);
    return this.#settings.get(QUOTA_SETTING[scope]) * this.#windowSeconds;
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
  ): Verdict | undefined {
    const before = counters.get(key);
    if (before === undefined && !this.#newSlot() && scope === 'c') {
      this.#counters.c.untracked += 1;
      return undefined;
    }
    const left = limit - (before ?? 0) - cost;
    if (left >= 0) counters.set(key, (before ?? 0) + cost);
    else if (before === undefined) counters.set(key, 0);
    return this.#verdict(scope, quota, left, cost, limit, nowMs);
  }

  /**
   * `left` after `cost`, negative for a refusal, which shows what is left without it. In shadow mode a scope counts
   * and has no say, so it has no verdict either.
   */
  #verdict(
    scope: OpenScope,
    quota: number,
    left: number,
    cost: number,
    limit: number,
    nowMs: number,
  ): Verdict | undefined {
    const shadow = this.#isShadow(scope);
    tally(this.#counters[scope], left, limit, shadow);
    if (shadow) return undefined;
    return {
      allowed: left >= 0,
      scope,
      quota,
      remaining: Math.max(0, Math.min(quota, left >= 0 ? left : left + cost)),
      // Before the end, so at least 1.
      resetSeconds: Math.ceil((this.#endMs - nowMs) / SECOND_MS),
    };
  }

  /** The scopes' letters occur in no other item of that setting. */
  #isShadow(scope: ScopeCode): boolean {
    const scopes = this.#settings.get('RateLimitShadowScopes');
    return scopes !== '' && scopes.includes(scope);
  }

  #newKey(scope: 'p' | 'm', publicKey: string, address: string): KeyUse | undefined {
    if (!this.#newSlot()) return undefined;
    const use: KeyUse = { bare: 0, address, own: 0, others: undefined };
    this.#publicKeys[scope].set(publicKey, use);
    return use;
  }

  /** Room for one counter more? Shared counters of addresses come on top, at most `SHARED_COUNTERS` of them. */
  #newSlot(): boolean {
    if (this.#keys >= this.#keysMax) return false;
    this.#keys += 1;
    return true;
  }

  #moveOn(nowMs: number): void {
    const seconds = this.#settings.get('RateLimitWindowSeconds');
    if (nowMs < this.#endMs && nowMs >= this.#startMs && seconds === this.#windowSeconds) return;
    const window = windowIndex(nowMs, seconds);
    this.#opens.moveOn(seconds === this.#windowSeconds ? window - this.#window : 1);
    this.#window = window;
    this.#windowSeconds = seconds;
    this.#startMs = window * seconds * SECOND_MS;
    this.#endMs = this.#startMs + seconds * SECOND_MS;
    this.#keys = 0;
    this.#connections = new AddressCounters();
    this.#addresses = new AddressCounters();
    this.#publicKeys = { p: new Map(), m: new Map() };
  }
}
