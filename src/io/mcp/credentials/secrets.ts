/** Sealed parts of a credential for another MCP server, and of a login there that has begun. */
import type { SealedKey } from '../../../domain/apps.ts';
import type { ApiKeyCipher } from '../../apps/api-keys.ts';

/** Facts about the authorization server that the client library needs. */
export interface LoginServer {
  readonly address: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** The OAuth client that the gateway is there. */
export interface LoginClient {
  readonly client_id: string;
  readonly client_secret?: string | undefined;
}

interface LoginPart {
  readonly client: LoginClient;
  readonly server: LoginServer;
  /** RFC 8707; null where the server names none. */
  readonly resource: string | null;
}

export interface LoginFlow extends LoginPart {
  /** PKCE. */
  readonly verifier: string;
}

export interface OAuthSecret extends LoginPart {
  readonly access: string;
  readonly refresh: string | null;
}

/** Secret of a login, or a token that the person pasted. */
export type CredentialSecret = OAuthSecret | { readonly access: string };

interface SecretText<Value> {
  seal(value: Value): SealedKey;
  /** Undefined for what a key sealed that is no longer configured. */
  open(sealed: SealedKey): Value | undefined;
}

export function secretText<Value>(cipher: () => Pick<ApiKeyCipher, 'seal' | 'tryOpen'>): SecretText<Value> {
  return {
    seal: (value) => cipher().seal(JSON.stringify(value)),
    open(sealed) {
      const text = cipher().tryOpen(sealed);
      return text === undefined ? undefined : (JSON.parse(text) as Value);
    },
  };
}
