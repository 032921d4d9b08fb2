/**
 * Finds the route of a method and path. Paths are compared undecoded and with case, so that a resource has one spelling;
 * only parameters are decoded. A literal segment has priority over a parameter.
 */
import type { Role } from '../../../domain/roles.ts';
import { type CompiledSchema, compileSchema, type TSchema } from '../../../domain/schema.ts';
import { decodeSegment, NO_VALUES } from '../exchange/request.ts';
import type { AnyRoute } from './route.ts';

/** Cap of a body if the route names none. */
export const BODY_BYTES_MAX = 64 * 1024;
/** The same of a body that no route reads. */
const IGNORED_BYTES_MAX = 1024 * 1024;

/** A parameter and the index of its path segment. */
interface Parameter {
  readonly name: string;
  readonly index: number;
}

/** A route with what is computed of it once. */
export interface ReadyRoute {
  readonly route: AnyRoute;
  readonly parameters: readonly Parameter[];
  readonly bodyCheck: CompiledSchema<unknown> | undefined;
  readonly queryCheck: CompiledSchema<unknown> | undefined;
  /** Query fields that the schema declares as number or boolean. */
  readonly queryTypes: ReadonlyMap<string, 'integer' | 'boolean'>;
  /** Cap of its body. */
  readonly bodyMaxBytes: number;
  /** Its requests are counted by the scopes of the limiter. */
  readonly counted: boolean;
  /** Header `pkey` is charged. */
  readonly chargesKey: boolean;
  /** A bearer has priority over the cookie. */
  readonly readsBearer: boolean;
  /** It takes only a token that it reads itself: no cookie that a foreign page could send. */
  readonly tokenOnly: boolean;
  /** The least role of its caller. */
  readonly role: Role | undefined;
}

export type Match =
  | { readonly found: 'route'; readonly ready: ReadyRoute; readonly params: Readonly<Record<string, string>> }
  | { readonly found: 'path'; readonly methods: readonly string[]; readonly offered: readonly AnyRoute[] }
  | { readonly found: 'nothing' };

const NOTHING: Match = { found: 'nothing' };
const NONE: readonly PathEntry[] = [];

interface PathEntry {
  /** Undefined: any text except the empty one. */
  readonly segments: readonly (string | undefined)[];
  readonly routes: Map<string, ReadyRoute>;
  /** Takes the methods that no route of the path has. */
  every?: ReadyRoute;
}

export interface Router {
  /**
   * HEAD falls back to GET, and a preflight finds the path alone. Throws `InvalidInput` for a parameter that does not
   * decode.
   */
  match(method: string, path: string, isPreflight?: boolean): Match;
}

/** Throws on two routes for one method and path. */
export function createRouter(routes: readonly AnyRoute[]): Router {
  const fixed = new Map<string, PathEntry>();
  const parameterized = new Map<string, PathEntry>();
  const open = new Map<string, PathEntry>();
  for (const route of routes) {
    const ready = prepare(route);
    const patterned = route.path.includes('/:') ? parameterized : fixed;
    const group = route.serves === undefined ? patterned : open;
    const shape = route.path.replace(/\/:[^/]+/g, '/:');
    const entry: PathEntry = group.get(shape) ?? { segments: shapeOf(route.path), routes: new Map() };
    if (entry.routes.has(route.method)) throw new Error(`two routes for ${route.method} ${route.path}`);
    entry.routes.set(route.method, ready);
    if (route.everyMethod === true) entry.every = ready;
    group.set(shape, entry);
    if (route.slashToo === true)
      group.set(`${shape}/`, { segments: shapeOf(`${route.path}/`), routes: entry.routes });
  }
  const patterns = byLength([...parameterized.values()].sort(literalsFirst));
  return {
    match(method, path, isPreflight = false) {
      const entry = fixed.get(path);
      if (entry !== undefined) return pick(entry, method, NO_VALUES);
      const segments = path.split('/');
      for (const pattern of patterns[segments.length] ?? NONE)
        if (matchesSegments(pattern.segments, segments)) return pickParameterized(pattern, method, segments);
      return matchOpen(open, isPreflight ? '' : method, path);
    },
  };
}

/** Routes with `serves` come last, so that they hide no other route. */
function matchOpen(open: ReadonlyMap<string, PathEntry>, method: string, path: string): Match {
  for (const entry of open.values()) {
    const [ready] = entry.routes.values();
    if (ready?.route.serves?.(path) === true) return pick(entry, method, NO_VALUES, path);
  }
  return NOTHING;
}

function prepare(route: AnyRoute): ReadyRoute {
  const { auth, limits = [] } = route;
  return {
    route,
    parameters: parametersOf(route.path),
    bodyCheck:
      route.body === undefined || typeof route.body === 'string' ? undefined : compileSchema(route.body),
    queryCheck: route.query === undefined ? undefined : compileSchema(route.query),
    queryTypes: queryTypesOf(route.query),
    bodyMaxBytes: bodyMaxBytesOf(route),
    counted: !limits.includes('NoRateLimit') && !limits.includes('Self'),
    chargesKey: limits.includes('CheckPubKey'),
    readsBearer: auth === 'either' || auth === 'eitherOptional',
    tokenOnly: auth === 'none' && limits.includes('Self'),
    role: auth === 'admin' ? (route.role ?? (route.method === 'GET' ? 'viewer' : 'admin')) : undefined,
  };
}

function bodyMaxBytesOf({ body, bodyMaxBytes }: AnyRoute): number {
  if (body === undefined) return IGNORED_BYTES_MAX;
  return bodyMaxBytes ?? (body === 'stream' ? Infinity : BODY_BYTES_MAX);
}

function pick(entry: PathEntry, method: string, params: Readonly<Record<string, string>>, path = ''): Match {
  const ready = entry.routes.get(method) ?? (method === 'HEAD' ? entry.routes.get('GET') : entry.every);
  if (ready !== undefined && ready.route.asksFor?.(path) !== false) return { found: 'route', ready, params };
  const routes = [...entry.routes.values()].map(({ route }) => route);
  const offered = routes.filter((route) => route.notOffered !== true && route.asksFor?.(path) !== false);
  const methods: string[] = offered.map(({ method }) => method);
  if (methods.includes('GET') && !methods.includes('HEAD')) methods.push('HEAD');
  return { found: 'path', methods, offered };
}

/** Methods of one path may name its parameters differently: the names are those of the chosen route. */
function pickParameterized(entry: PathEntry, method: string, segments: readonly string[]): Match {
  const match = pick(entry, method, NO_VALUES);
  if (match.found !== 'route') return match;
  const params: Record<string, string> = Object.create(null);
  for (const { name, index } of match.ready.parameters) params[name] = decodeSegment(segments[index] ?? '');
  return { found: 'route', ready: match.ready, params };
}

function shapeOf(path: string): (string | undefined)[] {
  return path.split('/').map((part) => (part.startsWith(':') ? undefined : part));
}

function parametersOf(path: string): Parameter[] {
  return path
    .split('/')
    .map((part, index) => ({ name: part.slice(1), index, isOne: part.startsWith(':') }))
    .filter(({ isOne }) => isOne);
}

/** Groups by the number of segments, so that a path is compared only with patterns of its length. */
function byLength(entries: readonly PathEntry[]): readonly (readonly PathEntry[] | undefined)[] {
  const lists: PathEntry[][] = [];
  for (const entry of entries) {
    const list = lists[entry.segments.length] ?? [];
    list.push(entry);
    lists[entry.segments.length] = list;
  }
  return lists;
}

/** Both have the same number of segments. */
function matchesSegments(pattern: readonly (string | undefined)[], segments: readonly string[]): boolean {
  for (let index = 0; index < pattern.length; index += 1) {
    const part = pattern[index];
    if (part === undefined ? segments[index] === '' : part !== segments[index]) return false;
  }
  return true;
}

function literalsFirst(a: PathEntry, b: PathEntry): number {
  const rank = (entry: PathEntry) => entry.segments.map((part) => (part === undefined ? '1' : '0')).join('');
  return rank(a) < rank(b) ? -1 : 1;
}

function queryTypesOf(schema: TSchema | undefined): ReadonlyMap<string, 'integer' | 'boolean'> {
  const types = new Map<string, 'integer' | 'boolean'>();
  const properties = (schema as { properties?: Record<string, { type?: unknown }> } | undefined)?.properties;
  for (const [name, property] of Object.entries(properties ?? {})) {
    if (property.type === 'integer' || property.type === 'boolean') types.set(name, property.type);
  }
  return types;
}

/** Query values are texts; those that the schema declares as number or boolean are converted if they look like one. */
export function coerceQuery(
  ready: ReadyRoute,
  fields: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> {
  if (ready.queryTypes.size === 0 || fields === NO_VALUES) return fields;
  const typed: Record<string, unknown> = Object.create(null);
  for (const [name, text] of Object.entries(fields)) typed[name] = coerce(ready.queryTypes.get(name), text);
  return typed;
}

function coerce(type: 'integer' | 'boolean' | undefined, text: string): unknown {
  if (type === 'integer' && /^-?(?:0|[1-9][0-9]{0,15})$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === '1')) return true;
  if (type === 'boolean' && (text === 'false' || text === '0')) return false;
  return text;
}
