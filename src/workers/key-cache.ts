/** Imported public keys of logins, which each worker thread keeps. */

import type { KeyObject } from 'node:crypto';
import { keepNewest } from '../domain/limits/newest.ts';

/** Imported keys kept by each thread for each kind of login; about 1 KB each, 2.5 KB for RSA-4096. */
export const KEYS_CACHED_MAX = 2_048;

/**
 * Public keys by their text. A key that is kept saves its import and what OpenSSL prepares for it (docs/optimizations.md).
 * Only keys that have verified something enter, so unauthenticated callers cannot evict the keys of active agents.
 */
export class KeyCache {
  /** In order of age; the oldest entry is evicted first. */
  readonly #keys = new Map<string, KeyObject>();

  get(name: string): KeyObject | undefined {
    return this.#keys.get(name);
  }

  keep(name: string, key: KeyObject): void {
    keepNewest(this.#keys, KEYS_CACHED_MAX, name, key);
  }
}
