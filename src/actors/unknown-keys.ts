/**
 * The budget of logins with unknown keys, per address and minute (auth.md A12). The quota of a key never fires for a
 * guesser who tries another key each time, and "Session not found" would be an oracle for password-derived keys.
 */
import { judge, secondsToReset, type Verdict, windowIndex } from '../domain/quotas.ts';
import type { SettingsReader } from '../domain/settings.ts';
import { MINUTE_MS, SECOND_MS } from '../domain/time.ts';
import { sharedKey } from './limiter-keys.ts';

const WINDOW_SECONDS = MINUTE_MS / SECOND_MS;

export class UnknownKeyBudget {
  readonly #settings: SettingsReader;
  readonly #keysMax: number;
  #window = -1;
  #used = new Map<string, number>();

  constructor(settings: SettingsReader, keysMax: number) {
    this.#settings = settings;
    this.#keysMax = keysMax;
  }

  /** One failure more. Undefined when the budget is off. */
  charge(prefix: string, nowMs: number): Verdict | undefined {
    return this.#judge(prefix, nowMs, true);
  }

  /** The verdict that a failure would get now; nothing is counted. */
  check(prefix: string, nowMs: number): Verdict | undefined {
    return this.#judge(prefix, nowMs, false);
  }

  #judge(prefix: string, nowMs: number, count: boolean): Verdict | undefined {
    const budget = this.#settings.get('UnknownKeyFailuresPerMinute');
    if (budget === 0) return undefined;
    const window = windowIndex(nowMs, WINDOW_SECONDS);
    if (window !== this.#window) {
      this.#window = window;
      this.#used = new Map();
    }
    const full = this.#used.size >= this.#keysMax && !this.#used.has(prefix);
    const key = full ? sharedKey(prefix) : prefix;
    const used = (this.#used.get(key) ?? 0) + 1;
    const verdict = judge('i', budget, used, secondsToReset(nowMs, WINDOW_SECONDS));
    if (count && verdict.allowed) this.#used.set(key, used);
    return verdict;
  }
}
