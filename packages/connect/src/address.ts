/** The address that a person gives: which gateway it names, and which MCP endpoint of it takes headers. */

export interface GatewayAddress {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The MCP endpoint that takes an `Authorization` header. */
  readonly mcp: string;
}

/** An address that names no gateway; the message says what one looks like. */
export class AddressError extends Error {}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * Takes the gateway's address, and that of each of its MCP endpoints. The ones below `/connect` are for hosts with a
 * browser; the endpoint beside them that takes headers is used.
 */
export function addressOf(url: string | URL): GatewayAddress {
  const parsed = URL.canParse(String(url)) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.host === '')
    throw new AddressError(`"${url}" is no address of a gateway: give one such as https://gate.example`);
  if (parsed.username !== '' || parsed.password !== '')
    throw new AddressError('the address holds a name or password, which a gateway does not read');
  const path = parsed.pathname.replace(/\/+$/, '');
  const profile = /^(?:\/connect\/p\/([^/]+)\/mcp|\/mcp\/p\/([^/]+))$/.exec(path);
  if (profile === null && !['', '/mcp', '/connect', '/connect/mcp'].includes(path))
    throw new AddressError(`"${path}" is no MCP endpoint: give ${parsed.origin} or ${parsed.origin}/mcp`);
  const endpoint = profile === null ? '/mcp' : `/mcp/p/${profile[1] ?? profile[2]}`;
  return { origin: parsed.origin, mcp: `${parsed.origin}${endpoint}${parsed.search}` };
}

/** Can others read what is sent? */
export function isPlainOverNetwork(origin: string): boolean {
  const { protocol, hostname } = new URL(origin);
  return protocol === 'http:' && !LOOPBACK.test(hostname);
}
