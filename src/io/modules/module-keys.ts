/** Authenticates modules at the internal listener by `X-Module-Key`. A key permits its own module's operations only. */
import { hash, timingSafeEqual } from 'node:crypto';
import { GatewayError } from '../../domain/errors.ts';

export interface ModuleKeys {
  /** A configured module, with a key or without. */
  knows(name: string): boolean;
  /** Names of the modules with this key. Throws `AccessDenied` (401) for an unknown key. */
  openedBy(key: string | undefined): ReadonlySet<string>;
}

/** `keys`: the configured modules by name, with their optional key. */
export function createModuleKeys(keys: ReadonlyMap<string, string | undefined>): ModuleKeys {
  const opened = new Map<string, Set<string>>();
  for (const [name, key] of keys)
    if (key !== undefined) opened.set(key, (opened.get(key) ?? new Set()).add(name));
  // Digests have one length, so the time of a comparison reveals not even the length of a key.
  const digests = [...opened].map(([key, names]) => ({ digest: digestOf(key), names }));
  return {
    knows: (name) => keys.has(name),
    openedBy(key) {
      const given = digestOf(key ?? '');
      let found: ReadonlySet<string> | undefined;
      for (const { digest, names } of digests) if (timingSafeEqual(digest, given)) found = names;
      if (key === undefined || found === undefined)
        throw new GatewayError('AccessDenied', 'X-Module-Key is the key of no module');
      return found;
    },
  };
}

function digestOf(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}
