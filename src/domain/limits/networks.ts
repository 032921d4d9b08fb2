/** The networks that an address stands for where callers are counted: IPv4 alone, IPv6 by the prefixes that one person can hold. */
import ipaddr from 'ipaddr.js';

/** A network, and how many shares of one address it has: a wide one holds many callers, but not one person's all. */
export interface Network {
  readonly name: string;
  readonly shares: number;
}

/** Prefixes of IPv6: a household or machine holds a /64, a customer often a /56, a site a /48 (RFC 6177). */
const IPV6_PREFIXES = [
  { bits: 64, shares: 1 },
  { bits: 56, shares: 4 },
  { bits: 48, shares: 16 },
] as const;

/** The narrowest first. Texts that are no address stand for themselves. v4-mapped addresses count as IPv4. */
export function networksOf(address: string): readonly Network[] {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return [{ name: address, shares: 1 }];
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return [{ name: parsed.toIPv4Address().toString(), shares: 1 }];
  return IPV6_PREFIXES.map(({ bits, shares }) => ({ name: prefixOf(parsed.parts, bits), shares }));
}

/** The narrowest network of an address: what one caller usually holds. */
export function networkOf(address: string): string {
  return networksOf(address)[0]?.name ?? address;
}

/** Addresses of this machine alone. */
export const LOOPBACK_RANGES: readonly string[] = ['127.0.0.0/8', '::1/128'];

/** Is it an address or name of this machine alone? */
export function isLoopback(host: string): boolean {
  return (
    host === 'localhost' ||
    host === '::1' ||
    (ipaddr.IPv4.isValidFourPartDecimal(host) && host.startsWith('127.'))
  );
}

/** The first `bits` of an IPv6 address, of its first four groups, in the form `2001:db8:0:1::/64`. */
function prefixOf(groups: readonly number[], bits: number): string {
  const kept = groups.slice(0, 4).map((group, at) => {
    const ofGroup = Math.min(16, Math.max(0, bits - at * 16));
    return group & (0xffff << (16 - ofGroup)) & 0xffff;
  });
  return `${kept.map((group) => group.toString(16)).join(':')}::/${bits}`;
}
