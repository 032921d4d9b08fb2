/**
 * Values that leave the gateway sealed and come back unchanged: codes, refresh tokens, registrations. Nothing of them is
 * stored; a key of its own seals each kind (AES-256-GCM), so that one is never read as another.
 */
import { hash, randomBytes } from 'node:crypto';
import type { ConsentedHost } from '../../actors/accounts/user-grants.ts';
import { decodeBase64url } from '../../domain/ids.ts';
import { type ApiKeyCipher, seal, unseal } from '../apps/api-keys.ts';

const KEY_BYTES = 32;

/** A registered client: its own claim, and nothing that the gateway has checked beyond its form. */
interface ClientRegistration {
  readonly name: string;
  readonly redirectUris: readonly string[];
}

/** What a code is good for. */
interface SealedCode {
  readonly id: number;
  readonly endsMs: number;
  readonly userId: string;
  /** Of the consent. */
  readonly sessionId: string;
  readonly keyId: string | null;
  readonly host: ConsentedHost;
  readonly redirectUri: string;
  /** S256. */
  readonly challenge: string;
}

interface SealedRefresh {
  readonly userId: string;
  /** Of the code that opened the grant. */
  readonly codeId: number;
  readonly appId: string;
  /** 32 random bytes: the hash of the token is not to be guessed from a copy of the journal. */
  readonly random: string;
}

interface Sealer<Value> {
  seal(value: Value): string;
  /** Undefined for what this journal did not seal. */
  open(text: string): Value | undefined;
}

export interface Sealers {
  readonly registrations: Sealer<ClientRegistration>;
  readonly codes: Sealer<SealedCode>;
  readonly refreshTokens: Sealer<SealedRefresh>;
}

/** The sealers of this journal. */
export function openSealers(cipher: Pick<ApiKeyCipher, 'deriveKey'>): Sealers {
  const sealerOf = <Value>(purpose: string, prefix: string) =>
    createSealer<Value>(cipher.deriveKey(purpose, KEY_BYTES), purpose, prefix);
  return {
    registrations: sealerOf('oauth-client', 'dcr.'),
    codes: sealerOf('oauth-code', 'code.'),
    refreshTokens: sealerOf('oauth-refresh', 'refresh.'),
  };
}

/** `prefix` names the kind to a reader of a log or a scanner of secrets. */
function createSealer<Value>(key: Uint8Array, purpose: string, prefix: string): Sealer<Value> {
  return {
    seal: (value) => prefix + seal(key, purpose, JSON.stringify(value)),
    open(text) {
      const sealed = text.slice(prefix.length);
      // One spelling alone: a token is known by the hash of its text.
      if (!text.startsWith(prefix) || decodeBase64url(sealed) === undefined) return undefined;
      const clear = unseal(key, purpose, sealed);
      return clear === undefined ? undefined : (JSON.parse(clear) as Value);
    },
  };
}

/** A fresh refresh token of a grant. */
export function freshRefresh(sealers: Sealers, grant: Omit<SealedRefresh, 'random'>): string {
  const random = randomBytes(KEY_BYTES).toString('base64url');
  return sealers.refreshTokens.seal({ ...grant, random });
}

/** SHA-256 in base64url. */
export function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}
