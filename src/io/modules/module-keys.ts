/** Who calls the internal listener: a module shows itself by its `X-Module-Key`, which opens what is that module's alone. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { GatewayError } from '../../domain/errors.ts';

export interface ModuleKeys {
  /** A configured module, with a key or without. */
  knows(name: string): boolean;
  /** Names of the modules whose key this is. Throws `AccessDenied` (401) when it is the key of none. */
  openedBy(key: string | undefined): ReadonlySet<string>;
}

/** `keys`: the configured modules by name, with their key where they have one. */
export function createModuleKeys(keys: ReadonlyMap<string, string | undefined>): ModuleKeys {
  // Digests have one length, so that the time of a comparison tells nothing, not even the length of a key.
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
