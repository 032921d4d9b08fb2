/**
 * Registered applications (spec 2.3) as all parts see them: bounds, what an owner may change, what is shown. An API key
 * is here only in its sealed form.
 */
import type { FormerNames } from './former-names.ts';
import type { WebhookStatus } from './webhooks/types.ts';

/** Parameters of routes and tools that name an application. */
export const APP_NAMES: FormerNames = { id: 'appId' };
/** The gateway's own row, for connected hosts without an application. No account owns it. */
export const HOSTS_APP_ID = '1';
export const HOSTS_APP_NAME = 'Unregistered hosts';
export const GATEWAY_OWNER_ID = '0';
/** Applications of one user at a time. */
export const APPS_MAX = 20;
/** Applications that one user ever registered: a removed one leaves a record behind. */
export const APP_RECORDS_MAX = 1_000;
/** Applications that one account allowed or refused to act for it. */
export const APP_ACCESS_MAX = 200;
/** Accounts that an application acted for and that are notified when it closes; others learn it at their next request. */
export const PARTICIPANTS_MAX = 1_000;
/** Spec 2.3 and 8.4. */
export const CURRENCIES_MAX = 20;
export const NET_TYPES_MAX = 30;
/** Characters of a name, and of an address. */
export const APP_NAME_LENGTH_MAX = 64;
export const APP_URL_LENGTH_MAX = 1_024;
/** The former API key stays valid for so long after a rotation, unless the owner ends that. */
export const KEY_OVERLAP_MS = 24 * 60 * 60 * 1_000;

/** Changes by the owner; an absent field does not change. */
export interface AppPatch {
  readonly name?: string;
  readonly url?: string;
  /** Null: no webhooks. */
  readonly webhookUrl?: string | null;
  readonly currencies?: readonly string[];
  readonly netTypes?: readonly number[];
  /** Events of one delivery at most; 1: never several. */
  readonly maxBatch?: number;
  /** Redirect URIs of a host that connects with OAuth. Another list takes the approval back. */
  readonly redirectUris?: readonly string[];
}

/** An API key as stored: readable only with the key of the API-key cipher. */
export interface SealedKey {
  readonly keyId: string;
  /** base64url. */
  readonly sealed: string;
}

export interface AppKey extends SealedKey {
  readonly createdMs: number;
  /** Null: valid until the next rotation. */
  readonly expiresMs: number | null;
  /** It signs and is not sent: the former key of a rotation from when the new key was sent at once. */
  readonly signsOnly?: true;
}

/** Those that are valid at a time, in the same order. */
export function validKeys(keys: readonly AppKey[], nowMs: number): AppKey[] {
  return keys.filter(({ expiresMs }) => expiresMs === null || nowMs < expiresMs);
}

/**
 * Returns the newest valid key that deliveries carry: during a rotation the former one (decision 0015). `keys`: the
 * newest first.
 */
export function sentKeyOf<Key extends Pick<AppKey, 'signsOnly'>>(keys: readonly Key[]): Key | undefined {
  return keys.findLast(({ signsOnly }) => signsOnly !== true);
}

/** An application without its secrets, as its owner and the staff see it. */
export interface AppView {
  readonly id: string;
  readonly ownerId: string;
  readonly name: string;
  readonly url: string;
  readonly webhookUrl: string | null;
  readonly currencies: readonly string[];
  readonly netTypes: readonly number[];
  readonly maxBatch: number;
  readonly redirectUris: readonly string[];
  readonly approved: boolean;
  readonly mcpEnabled: boolean;
  readonly disabled: boolean;
  /** base64url of the explicit key (spec 5.1 rule 6). */
  readonly mcpPublicKey: string | null;
  readonly successCount: number;
  readonly failedCount: number;
  /** Tick of the last delivered event, decimal. */
  readonly lastTick: string;
  readonly createdMs: number;
  readonly webhook: WebhookStatus;
  /** The newest first, without what they hold. */
  readonly keys: readonly Omit<AppKey, 'sealed'>[];
}

/** Two spellings of one address are one address: `https://a.example` and `https://A.example/`. */
export function sameUrl(one: string, other: string): boolean {
  return identityOf(one) === identityOf(other);
}

/** An absolute http or https address by its syntax; no name is resolved. */
export function isWebUrl(text: string): boolean {
  return /^https?:\/\/[^\s\p{Cc}\p{Cs}]+$/iu.test(text) && URL.canParse(text);
}

function identityOf(url: string): string {
  return URL.canParse(url) ? new URL(url).href : url;
}
