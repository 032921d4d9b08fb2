/**
 * Composes the head of a request to a module. Only this code writes header values to a module's connection; it refuses
 * every value that could end a line or a request.
 */
import type { Target } from './endpoint.ts';
import { isHopByHop } from './header-names.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH' | 'HEAD';

export interface RequestLine {
  readonly method: Method;
  readonly url: Target;
  /** Hop-by-hop ones are left out (RFC 9110 7.6.1). */
  readonly headers: Readonly<Record<string, string>>;
  /** Further lines of the head, each after a line end, composed by `gatewayLines`. */
  readonly lines?: string;
  /** Values may hold bytes above ASCII, one character each: the head is written as latin1. */
  readonly hasBytes?: true;
}

/** Bytes of the body; `chunked` for an unknown length; undefined without a body. */
type BodySize = number | 'chunked' | undefined;

const TARGET = /^\/[\x21-\x7e]*$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
const VALUE_OF_BYTES = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Cache of the text before a header's value; '' for a header that is not forwarded. */
const beginnings = new Map<string, string>();
const BEGINNINGS_MAX = 1_000;
const NAME_KNOWN_CHARACTERS_MAX = 64;

/** Up to and with the empty line; ASCII without `hasBytes`. Undefined when a part of it cannot be written safely. */
export function requestHead(
  { method, url, headers, lines = '', hasBytes }: RequestLine,
  host: string,
  size: BodySize,
): string | undefined {
  const target = url.pathname + url.search;
  if (!TARGET.test(target)) return undefined;
  // A server that sends a body after HEAD would spoil the connection for the next request.
  const connection = method === 'HEAD' ? 'close' : 'keep-alive';
  const allowed = hasBytes === true ? VALUE_OF_BYTES : VALUE;
  let head = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: ${connection}${lines}`;
  for (const name in headers) {
    const value = headers[name];
    const beginning = value === undefined ? '' : beginningOf(name);
    if (beginning === '') continue;
    if (value === undefined || beginning === undefined || !allowed.test(value)) return undefined;
    head += beginning + value;
  }
  // No content coding is requested, because none is decoded.
  return `${head}\r\naccept-encoding: identity${framing(method, size)}\r\n\r\n`;
}

function framing(method: Method, size: BodySize): string {
  if (size === 'chunked') return '\r\ntransfer-encoding: chunked';
  // Methods with a usual body declare its absence (RFC 9110 8.6).
  const saysNone = method === 'POST' || method === 'PUT' || method === 'PATCH';
  if (size === undefined && !saysNone) return '';
  return `\r\ncontent-length: ${size ?? 0}`;
}

/** Undefined for an invalid name. */
function beginningOf(name: string): string | undefined {
  const known = beginnings.get(name);
  if (known !== undefined) return known;
  if (!NAME.test(name)) return undefined;
  const beginning = isHopByHop(name) ? '' : `\r\n${name}: `;
  if (beginnings.size < BEGINNINGS_MAX && name.length <= NAME_KNOWN_CHARACTERS_MAX)
    beginnings.set(name, beginning);
  return beginning;
}
