/**
 * Ed25519 in the browser (WebCrypto): generated keys, imported keys, and the signature of mcp_login (spec 5.1).
 */

/** PKCS #8 of an Ed25519 private key up to its 32 bytes (RFC 8410). */
const PKCS8_HEAD = Uint8Array.from([48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]);
const SECRET_BYTES = 32;

/** Bytes as base64url without padding. */
export function toBase64url(bytes) {
  let text = '';
  for (const byte of new Uint8Array(bytes)) text += String.fromCharCode(byte);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** Throws on any other text. */
export function fromBase64url(text) {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** A fresh key pair. `extractable` false: the secret cannot leave the browser's key store. */
export async function generateKey(extractable = false) {
  const pair = await crypto.subtle.generateKey({ name: 'Ed25519' }, extractable, ['sign', 'verify']);
  return {
    secret: pair.privateKey,
    publicKey: toBase64url(await crypto.subtle.exportKey('raw', pair.publicKey)),
  };
}

/** A pair from a secret of 32 bytes in base64url, as the command `keygen` prints it. */
export async function importKey(secretText) {
  const bytes = fromBase64url(secretText.trim());
  if (bytes.length !== SECRET_BYTES) throw new Error('A secret key has 32 bytes.');
  const pkcs8 = new Uint8Array([...PKCS8_HEAD, ...bytes]);
  const readable = await crypto.subtle.importKey('pkcs8', pkcs8, { name: 'Ed25519' }, true, ['sign']);
  const { x } = await crypto.subtle.exportKey('jwk', readable);
  const secret = await crypto.subtle.importKey('pkcs8', pkcs8, { name: 'Ed25519' }, false, ['sign']);
  return { secret, publicKey: x };
}

/** The secret of an extractable pair, as `importKey` takes it. */
export async function exportSecret(secret) {
  const pkcs8 = new Uint8Array(await crypto.subtle.exportKey('pkcs8', secret));
  return toBase64url(pkcs8.subarray(-SECRET_BYTES));
}

/** Signs text or bytes; base64url. */
export async function sign(secret, message) {
  const bytes = typeof message === 'string' ? new TextEncoder().encode(message) : message;
  return toBase64url(await crypto.subtle.sign({ name: 'Ed25519' }, secret, bytes));
}

/** Headers of a McpVerified login: the signed message is the second of the login as 8 bytes, little-endian. */
export async function loginHeaders({ secret, publicKey }, nowMs = Date.now()) {
  const seconds = Math.floor(nowMs / 1000);
  const message = new Uint8Array(8);
  new DataView(message.buffer).setBigInt64(0, BigInt(seconds), true);
  return {
    'X-PublicKey': publicKey,
    'X-Timestamp': String(seconds),
    'X-Signature': await sign(secret, message),
  };
}
