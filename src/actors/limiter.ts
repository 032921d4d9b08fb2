/**
 * Windows of everything that is not bound to a session: connections, addresses, unproven public keys, and the budget
 * of logins with unknown keys (spec 8.1, events.md "Rate limiter", auth.md A12). Volatile by design: one owner on the
 * main thread, synchronous turns, nothing written. All scopes share one window; its maps are swapped at the boundary,
 * so there is no timer and no sweep.
 */
import ipaddr from 'ipaddr.js';
import { judge, type ScopeCode, secondsToReset, type Verdict, windowIndex } from '../domain/quotas.ts';
import type { SettingName, SettingsReader } from '../domain/settings.ts';
import { MINUTE_MS } from '../domain/time.ts';

/** Keys of all scopes in one window; further ones are counted by address alone. */
export const LIMITER_KEYS_MAX = 1_000_000;
/** When the keys are used up, new addresses share so many counters: bounded, and still limited. */
const SHARED_ADDRESSES = 65_536;
/** A bare public key may be used so many times its quota by all addresses together: nobody can lock its owner out. */
const BARE_KEY_FACTOR = 10;
const NEAR_LIMIT = 0.8;
const UNKNOWN_KEY_WINDOW_SECONDS = MINUTE_MS / 1_000;

/** Scopes that live here. `s` lives in the user actors. */
export type OpenScope = Exclude<ScopeCode, 's'>;

export interface ScopeCounters {
  allowed: number;
  /** Allowed, with at least 80 % of the quota used. */
  nearLimit: number;
  limited: number;
  /** Not counted in this scope because the keys were used up. */
  untracked: number;
}

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

const QUOTA_SETTING: Record<OpenScope, SettingName> = {
  c: 'ApiRPSLimit',
  i: 'IpRPSLimit',
  p: 'PubKeyApiRPSLimit',
  m: 'McpApiRPSLimit',
};

interface Bound {
  readonly scope: OpenScope;
  readonly quota: number;
  /** Uses at which this key stops; the quota unless the key is a pool. */
  readonly limit: number;
  readonly cost: number;
  readonly resetSeconds: number;
}

export class Limiter {
  readonly #settings: SettingsReader;
  readonly #connectionsOpen: () => number;
  readonly #keysMax: number;
  #window = -1;
  #windowSeconds = 0;
  #keys = 0;
  #used: Record<OpenScope, Map<string, number>> = emptyMaps();
  /** Connections opened per address: of this window, the last one and the one before (silent for two = forgotten). */
  #opens: [Map<string, number>, Map<string, number>, Map<string, number>] = [new Map(), new Map(), new Map()];
  #prefixes = new Map<string, string>();
  #minute = -1;
  #unknownKeys = new Map<string, number>();
  readonly #counters: Record<OpenScope, ScopeCounters> = {
    c: emptyCounters(),
    i: emptyCounters(),
    p: emptyCounters(),
    m: emptyCounters(),
  };
  readonly #unknownKeyCounters = emptyCounters();

  constructor(options: LimiterOptions) {
    this.#settings = options.settings;
    this.#connectionsOpen = options.connectionsOpen;
    this.#keysMax = options.keysMax ?? LIMITER_KEYS_MAX;
  }

  /** A connection was accepted from this address. */
  opened(address: string, nowMs: number): void {
    this.#roll(nowMs);
    const key = this.#prefixOf(address);
    this.#noteOpens(key, this.#opensOf(key) + 1);
  }

  /** The connection scope. Undefined when it is off, or not tracked any more in this window. */
  chargeConnection(caller: Caller, cost: number, nowMs: number): Verdict | undefined {
    const bound = this.#bound('c', cost, nowMs);
    if (bound === undefined) return undefined;
    const prefix = this.#prefixOf(caller.address);
    if (caller.forwarded) return this.#count(prefix, bound);
    if (caller.port !== undefined) return this.#count(`${caller.address} ${caller.port}`, bound);
    const opens = this.#opensOf(prefix);
    if (opens > 0) this.#noteOpens(prefix, opens);
    const pool = Math.max(1, Math.min(opens, this.#connectionsOpen()));
    return this.#count(prefix, { ...bound, limit: bound.quota * pool });
  }

  /** The address scope. When the keys are used up, new addresses share counters instead of going free. */
  chargeAddress(address: string, cost: number, nowMs: number): Verdict | undefined {
    const bound = this.#bound('i', cost, nowMs);
    if (bound === undefined) return undefined;
    const prefix = this.#prefixOf(address);
    const full = this.#keys >= this.#keysMax && !this.#used.i.has(prefix);
    if (full) this.#counters.i.untracked += 1;
    return this.#count(full ? sharedKey(prefix) : prefix, bound);
  }

  /** An unproven public key: (key, address) stops at the quota, the bare key only at ten times it. */
  chargeKey(
    scope: 'p' | 'm',
    publicKey: string,
    address: string,
    cost: number,
    nowMs: number,
  ): Verdict | undefined {
    const bound = this.#bound(scope, cost, nowMs);
    if (bound === undefined) return undefined;
    const own = this.#count(`${publicKey} ${this.#prefixOf(address)}`, bound);
    if (own?.allowed === false) return own;
    const bare = this.#count(publicKey, { ...bound, limit: bound.quota * BARE_KEY_FACTOR });
    return bare?.allowed === false ? bare : own;
  }

  /** One login with an unknown key. The verdict refuses from the budget's end on. */
  chargeUnknownKey(address: string, nowMs: number): Verdict | undefined {
    return this.#unknownKey(address, 1, nowMs);
  }

  /** The same budget without using it up: refuses while it is spent, so that a guesser learns nothing from then on. */
  checkUnknownKeys(address: string, nowMs: number): Verdict | undefined {
    return this.#unknownKey(address, 0, nowMs);
  }

  counters(): Record<OpenScope | 'unknownKey', ScopeCounters> {
    return { ...this.#counters, unknownKey: this.#unknownKeyCounters };
  }

  /** Keys held now, of all scopes. */
  get keys(): number {
    return this.#keys;
  }

  #unknownKey(address: string, cost: number, nowMs: number): Verdict | undefined {
    const budget = this.#settings.get('UnknownKeyFailuresPerMinute');
    if (budget === 0) return undefined;
    const minute = windowIndex(nowMs, UNKNOWN_KEY_WINDOW_SECONDS);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#unknownKeys = new Map();
    }
    const key = this.#prefixOf(address);
    const slot =
      this.#unknownKeys.size >= this.#keysMax && !this.#unknownKeys.has(key) ? sharedKey(key) : key;
    const used = this.#unknownKeys.get(slot) ?? 0;
    const reset = secondsToReset(nowMs, UNKNOWN_KEY_WINDOW_SECONDS);
    const verdict = judge('i', budget, used + Math.max(1, cost), reset);
    if (cost > 0) {
      if (verdict.allowed) this.#unknownKeys.set(slot, used + cost);
      tally(this.#unknownKeyCounters, verdict.allowed, used + cost, budget);
    }
    return verdict;
  }

  /** What one charge is measured against; undefined when the scope is off. Moves the window on. */
  #bound(scope: OpenScope, cost: number, nowMs: number): Bound | undefined {
    this.#roll(nowMs);
    const rps = this.#settings.get(QUOTA_SETTING[scope]) as number;
    if (rps === 0) return undefined;
    const quota = rps * this.#windowSeconds;
    return { scope, quota, limit: quota, cost, resetSeconds: secondsToReset(nowMs, this.#windowSeconds) };
  }

  #count(key: string, bound: Bound): Verdict | undefined {
    const map = this.#used[bound.scope];
    const counters = this.#counters[bound.scope];
    const before = map.get(key);
    if (before === undefined) {
      if (this.#keys >= this.#keysMax && bound.scope !== 'i') {
        counters.untracked += 1;
        return undefined;
      }
      this.#keys += 1;
    }
    const used = (before ?? 0) + bound.cost;
    const allowed = used <= bound.limit;
    if (allowed || before === undefined) map.set(key, allowed ? used : 0);
    tally(counters, allowed, used, bound.limit);
    const remaining = Math.min(bound.quota, Math.max(0, bound.limit - used));
    return {
      allowed,
      scope: bound.scope,
      quota: bound.quota,
      remaining: allowed ? remaining : 0,
      resetSeconds: bound.resetSeconds,
    };
  }

  #roll(nowMs: number): void {
    const seconds = this.#settings.get('RateLimitWindowSeconds');
    const window = windowIndex(nowMs, seconds);
    if (window === this.#window && seconds === this.#windowSeconds) return;
    const steps = seconds === this.#windowSeconds ? window - this.#window : 1;
    const [current, last] = this.#opens;
    if (steps === 1) this.#opens = [new Map(), current, last];
    else if (steps === 2) this.#opens = [new Map(), new Map(), current];
    else this.#opens = [new Map(), new Map(), new Map()];
    this.#window = window;
    this.#windowSeconds = seconds;
    this.#used = emptyMaps();
    this.#keys = 0;
    this.#prefixes = new Map();
  }

  #opensOf(prefix: string): number {
    const [current, last, before] = this.#opens;
    return current.get(prefix) ?? last.get(prefix) ?? before.get(prefix) ?? 0;
  }

  #noteOpens(prefix: string, opens: number): void {
    const [current] = this.#opens;
    if (current.has(prefix) || current.size < this.#keysMax) current.set(prefix, opens);
  }

  /** IPv4 as it is; IPv6 by its /64, which one household or machine usually holds whole. */
  #prefixOf(address: string): string {
    if (!address.includes(':')) return address;
    const known = this.#prefixes.get(address);
    if (known !== undefined) return known;
    const prefix = ipv6Prefix(address);
    if (this.#prefixes.size < SHARED_ADDRESSES) this.#prefixes.set(address, prefix);
    return prefix;
  }
}

function ipv6Prefix(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/** FNV-1a over the text, folded to one of the shared counters. */
function sharedKey(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return `#${(hash >>> 0) % SHARED_ADDRESSES}`;
}

function tally(counters: ScopeCounters, allowed: boolean, used: number, limit: number): void {
  if (!allowed) counters.limited += 1;
  else if (used >= limit * NEAR_LIMIT) counters.nearLimit += 1;
  else counters.allowed += 1;
}

function emptyMaps(): Record<OpenScope, Map<string, number>> {
  return { c: new Map(), i: new Map(), p: new Map(), m: new Map() };
}

function emptyCounters(): ScopeCounters {
  return { allowed: 0, nearLimit: 0, limited: 0, untracked: 0 };
}
