/**
 * The secret in the journal's metadata. API keys of applications are made here, shown once, kept sealed (AES-256-GCM)
 * under it, and opened only to be sent to the receiver (decision 0015); keys for other uses are derived from it.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Administration } from '../actors/runtime/administration.ts';
import type { SealedKey } from '../domain/apps.ts';

const META_KEY = 'vault';
const SECRET_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Tells an API key from other secrets where one is found lying about. */
const PREFIX = 'ghk_';

export interface IssuedKey {
  /** The clear text: goes to the caller and nowhere else. */
  readonly apiKey: string;
  readonly sealed: SealedKey;
}

export interface Vault {
  issue(): IssuedKey;
  /** The clear text of a sealed key. Throws when it was sealed by another vault or was changed. */
  open(key: SealedKey): string;
  /**
   * A key of its own for another use (RFC 5869, SHA-256): the same one for the same purpose as long as the journal
   * lives, and none tells anything of another.
   */
  deriveKey(purpose: string, lengthBytes: number): Buffer;
}

/** The vault of this journal; a new journal gets a new secret, on disk before this resolves. */
export async function openVault(administration: Pick<Administration, 'metaGet' | 'metaPut'>): Promise<Vault> {
  const stored = administration.metaGet(META_KEY);
  if (typeof stored === 'string') return createVault(Buffer.from(stored, 'base64url'));
  const secret = randomBytes(SECRET_BYTES);
  await administration.metaPut(META_KEY, secret.toString('base64url'));
  return createVault(secret);
}

/** `secret`: 32 bytes. */
export function createVault(secret: Uint8Array): Vault {
  if (secret.length !== SECRET_BYTES) throw new RangeError(`the secret of a vault has ${SECRET_BYTES} bytes`);
  return {
    issue() {
      const apiKey = PREFIX + randomBytes(SECRET_BYTES).toString('base64url');
      const keyId = randomBytes(8).toString('base64url');
      return { apiKey, sealed: { keyId, sealed: seal(secret, keyId, apiKey) } };
    },
    open: ({ keyId, sealed }) => unseal(secret, keyId, sealed),
    deriveKey: (purpose, lengthBytes) =>
      Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), purpose, lengthBytes)),
  };
}

/** Nonce, tag and cipher text. The id is bound in, so that one key cannot be put in the place of another. */
function seal(secret: Uint8Array, keyId: string, apiKey: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(Buffer.from(keyId));
  const text = Buffer.concat([cipher.update(apiKey, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
}

function unseal(secret: Uint8Array, keyId: string, sealed: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(keyId)).setAuthTag(tag);
  const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  return text.toString('utf8');
}
