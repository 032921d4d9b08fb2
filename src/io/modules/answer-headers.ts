/**
 * What of a module's answer headers reaches the client of a proxied REST call: those of a list that speak of this one
 * answer, and the module's own `X-*`. Nothing of them weakens what the gateway says on its own origin.
 */
import type { HeaderList } from '../http/route.ts';
import type { AnswerHead } from '../http-client/relay.ts';
import { isGatewayHeader } from './headers.ts';

/** Of which call it is the answer. */
export interface AnsweredCall {
  /** It was made with a session: no cache that several people share may keep the answer. */
  readonly isPersonal: boolean;
  /** What the module was asked, and the path under which the client asked for it. */
  readonly url: Pick<URL, 'href' | 'origin' | 'pathname'>;
  readonly rawPath: string;
}

/**
 * Speak of this answer alone. Framing, type, cookies, CORS, limits and whatever a browser or a cache would remember
 * beyond it (`Alt-Svc`, `NEL`, `Speculation-Rules`, `CDN-Cache-Control` …) are not here, so that a name nobody has
 * thought of stays back.
 */
const PASSED: ReadonlySet<string> = new Set([
  'accept-patch',
  'accept-post',
  'accept-ranges',
  'age',
  'allow',
  'cache-control',
  'content-digest',
  'content-disposition',
  'content-language',
  'content-location',
  'content-range',
  'deprecation',
  'digest',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
  'preference-applied',
  'repr-digest',
  'retry-after',
  'signature',
  'signature-input',
  'sunset',
  'upload-complete',
  'upload-length',
  'upload-limit',
  'upload-offset',
  'vary',
]);
/** A module's own: `_` is not in it, as many programs read `X_Crm` as `X-Crm`. */
const OWN_NAME = /^x-[a-z0-9-]+$/;
/**
 * `X-*` that are not a module's: said by the gateway alone, orders to a web server or a cache in front of it (nginx
 * would serve the file that `X-Accel-Redirect` names), what names the software behind, and a secret of applications.
 */
const OWN_KEPT_BACK =
  /^x-(?:ratelimit|content-type-options|api-key|forwarded|real-ip|accel|sendfile|lighttpd|litespeed|reproxy|powered-by|aspnet|permitted-cross-domain)/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** Bytes of names and values together. */
const HEADERS_MAX_BYTES = 16 * 1024;
/** A page of a module would run on the gateway's origin, next to its cookies: it may do nothing. */
const POLICY = "default-src 'none'; sandbox";
/** A cookie and a bearer say who asks: what one person's browser keeps is not for the next one at it. */
const VARY = ['vary', 'Authorization, Cookie'] as const;
/** A browser fetches or connects by these at once. */
const LOADING_LINK =
  /\b(?:preload|modulepreload|prefetch|prerender|preconnect|dns-prefetch|stylesheet|manifest|compression-dictionary)\b/i;
const ABSOLUTE_LINK = /<\s*(?:[a-z][a-z0-9+.-]*:|[\\/]\s*[\\/])/i;
/** Each part of it brings headers of its own, which some browsers obey. */
const PARTS_WITH_HEADERS = /^\s*multipart\/x-mixed-replace\b/i;

/** End-to-end headers that are fit to be written; the others are left out. */
export function answerHeaders({ headers }: Pick<AnswerHead, 'headers'>, call: AnsweredCall): HeaderList {
  const named = new Set(
    textsOf(headers['connection']).flatMap((text) => text.toLowerCase().split(/[ \t,]+/)),
  );
  const kept: [string, string][] = [];
  let sizeBytes = 0;
  let isStored = false;
  for (const [name, value] of Object.entries(headers)) {
    if (named.has(name) || !passes(name)) continue;
    for (const text of fitTexts(name, textsOf(value), call)) {
      sizeBytes += name.length + text.length;
      if (sizeBytes > HEADERS_MAX_BYTES) continue;
      kept.push([name, text]);
      if (name === 'cache-control') isStored = !/\bno-store\b/i.test(text);
    }
  }
  if (call.isPersonal && isStored) kept.push([...VARY]);
  return [...kept, ['Content-Security-Policy', policyOf(headers)]];
}

/** The module's type, but for the one whose parts could set cookies. */
export function answerType(contentType: string): string | undefined {
  if (contentType === '') return undefined;
  return PARTS_WITH_HEADERS.test(contentType) ? 'application/octet-stream' : contentType;
}

/** Declared bytes of the answer; undefined without a readable declaration. */
export function declaredLength({ headers }: Pick<AnswerHead, 'headers'>): number | undefined {
  const [text = '', ...more] = textsOf(headers['content-length']);
  return more.length === 0 && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}

function passes(name: string): boolean {
  return PASSED.has(name) || (OWN_NAME.test(name) && !OWN_KEPT_BACK.test(name) && !isGatewayHeader(name));
}

/**
 * The gateway's policy and after it the module's, in one field: a page must satisfy every policy of the list (CSP3
 * 4.2.3), so a module can only forbid more. A quotation mark stays back: readers differ on a comma behind it.
 */
function policyOf(headers: AnswerHead['headers']): string {
  const own = textsOf(headers['content-security-policy']).filter(
    (text) =>
      /[^\s,;]/.test(text) && VALUE.test(text) && !text.includes('"') && text.length <= HEADERS_MAX_BYTES,
  );
  return [POLICY, ...own].join(', ');
}

function fitTexts(name: string, all: readonly string[], call: AnsweredCall): readonly string[] {
  const texts = all.filter((text) => VALUE.test(text));
  if (name === 'link') return texts.filter((text) => !LOADING_LINK.test(text) && !ABSOLUTE_LINK.test(text));
  if (name === 'location' || name === 'content-location')
    return texts.map((text) => pathAtTheGateway(text, call)).filter((path) => path !== undefined);
  if (name === 'cache-control' && call.isPersonal) return [personalCaching(texts.join(','))];
  return texts;
}

/**
 * Where the client finds what a module's reference names: a path under `/{module}/` of the gateway. Undefined for all
 * else, other origins first: they would show the client an address inside, or send it anywhere in the gateway's name.
 */
function pathAtTheGateway(reference: string, { url, rawPath }: AnsweredCall): string | undefined {
  if (!URL.canParse(reference, url.href)) return undefined;
  const { origin, pathname, search, hash } = new URL(reference, url.href);
  if (origin !== url.origin) return undefined;
  const root = rawPath.slice(0, rawPath.indexOf('/', 1) + 1);
  const base = url.pathname.slice(0, url.pathname.length - rawPath.length);
  const path = pathname.startsWith(base + root) ? pathname.slice(base.length) : pathname;
  return path.startsWith(root) ? path + search + hash : undefined;
}

/**
 * `Cache-Control` of an answer to somebody: `private` and of the module's directives those that are known and leave it
 * so (RFC 9111 5.2.2). `private` or `no-cache` for some fields alone count for the whole; no directive, no storing.
 */
function personalCaching(text: string): string {
  const kept = new Map<string, string>();
  for (const part of text.split(',')) {
    const [name = '', value] = part
      .trim()
      .toLowerCase()
      .split(/\s*=\s*/);
    if (name === 'no-store') return 'no-store';
    if (kept.has(name)) continue;
    if (name === 'max-age' || name === 'stale-while-revalidate' || name === 'stale-if-error')
      // What is no number of seconds is stale at once (RFC 9111 4.2.1).
      kept.set(name, `${name}=${/^"?([0-9]{1,10})"?$/.exec(value ?? '')?.[1] ?? '0'}`);
    else if (/^(?:private|public|no-cache|must-revalidate|no-transform|immutable)$/.test(name))
      kept.set(name, name);
  }
  if (kept.size === 0) return 'no-store';
  kept.delete('private');
  kept.delete('public');
  return ['private', ...kept.values()].join(', ');
}

function textsOf(value: string | string[] | undefined): string[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}
