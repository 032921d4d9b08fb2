/**
 * The WebCrypto of @simplewebauthn/server: it hashes and verifies within the call and keeps imported keys. Node's own sends
 * each hash and each signature to a thread of libuv and back, and imports a key for each signature (docs/optimizations.md).
 */
import { createHash, createPublicKey, type JsonWebKey, type KeyObject, verify, webcrypto } from 'node:crypto';
import { KeyCache } from './key-cache.ts';

interface Algorithm {
  readonly name: string;
  readonly hash?: { readonly name: string };
  readonly namedCurve?: string;
}

type Key = webcrypto.CryptoKey | ImportedKey;

/** Names of WebCrypto, and of OpenSSL. */
const HASHES: ReadonlyMap<string, string> = new Map([
  ['SHA-1', 'sha1'],
  ['SHA-256', 'sha256'],
  ['SHA-384', 'sha384'],
  ['SHA-512', 'sha512'],
]);
/**
 * Algorithms that are verified here, each with the public keys that it takes. Any other algorithm or key of an attestation
 * goes to Node's WebCrypto, which verifies or refuses it.
 */
const FITS: Readonly<Record<string, (jwk: JsonWebKey, algorithm: Algorithm) => boolean>> = {
  ECDSA: ({ kty, crv }, { namedCurve }) => kty === 'EC' && crv === namedCurve,
  'RSASSA-PKCS1-v1_5': ({ kty, alg }, { hash }) =>
    kty === 'RSA' && (alg === undefined || alg === `RS${hash?.name.slice('SHA-'.length)}`),
  Ed25519: ({ kty, crv }) => kty === 'OKP' && crv === 'Ed25519',
};

/** RSA-4096 has 730 as text. An attestation may be signed by a longer key, which is not kept. */
const TEXT_KEPT_MAX = 1_024;

/** Stands for a CryptoKey; the library only passes it on. */
class ImportedKey {
  readonly key: KeyObject;
  /** Its JWK as text. */
  readonly name: string;
  readonly algorithm: Algorithm;

  constructor(key: KeyObject, name: string, algorithm: Algorithm) {
    this.key = key;
    this.name = name;
    this.algorithm = algorithm;
  }
}

const cachedKeys = new KeyCache();

/** Digests like `subtle.digest`. */
async function digest(name: string, data: Uint8Array): Promise<ArrayBuffer> {
  const hash = createHash(hashNamed(name)).update(data).digest();
  return Uint8Array.from(hash).buffer;
}

/** Imports like `subtle.importKey`: rejects for what is no key. */
async function importKey(
  format: 'jwk',
  jwk: JsonWebKey,
  algorithm: Algorithm,
  extractable: boolean,
  usages: webcrypto.KeyUsage[],
): Promise<Key> {
  const isPublic = jwk.d === undefined;
  if (!isPublic || FITS[algorithm.name]?.(jwk, algorithm) !== true)
    return webcrypto.subtle.importKey(format, jwk as webcrypto.JsonWebKey, algorithm, extractable, usages);
  const name = JSON.stringify(jwk);
  const key = cachedKeys.get(name) ?? createPublicKey({ format, key: jwk });
  return new ImportedKey(key, name, algorithm);
}

/** Verifies like `subtle.verify`: false for a signature of another length too. */
async function verifySignature(
  algorithm: Algorithm,
  imported: Key,
  signature: Uint8Array,
  data: Uint8Array,
): Promise<boolean> {
  if (!(imported instanceof ImportedKey))
    return webcrypto.subtle.verify(algorithm, imported, signature, data);
  if (algorithm.name !== imported.algorithm.name) throw new TypeError('the key is of another algorithm');
  const { key, name } = imported;
  const isGood = verify(hashOf(algorithm, imported), data, { key, dsaEncoding: 'ieee-p1363' }, signature);
  if (isGood && name.length <= TEXT_KEPT_MAX) cachedKeys.keep(name, key);
  return isGood;
}

/** ECDSA names its hash with the signature, RSA with the key; Ed25519 has none. */
function hashOf({ name, hash }: Algorithm, { algorithm }: ImportedKey): string | null {
  if (name === 'Ed25519') return null;
  return hashNamed((name === 'ECDSA' ? hash : algorithm.hash)?.name ?? '');
}

function hashNamed(name: string): string {
  const known = HASHES.get(name);
  if (known === undefined) throw new RangeError(`no hash ${name}`);
  return known;
}

export const THREAD_CRYPTO = {
  subtle: { digest, importKey, verify: verifySignature },
  getRandomValues: (bytes: Uint8Array) => webcrypto.getRandomValues(bytes),
};

/** The global is another one while `use` runs, which must read it within the call. */
export function withThreadCrypto<T>(use: () => T): T {
  const own = Object.getOwnPropertyDescriptor(globalThis, 'crypto');
  Object.defineProperty(globalThis, 'crypto', { value: THREAD_CRYPTO, configurable: true });
  try {
    return use();
  } finally {
    if (own !== undefined) Object.defineProperty(globalThis, 'crypto', own);
  }
}
