/**
 * Which pages may call. The Host check against DNS rebinding, CORS for allowed origins, and the rules that keep a
 * foreign page from using a browser's cookie (auth.md A8). Clients that send neither Origin nor Sec-Fetch-Site pass.
 */
import { isIP } from 'node:net';
import { GatewayError } from '../../domain/errors.ts';
import type { Site } from '../../domain/site.ts';
import type { IncomingHead } from './request.ts';
import { type AnyRoute, type HeaderList, Reply } from './route.ts';

/** How long a browser may remember a preflight. Seconds. */
const PREFLIGHT_SECONDS = 600;
const ALLOW_HEADERS =
  'Authorization, Content-Type, Mcp-Session-Id, Mcp-Protocol-Version, X-MCP-Code, X-Device-Guid, pkey, Idempotency-Key, Range, If-Match, If-None-Match, If-Range, Upload-Complete, Upload-Offset, Upload-Length, Upload-Draft-Interop-Version, Content-Digest, Repr-Digest, X-PublicKey, X-Timestamp, X-Signature, X-App-Id';
const EXPOSE_HEADERS =
  'Mcp-Session-Id, X-RateLimit, Retry-After, ETag, Accept-Ranges, Content-Range, Content-Disposition, X-Chunk-CRC32, X-File-Part, Upload-Complete, Upload-Offset, Upload-Length, Upload-Limit, RateLimit, RateLimit-Policy, X-Request-Id';
const JSON_TYPE = /^application\/json[\t ]*(?:;[\t ]*charset=(?:"[\w-]+"|[\w-]+)[\t ]*)?$/i;
const NONE: HeaderList = [];

/** Spellings of `Host` that are remembered with their verdict. */
const HOSTS_CACHED_MAX = 1_000;

/** Throws `Forbidden` for a Host that this deployment does not have. To be asked where `site.checkHost` says so. */
export function createHostCheck(site: Site): (head: IncomingHead) => void {
  const known = new Map<string, boolean>();
  return (head) => {
    const sent = head.header('host') ?? '';
    let own = known.get(sent);
    if (own === undefined) {
      const host = sent.toLowerCase().replace(/:[0-9]{1,5}$/, '');
      const bare = host.replace(/^\[|\]$/g, '');
      own = site.hosts.has(host) || site.hosts.has(bare) || (site.addressHosts && isLocalName(bare));
      if (known.size >= HOSTS_CACHED_MAX) known.clear();
      known.set(sent, own);
    }
    if (!own) throw new GatewayError('Forbidden', 'host');
  };
}

/** Addresses, and names under localhost, which browsers resolve to loopback by themselves (RFC 6761 6.3). */
function isLocalName(host: string): boolean {
  return isIP(host) !== 0 || host.endsWith('.localhost');
}

/** Headers that let a page of an allowed origin read the answer. */
export function corsHeaders(site: Site, head: IncomingHead): HeaderList {
  const origin = head.header('origin');
  if (origin === undefined || !site.origins.has(origin)) return NONE;
  return [
    ['Access-Control-Allow-Origin', origin],
    ['Access-Control-Allow-Credentials', 'true'],
    ['Access-Control-Expose-Headers', EXPOSE_HEADERS],
    ['Vary', 'Origin'],
  ];
}

/** Does a browser ask before the request of a page (Fetch, "CORS-preflight request")? */
export function isPreflight(head: IncomingHead): boolean {
  const isAsked = head.header('access-control-request-method') !== undefined;
  return head.method === 'OPTIONS' && isAsked && head.header('origin') !== undefined;
}

/**
 * The answer to OPTIONS. `methods` are those that the path knows, `offers` what else is told of it. Throws `Forbidden` for
 * a foreign origin.
 */
export function preflight(
  site: Site,
  head: IncomingHead,
  methods: readonly string[],
  offers: HeaderList = NONE,
): Reply {
  const allow: [string, string] = ['Allow', methods.join(', ')];
  if (!head.repeatedHeaders.has('origin') && head.header('origin') === undefined) {
    return Reply.empty(204, [allow, ...offers]);
  }
  checkOrigin(site, head);
  return Reply.empty(204, [
    allow,
    ['Access-Control-Allow-Methods', methods.join(', ')],
    ['Access-Control-Allow-Headers', ALLOW_HEADERS],
    ['Access-Control-Max-Age', String(PREFLIGHT_SECONDS)],
    ...offers,
  ]);
}

/**
 * Throws `Forbidden` when a foreign page may be behind the request. A route that is authenticated by bearer alone
 * (limits `Self`) needs no such rule, but on a loopback bind or in production a foreign Origin is refused there too.
 * `bearer`: the request brought its own token, which no page can make a browser add.
 */
export function checkCaller(site: Site, head: IncomingHead, route: AnyRoute, bearer: boolean): void {
  if (isBearerRoute(route)) {
    if (site.checkHost) checkOrigin(site, head);
    return;
  }
  if (bearer || (isSafe(head.method) && route.ownPagesOnly !== true)) return;
  checkOrigin(site, head);
  if (head.repeatedHeaders.has('sec-fetch-site') || head.header('sec-fetch-site') === 'cross-site') {
    throw new GatewayError('Forbidden', 'Sec-Fetch-Site');
  }
}

/** A body on a JSON route must say so; without that a form of any page could send it. A request without body passes. */
export function checkJsonType(head: IncomingHead, cookie: boolean): void {
  if (!head.hasBody || JSON_TYPE.test(head.header('content-type') ?? '')) return;
  throw new GatewayError(cookie ? 'Forbidden' : 'UnsupportedMediaType', 'expected application/json');
}

function checkOrigin(site: Site, head: IncomingHead): void {
  const origin = head.header('origin');
  if (origin === undefined ? head.repeatedHeaders.has('origin') : !site.origins.has(origin)) {
    throw new GatewayError('Forbidden', 'Origin');
  }
}

function isBearerRoute(route: AnyRoute): boolean {
  return route.auth === 'none' && route.limits.includes('Self');
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
