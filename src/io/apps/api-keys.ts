/**
 * Creates and seals the API keys of applications (AES-256-GCM, decision 0015), under the secret of the journal or under
 * `Secrets.sealKey`. Keys for other purposes are derived from the secret.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Administration } from '../../actors/runtime/administration.ts';
import type { SealedKey } from '../../domain/apps.ts';
import { decodeSealKey } from '../../domain/seal-key.ts';

/** A stored name. */
const META_KEY = 'vault';
/** Data keys that are sealed under `Secrets.sealKey`, the newest first. */
const DATA_KEYS_META_KEY = 'sealedDataKeys';
/** Bound into a sealed data key where the id of an API key is bound into that one. */
const DATA_KEY_ID = 'data key';
/** Each change of the first seal key adds one; at this number the newest stays in use. */
const DATA_KEYS_MAX = 64;
const SECRET_BYTES = 32;
export const SEAL_NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Marks an API key for secret scanners. */
const PREFIX = 'ghk_';

interface IssuedKey {
  /** The clear text, for the caller only. */
  readonly apiKey: string;
  readonly sealed: SealedKey;
}

export interface ApiKeyCipher {
  issue(): IssuedKey;
  /** Seals another secret under the same key. */
  seal(text: string): SealedKey;
  /** The clear text of a sealed key. Throws when another cipher sealed it, or when it was changed. */
  open(key: SealedKey): string;
  /** The same; undefined where `open` throws. */
  tryOpen(key: SealedKey): string | undefined;
  /**
   * A key for another purpose (HKDF with SHA-256, RFC 5869): the same for each purpose as long as the journal exists, and
   * independent of the other keys.
   */
  deriveKey(purpose: string, lengthBytes: number): Buffer;
}

/** `Secrets.sealKey` does not fit the journal. The message is one sentence for the operator. */
export class SealKeyUnusable extends Error {}

interface SealOptions {
  /** `Secrets.sealKey`: the first seals, all of them open. When empty, the secret of the journal seals. */
  readonly sealKeys: readonly string[];
  /** Sealed keys that no configured key opens do not stop the start. */
  readonly sealKeyLost: boolean;
}

const UNSEALED: SealOptions = { sealKeys: [], sealKeyLost: false };

/**
 * The API-key cipher of this journal; a new journal gets a new secret, on disk before this resolves. Rejects with
 * `SealKeyUnusable`.
 */
export async function openApiKeyCipher(
  administration: Pick<Administration, 'metaGet' | 'metaOnce' | 'metaReplace'>,
  options: SealOptions = UNSEALED,
): Promise<ApiKeyCipher> {
  const dataKeys = await openDataKeys(administration, options);
  const stored = await administration.metaOnce(META_KEY, randomBytes(SECRET_BYTES).toString('base64url'));
  return createApiKeyCipher(Buffer.from(String(stored), 'base64url'), dataKeys);
}

/**
 * Random data keys that seal API keys; the journal holds them sealed under the seal key. A new first seal key adds a data
 * key and seals the earlier ones again, so a seal key that is no longer listed opens nothing sealed since.
 */
async function openDataKeys(
  administration: Pick<Administration, 'metaGet' | 'metaReplace'>,
  options: SealOptions,
): Promise<readonly Uint8Array[]> {
  const { sealKeyLost } = options;
  const found = administration.metaGet(DATA_KEYS_META_KEY);
  const stored: readonly string[] = Array.isArray(found) ? found : [];
  const sealKeys = options.sealKeys.map((text) => decodeSealKey(text) ?? new Uint8Array());
  const opened = stored.map((sealed) => openAny(sealKeys, DATA_KEY_ID, sealed));
  if (opened.includes(undefined) && !sealKeyLost)
    throw new SealKeyUnusable(
      sealKeys.length === 0
        ? 'is missing: the API keys of this journal are sealed with it'
        : 'does not open every API key of this journal: add the key that sealed them to the list',
    );
  const dataKeys = opened.flatMap((text) => (text === undefined ? [] : [Buffer.from(text, 'base64url')]));
  const [first] = sealKeys;
  if (first === undefined) return dataKeys;
  const [newest] = stored;
  if (newest !== undefined && openAny([first], DATA_KEY_ID, newest) !== undefined) return dataKeys;
  if (stored.length < DATA_KEYS_MAX) dataKeys.unshift(randomBytes(SECRET_BYTES));
  const lost = stored.filter((_, index) => opened[index] === undefined);
  const sealed = dataKeys.map((key) => seal(first, DATA_KEY_ID, key.toString('base64url')));
  const written = [...sealed, ...lost];
  const present = await administration.metaReplace(DATA_KEYS_META_KEY, found, written);
  // Another node of the cluster was first: its data key is the one to use.
  return isDeepStrictEqual(present, written) ? dataKeys : await openDataKeys(administration, options);
}

/** `secret`: 32 bytes; API keys are sealed under the first of `dataKeys` where there is one, and opened with any. */
export function createApiKeyCipher(secret: Uint8Array, dataKeys: readonly Uint8Array[] = []): ApiKeyCipher {
  if (secret.length !== SECRET_BYTES)
    throw new RangeError(`the secret of an API-key cipher has ${SECRET_BYTES} bytes`);
  const [sealing = secret] = dataKeys;
  // API keys from before the seal key was configured are sealed under the secret.
  const sealText = (text: string) => {
    const keyId = randomBytes(8).toString('base64url');
    return { keyId, sealed: seal(sealing, keyId, text) };
  };
  const tryOpen = ({ keyId, sealed }: SealedKey) => openAny([...dataKeys, secret], keyId, sealed);
  return {
    tryOpen,
    issue() {
      const apiKey = PREFIX + randomBytes(SECRET_BYTES).toString('base64url');
      return { apiKey, sealed: sealText(apiKey) };
    },
    seal: sealText,
    open(key) {
      const apiKey = tryOpen(key);
      if (apiKey === undefined)
        throw new Error(`API key ${key.keyId} is sealed under a key that is not configured`);
      return apiKey;
    },
    deriveKey: (purpose, lengthBytes) =>
      Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), purpose, lengthBytes)),
  };
}

/** Undefined when none of the keys opens it. */
function openAny(keys: readonly Uint8Array[], id: string, sealed: string): string | undefined {
  for (const key of keys) {
    const text = unseal(key, id, sealed);
    if (text !== undefined) return text;
  }
  return undefined;
}

/**
 * Nonce, tag and cipher text. The id is authenticated, so that one sealed key cannot replace another. A `nonce` that is given
 * follows from the text under a secret key.
 */
export function seal(
  secret: Uint8Array,
  keyId: string,
  apiKey: string,
  nonce: Uint8Array = randomBytes(SEAL_NONCE_BYTES),
): string {
  const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(Buffer.from(keyId));
  const text = Buffer.concat([cipher.update(apiKey, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
}

/** Undefined when it was sealed under another key, for another id, or was changed. */
export function unseal(secret: Uint8Array, keyId: string, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url');
  if (bytes.length < SEAL_NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = bytes.subarray(0, SEAL_NONCE_BYTES);
  const tag = bytes.subarray(SEAL_NONCE_BYTES, SEAL_NONCE_BYTES + TAG_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(keyId)).setAuthTag(tag);
  const text = decipher.update(bytes.subarray(SEAL_NONCE_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    // `final` throws only when the tag does not match.
    return undefined;
  }
}
