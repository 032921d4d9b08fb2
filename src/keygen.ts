/** `keygen`: a fresh Ed25519 key pair for an agent or an admin. */
import { generateKeyPairSync } from 'node:crypto';

/** Both halves in base64url, 43 characters each: `publicKey` is registered, `secretKey` stays with its owner. */
export function generateKey(): { publicKey: string; secretKey: string } {
  const { x, d } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  if (x === undefined || d === undefined) throw new Error('the key pair has no Ed25519 halves');
  return { publicKey: x, secretKey: d };
}
