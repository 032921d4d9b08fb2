/** `keygen`: a fresh Ed25519 key pair for an agent or an admin. */
import { generateKeyPairSync } from 'node:crypto';

/** Both halves in base64url, 43 characters each: `publicKey` is registered, `secretKey` stays with its owner. */
export function generateKey(): { publicKey: string; secretKey: string } {
  // Keys are written in DER, never by `export`: docs/decisions/0002. Both forms end with the raw 32 bytes (RFC 8410).
  const { publicKey, privateKey } = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { format: 'der', type: 'spki' },
    privateKeyEncoding: { format: 'der', type: 'pkcs8' },
  });
  return { publicKey: lastHalf(publicKey), secretKey: lastHalf(privateKey) };
}

function lastHalf(der: Buffer): string {
  return der.subarray(-32).toString('base64url');
}
