/** Redirect URIs of OAuth clients: which ones are taken, when two are the same, and how an answer is appended. */

/** How the gateway knows the client: a registered application, its metadata document, or its dynamic registration. */
export type HostKind = 'application' | 'document' | 'registration';

/** Where an answer goes: a web address, a program on this computer, or a program with a scheme of its own. */
export interface Destination {
  readonly kind: 'web' | 'computer' | 'program';
  /** Host with port; of a program its scheme. */
  readonly host: string;
}

type RedirectResult =
  | { readonly ok: true; readonly destination: Destination }
  | { readonly ok: false; readonly reason: string };

export const REDIRECTS_MAX = 5;
export const REDIRECT_LENGTH_MAX = 1_024;
/** Characters of a client's name. */
export const CLIENT_NAME_MAX = 64;

/** Names and addresses of this computer, whose port is free (RFC 8252 7.3). */
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);
/** Schemes that a browser itself acts on, or that reach other protocols. */
const DENIED_SCHEMES: ReadonlySet<string> = new Set([
  'about',
  'blob',
  'chrome',
  'chrome-extension',
  'content',
  'data',
  'file',
  'filesystem',
  'ftp',
  'http',
  'https',
  'intent',
  'javascript',
  'mailto',
  'sms',
  'ssh',
  'tel',
  'vbscript',
  'view-source',
  'ws',
  'wss',
]);
const PLAIN = /^[\x21-\x7e]+$/;
const SCHEME = /^([a-z][a-z0-9+.-]*):/;

/** Judges a redirect URI of a registration. `privateSchemes`: of registered applications alone. */
export function judgeRedirect(uri: string, privateSchemes: boolean): RedirectResult {
  const refused = (reason: string): RedirectResult => ({ ok: false, reason });
  if (uri.length > REDIRECT_LENGTH_MAX) return refused(`has more than ${REDIRECT_LENGTH_MAX} characters`);
  if (!PLAIN.test(uri) || /["<>\\^`{|}]/.test(uri)) return refused('has characters that no URI has');
  if (uri.includes('#')) return refused('has a fragment');
  if (uri.includes('*')) return refused('has a wildcard');
  const scheme = SCHEME.exec(uri)?.[1];
  if (scheme === undefined || !URL.canParse(uri)) return refused('is no absolute URI');
  const url = new URL(uri);
  if (url.username !== '' || url.password !== '' || /^[a-z]+:\/\/[^/?]*@/.test(uri))
    return refused('has a user name');
  if (scheme === 'http' || scheme === 'https') {
    // URL parsing also takes fewer and more slashes, and finds the host behind them.
    if (!/^[a-z]+:\/\/[^/?]/.test(uri)) return refused('is no absolute URI');
    if (LOOPBACK.has(url.hostname)) return { ok: true, destination: { kind: 'computer', host: url.host } };
    if (scheme === 'http') return refused('is not https');
    return { ok: true, destination: { kind: 'web', host: url.host } };
  }
  if (DENIED_SCHEMES.has(scheme)) return refused(`has the scheme ${scheme}`);
  if (!privateSchemes) return refused('has a private scheme, which only registered applications have');
  return { ok: true, destination: { kind: 'program', host: scheme } };
}

/** The same characters; of loopback addresses the port is free. */
export function isSameRedirect(registered: string, sent: string): boolean {
  if (registered === sent) return true;
  const one = withoutLoopbackPort(registered);
  return one !== undefined && one === withoutLoopbackPort(sent);
}

/** Undefined for what is no loopback address. The text is not normalized: only the port is cut out. */
function withoutLoopbackPort(uri: string): string | undefined {
  const [, origin, rest] =
    /^(https?:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::[0-9]{1,5})?([/?].*)?$/.exec(uri) ?? [];
  return origin === undefined ? undefined : `${origin}${rest ?? ''}`;
}

/** The address of an answer: `fields` behind the query that the URI has. */
export function answerAddress(
  redirectUri: string,
  fields: Readonly<Record<string, string | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) query.set(name, value);
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${query}`;
}
