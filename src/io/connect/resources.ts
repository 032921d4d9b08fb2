/**
 * Resources that a token may be issued for (RFC 8707), by path: one table for their metadata (RFC 9728), the challenges of
 * their endpoints and the audience of tokens.
 */
import type { AccessScope } from '../../domain/oauth/scopes.ts';
import type { Site } from '../../domain/site.ts';
import type { RouteContext } from '../http/table/route.ts';

/** Scopes that a challenge and the metadata of a resource name; `full` is given only when a client names it. */
const RESOURCE_SCOPES = ['read', 'tools'] as const;
export const CONNECT_PATH = '/connect/mcp';
/** Path of the address of a profile. */
export const CONNECT_PROFILE_PATH = '/connect/p/:profile/mcp';
const PROFILE_PATH_FORM = /^\/connect\/p\/([^/]+)\/mcp$/;
export const METADATA_PREFIX = '/.well-known/oauth-protected-resource';

export interface Resource {
  /** Path of the address; the audience of its tokens. */
  readonly path: string;
  /** Name for people. */
  readonly name: string;
  /** The profile whose address it is. */
  readonly profile?: string;
}

export interface Resources {
  /** The resource at a path, with or without a slash at its end; undefined where there is none. */
  find(path: string): Resource | undefined;
}

/** `profileOf`: the resource of a profile of the configuration, which a reload may change. */
export function createResources(
  list: readonly Resource[],
  profileOf: (name: string) => { readonly title: string | undefined } | undefined = () => undefined,
): Resources {
  const byPath = new Map(list.map((resource) => [resource.path, resource]));
  return {
    find(typed) {
      const path = audienceOf(typed);
      const [, name] = PROFILE_PATH_FORM.exec(path) ?? [];
      if (name === undefined) return byPath.get(path);
      const profile = profileOf(name);
      return profile === undefined ? undefined : { path, name: profile.title ?? name, profile: name };
    },
  };
}

/** The audience of tokens for an address that may end in a slash. */
export function audienceOf(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** The resource of MCP without a profile. */
export function mcpResource({ project }: Pick<Site, 'project'>): Resource {
  return { path: CONNECT_PATH, name: project };
}

/**
 * The origin that the client typed: `BaseUrl`, or where the Host was checked, an own origin with this Host. Clients compare
 * the metadata with the typed address character by character.
 */
export function originOfRequest({ site, header }: Pick<RouteContext, 'site' | 'header'>): string {
  const host = header('host')?.toLowerCase();
  const base = new URL(site.baseUrl);
  if (!site.checkHost || host === undefined || host === base.host) return site.baseUrl;
  const typed = [`http://${host}`, `https://${host}`].find((origin) => site.origins.has(origin));
  return typed ?? site.baseUrl;
}

/** RFC 9728 3.2. `typed`: the path as the client has it. */
export function resourceMetadata(
  context: Pick<RouteContext, 'site' | 'header'>,
  resource: Resource,
  typed: string,
): object {
  return {
    resource: `${originOfRequest(context)}${typed}`,
    authorization_servers: [context.site.issuer],
    scopes_supported: RESOURCE_SCOPES,
    bearer_methods_supported: ['header'],
    resource_name: resource.name,
  };
}

/** Value of `WWW-Authenticate` (RFC 6750 3, RFC 9728 5.1). `dead`: a token was sent, and it is not good there. */
export function bearerChallenge(
  context: Pick<RouteContext, 'site' | 'header'>,
  path: string,
  dead: boolean,
): string {
  const error = dead ? 'error="invalid_token", ' : '';
  return `Bearer ${error}${metadataField(context, path)}, scope="tools"`;
}

/** The same for a token whose scope is too narrow: the host may ask the person for `scope`. */
export function scopeChallenge(
  context: Pick<RouteContext, 'site' | 'header'>,
  path: string,
  scope: AccessScope,
): string {
  return `Bearer error="insufficient_scope", scope="${scope}", ${metadataField(context, path)}`;
}

function metadataField(context: Pick<RouteContext, 'site' | 'header'>, path: string): string {
  return `resource_metadata="${originOfRequest(context)}${METADATA_PREFIX}${path}"`;
}

/**
 * The resource of an absolute address of this deployment, in any spelling; undefined for any other. Where the Host is checked,
 * each own name is one: a client types one of them, and sends the token request to `BaseUrl`.
 */
export function resourceOfAddress(site: Site, resources: Resources, address: string): Resource | undefined {
  if (!URL.canParse(address)) return undefined;
  const { origin, pathname, search, hash, username, password } = new URL(address);
  if (search + hash + username + password !== '') return undefined;
  const isHere =
    origin === site.baseUrl || (site.checkHost && site.origins.has(origin) && isOwn(site, origin));
  return isHere ? resources.find(pathname) : undefined;
}

/** `AllowedOrigins` are pages of others. */
function isOwn({ hosts }: Site, origin: string): boolean {
  return hosts.has(new URL(origin).hostname);
}
