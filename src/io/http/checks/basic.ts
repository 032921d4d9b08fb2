/**
 * Basic credentials of devices that sync contacts (RFC 7617): user name and token. They are taken where
 * no one else on the way reads them, and asked for where no browser would open a dialogue for them.
 */
import { isLoopback } from '../../../domain/limits/networks.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { AddressReader } from '../listen/client-address.ts';

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;
/** Fetch metadata: browsers alone send it. */
const FETCH_FIELDS = ['sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest', 'sec-fetch-user'];
/** A proxy in front that is not trusted names them: the address of the connection is not the client's. */
const PROXY_FIELDS = ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'];

interface BasicCredentials {
  readonly username: string;
  readonly password: string;
}

export function isBasic(authorization: string | undefined): boolean {
  return authorization !== undefined && /^basic\b/i.test(authorization);
}

/** Undefined for a field that is no UTF-8 text with a colon in base64. */
export function readBasic(authorization: string | undefined): BasicCredentials | undefined {
  const [, encoded] = BASIC.exec(authorization ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const at = text.indexOf(':');
  return at < 0 ? undefined : { username: text.slice(0, at), password: text.slice(at + 1) };
}

/** Did the request come over TLS, from a trusted proxy that says so, or from this machine? */
export function isConfidential(
  { head, site, origin, client }: Pick<Exchange, 'head' | 'site' | 'origin' | 'client'>,
  addresses: Pick<AddressReader, 'trusts'>,
): boolean {
  const said = head.joined('x-forwarded-proto', ',');
  if (said !== undefined && addresses.trusts(origin.peer))
    return said.split(',').every((proto) => proto.trim().toLowerCase() === 'https');
  if (site.endsTls) return true;
  const isDirect = !origin.forwarded && !PROXY_FIELDS.some((name) => head.joined(name, ',') !== undefined);
  return isDirect && isLoopback(client.address);
}

/** Does a browser send the request? Every one of today says so over TLS and on this machine. */
export function isFromBrowser({ head }: Pick<Exchange, 'head'>): boolean {
  return FETCH_FIELDS.some((name) => head.joined(name, ',') !== undefined);
}
