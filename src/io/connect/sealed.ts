/**
 * Values that leave the gateway sealed and come back unchanged: codes, refresh tokens, registrations. Nothing of them is
 * stored; a key of its own seals each kind (AES-256-GCM), so that one is never read as another.
 */
import { createHmac, hash, randomBytes } from 'node:crypto';
import type { ConsentedHost } from '../../actors/accounts/user-grants.ts';
import { decodeBase64url } from '../../domain/ids.ts';
import { FORMER_TOKENS_MAX } from '../../domain/oauth/grants.ts';
import { type ApiKeyCipher, SEAL_NONCE_BYTES, seal, unseal } from '../apps/api-keys.ts';

const KEY_BYTES = 32;

/** A registered client: its own claim, and nothing that the gateway has checked beyond its form. */
interface ClientRegistration {
  readonly name: string;
  readonly redirectUris: readonly string[];
}

interface SealedCode {
  readonly id: number;
  readonly endsMs: number;
  readonly userId: string;
  /** Session that gave the consent. */
  readonly sessionId: string;
  readonly keyId: string | null;
  readonly host: ConsentedHost;
  readonly redirectUri: string;
  /** S256. */
  readonly challenge: string;
}

interface SealedRefresh {
  readonly userId: string;
  /** Id of the code that opened the grant. */
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
  readonly refreshTokens: RefreshTokens;
}

type RefreshTokens = Sealer<SealedRefresh> & {
  /** The first token of a grant. */
  fresh(grant: Omit<SealedRefresh, 'random'>): string;
  /** The tokens that follow from an opened one, the next first. */
  successors(token: SealedRefresh): readonly string[];
};

export function openSealers(cipher: Pick<ApiKeyCipher, 'deriveKey'>): Sealers {
  const keyOf = (purpose: string) => cipher.deriveKey(purpose, KEY_BYTES);
  const sealerOf = <Value>(purpose: string, prefix: string, nonceKey?: Uint8Array) =>
    createSealer<Value>(keyOf(purpose), purpose, prefix, nonceKey);
  return {
    registrations: sealerOf('oauth-client', 'dcr.'),
    codes: sealerOf('oauth-code', 'code.'),
    refreshTokens: createRefreshTokens(
      sealerOf('oauth-refresh', 'refresh.', keyOf('oauth-refresh-nonce')),
      keyOf('oauth-refresh-next'),
    ),
  };
}

/**
 * `prefix` names the kind to a reader of a log or a scanner of secrets. With `nonceKey` the same value always has the same text:
 * the nonce is a MAC of the clear text.
 */
function createSealer<Value>(
  key: Uint8Array,
  purpose: string,
  prefix: string,
  nonceKey?: Uint8Array,
): Sealer<Value> {
  const nonceOf = (clear: string) => nonceKey && mac(nonceKey, clear).subarray(0, SEAL_NONCE_BYTES);
  return {
    seal(value) {
      const clear = JSON.stringify(value);
      return prefix + seal(key, purpose, clear, nonceOf(clear));
    },
    open(text) {
      const sealed = text.slice(prefix.length);
      // One spelling alone: a token is known by the hash of its text.
      if (!text.startsWith(prefix) || decodeBase64url(sealed) === undefined) return undefined;
      const clear = unseal(key, purpose, sealed);
      return clear === undefined ? undefined : (JSON.parse(clear) as Value);
    },
  };
}

/**
 * A token follows from the random part of the one before, which the journal does not hold: its hashes and the key are not enough
 * to compute one. Each node computes the same, also after a restart.
 */
function createRefreshTokens(sealer: Sealer<SealedRefresh>, nextKey: Uint8Array): RefreshTokens {
  const sealed = ({ userId, codeId, appId, random }: SealedRefresh) =>
    sealer.seal({ userId, codeId, appId, random });
  return {
    ...sealer,
    fresh: (grant) => sealed({ ...grant, random: randomBytes(KEY_BYTES).toString('base64url') }),
    successors(token) {
      const tokens: string[] = [];
      let { random } = token;
      while (tokens.length < FORMER_TOKENS_MAX) {
        random = mac(nextKey, random).toString('base64url');
        tokens.push(sealed({ ...token, random }));
      }
      return tokens;
    },
  };
}

function mac(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** SHA-256 in base64url. */
export function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}
