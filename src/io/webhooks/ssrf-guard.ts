/**
 * SSRF guard of connections to webhook receivers: resolves the name, checks every address, and connects to a checked
 * address. No answer and no log line reveals what a name resolved to.
 */
import { promises as dns } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { withoutTrailing } from '../../domain/host-port.ts';
import {
  isLoopbackName,
  LOOPBACK_ADDRESSES,
  mayConnect,
  type WebhookRules,
} from '../../domain/webhooks/target.ts';

/** All addresses of a name; rejects when there are none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** The failure class `blocked_address`. */
class BlockedAddress extends Error {
  readonly code = 'blocked_address';

  constructor() {
    super('blocked address');
    this.name = 'BlockedAddress';
  }
}

/** The failure class `unresolved`. */
class Unresolved extends Error {
  readonly code = 'unresolved';

  constructor() {
    super('name not resolved');
    this.name = 'Unresolved';
  }
}

const QUERY_TIMEOUT_MS = 1_500;
const QUERY_TRIES = 2;
/** The system's list of name servers is read again after this time. */
const RESOLVER_LIFE_MS = 60_000;

/**
 * Resolves through the system's name servers without `getaddrinfo`, which would hold a thread of the pool that commits
 * share while a receiver's name server delays. Decision 0054.
 */
export function createResolver(elapsed: () => number): Resolve {
  let resolver: dns.Resolver | undefined;
  let madeMs = 0;
  return async (hostname) => {
    const name = withoutTrailing(hostname, '.');
    if (isLoopbackName(name)) return LOOPBACK_ADDRESSES;
    if (resolver === undefined || elapsed() - madeMs > RESOLVER_LIFE_MS) {
      resolver = new dns.Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES });
      madeMs = elapsed();
    }
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0) throw new Unresolved();
    return addresses;
  };
}

/**
 * A look-up for `connect`: one forbidden address of a name blocks the name. The socket connects to the returned address;
 * no second look-up happens (DNS rebinding).
 */
export function createGuardedLookup(resolve: Resolve, rules: () => WebhookRules): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const current = rules();
        const [first] = addresses;
        if (first === undefined) callback(new Unresolved(), '');
        else if (!addresses.every((address) => mayConnect(address, current)))
          callback(new BlockedAddress(), '');
        else if (options.all === true) callback(null, addresses.map(withFamily));
        else callback(null, first, withFamily(first).family);
      },
      () => callback(new Unresolved(), ''),
    );
  };
}

function withFamily(address: string): { address: string; family: number } {
  return { address, family: address.includes(':') ? 6 : 4 };
}
