/** Whom an address stands for where requests are counted: IPv4 as it is, IPv6 by its /64, which one household holds whole. */
import ipaddr from 'ipaddr.js';

/** Texts that are no address stand for themselves. */
export function networkOf(address: string): string {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}
