/**
 * Ed25519 verification and the check of a key at enrollment. The only importer of @noble/ed25519. OpenSSL verifies eleven
 * times faster but accepts forgeries for keys of small order, so the library checks a key once, at enrollment.
 */
import { createPublicKey, verify } from 'node:crypto';
import { Point } from '@noble/ed25519';
import { KeyCache } from './key-cache.ts';

/** RFC 8032, section 5.1.5 and 5.1.6. */
export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/**
 * Every encoding of a point whose order divides 8, in base64url: eight points, six of which have two or more
 * spellings. Source: `lowOrderEncodings` of test/vectors/ed25519_expected.json.
 */
const LOW_ORDER: ReadonlySet<string> = new Set(
  [
    '0000000000000000000000000000000000000000000000000000000000000000',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    '0000000000000000000000000000000000000000000000000000000000000080',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
    '0100000000000000000000000000000000000000000000000000000000000000',
    '0100000000000000000000000000000000000000000000000000000000000080',
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  ].map((hex) => Buffer.from(hex, 'hex').toString('base64url')),
);

interface SignedMessage {
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  /** 64 raw bytes. */
  readonly signature: Uint8Array;
}

const cachedKeys = new KeyCache();

/**
 * True for a valid signature of an accepted key. False for wrong lengths and for keys that are not canonical, of low order
 * or off the curve; nothing is thrown.
 */
export function verifyEd25519({ publicKey, message, signature }: SignedMessage): boolean {
  if (publicKey.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false;
  const name = base64url(publicKey);
  const cached = cachedKeys.get(name);
  if (cached !== undefined) return verify(null, message, cached, signature);
  if (!isCanonical(publicKey) || LOW_ORDER.has(name)) return false;
  // The key is imported as JWK: with DER, import and verification together take 1.6 times as long.
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: name } });
  const good = verify(null, message, key, signature);
  if (good) cachedKeys.keep(name, key);
  return good;
}

/** True for a key that may be enrolled: 32 bytes, canonical, on the curve, not of small order, free of torsion. */
export function checkEd25519Key({ publicKey }: { readonly publicKey: Uint8Array }): boolean {
  if (publicKey.length !== PUBLIC_KEY_BYTES || !isCanonical(publicKey)) return false;
  const point = decodePoint(publicKey);
  return point !== undefined && !point.isSmallOrder() && point.isTorsionFree();
}

/** y < p = 2^255 − 19, little-endian, without the sign bit (RFC 8032, section 5.1.3). */
function isCanonical(publicKey: Uint8Array): boolean {
  if (((publicKey[31] ?? 0) & 0x7f) !== 0x7f) return true;
  for (let index = 30; index > 0; index -= 1) {
    if (publicKey[index] !== 0xff) return true;
  }
  return (publicKey[0] ?? 0) < 0xed;
}

/** Strict decoding (`zip215` off); undefined for bytes that are no point, for which the library throws. */
function decodePoint(publicKey: Uint8Array): Point | undefined {
  try {
    // A copy: the library accepts a Uint8Array of its own realm, not every subclass.
    return Point.fromBytes(Uint8Array.from(publicKey), false);
  } catch (error) {
    if (error instanceof Error) return undefined;
    throw error;
  }
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
}
