/**
 * Browser origin rules (docs/SECURITY.md): Host check against DNS rebinding, and no use of the cookie by foreign pages. Clients that send neither Origin nor Sec-Fetch-Site pass.
 */
import { isIP } from 'node:net';
import { GatewayError } from '../../../domain/errors.ts';
import type { Site } from '../../../domain/site.ts';
import { type IncomingHead, sidsOf } from '../exchange/request.ts';
import type { RouteContext } from '../table/route.ts';
import type { ReadyRoute } from '../table/router.ts';

const JSON_TYPE = /^application\/json[\t ]*(?:;[\t ]*charset=(?:"[\w-]+"|[\w-]+)[\t ]*)?$/i;

/** Values of `Host` whose decision is cached. */
const HOSTS_CACHED_MAX = 1_000;

/** Throws `Forbidden` for a Host that is not this deployment's. Used only with `site.checkHost`. */
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

/** Addresses and names under localhost, which browsers resolve to loopback themselves (RFC 6761 6.3). */
function isLocalName(host: string): boolean {
  return isIP(host) !== 0 || host.endsWith('.localhost');
}

/**
 * Throws `Forbidden` if a foreign page may have caused the request. Routes with a bearer only (limits `Self`) refuse a
 * foreign Origin only with `site.checkHost`. `bearer`: the request has a token, which no page can make a browser add.
 * `canUpgrade`: a page of any site may open a WebSocket, which browsers send with the cookie and let it read.
 */
export function checkCaller(
  site: Site,
  head: IncomingHead,
  { route, tokenOnly }: ReadyRoute,
  bearer: boolean,
  canUpgrade = false,
): void {
  if (route.anyOrigin === true) return;
  if (tokenOnly) {
    if (site.checkHost) checkOrigin(site, head);
    return;
  }
  const isOpen = isSafe(head.method) && route.ownPagesOnly !== true;
  if (bearer || (isOpen && !(canUpgrade && sidsOf(head).length > 0))) return;
  checkOrigin(site, head);
  if (head.repeatedHeaders.has('sec-fetch-site') || head.header('sec-fetch-site') === 'cross-site') {
    throw new GatewayError('Forbidden', 'Sec-Fetch-Site');
  }
}

/** Requires the JSON media type: otherwise a form of any page could send the body. Without a body it passes. */
export function checkJsonType(head: IncomingHead, cookie: boolean): void {
  if (!head.hasBody || JSON_TYPE.test(head.header('content-type') ?? '')) return;
  throw new GatewayError(cookie ? 'Forbidden' : 'UnsupportedMediaType', 'expected application/json');
}

/** Throws `UnsupportedContentCoding` for a body that is compressed: it would be read, or stored, as it is. */
export function checkPlainCoding(fields: Pick<RouteContext, 'header' | 'repeatedHeaders'>): void {
  const coding = fields.header('content-encoding')?.trim().toLowerCase() ?? '';
  if ((coding === '' || coding === 'identity') && !fields.repeatedHeaders.has('content-encoding')) return;
  throw new GatewayError('UnsupportedContentCoding', 'content-encoding: expected none');
}

/** Throws `Forbidden` for a foreign origin. */
export function checkOrigin(site: Site, head: IncomingHead): void {
  const origin = head.header('origin');
  if (origin === undefined ? head.repeatedHeaders.has('origin') : !site.origins.has(origin)) {
    throw new GatewayError('Forbidden', 'Origin');
  }
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
