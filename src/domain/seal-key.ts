/** The key of `Secrets.sealKey` as it is written in a configuration. */
import { decodeBase64url } from './ids.ts';

const SEAL_KEY_BYTES = 32;
const HEX = /^[0-9a-f]{64}$/i;

/** Undefined for a text that is neither 32 bytes in hex nor in base64url. */
export function decodeSealKey(text: string): Uint8Array | undefined {
  return HEX.test(text) ? Buffer.from(text, 'hex') : decodeBase64url(text, SEAL_KEY_BYTES);
}
