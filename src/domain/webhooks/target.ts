/**
 * SSRF rules for webhook targets: check of a URL at registration, without DNS, and check of each resolved IP address
 * before a connection is opened.
 */
import ipaddr from 'ipaddr.js';
import { isWebUrl } from '../apps.ts';
import { withoutTrailing } from '../host-port.ts';

export interface WebhookRules {
  /** https only, but for exempt addresses. */
  readonly production: boolean;
  /** Ranges that are exempt from the rules on address, scheme and port (`WebhookAllow`). */
  readonly allow: readonly string[];
  /** Ports that are open to webhooks besides the scheme's own: decimal, separated by semicolons (`WebhookPorts`). */
  readonly ports: string;
}

type TargetResult =
  | { readonly ok: true; readonly url: URL }
  /** `reason` is for the caller; it never says what a name stands for. */
  | { readonly ok: false; readonly reason: string };

/** Names that hosts files give to the loopback addresses, besides `localhost` and all below it (RFC 6761 6.3). */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set([
  'localhost',
  'localhost4',
  'localhost6',
  'localhost.localdomain',
  'localhost4.localdomain4',
  'localhost6.localdomain6',
  'ip6-localhost',
  'ip6-loopback',
]);
export const LOOPBACK_ADDRESSES = ['127.0.0.1', '::1'];
/** Global unicast (RFC 4291 2.4): what IANA has given out of IPv6. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Public by their form, but services of the host: the virtual address of the Azure platform (DNS, DHCP,
 * certificates). Other metadata services are in ranges that are blocked anyway.
 */
const PLATFORM_ADDRESSES: ReadonlySet<string> = new Set(['168.63.129.16']);

/** Syntax, scheme, IP literals and localhost names. URL parsing has folded 2130706433, 0x7f.1 and the like by then. */
export function judgeWebhookUrl(text: string, rules: WebhookRules): TargetResult {
  if (!isWebUrl(text)) return refused('expected an http or https address');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return refused('user name and password are not allowed');
  const host = withoutTrailing(url.hostname.replace(/^\[|\]$/g, ''), '.');
  if (host === '') return refused('expected a host');
  const literal = parseAddress(host) !== undefined;
  const local = isLoopbackName(host);
  const addresses = literal ? [host] : local ? LOOPBACK_ADDRESSES : [];
  if (addresses.some((address) => isExempt(address, rules))) return { ok: true, url };
  if (local || (literal && !isPublicAddress(host))) return refused('this address is not allowed');
  if (rules.production && url.protocol !== 'https:') return refused('expected https');
  if (url.port !== '' && !isOpenPort(url.port, rules)) return refused('this port is not allowed');
  return { ok: true, url };
}

/** Decimal ports with semicolons between them, blanks and empty items ignored: a list as `isOpenPort` reads it. */
export function arePorts(text: string): boolean {
  const items = text.split(';').map((each) => each.trim());
  return items.every((item) => item === '' || (/^[1-9][0-9]{0,4}$/.test(item) && Number(item) <= 65_535));
}

/** A URL does not show the port that is its scheme's own. */
function isOpenPort(port: string, { ports }: WebhookRules): boolean {
  return ports.split(';').some((each) => each.trim() === port);
}

/** May a webhook connect to this address? To be asked of every resolved one. */
export function mayConnect(address: string, rules: WebhookRules): boolean {
  return isExempt(address, rules) || isPublicAddress(address);
}

/**
 * Not private, loopback, link-local, multicast, documentation, CGNAT, benchmarking, reserved or a metadata service.
 * A v4-mapped address is judged as the IPv4 address it is; NAT64, 6to4 and Teredo forms are refused whatever is inside.
 */
function isPublicAddress(address: string): boolean {
  const parsed = parseAddress(address);
  if (parsed?.range() !== 'unicast' || PLATFORM_ADDRESSES.has(parsed.toString())) return false;
  return parsed instanceof ipaddr.IPv4 || parsed.match(GLOBAL_UNICAST);
}

function isExempt(address: string, { allow }: WebhookRules): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  return allow.some((range) => {
    const whole = range.includes('/') ? range : `${range}/${range.includes(':') ? 128 : 32}`;
    const [network, bits] = ipaddr.parseCIDR(whole);
    return network.kind() === parsed.kind() && parsed.match(network, bits);
  });
}

/** IPv6 goes through the URL parser first: ipaddr.js takes the old form `::11.0.0.0` for a v4-mapped one. */
function parseAddress(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (!address.includes(':'))
    return ipaddr.IPv4.isValidFourPartDecimal(address) ? ipaddr.IPv4.parse(address) : undefined;
  if (!URL.canParse(`http://[${address}]`)) return undefined;
  return ipaddr.process(new URL(`http://[${address}]`).hostname.slice(1, -1));
}

/** Names that stand for the loopback addresses, whatever a name server says. */
export function isLoopbackName(host: string): boolean {
  return LOOPBACK_NAMES.has(host) || host.endsWith('.localhost');
}

function refused(reason: string): TargetResult {
  return { ok: false, reason };
}
