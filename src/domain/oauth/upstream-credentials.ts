/** Credentials of one account for other MCP servers (`auth: "user"`), as its actor keeps them. Secrets are sealed. */
import type { SealedKey } from '../apps.ts';
import { MINUTE_MS, SECOND_MS } from '../time.ts';

/** A person has so long to log in at the other side. */
export const UPSTREAM_LOGIN_MS = 10 * MINUTE_MS;
/** Logins of one account that wait for the answer of the other side; the oldest makes room. */
export const UPSTREAM_LOGINS_MAX = 8;
export const UPSTREAM_CREDENTIALS_MAX = 64;
/** Commands that wait for one refresh. */
export const UPSTREAM_WAITING_MAX = 64;
/** A refresh without a result for so long is lost: the port gives up long before. */
export const UPSTREAM_REFRESH_LOST_MS = MINUTE_MS;
/** An access token is replaced so long before its end. */
export const UPSTREAM_RENEW_MS = 30 * SECOND_MS;

/** `oauth`: the person logged in at the server. `token`: the person pasted one. */
type UpstreamCredentialKind = 'oauth' | 'token';

/** The command that asked for a new token, and those that wait for it. */
interface UpstreamRefresh {
  /** Id of the command that began it. */
  readonly commandId: string;
  readonly sinceMs: number;
  readonly waiting: readonly string[];
}

export interface UpstreamCredential {
  /** Name in the configuration. */
  readonly server: string;
  /** Address that it was given for: it is sent to no other. */
  readonly url: string;
  readonly kind: UpstreamCredentialKind;
  /** Tokens, client and token endpoint. */
  readonly sealed: SealedKey;
  readonly connectedMs: number;
  /** End of the access token; null: not known. */
  readonly expiresMs: number | null;
  /** There is a refresh token. */
  readonly canRefresh: boolean;
  readonly refreshing: UpstreamRefresh | null;
}

/** A login at the other side that has begun. */
export interface UpstreamLogin {
  /** SHA-256 of `state`, base64url. */
  readonly stateHash: string;
  readonly server: string;
  readonly url: string;
  /** Verifier, client and token endpoint. */
  readonly flow: SealedKey;
  /** The browser session that began it, which alone may end it. */
  readonly sessionId: string;
  readonly endsMs: number;
}

export interface UpstreamAccounts {
  readonly credentials: readonly UpstreamCredential[];
  readonly logins: readonly UpstreamLogin[];
}
