/** Scopes of connected hosts and what each gives: the login type of the sessions, by the widest scope. */
import type { CallerClass } from '../access.ts';
import { GatewayError } from '../errors.ts';
import type { LoginType } from '../sessions.ts';

/** Scopes from the narrowest to the widest. `offline_access` changes nothing: every grant has a refresh token. */
export const ACCESS_SCOPES = ['read', 'tools', 'full'] as const;
export type AccessScope = (typeof ACCESS_SCOPES)[number];
const OFFLINE_SCOPE = 'offline_access';
export const SCOPES: readonly string[] = [...ACCESS_SCOPES, OFFLINE_SCOPE];
/** Scopes of a request that names none. */
const DEFAULT_SCOPES: readonly string[] = ['tools'];

const LOGIN_TYPES: Readonly<Record<AccessScope, LoginType>> = {
  read: 'McpBasic',
  tools: 'McpApp',
  full: 'McpVerified',
};
const CALLERS: Readonly<Record<AccessScope, CallerClass>> = {
  read: 'McpBasic:proven',
  tools: 'McpApp:proven',
  full: 'McpVerified',
};

/**
 * The scopes of a `scope` parameter that are known, each once. Undefined when none of them gives access: unknown ones are
 * ignored (RFC 6749 3.3), but nothing else must be given instead.
 */
export function readScopes(scope: string | undefined): readonly string[] | undefined {
  const named = (scope ?? '').split(' ').filter((name) => name !== '');
  if (named.length === 0) return DEFAULT_SCOPES;
  const known = SCOPES.filter((name) => named.includes(name));
  if (widestOf(known) !== undefined) return known;
  return named.every((name) => name === OFFLINE_SCOPE) ? [...DEFAULT_SCOPES, OFFLINE_SCOPE] : undefined;
}

export function widestOf(scopes: readonly string[]): AccessScope | undefined {
  return ACCESS_SCOPES.findLast((name) => scopes.includes(name));
}

/** Do all of them lie within what was granted (RFC 6749 6)? A wider scope contains the narrower ones. */
export function isWithin(scopes: readonly string[], granted: readonly string[]): boolean {
  const most = ACCESS_SCOPES.indexOf(widestOf(granted) ?? 'read');
  return scopes.every((name) =>
    name === OFFLINE_SCOPE
      ? granted.includes(OFFLINE_SCOPE)
      : ACCESS_SCOPES.indexOf(name as AccessScope) <= most,
  );
}

/** Returns the scopes that a person gives who chooses `access`: `access` itself and all requested scopes within it. */
export function scopesGiven(access: AccessScope, asked: readonly string[]): readonly string[] {
  const within = asked.filter((name) => name === OFFLINE_SCOPE || isWithin([name], [access]));
  return SCOPES.filter((name) => name === access || within.includes(name));
}

/** The scope whose sessions are of this class. */
export function accessOf(caller: CallerClass): AccessScope | undefined {
  return ACCESS_SCOPES.find((scope) => CALLERS[scope] === caller);
}

export function widerThan(access: AccessScope): readonly AccessScope[] {
  return ACCESS_SCOPES.slice(ACCESS_SCOPES.indexOf(access) + 1);
}

/** The narrowest scope beyond that of `caller` that opens what is open to `allowed`. */
export function scopeThatOpens(
  allowed: ReadonlySet<CallerClass>,
  caller: CallerClass,
): AccessScope | undefined {
  const access = accessOf(caller);
  return access && widerThan(access).find((scope) => allowed.has(CALLERS[scope]));
}

/** A call of a connected host that the scope `needed` would open. */
export class InsufficientScope extends GatewayError {
  readonly needed: AccessScope;

  constructor(needed: AccessScope, detail: string) {
    super('InsufficientScope', detail);
    this.needed = needed;
  }
}

export function loginTypeFor(scopes: readonly string[]): LoginType {
  return LOGIN_TYPES[widestOf(scopes) ?? 'read'];
}

/** Returns the class of caller whose list of tools the scope opens. */
export function callerClassFor(scope: AccessScope): CallerClass {
  return CALLERS[scope];
}
