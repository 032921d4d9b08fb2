/**
 * Headers of calls to backend modules: the gateway's identity headers, and the rules for forwarding a client's headers.
 * The gateway's headers always replace the client's (docs/modules.md).
 */
import { GatewayError } from '../../domain/errors.ts';
import { type SessionContext, scopesOf } from '../../domain/sessions.ts';
import type { RouteContext } from '../http/table/route.ts';
import { isForwardable, isPlainName } from './header-names.ts';

/** The caller of a module call. `anonymous`: a public path or resource, without session and code. */
type ModuleCaller =
  | { readonly kind: 'session'; readonly session: SessionContext }
  | { readonly kind: 'capability'; readonly family: 'chat' | 'wallet' }
  | { readonly kind: 'anonymous' };

export interface CallFacts {
  /** `Project` of the configuration. */
  readonly project: string;
  readonly requestId: string;
  /** Address of the client, as limits count it; undefined for the gateway's own calls. */
  readonly clientAddress?: string;
  /** The origin that clients use. Undefined for the gateway's own calls. */
  readonly baseUrl?: string;
  /** W3C Trace Context, for the backend's span. */
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

const VALUE_CHARACTERS_MAX = 512;
const PLAIN = /^[\x20-\x7e]+$/;
const FIELD_CHARACTERS_MAX = 8 * 1024;
const ASCII_FIELD = /^[\t\x20-\x7e]*$/;
/** DEL, and what stands for bytes that are not UTF-8. The library lets no other control character through. */
const UNWRITABLE_FIELD = /[\x7f\ufffd]/;
/** Cached names of clients' headers; the same few come with every call. */
const NAMES_KNOWN_MAX = 1_000;
const NAME_KNOWN_CHARACTERS_MAX = 64;
const forwardedNames = new Map<string, string>();

/** A pseudonym instead of the gateway's host (RFC 9110 7.6.3). Clients use HTTP/1.1 only. */
const VIA = '1.1 gatehouse';

/** Fields of one request that were dropped because of a character of their name. */
export interface DroppedFields {
  count: number;
}

/**
 * The part of a client's headers that may go to a module: without the gateway's names, those of `NAMES_KEPT_BACK`,
 * hop-by-hop headers and those that the client's `Connection` names. Names come out in lower case, values as they came,
 * one character a byte. A name with other characters than letters, digits and `-` is left out and counted. Throws
 * `FieldTooLong` above 8 KiB, and `InvalidInput` for bytes that are not UTF-8.
 */
export function forwardedHeaders(
  headers: Iterable<readonly [name: string, value: string]>,
  dropped?: DroppedFields,
): Record<string, string> {
  const named = namedByConnection(headers);
  const kept: Record<string, string> = {};
  for (const [name, value] of headers) {
    const key = forwardedName(name);
    if (key === undefined) {
      if (dropped !== undefined) dropped.count += 1;
    } else if (key !== '' && named?.has(key) !== true) kept[key] = fieldBytes(name, value);
  }
  return kept;
}

/** The bytes of a field's value, one character each. Throws as `forwardedHeaders`. */
function fieldBytes(name: string, value: string): string {
  if (value.length > FIELD_CHARACTERS_MAX)
    throw new GatewayError('FieldTooLong', `${name}: at most ${FIELD_CHARACTERS_MAX} characters`);
  if (ASCII_FIELD.test(value)) return value;
  if (UNWRITABLE_FIELD.test(value)) throw new GatewayError('InvalidInput', `${name}: expected UTF-8 text`);
  return Buffer.from(value, 'utf8').toString('latin1');
}

function namedByConnection(
  headers: Iterable<readonly [name: string, value: string]>,
): ReadonlySet<string> | undefined {
  let named: Set<string> | undefined;
  for (const [name, value] of headers) {
    if (name.toLowerCase() !== 'connection') continue;
    named ??= new Set();
    for (const token of value.split(',')) named.add(token.trim().toLowerCase());
  }
  return named;
}

/** Lower case; '' for a name that is not forwarded, undefined for one with other characters. */
function forwardedName(name: string): string | undefined {
  const known = forwardedNames.get(name);
  if (known !== undefined) return known;
  if (!isPlainName(name)) return undefined;
  const key = name.toLowerCase();
  const forwarded = isForwardable(key) ? key : '';
  if (forwardedNames.size < NAMES_KNOWN_MAX && name.length <= NAME_KNOWN_CHARACTERS_MAX)
    forwardedNames.set(name, forwarded);
  return forwarded;
}

/** `Via` of a proxied call: the client's hops and the gateway (RFC 9110 7.6.3). */
export function viaOf(headers: Iterable<readonly [name: string, value: string]>): string {
  let hops = '';
  for (const [name, value] of headers)
    if (name.toLowerCase() === 'via') hops += `${fieldBytes(name, value)}, `;
  return hops + VIA;
}

export function factsOf(
  context: Pick<RouteContext, 'site' | 'requestId' | 'client' | 'traceparent' | 'header'>,
): CallFacts {
  const { site, requestId, client, traceparent } = context;
  const { project, baseUrl } = site;
  const facts = { project, baseUrl, requestId, clientAddress: client.address, traceparent };
  const tracestate = tracestateOf(context);
  return tracestate === undefined ? facts : { ...facts, tracestate };
}

/** Header of the caller; one that cannot be passed on is left out (W3C Trace Context 3.3.1.3). */
export function tracestateOf(context: Pick<RouteContext, 'traceparent' | 'header'>): string | undefined {
  const tracestate = context.traceparent === undefined ? undefined : context.header('tracestate');
  return tracestate !== undefined && isSafe(tracestate) ? tracestate : undefined;
}

/**
 * The gateway's headers of one call. Throws `InvalidInput` with the header's name for an unsafe value, because values may
 * come from a client or the configuration.
 */
export function gatewayHeaders(caller: ModuleCaller, facts: CallFacts): Record<string, string> {
  return withTrace(facts, headersOfLines(gatewayLines(caller, facts)));
}

/** The context of a trace, added to `headers`: a span of the call replaces it. Throws as `gatewayHeaders`. */
export function withTrace(
  { traceparent, tracestate }: Pick<CallFacts, 'traceparent' | 'tracestate'>,
  headers: Record<string, string>,
): Record<string, string> {
  if (traceparent !== undefined) headers['traceparent'] = safe('traceparent', traceparent);
  if (tracestate !== undefined) headers['tracestate'] = safe('tracestate', tracestate);
  return headers;
}

/**
 * The gateway's headers but for the trace as lines of a request's head, each after a line end. What is the same for a
 * session or the site is composed once. Throws as `gatewayHeaders`.
 */
export function gatewayLines(caller: ModuleCaller, facts: CallFacts): string {
  const { project, requestId, clientAddress, baseUrl } = facts;
  let lines = `\r\nx-project: ${safe('X-Project', project)}\r\nx-request-id: ${safe('X-Request-Id', requestId)}`;
  if (clientAddress !== undefined) lines += forwardedLines(clientAddress, baseUrl);
  if (caller.kind === 'session') return lines + sessionLines(caller.session);
  if (caller.kind === 'anonymous') return lines;
  return `${lines}\r\nx-scopes: Capability:${caller.family}\r\nx-keytype: Unknown`;
}

/** The headers of `lines`, for a client that writes its head itself. */
export function headersOfLines(lines: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines.split('\r\n').slice(1)) {
    const at = line.indexOf(': ');
    headers[line.slice(0, at)] = line.slice(at + 2);
  }
  return headers;
}

/** A session's context is one object until its account changes. */
const linesOfSessions = new WeakMap<SessionContext, string>();

function sessionLines(session: SessionContext): string {
  const known = linesOfSessions.get(session);
  if (known !== undefined) return known;
  const userId = safe('X-Crm', session.userId);
  const user = `\r\nx-crm: ${userId}\r\nx-user-id: ${userId}`;
  const key = `\r\nx-scopes: ${scopesOf(session)}\r\nx-keytype: ${session.keyType}`;
  const isApp = session.loginType === 'McpApp' && session.appId !== null;
  const lines = user + key + (isApp ? `\r\nx-mcp-app-id: ${safe('X-MCP-App-Id', session.appId)}` : '');
  linesOfSessions.set(session, lines);
  return lines;
}

/** Lines for the last `BaseUrl`: a process has one. */
let site = { baseUrl: '', lines: '', forwarded: '' };

/** The client and the public address, each also as RFC 7239 writes it. The client's own `Host` is no part of them. */
function forwardedLines(client: string, baseUrl: string | undefined): string {
  const address = `\r\nx-forwarded-for: ${safe('X-Forwarded-For', client)}`;
  if (baseUrl === undefined) return address;
  if (site.baseUrl !== baseUrl) {
    const [scheme = '', host = ''] = baseUrl.split('://');
    const lines = `\r\nx-forwarded-host: ${host}\r\nx-forwarded-proto: ${scheme}`;
    site = { baseUrl, lines, forwarded: `;host="${host}";proto=${scheme}` };
  }
  const node = client.includes(':') ? `"[${client}]"` : client;
  return `${address}${site.lines}\r\nforwarded: for=${node}${site.forwarded}`;
}

/** Visible ASCII with inner spaces only: nothing that could end the line or the header. */
export function isSafe(value: string): boolean {
  const { length } = value;
  return (
    length <= VALUE_CHARACTERS_MAX &&
    PLAIN.test(value) &&
    value.charCodeAt(0) !== 0x20 &&
    value.charCodeAt(length - 1) !== 0x20
  );
}

function safe(name: string, value: string): string {
  if (!isSafe(value)) throw new GatewayError('InvalidInput', name);
  return value;
}
