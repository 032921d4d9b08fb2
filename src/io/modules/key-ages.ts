/**
 * Ages of the keys of modules: the gateway remembers since when it knows each. The journal keeps a fingerprint and a time,
 * in a cluster once for all nodes.
 */
import { createHmac } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Administration } from '../../actors/runtime/administration.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { ApiKeyCipher } from '../apps/api-keys.ts';

/** A stored name. */
const META_KEY = 'moduleKeys';
const PURPOSE = 'fingerprints of module keys';
const SECRET_BYTES = 32;

/** Fingerprint and Unix milliseconds by module. */
type StoredKeys = Readonly<Record<string, { readonly print: string; readonly sinceMs: number }>>;

interface KeyedModule {
  readonly name: string;
  readonly key: string | undefined;
}

/**
 * Unix milliseconds since when the gateway knows the present key of each module that has one. A key that is new to it counts
 * from now; where the journal takes no writes it does so at the next start again.
 */
export async function openKeyAges(
  administration: Pick<Administration, 'metaGet' | 'metaReplace'>,
  cipher: Pick<ApiKeyCipher, 'deriveKey'>,
  modules: readonly KeyedModule[],
  nowMs: number,
): Promise<ReadonlyMap<string, number>> {
  const secret = cipher.deriveKey(PURPOSE, SECRET_BYTES);
  const found = administration.metaGet(META_KEY);
  const stored = (found ?? {}) as StoredKeys;
  const present: StoredKeys = Object.fromEntries(
    modules.flatMap(({ name, key }) => {
      if (key === undefined) return [];
      const print = createHmac('sha256', secret).update(`${name}\0${key}`).digest('base64url');
      const known = stored[name];
      return [[name, known?.print === print ? known : { print, sinceMs: nowMs }]];
    }),
  );
  if (!isDeepStrictEqual(present, stored)) await keep(administration, found, present);
  return new Map(Object.entries(present).map(([name, { sinceMs }]) => [name, sinceMs]));
}

async function keep(
  administration: Pick<Administration, 'metaReplace'>,
  was: unknown,
  present: StoredKeys,
): Promise<void> {
  try {
    await administration.metaReplace(META_KEY, was, present);
  } catch (error) {
    // The gateway starts without the note; the age of a key is no reason to stop it.
    if (!(error instanceof GatewayError)) throw error;
  }
}
