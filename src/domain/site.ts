/** Facts about this deployment that routes need: fixed once the listener's port is known. */

import type { Feature } from './features.ts';

export interface Site {
  readonly project: string;
  /** `<major>.<minor>.<patch>` (spec 9): get_info and initialize report the same one. */
  readonly version: string;
  readonly production: boolean;
  /** An origin. */
  readonly baseUrl: string;
  /** Issuer of the authorization server at /connect (RFC 8414 2). */
  readonly issuer: string;
  /** Lower-case host names without port that a request may name in `Host`. */
  readonly hosts: ReadonlySet<string>;
  /**
   * IP literals and names under localhost pass as well: such a Host needs no resolution that an attacker could
   * answer.
   */
  readonly addressHosts: boolean;
  /** The Host check applies (loopback bind or production). */
  readonly checkHost: boolean;
  /** Origins that may send cookies and read answers: own ones, Fido2.origins, AllowedOrigins. */
  readonly origins: ReadonlySet<string>;
  /** Answers require TLS of browsers (RFC 6797). */
  readonly strictTransport: boolean;
  /** The listener itself ends TLS. */
  readonly endsTls: boolean;
  /** `Secure` on cookies: in production, and where `BaseUrl` is https. */
  readonly secureCookies: boolean;
  readonly fido2: {
    readonly rpId: string;
    readonly rpName: string;
    readonly icon: string;
    readonly origins: readonly string[];
    readonly timestampDriftToleranceMs: number;
  };
  /** Ways to log in, shown by info and login_options. */
  readonly authMethods: readonly string[];
  /** Features of which this deployment serves the routes. */
  readonly features: readonly Feature[];
  /** base64url keys whose holders are admins. */
  readonly adminPublicKeys: ReadonlySet<string>;
  /** Webhook destinations that are exempt from the rules on address and scheme. */
  readonly webhookAllow: readonly string[];
  /** Ranges from which admin routes answer. */
  readonly adminAllow: readonly string[];
}

/** Is this origin of passkeys that of a page, not of a native app? */
export function isPageOrigin(origin: string): boolean {
  return /^https?:/i.test(origin);
}
