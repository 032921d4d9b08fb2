/**
 * The link that `gatehouse-connect` prints: `#agent-key=KEY&agent-name=NAME`. The letters are not in it: a person types
 * them from the agent's terminal, so that a foreign link enrolls nothing.
 */
import { fromBase64url, toBase64url } from './ed25519.js';

const KEY_BYTES = 32;
export const NAME_MAX = 64;
export const LETTERS = 6;
/** RFC 4648, section 6. */
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

export const isAgentLink = (hash) => hash.startsWith('#agent-key=');

/** `{publicKey, name}` of the link; undefined when it names no key. */
export function readAgentLink(hash) {
  const fields = new URLSearchParams(hash.slice(1));
  const publicKey = fields.get('agent-key') ?? '';
  try {
    const bytes = fromBase64url(publicKey);
    if (bytes.length !== KEY_BYTES || toBase64url(bytes) !== publicKey) return undefined;
  } catch {
    return undefined;
  }
  return { publicKey, name: (fields.get('agent-name') ?? '').trim().slice(0, NAME_MAX) };
}

/** The first six characters of the base32 of the SHA-256 of the key's bytes. */
async function lettersOf(publicKey) {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', fromBase64url(publicKey)));
  let letters = '';
  for (let bit = 0; letters.length < LETTERS; bit += 5) {
    const pair = ((hash[bit >> 3] ?? 0) << 8) | (hash[(bit >> 3) + 1] ?? 0);
    letters += BASE32[(pair >> (11 - (bit & 7))) & 31];
  }
  return letters;
}

/** Any case; spaces and hyphens are ignored. */
export const typedLetters = (text) => text.toUpperCase().replace(/[\s-]/g, '');

/** Throws unless the typed letters belong to the key. */
export async function checkLetters(publicKey, text) {
  if (typedLetters(text) !== (await lettersOf(publicKey)))
    throw new Error(
      'These letters do not belong to the key of this link. Nothing was allowed. Compare them with the terminal of the agent; if they differ, the link is not from that agent',
    );
}
