/**
 * The client's address: the peer's, or the address that a trusted proxy names by PROXY protocol or in `X-Forwarded-For`,
 * read from the right. The headers of other peers are ignored.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ReturnType<typeof ipaddr.process>;
type Range = ReturnType<typeof ipaddr.parseCIDR>;

/** Cached canonical texts of addresses. */
const CACHE_MAX = 10_000;
/** Hops of `X-Forwarded-For` that are read, from the right. */
const HOPS_MAX = 32;

export interface ResolvedClient {
  /** Canonical text: v4-mapped folded, IPv6 compressed. */
  readonly address: string;
  /** The other side of the connection. */
  readonly peer: string;
  /** A trusted proxy named it: the port of the socket is not the client's. */
  readonly forwarded: boolean;
  /** The `X-Forwarded-For` of a trusted proxy cannot be read up to the client: `address` is that of a proxy. */
  readonly unknown: boolean;
  /**
   * The peer is a proxy that forwards its client's bytes, so the client could send a PROXY protocol header before a later
   * request: the connection carries only this one (docs/decisions/0090). So it does above half of the cap of connections
   * (0104).
   */
  readonly alone: boolean;
}

/** Addresses of the client that a request names. */
interface NamedClient {
  /** The address of the PROXY protocol, '' without one. */
  readonly proxied: string;
  readonly forwardedFor: string | undefined;
}

export interface AddressReader {
  /** False: no proxy is trusted, so only the peer's address is used. */
  readonly trustsAny: boolean;
  /** Is it the address of a trusted proxy? */
  trusts(address: string): boolean;
  /** May the peer send a PROXY protocol header (`Listen.proxyProtocol` and a trusted peer)? */
  takesProxyHeader(peer: string): boolean;
  resolve(peer: string, named: NamedClient): ResolvedClient;
}

/** Texts of IPv4 peers by their 32 bits, of others by their bytes: formatting costs more than a lookup. */
const knownV4 = new Map<number, string>();
const knownV6 = new Map<string, string>();

/** Canonical text of an address as uWS hands it over, 4 or 16 bytes; '' when the peer is gone. */
export function readAddress(bytes: ArrayBuffer): string {
  if (bytes.byteLength === 4) {
    const bits = new Uint32Array(bytes)[0] as number;
    return knownV4.get(bits) ?? remember(knownV4, bits, bytes);
  }
  if (bytes.byteLength !== 16) return '';
  const key = Buffer.from(bytes).toString('latin1');
  return knownV6.get(key) ?? remember(knownV6, key, bytes);
}

function remember<Key>(known: Map<Key, string>, key: Key, bytes: ArrayBuffer): string {
  const address = ipaddr.fromByteArray([...new Uint8Array(bytes)]);
  const text = ipaddr.process(address.toString()).toString();
  if (known.size >= CACHE_MAX) known.clear();
  known.set(key, text);
  return text;
}

/** Reads one address, with or without a port or brackets. */
export function parseAddress(text: string): Address | undefined {
  const trimmed = text.trim();
  const bare = /^\[([^\]]{2,45})\](?::[0-9]{1,5})?$/.exec(trimmed)?.[1] ?? stripPort(trimmed);
  // The runtime's own check first: ipaddr.js throws for an invalid text and accepts other spellings.
  return isIP(bare) === 0 || bare.includes('%') ? undefined : ipaddr.process(bare);
}

function stripPort(text: string): string {
  return /^[0-9.]{7,15}:[0-9]{1,5}$/.test(text) ? text.slice(0, text.indexOf(':')) : text;
}

/** Returns the client of a connection without a trusted proxy. */
export function directClient(peer: string): ResolvedClient {
  return { address: peer, peer, forwarded: false, unknown: false, alone: false };
}

/** `ranges` are CIDR blocks or single addresses; throws on one that is neither. */
export function createAddressReader(ranges: readonly string[], proxyProtocol = false): AddressReader {
  const isTrusted = createRangeCheck(ranges);
  return {
    trustsAny: ranges.length > 0,
    trusts: isTrusted,
    takesProxyHeader: (peer) => proxyProtocol && isTrusted(peer),
    resolve(peer, { proxied, forwardedFor }) {
      if (ranges.length === 0 || !isTrusted(peer)) return directClient(peer);
      const alone = proxyProtocol;
      const named = proxyProtocol ? parseAddress(proxied)?.toString() : undefined;
      if (named !== undefined && !isTrusted(named))
        return { address: named, peer, forwarded: true, unknown: false, alone };
      return { ...walkBack(named ?? peer, named !== undefined, forwardedFor, isTrusted), peer, alone };
    },
  };
}

/** Is an address in one of the ranges? Caches up to `CACHE_MAX` results. */
export function createRangeCheck(ranges: readonly string[]): (address: string) => boolean {
  const parsed = ranges.map(parseRange);
  const known = new Map<string, boolean>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const address = parseAddress(text);
    const answer = address !== undefined && parsed.some((range) => matches(address, range));
    if (known.size >= CACHE_MAX) known.clear();
    known.set(text, answer);
    return answer;
  };
}

/** Reads from the right until the first hop that is not trusted. An unreadable entry, or too many, leave it unknown. */
function walkBack(
  peer: string,
  proxied: boolean,
  forwardedFor: string | undefined,
  isTrusted: (text: string) => boolean,
): Omit<ResolvedClient, 'alone' | 'peer'> {
  let address = peer;
  let forwarded = proxied;
  const hops = forwardedFor?.split(',') ?? [];
  const first = Math.max(0, hops.length - HOPS_MAX);
  for (let index = hops.length - 1; index >= first; index -= 1) {
    const hop = parseAddress(hops[index] ?? '');
    if (hop === undefined) return { address, forwarded, unknown: true };
    address = hop.toString();
    forwarded = true;
    if (!isTrusted(address)) return { address, forwarded, unknown: false };
  }
  return { address, forwarded, unknown: first > 0 };
}

function parseRange(text: string): Range {
  if (text.includes('/')) return ipaddr.parseCIDR(text);
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

function matches(address: Address, range: Range): boolean {
  return address.kind() === range[0].kind() && address.match(range);
}
