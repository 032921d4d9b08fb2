/**
 * Who is calling. The peer's address counts, unless the peer is a trusted proxy: then the address that it names, in
 * PROXY protocol or in `X-Forwarded-For` counted from the right (events.md "Rate limiter"). Nobody else's header counts.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ReturnType<typeof ipaddr.process>;
type Range = ReturnType<typeof ipaddr.parseCIDR>;

/** Canonical texts remembered, so that the common peers cost a look-up. */
const CACHE_MAX = 10_000;
/** Hops of `X-Forwarded-For` that are looked at, from the right. */
const HOPS_MAX = 32;

export interface ResolvedClient {
  /** Canonical text: v4-mapped folded, IPv6 compressed. */
  readonly address: string;
  /** A trusted proxy named it: the port of the socket is not the client's. */
  readonly forwarded: boolean;
  /**
   * The peer is a proxy that passes on its client's bytes, so the client could put a PROXY protocol header of its own
   * before a later request: the connection carries this one alone (docs/decisions/0090).
   */
  readonly alone: boolean;
}

/** What a request says of its client beside the peer's address. */
interface NamedClient {
  /** The address of the PROXY protocol, '' without one. */
  readonly proxied: string;
  readonly forwardedFor: string | undefined;
}

export interface AddressReader {
  /** False: no proxy is trusted, so only the peer counts. */
  readonly trustsAny: boolean;
  /** Is it the address of a trusted proxy? */
  trusts(address: string): boolean;
  /** May the peer put a PROXY protocol header before a request (`Listen.proxyProtocol` and a trusted peer)? */
  takesProxyHeader(peer: string): boolean;
  resolve(peer: string, named: NamedClient): ResolvedClient;
}

/** Texts of IPv4 peers by their 32 bits, and of others by their bytes: formatting one anew costs more than a look-up. */
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
  // The runtime's own check first: ipaddr.js finds a text unfit by throwing, and takes other spellings too.
  return isIP(bare) === 0 || bare.includes('%') ? undefined : ipaddr.process(bare);
}

function stripPort(text: string): string {
  return /^[0-9.]{7,15}:[0-9]{1,5}$/.test(text) ? text.slice(0, text.indexOf(':')) : text;
}

/** `ranges` are CIDR blocks or single addresses; throws on one that is neither. */
export function createAddressReader(ranges: readonly string[], proxyProtocol = false): AddressReader {
  const isTrusted = createRangeCheck(ranges);
  return {
    trustsAny: ranges.length > 0,
    trusts: isTrusted,
    takesProxyHeader: (peer) => proxyProtocol && isTrusted(peer),
    resolve(peer, { proxied, forwardedFor }) {
      if (ranges.length === 0 || !isTrusted(peer)) return { address: peer, forwarded: false, alone: false };
      const alone = proxyProtocol;
      const named = proxyProtocol ? parseAddress(proxied)?.toString() : undefined;
      if (named !== undefined && !isTrusted(named)) return { address: named, forwarded: true, alone };
      return { ...walkBack(named ?? peer, named !== undefined, forwardedFor ?? '', isTrusted), alone };
    },
  };
}

/** Does an address lie in one of the ranges? Answers are remembered, at most `CACHE_MAX`. */
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

/** From the right: every trusted hop hands over to the one on its left; an unreadable entry ends the walk. */
function walkBack(
  peer: string,
  proxied: boolean,
  forwardedFor: string,
  isTrusted: (text: string) => boolean,
): Omit<ResolvedClient, 'alone'> {
  let current = peer;
  let forwarded = proxied;
  const hops = forwardedFor.split(',').slice(-HOPS_MAX);
  for (let index = hops.length - 1; index >= 0; index -= 1) {
    const address = parseAddress(hops[index] ?? '');
    if (address === undefined) break;
    current = address.toString();
    forwarded = true;
    if (!isTrusted(current)) break;
  }
  return { address: current, forwarded };
}

function parseRange(text: string): Range {
  if (text.includes('/')) return ipaddr.parseCIDR(text);
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

function matches(address: Address, range: Range): boolean {
  return address.kind() === range[0].kind() && address.match(range);
}
