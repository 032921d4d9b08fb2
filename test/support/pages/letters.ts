/** The letters that the owner of an agent types, as `gatehouse-connect` computes them. */
import { createHash } from 'node:crypto';

/** Base32 (RFC 4648) of the SHA-256 of the key's bytes: the first six characters. */
export function lettersOf(publicKey: string): string {
  const hash = createHash('sha256').update(Buffer.from(publicKey, 'base64url')).digest();
  const bits = [...hash].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return Array.from({ length: 6 }, (_, at) => {
    const index = Number.parseInt(bits.slice(at * 5, at * 5 + 5), 2);
    return 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.charAt(index);
  }).join('');
}
