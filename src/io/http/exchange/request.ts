/**
 * The head of a request, copied at once because uWebSockets.js invalidates its request object when the handler returns.
 * Also decodes paths and queries.
 */
import { GatewayError } from '../../../domain/errors.ts';
import { type FormerNames, readFormerNames } from '../../../domain/former-names.ts';
import type { HttpRequest } from '../listen/server.ts';

/** Characters of a user agent that are kept. */
const USER_AGENT_MAX = 256;
const QUERY_FIELDS_MAX = 100;
const NO_HEADERS: ReadonlySet<string> = new Set();
const NO_SIDS: readonly string[] = [];
/** RFC 9110 10.1.1; compared without case. */
const CONTINUE = '100-continue';
/** Shared, so never added to. */
const NO_FIELDS = new Map<string, string>();
const FORBIDDEN_NAMES = new Set(['__proto__', 'constructor', 'prototype']);
/** Built from codes: control characters are invisible in a source file. */
const CONTROL = new RegExp(
  `[${String.fromCharCode(0)}-${String.fromCharCode(31)}${String.fromCharCode(127)}]`,
);
const CONTROLS = new RegExp(CONTROL.source, 'g');

const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;
const TRACEPARENT_PATTERN = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const BEARER_PATTERN = /^bearer +[^\s]+$/i;
const IDEMPOTENCY_KEY_PATTERN = /^[\x21-\x7e]{1,128}$/;

export class IncomingHead {
  /** Upper case as sent. */
  readonly method: string;
  /** Undecoded, without the query. */
  readonly path: string;
  /** Undecoded, without `?`. */
  readonly rawQuery: string;
  readonly #hasEmptyQuery: boolean;
  readonly headerCount: number;
  #headers: Map<string, string>;
  #repeated: Map<string, string[]> | undefined;
  readonly repeatedHeaders: ReadonlySet<string>;
  readonly hasBody: boolean;
  /** Declared bytes; undefined for a chunked body. */
  readonly contentLength: number | undefined;
  /** The caller's own id of the request, if well formed. */
  readonly clientRequestId: string | undefined;
  /** W3C trace context, if well formed. */
  readonly traceparent: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly userAgent: string;

  constructor(request: HttpRequest) {
    this.method = canonicalMethod(request.getCaseSensitiveMethod());
    this.path = request.getUrl();
    // The library's types lack the undefined of a target without `?`.
    const query: string | undefined = request.getQuery();
    this.rawQuery = query ?? '';
    this.#hasEmptyQuery = query === '';
    const headers = new Map<string, string>();
    let repeated: Map<string, string[]> | undefined;
    let count = 0;
    request.forEach((name, value) => {
      count += 1;
      const first = headers.get(name);
      if (first === undefined) {
        headers.set(name, value);
        return;
      }
      repeated ??= new Map();
      repeated.set(name, [...(repeated.get(name) ?? [first]), value]);
    });
    this.headerCount = count;
    this.#headers = headers;
    this.#repeated = repeated;
    this.repeatedHeaders = repeated === undefined ? NO_HEADERS : new Set(repeated.keys());
    const length = headers.get('content-length');
    this.contentLength = length === undefined ? undefined : Number(length);
    this.hasBody =
      this.contentLength === undefined ? headers.has('transfer-encoding') : this.contentLength > 0;
    this.clientRequestId = this.#matching('x-request-id', REQUEST_ID_PATTERN);
    this.traceparent = this.#matching('traceparent', TRACEPARENT_PATTERN);
    this.idempotencyKey = this.#matching('idempotency-key', IDEMPOTENCY_KEY_PATTERN);
    const agent = headers.get('user-agent')?.slice(0, USER_AGENT_MAX) ?? '';
    this.userAgent = CONTROL.test(agent) ? agent.replace(CONTROLS, '') : agent;
  }

  /** The query with its `?`; '' for a target without one. */
  get search(): string {
    if (this.#hasEmptyQuery) return '?';
    return this.rawQuery === '' ? '' : `?${this.rawQuery}`;
  }

  /** Releases the fields of a long-lived answer: a fifth of an idle stream's memory, and they hold the session token. */
  forget(): void {
    this.#headers = NO_FIELDS;
    this.#repeated = undefined;
  }

  /** Removes a field that is for the gateway alone. False when it was absent, empty or repeated. */
  take(name: string): boolean {
    const value = this.header(name);
    this.#headers.delete(name);
    this.#repeated?.delete(name);
    return value !== undefined && value !== '';
  }

  /** Undefined for a field that is absent or repeated. */
  header(name: string): string | undefined {
    return this.#repeated?.has(name) ? undefined : this.#headers.get(name);
  }

  /** All fields of that name joined by `separator`, for the lists Cookie and X-Forwarded-For. */
  joined(name: string, separator: string): string | undefined {
    return this.#repeated?.get(name)?.join(separator) ?? this.#headers.get(name);
  }

  /** Every field once; repeated ones are joined (RFC 9110 5.3). */
  all(): Iterable<readonly [name: string, value: string]> {
    const repeated = this.#repeated;
    if (repeated === undefined) return this.#headers;
    return Array.from(this.#headers, ([name, value]) => [name, repeated.get(name)?.join(', ') ?? value]);
  }

  /** Does the client wait for `100 Continue`? uWebSockets.js answers the exact `100-continue` before any handler. */
  get awaitsContinue(): boolean {
    const expected = this.#headers.get('expect');
    return (
      expected !== undefined && expected !== CONTINUE && expected.toLowerCase() === CONTINUE && this.hasBody
    );
  }

  #matching(name: string, pattern: RegExp): string | undefined {
    const value = this.header(name);
    return value !== undefined && pattern.test(value) ? value : undefined;
  }
}

/** W3C Trace Context 3.2, version 00. */
export function isTraceparent(value: string): boolean {
  return TRACEPARENT_PATTERN.test(value);
}

/** The usual methods as string constants, which compare by reference. */
function canonicalMethod(method: string): string {
  switch (method) {
    case 'GET':
      return 'GET';
    case 'POST':
      return 'POST';
    case 'PUT':
      return 'PUT';
    case 'PATCH':
      return 'PATCH';
    case 'DELETE':
      return 'DELETE';
    case 'HEAD':
      return 'HEAD';
    default:
      return method;
  }
}

/** Values of the `sid` cookies, each once: sites of sibling hosts may set cookies of this name for this host too. */
export function readSids(cookies: string | undefined): readonly string[] {
  if (cookies === undefined || !cookies.includes('sid=')) return NO_SIDS;
  if (cookies.startsWith('sid=') && !cookies.includes(';')) {
    const only = cookies.slice(4).trimEnd();
    return only === '' ? NO_SIDS : [only];
  }
  const pairs = cookies.split(';').map((part) => part.trim());
  const values = pairs.filter((pair) => pair.startsWith('sid=')).map((pair) => pair.slice(4));
  return [...new Set(values)].filter((value) => value !== '');
}

export function sidsOf(head: IncomingHead): readonly string[] {
  return readSids(head.joined('cookie', '; '));
}

/** The token of `Authorization: Bearer`; undefined if the field is absent or has another scheme. */
export function readBearer(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !BEARER_PATTERN.test(authorization)) return undefined;
  return authorization.slice(authorization.lastIndexOf(' ') + 1);
}

/** One decoded path segment. Throws `InvalidInput` for broken escapes, separators and control characters. */
export function decodeSegment(segment: string): string {
  const text = segment.includes('%') ? decodePercent(segment, 'path') : segment;
  if (text.includes('/') || text.includes('\\') || CONTROL.test(text)) {
    throw new GatewayError('InvalidInput', 'path');
  }
  return text;
}

/** Shared: an object without a prototype takes 185 bytes even when empty. */
export const NO_VALUES: Readonly<Record<string, string>> = Object.freeze(Object.create(null));

/** Decodes the fields of a query. A repeated name is refused, because its meaning would be ambiguous. */
export function parseQuery(rawQuery: string): Readonly<Record<string, string>> {
  if (rawQuery === '') return NO_VALUES;
  const fields: Record<string, string> = Object.create(null);
  const pairs = rawQuery.split('&');
  if (pairs.length > QUERY_FIELDS_MAX) throw new GatewayError('InvalidInput', 'query: too many fields');
  for (const pair of pairs) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const name = decodeField(at < 0 ? pair : pair.slice(0, at));
    if (name in fields) throw new GatewayError('InvalidInput', 'query: a name is repeated');
    if (FORBIDDEN_NAMES.has(name)) throw new GatewayError('InvalidInput', 'query: reserved name');
    fields[name] = at < 0 ? '' : decodeField(pair.slice(at + 1));
  }
  return fields;
}

/** Fields of a query or body under their current names. Throws `InvalidInput` if a field differs under both names. */
export function withCurrentNames(
  formerNames: FormerNames | undefined,
  value: unknown,
  location: string,
): unknown {
  if (formerNames === undefined || typeof value !== 'object' || value === null || Array.isArray(value))
    return value;
  const read = readFormerNames(formerNames, value as Readonly<Record<string, unknown>>);
  if (!read.ok) throw new GatewayError('InvalidInput', `${location}: ${read.fault}`);
  return read.fields;
}

function decodeField(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  return spaced.includes('%') ? decodePercent(spaced, 'query') : spaced;
}

function decodePercent(text: string, location: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) throw new GatewayError('InvalidInput', `${location}: broken escape`);
    throw error;
  }
}
