/**
 * Maps an endpoint reference and arguments to a URL. The reference decides scheme, host and path; arguments become encoded
 * values only, so no caller can reach another host or leave the path.
 */
import { withoutTrailing } from '../../domain/host-port.ts';

/** Base addresses of the configured modules, by name. */
export type ModuleAddresses = ReadonlyMap<string, string>;

/** A reference that was checked when the configuration was loaded. */
export interface Endpoint {
  /** The reference as configured; key of the breaker. */
  readonly reference: string;
  /** Name of the configured module; null for a plain URL. */
  readonly module: string | null;
  /** Scheme, host and port. */
  readonly origin: string;
  /** Path with `{name}` for its arguments, without a query. */
  readonly path: string;
  /** Query of the reference without `?`; '' when it has none. */
  readonly query: string;
  readonly pathArguments: readonly string[];
  /** An argument in the path may hold a slash: the module decodes it after it has split the path. */
  readonly encodedSlashes: boolean;
}

type EndpointResult =
  | { readonly ok: true; readonly endpoint: Endpoint }
  | { readonly ok: false; readonly fault: string };

/** The target of a request, already encoded; a `URL` fits. */
export interface Target {
  readonly origin: string;
  readonly pathname: string;
  /** Query with `?`; '' without one. */
  readonly search: string;
}

type UrlResult =
  | { readonly ok: true; readonly url: Target }
  | { readonly ok: false; readonly argument: string };

const REFERENCE = /^([a-z][a-z0-9-]{0,31}):(\/(?!\/).*)$/;
const PATH = /^(?:\/[A-Za-z0-9._~!$&'()*+,;=:@%{}-]*)+$/;
const PLACEHOLDER = /\{([^{}]*)\}/g;
const ARGUMENT_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** Also a segment of parameters only, which is empty for a server that ignores parameters. */
const EMPTY_SEGMENT = /\/(?:\/|(?:;|%3b))/i;
/** Cannot be written as UTF-8, so it cannot be encoded. */
const LONE_SURROGATE = /\p{Cs}/u;
/** A segment of one or two dots, without its parameters. */
const CLIMBING = /(?:^|\/|%2f)(?:\.|%2e){1,2}(?:$|\/|%2f|;|%3b)/i;
const ENCODED_TWICE = /%(?:25)*(?:2[ef]|5c)/i;
const URL_MAX_CHARACTERS = 8_192;
const bases = new Map<string, Pick<Target, 'origin' | 'pathname'>>();
const BASES_MAX = 1_000;

/**
 * Parses `wallet:/wallet/v1/balance/get` (a configured module and a path) or an http(s) URL. `fault` describes an invalid
 * reference. `slashes`: names of modules with `encodedSlashes`.
 */
export function parseEndpoint(
  reference: string,
  modules: ModuleAddresses,
  slashes?: ReadonlySet<string>,
): EndpointResult {
  const named = REFERENCE.exec(reference);
  const [, module = null, rest = ''] = named ?? [];
  const base = module === null ? undefined : modules.get(module);
  if (module !== null && base === undefined)
    return { ok: false, fault: `module "${module}" is not configured` };
  const whole = base === undefined ? reference : withoutTrailing(base, '/') + rest;
  const parts = /^(https?:\/\/[^/?#]+)((?:\/[^?#]*)?)(?:\?([^#]*))?$/.exec(whole);
  const [, authority = '', rawPath = '', query = ''] = parts ?? [];
  if (parts === null || !URL.canParse(authority))
    return { ok: false, fault: 'is not an http(s) URL or module:/path' };
  const { origin, username, password } = new URL(authority);
  if (username !== '' || password !== '')
    return { ok: false, fault: 'must not hold a user name or password' };
  const path = rawPath === '' ? '/' : rawPath;
  if (!PATH.test(path) || hasDotSegments(path)) return { ok: false, fault: 'has a path that is not plain' };
  if (/[^\x21-\x7e]/.test(query)) return { ok: false, fault: 'has a query that is not encoded' };
  const pathArguments = [...path.matchAll(PLACEHOLDER)].map(([, name = '']) => name);
  if (!pathArguments.every((name) => ARGUMENT_NAME.test(name)) || /[{}]/.test(path.replace(PLACEHOLDER, '')))
    return { ok: false, fault: 'has a path placeholder that is not {name}' };
  const encodedSlashes = module !== null && slashes?.has(module) === true;
  return { ok: true, endpoint: { reference, module, origin, path, query, pathArguments, encodedSlashes } };
}

/**
 * The URL of one call. Path arguments come from `values`; `query` is appended to the reference's own query. `argument` of
 * a refusal names the invalid one.
 */
export function endpointUrl(
  endpoint: Endpoint,
  values: Readonly<Record<string, unknown>> = {},
  query: Readonly<Record<string, unknown>> = {},
): UrlResult {
  const { encodedSlashes } = endpoint;
  let path = endpoint.path;
  for (const name of endpoint.pathArguments) {
    const segment = segmentOf(Object.hasOwn(values, name) ? values[name] : undefined, encodedSlashes);
    if (segment === undefined) return { ok: false, argument: name };
    path = path.replace(`{${name}}`, () => segment);
    if (hasDotSegments(path, encodedSlashes)) return { ok: false, argument: name };
  }
  if (path.length > URL_MAX_CHARACTERS) return { ok: false, argument: endpoint.pathArguments[0] ?? '' };
  const search = new QueryText(endpoint.query, URL_MAX_CHARACTERS - path.length);
  let longest = { name: '', characters: -1 };
  for (const [name, value] of Object.entries(query)) {
    const before = search.characters;
    const added = search.append(name, value);
    if (added === 'unfit') return { ok: false, argument: name };
    const characters = search.characters - before;
    if (characters > longest.characters) longest = { name, characters };
    if (added === 'full') return { ok: false, argument: longest.name };
  }
  return { ok: true, url: { origin: endpoint.origin, pathname: path, search: search.text } };
}

/** The target of a proxied call, with the base for references in its answer. */
export interface ProxiedTarget extends Target {
  readonly href: string;
}

/**
 * A path without the parameters of its segments (RFC 3986 3.3). Java servers ignore `;x`, so rules that compare paths
 * must ignore it too.
 */
export function withoutParameters(path: string): string {
  return path.includes(';') ? path.replace(/;[^/]*/g, '') : path;
}

/**
 * The URL of a proxied REST call: the client's path under the module's base address, untouched, parameters included.
 * `search`: the client's query with its `?`, '' without one.
 * Undefined for a path with dot segments, an empty segment, an encoded separator (`slashes` allows `%2F`) or other unusual
 * characters.
 */
export function proxiedUrl(
  base: string,
  rawPath: string,
  search: string,
  slashes = false,
): ProxiedTarget | undefined {
  if (!PATH.test(rawPath) || /[{}]/.test(rawPath)) return undefined;
  if (hasDotSegments(rawPath, slashes) || EMPTY_SEGMENT.test(rawPath)) return undefined;
  if (/[^\x21-\x7e]/.test(search) || search.includes('#')) return undefined;
  if (rawPath.length + search.length > URL_MAX_CHARACTERS) return undefined;
  const { origin, pathname } = parsedBase(base);
  const path = pathname + rawPath;
  return { origin, pathname: path, search, href: origin + path + search };
}

/** The address of a module, whose path does not end in a slash. Cached: the same few come with every call. */
function parsedBase(base: string): Pick<Target, 'origin' | 'pathname'> {
  const known = bases.get(base);
  if (known !== undefined) return known;
  const { origin, pathname } = new URL(base);
  const parsed = { origin, pathname: withoutTrailing(pathname, '/') };
  if (bases.size < BASES_MAX) bases.set(base, parsed);
  return parsed;
}

/** Without the escapes of ASCII; others stay. */
export function decodeAscii(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/**
 * Dot segments in any spelling, encoded separators and control characters, percent signs that encode nothing, and what
 * a server that decodes more than once would read as a dot or a separator.
 */
function hasDotSegments(path: string, slashes = false): boolean {
  if (CLIMBING.test(path)) return true;
  if (!path.includes('%')) return false;
  if (/%(?![0-9A-Fa-f]{2})/.test(path) || /%(?:5c|[01][0-9a-f]|7f)/i.test(path)) return true;
  if (!slashes && /%2f/i.test(path)) return true;
  if (!path.includes('%25')) return false;
  const decoded = decodeAscii(path);
  return ENCODED_TWICE.test(decoded) || CLIMBING.test(decoded);
}

/** The encoded path segment of an argument; undefined when empty or unsafe. Dot segments are checked on the whole path. */
function segmentOf(value: unknown, slashes: boolean): string | undefined {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
  // Encoding makes a text longer, never shorter.
  if (typeof text !== 'string' || text === '' || text.length > URL_MAX_CHARACTERS) return undefined;
  if (LONE_SURROGATE.test(text)) return undefined;
  // Some servers decode a second time before they split, so separators and control characters are refused.
  if (/\\|\p{Cc}/u.test(text) || (!slashes && text.includes('/'))) return undefined;
  return encodeURIComponent(text);
}

/** A query that is written up to a bound, so that its cost never depends on the arguments that exceed it. */
class QueryText {
  /** Query with `?`; '' without one. */
  text: string;
  /** Characters of the text, and of the value that did not fit any more. */
  characters: number;
  readonly #maxCharacters: number;

  constructor(own: string, maxCharacters: number) {
    this.text = own === '' ? '' : `?${own}`;
    this.characters = this.text.length;
    this.#maxCharacters = maxCharacters;
  }

  /** Null and undefined are omitted, a list repeats the name, an object is sent as JSON. `unfit`: no UTF-8 text. */
  append(name: string, value: unknown): 'fits' | 'full' | 'unfit' {
    if (value === null || value === undefined) return 'fits';
    if (Array.isArray(value)) {
      for (const item of value) {
        const added = this.append(name, item);
        if (added !== 'fits') return added;
      }
      return 'fits';
    }
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
    // Encoding makes a text longer, never shorter.
    this.characters += name.length + text.length;
    if (this.characters > this.#maxCharacters) return 'full';
    if (LONE_SURROGATE.test(text) || LONE_SURROGATE.test(name)) return 'unfit';
    this.text += `${this.text === '' ? '?' : '&'}${encodeURIComponent(name)}=${encodeURIComponent(text)}`;
    this.characters = this.text.length;
    return this.characters > this.#maxCharacters ? 'full' : 'fits';
  }
}

/** The address of an endpoint without arguments: made once, it serves every call. */
export function plainUrl(endpoint: Endpoint | null | undefined, queryString = ''): Target | undefined {
  if (endpoint === null || endpoint === undefined || endpoint.pathArguments.length > 0) return undefined;
  const made = endpointUrl(endpoint);
  if (!made.ok || queryString === '') return made.ok ? made.url : undefined;
  const own = made.url.search === '' ? '?' : `${made.url.search}&`;
  return { ...made.url, search: `${own}${queryString}` };
}
