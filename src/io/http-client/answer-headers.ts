/**
 * Selects the answer headers of a module that a proxied REST call forwards: a list of headers about this one answer, and
 * the module's own `X-*`. None of them weakens the policies of the gateway's origin.
 */
import type { HeaderList } from '../http/table/route.ts';
import { isGatewayHeader } from './header-names.ts';
import type { AnswerHead } from './relay.ts';

export interface AnsweredCall {
  /** The call had a session: no shared cache may store the answer. */
  readonly isPersonal: boolean;
  /** The URL at the module, and the path that the client requested. */
  readonly url: Pick<URL, 'href' | 'origin' | 'pathname'>;
  readonly rawPath: string;
}

/**
 * An allow-list, so that unknown headers are dropped. It holds no framing, type, cookies, CORS or limits, and nothing that
 * a browser or cache keeps beyond the answer (`Alt-Svc`, `NEL`, `Speculation-Rules`, `CDN-Cache-Control`).
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
  'dav',
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
/** A module's own headers, without `_`: many servers read `X_Crm` as `X-Crm`. */
const OWN_NAME = /^x-[a-z0-9-]+$/;
/**
 * `X-*` that are dropped: set by the gateway only, commands to a web server in front (nginx serves the file of
 * `X-Accel-Redirect`), names of the software behind, and the API key of applications.
 */
const OWN_KEPT_BACK =
  /^x-(?:ratelimit|content-type-options|api-key|forwarded|real-ip|accel|sendfile|lighttpd|litespeed|reproxy|powered-by|aspnet|permitted-cross-domain)/;
const NO_TEXTS: readonly string[] = [];
const VALUE = /^[\t\x20-\x7e]*$/;
/** Bytes of names and values together. */
const HEADERS_MAX_BYTES = 16 * 1024;
/** A module's page would run on the gateway's origin with its cookies, so it may load and run nothing. */
const POLICY_FIELD = ['Content-Security-Policy', "default-src 'none'; sandbox"] as const;
/** Cookie and bearer token identify the caller: a browser's cache must not serve the next user of that browser. */
const VARY = ['vary', 'Authorization, Cookie'] as const;
/** Link relations that make a browser fetch or connect at once. */
const LOADING_LINK =
  /\b(?:preload|modulepreload|prefetch|prerender|preconnect|dns-prefetch|stylesheet|manifest|compression-dictionary)\b/i;
const ABSOLUTE_LINK = /<\s*(?:[a-z][a-z0-9+.-]*:|[\\/]\s*[\\/])/i;
/** Each part has headers of its own, which some browsers apply. */
const PARTS_WITH_HEADERS = /^\s*multipart\/x-mixed-replace\b/i;

/** The end-to-end headers that are forwarded; all others are dropped. */
export function answerHeaders({ fields }: Pick<AnswerHead, 'fields'>, call: AnsweredCall): HeaderList {
  const named = namedByConnection(fields);
  const kept: (readonly [string, string])[] = [];
  let sizeBytes = 0;
  let isStored = false;
  let isCached = false;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? '';
    if (!passes(name) || named?.has(name) === true) continue;
    const isCaching = name === 'cache-control';
    // All of them became the first one.
    if (isCaching && isCached && call.isPersonal) continue;
    isCached ||= isCaching;
    const text = fitText(name, fields[at + 1] ?? '', fields, call);
    if (text === undefined) continue;
    sizeBytes += name.length + text.length;
    if (sizeBytes > HEADERS_MAX_BYTES) continue;
    kept.push([name, text]);
    if (isCaching) isStored = !/\bno-store\b/i.test(text);
  }
  if (call.isPersonal && isStored) kept.push(VARY);
  kept.push(policyOf(fields));
  return kept;
}

/** The names that are of one connection only (RFC 9110 7.6.1). */
function namedByConnection(fields: readonly string[]): ReadonlySet<string> | undefined {
  const texts = textsOf(fields, 'connection').filter((text) => text.toLowerCase() !== 'keep-alive');
  if (texts.length === 0) return undefined;
  return new Set(texts.flatMap((text) => text.toLowerCase().split(/[ \t,]+/)));
}

/** The module's content type, except the one whose parts could set cookies. */
export function answerType(contentType: string): string | undefined {
  if (contentType === '') return undefined;
  return PARTS_WITH_HEADERS.test(contentType) ? 'application/octet-stream' : contentType;
}

function passes(name: string): boolean {
  if (PASSED.has(name)) return true;
  return name.startsWith('x-') && OWN_NAME.test(name) && !OWN_KEPT_BACK.test(name) && !isGatewayHeader(name);
}

/**
 * The gateway's policy and after it the module's, in one field: a page must satisfy every policy of the list (CSP3
 * 4.2.3), so a module can only forbid more. A value with a quotation mark is dropped: parsers differ on a comma after it.
 */
function policyOf(fields: readonly string[]): readonly [string, string] {
  const own = textsOf(fields, 'content-security-policy').filter(
    (text) =>
      /[^\s,;]/.test(text) && VALUE.test(text) && !text.includes('"') && text.length <= HEADERS_MAX_BYTES,
  );
  return own.length === 0 ? POLICY_FIELD : [POLICY_FIELD[0], [POLICY_FIELD[1], ...own].join(', ')];
}

/** The value as a client may see it; undefined for one that is dropped. */
function fitText(
  name: string,
  text: string,
  fields: readonly string[],
  call: AnsweredCall,
): string | undefined {
  if (name === 'cache-control' && call.isPersonal)
    return personalCaching(
      textsOf(fields, name)
        .filter((each) => VALUE.test(each))
        .join(','),
    );
  if (!VALUE.test(text)) return undefined;
  if (name === 'link') return LOADING_LINK.test(text) || ABSOLUTE_LINK.test(text) ? undefined : text;
  return name === 'location' || name === 'content-location' ? gatewayPathOf(text, call) : text;
}

/**
 * Maps a module's reference to a path under `/{module}/` of the gateway. Undefined for anything else: another origin
 * would reveal an internal address or redirect the client elsewhere in the gateway's name.
 */
function gatewayPathOf(reference: string, { url, rawPath }: AnsweredCall): string | undefined {
  if (!URL.canParse(reference, url.href)) return undefined;
  const { origin, pathname, search, hash } = new URL(reference, url.href);
  if (origin !== url.origin) return undefined;
  const root = rawPath.slice(0, rawPath.indexOf('/', 1) + 1);
  const base = url.pathname.slice(0, url.pathname.length - rawPath.length);
  const path = pathname.startsWith(base + root) ? pathname.slice(base.length) : pathname;
  return path.startsWith(root) ? path + search + hash : undefined;
}

/**
 * `Cache-Control` of an answer to a session: `private` and those known directives of the module that keep it private
 * (RFC 9111 5.2.2). `private` or `no-cache` for single fields apply to the whole; without a directive, `no-store`.
 */
function personalCaching(text: string): string {
  const kept = new Map<string, string>();
  for (const part of text.split(',')) {
    const [name = '', value] = part.split('=', 2).map((text) => text.trim().toLowerCase());
    if (name === 'no-store') return 'no-store';
    if (kept.has(name)) continue;
    if (name === 'max-age' || name === 'stale-while-revalidate' || name === 'stale-if-error')
      // An invalid number of seconds means stale at once (RFC 9111 4.2.1).
      kept.set(name, `${name}=${/^"?([0-9]{1,10})"?$/.exec(value ?? '')?.[1] ?? '0'}`);
    else if (/^(?:private|public|no-cache|must-revalidate|no-transform|immutable)$/.test(name))
      kept.set(name, name);
  }
  if (kept.size === 0) return 'no-store';
  kept.delete('private');
  kept.delete('public');
  return ['private', ...kept.values()].join(', ');
}

/** The values of one name. */
function textsOf(fields: readonly string[], name: string): readonly string[] {
  return fields.includes(name) ? fields.filter((_, at) => at % 2 === 1 && fields[at - 1] === name) : NO_TEXTS;
}
