/** Authenticates modules at the internal listener by `X-Module-Key`. A key permits its own module's operations only. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { GatewayError } from '../../domain/errors.ts';

export interface ModuleKeys {
  /** A configured module, with a key or without. */
  knows(name: string): boolean;
  /** Names of the modules with this key. Throws `AccessDenied` (401) for an unknown key. */
  openedBy(key: string | undefined): ReadonlySet<string>;
}

/** `keys`: the configured modules by name, with their optional key. */
export function createModuleKeys(keys: ReadonlyMap<string, string | undefined>): ModuleKeys {
  // Digests have one length, so the time of a comparison reveals not even the length of a key.
  const digests = [...keys].flatMap(([name, key]) =>
    key === undefined ? [] : [[name, digestOf(key)] as const],
  );
  return {
    knows: (name) => keys.has(name),
    openedBy(key) {
      const given = digestOf(key ?? '');
      const opened = (key === undefined ? [] : digests)
        .filter(([, digest]) => timingSafeEqual(digest, given))
        .map(([name]) => name);
      if (opened.length === 0) throw new GatewayError('AccessDenied', 'X-Module-Key is the key of no module');
      return new Set(opened);
    },
  };
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
