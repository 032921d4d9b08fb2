/** Redirect URIs of OAuth clients: which ones are taken, when two are the same, and how an answer is appended. */

/**
 * The way in which the gateway knows the client: a registered application, its metadata document, or its dynamic
 * registration.
 */
export type HostKind = 'application' | 'document' | 'registration';

/** Destination of an answer: a web address, a program on this computer, or a program with a URI of its own. */
export interface Destination {
  readonly kind: 'web' | 'computer' | 'program';
  /** Host with port; of a program its scheme. */
  readonly host: string;
  /** Name of a known program. */
  readonly program: string | null;
}

/** Redirect URIs that are taken beside those of this computer. */
export interface RedirectRules {
  /** Lower-case hosts of `https` addresses; null: every host. */
  readonly webHosts: ReadonlySet<string> | null;
  /** Private URIs: of any scheme, or those of a list (`OAuthPrivateRedirects`) and of reverse domain names. */
  readonly privateUris: 'any' | readonly string[];
}

/** Redirect URIs that an application may have, which an admin approves. */
export const APPLICATION_REDIRECTS: RedirectRules = { webHosts: null, privateUris: 'any' };

type RedirectResult =
  | { readonly ok: true; readonly destination: Destination }
  | { readonly ok: false; readonly reason: string };

export const REDIRECTS_MAX = 10;
export const REDIRECT_LENGTH_MAX = 1_024;
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
/**
 * Private redirect URIs as recorded from hosts. A prefix has its authority: other authorities of the same schemes open links that
 * install programs (`cursor://anysphere.cursor-deeplink/mcp/install`).
 */
const PROGRAMS: readonly { readonly uris: string; readonly name: string }[] = [
  { uris: 'cursor://anysphere.cursor-mcp/oauth/', name: 'Cursor' },
];
export const KNOWN_PRIVATE_REDIRECTS: readonly string[] = PROGRAMS.map(({ uris }) => uris);
const PLAIN = /^[\x21-\x7e]+$/;
const SCHEME = /^([a-z][a-z0-9+.-]*):/;

export function judgeRedirect(uri: string, rules: RedirectRules): RedirectResult {
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
    if (LOOPBACK.has(url.hostname)) return goesTo('computer', url.host);
    if (scheme === 'http') return refused('is not https');
    if (rules.webHosts?.has(url.hostname) === false) return refused('has a host that is not allowed here');
    return goesTo('web', url.host);
  }
  if (DENIED_SCHEMES.has(scheme)) return refused(`has the scheme ${scheme}`);
  if (rules.privateUris !== 'any') {
    const reason = privateFault(uri, rules.privateUris);
    if (reason !== undefined) return refused(reason);
  }
  return goesTo('program', scheme, PROGRAMS.find(({ uris }) => matchesPrivate(uri, uris))?.name);
}

function goesTo(kind: Destination['kind'], host: string, program: string | null = null): RedirectResult {
  return { ok: true, destination: { kind, host, program } };
}

/** A query could carry a command of the program. Dot segments and escapes could leave the prefix behind. */
function privateFault(uri: string, allowed: readonly string[]): string | undefined {
  if (uri.includes('?')) return 'has a query';
  if (uri.includes('%') || new URL(uri).href !== uri) return 'is not in its plain form';
  const scheme = SCHEME.exec(uri)?.[1] ?? '';
  // RFC 8252 7.1: a reverse domain name belongs to one program.
  if (scheme.includes('.') || allowed.some((one) => matchesPrivate(uri, one))) return undefined;
  return 'is a private URI of no known program';
}

function matchesPrivate(uri: string, one: string): boolean {
  return one.endsWith('/') ? uri.startsWith(one) : uri === one;
}

/** A value of `OAuthPrivateRedirects`: one private URI, or a prefix of some that ends in `/`, with an authority. */
export function isPrivateRedirect(value: string): boolean {
  const hasAuthority = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^/]+\//.test(value);
  return hasAuthority && judgeRedirect(value, { webHosts: null, privateUris: [value] }).ok;
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
