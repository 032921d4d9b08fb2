/**
 * Seals what a cluster stores in its database: AES-256-GCM under a key that HKDF (RFC 5869) derives from `Cluster.secret`,
 * a salt and a purpose. Form: salt, nonce, text, tag.
 */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { keepNewest } from '../../domain/limits/newest.ts';

const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
/** A nonce is a counter in its last six bytes. */
const COUNTER_BYTES = 6;
/** Salts whose keys are remembered: one a purpose and start of a node, and one a checkpoint. */
const SALTS_MAX = 1_024;

/** No listed secret opens it, or it was changed, or it belongs to another place. */
export class SealUnopened extends Error {
  override readonly name = 'SealUnopened';
}

export class Sealer {
  readonly #secrets: readonly Uint8Array[];
  readonly #purpose: string;
  readonly #keys = new Map<string, readonly Buffer[]>();
  #salt = randomBytes(SALT_BYTES);
  #count = 0;

  /** `secrets`: the first seals, all open. */
  constructor(secrets: readonly Uint8Array[], purpose: string) {
    this.#secrets = secrets;
    this.#purpose = purpose;
  }

  /** Seals under a new salt from now on: to be called at every join. */
  freshSalt(): void {
    this.#salt = randomBytes(SALT_BYTES);
    this.#count = 0;
  }

  /** `associated` is authenticated, so that one sealed row cannot replace another. */
  seal(text: Uint8Array, associated: Uint8Array): Buffer {
    const [key] = this.#keysOf(this.#salt);
    if (key === undefined) throw new RangeError('a sealer needs a secret');
    this.#count += 1;
    const nonce = Buffer.alloc(NONCE_BYTES);
    nonce.writeUIntBE(this.#count, NONCE_BYTES - COUNTER_BYTES, COUNTER_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(associated);
    return Buffer.concat([this.#salt, nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
  }

  /** Throws `SealUnopened`. */
  open(sealed: Uint8Array, associated: Uint8Array): Buffer {
    if (sealed.length >= SALT_BYTES + NONCE_BYTES + TAG_BYTES)
      for (const key of this.#keysOf(sealed.subarray(0, SALT_BYTES))) {
        const text = unsealWith(key, sealed, associated);
        if (text !== undefined) return text;
      }
    throw new SealUnopened('Cluster.secret does not open it');
  }

  /** True if the first secret opens it. Throws `SealUnopened` when none does. */
  isSealedWithFirst(sealed: Uint8Array, associated: Uint8Array): boolean {
    this.open(sealed, associated);
    const [first] = this.#keysOf(sealed.subarray(0, SALT_BYTES));
    return first !== undefined && unsealWith(first, sealed, associated) !== undefined;
  }

  #keysOf(salt: Uint8Array): readonly Buffer[] {
    const name = Buffer.from(salt).toString('latin1');
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const keys = this.#secrets.map((secret) =>
      Buffer.from(hkdfSync('sha256', secret, salt, `gatehouse cluster ${this.#purpose}`, KEY_BYTES)),
    );
    keepNewest(this.#keys, SALTS_MAX, name, keys);
    return keys;
  }
}

function unsealWith(key: Buffer, sealed: Uint8Array, associated: Uint8Array): Buffer | undefined {
  const nonce = sealed.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
  const end = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associated).setAuthTag(sealed.subarray(end));
  try {
    const text = decipher.update(sealed.subarray(SALT_BYTES + NONCE_BYTES, end));
    return Buffer.concat([text, decipher.final()]);
  } catch {
    return undefined;
  }
}
