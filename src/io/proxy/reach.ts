/** Decides which paths are proxied, which of them need no session, and what a session may reach of them. */
import { type Caller, loginClass } from '../../domain/access.ts';
import type { ModuleConfiguration } from '../../domain/config/configuration.ts';
import { withoutTrailing } from '../../domain/host-port.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { RouteContext } from '../http/table/route.ts';
import { decodeAscii, withoutParameters } from '../http-client/endpoint.ts';
import type { Catalog } from '../mcp/catalog.ts';

const PROXIED_PATH = /^\/[a-z][a-z0-9-]{0,31}\/v[1-9][0-9]{0,3}\//;
/** The place that `/.well-known/carddav` names. */
const ROOT_PATH = /^\/[^/]+\/[^/]+\/$/;
/**
 * Endpoints that modules serve to the gateway only. A client that reached them could try codes outside their limits,
 * send messages as the gateway, or complete a file without its bytes. Matched against `plainPath`, also after decoding.
 */
const GATEWAY_ONLY =
  /^\/(?:[^/]+\/v[0-9]+\/(?:capability|codes\/deliver|accounts\/removed)|chat\/v[0-9]+\/(?:files\/(?:create|complete|cancel|describe)|chats\/personal))(?:[/;]|$)/i;

/** Most times that a path is decoded in search of `GATEWAY_ONLY`. */
const DECODINGS_MAX = 4;

/** `Modules.<name>` of the configuration: prefixes that need no session, further methods, `%2F` in paths, contact sync. */
export type ModuleRules = Partial<
  Pick<ModuleConfiguration, 'public' | 'methods' | 'encodedSlashes' | 'contactSync'>
>;

export interface ReachDeps {
  /** Base address by module name. */
  readonly moduleAddresses: ReadonlyMap<string, string>;
  /** Rules by name, of modules that allow more than the rest. */
  readonly moduleRules: ReadonlyMap<string, ModuleRules>;
  /** Bounds what McpBasic and McpApp sessions reach. */
  readonly catalog: { readonly current: Catalog };
}

/** The module that a path names; empty for a path that is not proxied. */
export function moduleOf(rawPath: string): string {
  return PROXIED_PATH.test(rawPath) ? rawPath.slice(1, rawPath.indexOf('/', 1)) : '';
}

/** The endpoint that a path names, as tools name theirs. Parameters of path segments are ignored. */
export function endpointOf(rawPath: string): string {
  return `${moduleOf(rawPath)}:${withoutParameters(rawPath)}`;
}

/** Other paths are 404 before a session is required. */
export function isProxied(
  deps: Pick<ReachDeps, 'moduleAddresses' | 'moduleRules'>,
  rawPath: string,
): boolean {
  const module = moduleOf(rawPath);
  if (module === '' || !deps.moduleAddresses.has(module) || isGatewayOnly(rawPath)) return false;
  return !ROOT_PATH.test(rawPath) || syncsContacts(deps, rawPath);
}

/** Does the path belong to the module that devices sync contacts with? */
export function syncsContacts({ moduleRules }: Pick<ReachDeps, 'moduleRules'>, rawPath: string): boolean {
  return moduleRules.get(moduleOf(rawPath))?.contactSync === true;
}

/** The module that devices sync contacts with; undefined without one. */
export function contactSyncModule({ moduleRules }: Pick<ReachDeps, 'moduleRules'>): string | undefined {
  for (const [name, { contactSync }] of moduleRules) if (contactSync === true) return name;
  return undefined;
}

/**
 * Decides for the path as a module reads it that decodes several times; one that is encoded more often belongs to no
 * module. Escapes outside ASCII stay encoded: a path that does not decode is refused later (`proxiedUrl`).
 */
function isGatewayOnly(rawPath: string): boolean {
  let path = rawPath;
  for (let decodings = 0; decodings <= DECODINGS_MAX; decodings += 1) {
    if (GATEWAY_ONLY.test(plainPath(path))) return true;
    const decoded = path.includes('%') ? decodeAscii(path) : path;
    if (decoded === path) return false;
    path = decoded;
  }
  return true;
}

/** Writes the path as a module might read it: without parameters and empty segments. */
function plainPath(path: string): string {
  const plain = withoutParameters(path);
  return plain.includes('//') ? plain.replace(/\/{2,}/g, '/') : plain;
}

/** Does the module of this path take the method, which is none of those that all modules take? */
export function isAskedFor(
  { moduleRules }: Pick<ReachDeps, 'moduleRules'>,
  rawPath: string,
  method: string,
): boolean {
  return moduleRules.get(moduleOf(rawPath))?.methods?.some((asked) => asked === method) === true;
}

/** A prefix ends at a segment: `/core/v1/news` opens `/core/v1/news/today` and not `/core/v1/newsroom`. */
export function isPublicPath({ moduleRules }: Pick<ReachDeps, 'moduleRules'>, rawPath: string): boolean {
  const prefixes = moduleRules.get(moduleOf(rawPath))?.public ?? [];
  const path = withoutParameters(rawPath);
  return prefixes.some((prefix) => {
    const trimmed = withoutTrailing(withoutParameters(prefix), '/');
    return path === trimmed || path.startsWith(`${trimmed}/`);
  });
}

/**
 * The caller as the module sees it; undefined when the path is out of reach. Public paths are open to every session.
 * Where personal reads need proof, an unproven session reaches a public path as an anonymous caller.
 */
export function callerOf(deps: ReachDeps, context: RouteContext): Caller | undefined {
  const { session, rawPath } = context;
  if (session === undefined) return { kind: 'anonymous' };
  const asSession: Caller = { kind: 'session', session };
  if (isWithinReach(deps, context, session)) return asSession;
  if (!isPublicPath(deps, rawPath)) return undefined;
  const mayBeNamed = session.proven || deps.catalog.current.policy.personalReads;
  return mayBeNamed ? asSession : { kind: 'anonymous' };
}

/**
 * McpBasic proves no key and McpApp is bound to `appScope` (spec 5.1): over REST both reach the endpoints of their tools
 * and resources, with the same method and path. All other sessions reach every path.
 */
function isWithinReach(
  { catalog }: ReachDeps,
  { method, rawPath }: RouteContext,
  session: SessionContext,
): boolean {
  const caller = loginClass(session);
  if (caller === undefined || caller === 'McpVerified') return true;
  const endpoint = endpointOf(rawPath);
  const reads = method === 'GET' || method === 'HEAD';
  const { tools, resources } = catalog.current;
  for (const { row, callers } of tools.values()) {
    const isSame = row.endpoint === endpoint && row.method === (reads ? 'GET' : method);
    if (isSame && callers.has(caller)) return true;
  }
  for (const { row, readers } of resources.values())
    if (reads && row.endpoint === endpoint && readers.has(caller)) return true;
  return false;
}
