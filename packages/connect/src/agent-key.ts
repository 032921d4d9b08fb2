/** The Ed25519 key of an agent: how it is made, what it signs, and the letters that its owner types to allow it. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';

export interface AgentKey {
  /** base64url of the 32 raw bytes: 43 characters. */
  readonly publicKey: string;
  /** The signature of 64 bytes in base64url. */
  sign(message: Uint8Array): string;
}

/** A stored key: both halves in base64url, 43 characters each, as `gatehouse keygen` prints them. */
export interface KeyPair {
  readonly publicKey: string;
  readonly secretKey: string;
}

const HALF = /^[A-Za-z0-9_-]{43}$/;
/** PKCS#8 in DER ends with the raw 32 bytes of the secret, and begins with these (RFC 8410 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
/** RFC 4648 6. */
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const LETTERS = 6;

export function createKeyPair(): KeyPair {
  // Encoded at generation: an export afterwards can deadlock Node 20 (decision 0002).
  const { publicKey, privateKey } = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { format: 'der', type: 'spki' },
    privateKeyEncoding: { format: 'der', type: 'pkcs8' },
  });
  return { publicKey: lastHalf(publicKey), secretKey: lastHalf(privateKey) };
}

function lastHalf(der: Buffer): string {
  return der.subarray(-32).toString('base64url');
}

/** Throws for anything but the base64url of 32 bytes. */
export function keyOf(secretKey: string): AgentKey {
  const secret = Buffer.from(secretKey, 'base64url');
  if (!HALF.test(secretKey) || secret.toString('base64url') !== secretKey)
    throw new TypeError('the secret key is not the base64url of 32 bytes: 43 characters without padding');
  const key = Buffer.concat([PKCS8_PREFIX, secret]);
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  const publicKey = lastHalf(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }));
  return { publicKey, sign: (message) => sign(null, message, privateKey).toString('base64url') };
}

/** The first letters of the base32 of the SHA-256 of the raw key. */
export function lettersOf(publicKey: string): string {
  const digest = createHash('sha256').update(Buffer.from(publicKey, 'base64url')).digest();
  let letters = '';
  for (let index = 0; index < LETTERS; index += 1) {
    const bit = index * 5;
    const pair = digest.readUInt16BE(bit >> 3);
    letters += BASE32[(pair >> (11 - (bit & 7))) & 31];
  }
  return letters;
}

/**
 * The address of the home page where an owner allows the key. The key is in the fragment, which reaches no server and no
 * log. The letters are not in it: the owner types them, which shows that this link is the one of this key.
 */
export function enrollmentLink(baseUrl: string, publicKey: string, name: string): string {
  const page = new URL('/', baseUrl);
  page.hash = new URLSearchParams({ 'agent-key': publicKey, 'agent-name': name.slice(0, 64) }).toString();
  return page.href;
}
