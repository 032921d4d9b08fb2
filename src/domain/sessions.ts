/** Sessions as the rest of the gateway sees them: who calls, how they logged in, with which key. */
import type { KeyType } from './keys.ts';
import type { Role } from './roles.ts';
import { MINUTE_MS } from './time.ts';

/** Spec 2.1. */
export type LoginType = 'McpBasic' | 'McpVerified' | 'McpApp';
export const LOGIN_TYPES: readonly LoginType[] = ['McpBasic', 'McpVerified', 'McpApp'];

/** `contactSync`: a token of a device that syncs contacts, which lives until its owner, its key or a block ends it. */
export type SessionKind = 'browser' | 'mcp' | 'contactSync';

/** The rights of a live session. Built by the user actor, read by the pipeline, the tools and the proxy. */
export interface SessionContext {
  /** Public id of the session (a tick), never the token. */
  readonly id: string;
  readonly kind: SessionKind;
  /** Null for browser sessions and tokens of contact sync. */
  readonly loginType: LoginType | null;
  readonly userId: string;
  /** Key of the login; null after a phone or e-mail login. */
  readonly keyId: string | null;
  /** `Unknown` without a key. */
  readonly keyType: KeyType;
  /** base64url of the login key (Ed25519) or credential id; null without a key. */
  readonly publicKey: string | null;
  /** Only for `McpApp`. */
  readonly appId: string | null;
  /** See `isProvenLogin`. */
  readonly proven: boolean;
  readonly createdMs: number;
  readonly expiresMs: number;
  /** The application's entry that opened an `McpApp` login (actors/apps/app-access-index.ts). */
  readonly entry?: { readonly openedTick: string; readonly keyTick: string };
  /** The consent of the account by which a connected host got the session. */
  readonly grant?: SessionGrant;
  /** Role in the admin panel: `admin` for a holder of a key of the configuration; absent for all others. */
  readonly role?: Role;
  /** Nickname of the account; absent without one. */
  readonly nickname?: string;
}

export interface SessionGrant {
  /** Tick of the consent. */
  readonly id: string;
  /** The application of the host, also where the login type is not `McpApp`. */
  readonly appId: string;
  /** The same as of a session. */
  readonly entry?: NonNullable<SessionContext['entry']>;
  /** Path of the resource that the token is valid for, and for no other (RFC 8707). */
  readonly audience: string;
}

/**
 * Did the login prove who asks? A public key is no secret: McpBasic proves nothing, McpApp only where it was signed.
 * A browser login answers a challenge with the key, or with a code that was sent to the person (decision 0011).
 */
export function isProvenLogin(loginType: LoginType | null, signed: boolean): boolean {
  return loginType === null || loginType === 'McpVerified' || (loginType === 'McpApp' && signed);
}

/** Value of the `X-Scopes` header. */
export function scopesOf(session: SessionContext): string {
  return session.loginType ?? (session.kind === 'contactSync' ? 'ContactSync' : 'Browser');
}

/** Ways to log in that this deployment serves; one-time codes need a chat module that delivers them (spec 4.4). */
export function authMethods(codesDelivered: boolean): readonly string[] {
  return ['passkey', 'key', ...(codesDelivered ? ['phone', 'email'] : [])];
}

/** Browser sessions of one user; a further login ends the oldest. */
export const BROWSER_SESSIONS_MAX = 50;
/** MCP sessions of one key and login type, signed McpApp logins apart: what proves nothing never pushes out what does. */
export const MCP_SESSIONS_MAX = 100;
/** Sessions of one connected host, whose processes refresh each for itself; they do not count into those of a key. */
export const GRANT_SESSIONS_MAX = 8;
/** Contact sync tokens of one key. A further one is refused: the oldest is in a device that works. */
export const CONTACT_SYNC_TOKENS_MAX = 8;
/** `expiresMs` of a token that does not expire: the last moment that a `Date` holds. */
export const NO_END_MS = 8_640_000_000_000_000;
/** The last use of a session is written at most this often. */
export const TOUCH_INTERVAL_MS = 60_000;
/** A fresh login is at most this old (spec 1, docs/operations.md). */
export const FRESH_LOGIN_MS = 15 * MINUTE_MS;
