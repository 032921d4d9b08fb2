/**
 * Who may enter a route, and what it costs: the session that the route's rule asks for, the limits that events.md
 * gives the route ("Which scope, by route"), and the fit of what was sent to the route's schemas.
 */
import { GatewayError } from '../../domain/errors.ts';
import { readFormerNames } from '../../domain/former-names.ts';
import { decodeBase64url } from '../../domain/ids.ts';
import { type Role, reaches } from '../../domain/roles.ts';
import type { CompiledSchema } from '../../domain/schema.ts';
import type { Exchange } from './exchange.ts';
import { checkCaller, isPreflight, preflight } from './origin.ts';
import { errorReply } from './reply.ts';
import { readBearer, sidOf } from './request.ts';
import { type AnyRoute, Reply } from './route.ts';
import type { Match, ReadyRoute } from './router.ts';
import { clearSid } from './sid-cookie.ts';

const PUBLIC_KEY_BYTES = 32;
/** Faults that an answer names. */
const FAULTS_SHOWN_MAX = 3;

/** Did the request bring a bearer to a route that reads one? It then decides, and the cookie is not looked at (A7). */
function hasBearer(exchange: Exchange, route: AnyRoute): boolean {
  if (route.auth !== 'either' && route.auth !== 'eitherOptional') return false;
  return /^bearer\b/i.test(exchange.head.joined('authorization', ',') ?? '');
}

/**
 * A refusal before the limits of a route are asked (Host, Origin, an admin's address, a parameter) costs what any
 * request without a session costs. Returns what is to be answered: the refusal, or the limit's own.
 */
export function chargeRefusal(exchange: Exchange, refusal: unknown): unknown {
  if (!exchange.inAccessCheck || !(refusal instanceof GatewayError) || refusal.row === 'Stopping')
    return refusal;
  try {
    exchange.limiter.chargeAnonymous(1);
    return refusal;
  } catch (limited) {
    return limited;
  }
}

/** Finds the session and charges the limits. Throws `SessionNotFound`, `Forbidden`, `AccessRateLimit`, `InvalidInput`. */
export function authorize(exchange: Exchange, route: AnyRoute): void {
  const bearer = hasBearer(exchange, route);
  checkCaller(exchange.site, exchange.head, route, bearer);
  exchange.inAccessCheck = false;
  const counted = !route.limits.includes('NoRateLimit') && !route.limits.includes('Self');
  if (route.auth !== 'none') findSession(exchange, route, bearer, counted);
  if (exchange.session === undefined && counted) exchange.limiter.chargeAnonymous(1);
  if (route.auth === 'admin' && !reaches(exchange.session?.role, roleFor(route)))
    throw new GatewayError('Forbidden');
  if (route.limits.includes('CheckPubKey')) chargePublicKey(exchange);
  if (route.idempotent === true) requireUsableKey(exchange);
}

function roleFor({ role, method }: AnyRoute): Role {
  return role ?? (method === 'GET' ? 'viewer' : 'admin');
}

/** A key that cannot be kept is refused: ignored, it would let the caller believe that a repeat is safe. */
function requireUsableKey(exchange: Exchange): void {
  const sent = exchange.head.joined('idempotency-key', ',');
  if (sent !== undefined && exchange.idempotencyKey === undefined) {
    throw new GatewayError(
      'InvalidInput',
      'Idempotency-Key: expected 1 to 128 visible ASCII characters, once',
    );
  }
}

/**
 * A stale cookie on a route that needs none is as good as no cookie, unless the route does something else for who has
 * a session (`strictSession`). A stale bearer was meant, so it is refused, except where the route ignores it.
 * A request that should have a session and has none is charged to connection and address on every route.
 */
function findSession(exchange: Exchange, route: AnyRoute, bearer: boolean, counted: boolean): void {
  const token = bearer ? readBearer(exchange.head.header('authorization')) : sidOf(exchange.head);
  const charge = counted ? ({ scope: 's', cost: 1 } as const) : undefined;
  const authenticated =
    token === undefined
      ? undefined
      : exchange.services.sessionLookup.authenticate(
          token,
          bearer ? 'mcp' : 'browser',
          charge,
          exchange.client,
        );
  if (authenticated !== undefined) {
    exchange.session = authenticated.session;
    exchange.limiter.noteSession(authenticated.quotaResult);
    return;
  }
  const optional = route.auth === 'optional' || route.auth === 'eitherOptional';
  const stale = isStale(exchange, route);
  const meant = bearer && route.ignoresStaleBearer?.(exchange.params) !== true;
  const needed = meant || stale || !(optional || route.isPublic?.(exchange.head.path) === true);
  if (!needed) return;
  exchange.limiter.chargeAnonymous(1);
  throw new GatewayError('SessionNotFound');
}

/** Does the request name a session that is not live, on a route that must not take it for a stranger's (A7)? */
function isStale(exchange: Exchange, route: AnyRoute): boolean {
  return route.strictSession === true && exchange.session === undefined && sidOf(exchange.head) !== undefined;
}

/** A refusal in the route's own form. A stale cookie that was refused is taken back, so that a client's repeat signs up. */
export function refusal(exchange: Exchange, error: GatewayError): Reply {
  const { route, site } = exchange;
  const page =
    route === undefined && error.row === 'NotFound' ? exchange.services.notFound?.(exchange.head) : undefined;
  const own = page ?? route?.refusal?.(error, exchange);
  if (own !== undefined) return own.error === undefined ? own.withError(error.row) : own;
  const clearsCookie = error.row === 'SessionNotFound' && route !== undefined && isStale(exchange, route);
  return errorReply(error, clearsCookie ? clearSid(site.secureCookies) : []);
}

/** Header `pkey`: absent is not charged, malformed is refused (events.md). Keyed by the decoded bytes. */
function chargePublicKey(exchange: Exchange): void {
  if (exchange.head.repeatedHeaders.has('pkey')) throw new GatewayError('InvalidInput', 'pkey');
  const sent = exchange.head.header('pkey');
  if (sent === undefined) return;
  if (decodeBase64url(sent, PUBLIC_KEY_BYTES) === undefined) throw new GatewayError('InvalidInput', 'pkey');
  exchange.limiter.chargeKey('p', sent, 1);
}

/** Fields of a query or body under the names of today. Throws `InvalidInput` where both names of one differ. */
export function withCurrentNames({ formerNames }: AnyRoute, value: unknown, location: string): unknown {
  if (formerNames === undefined || typeof value !== 'object' || value === null || Array.isArray(value))
    return value;
  const read = readFormerNames(formerNames, value as Readonly<Record<string, unknown>>);
  if (!read.ok) throw new GatewayError('InvalidInput', `${location}: ${read.fault}`);
  return read.fields;
}

/** Throws `InvalidInput` that names the first faults, with the place (`body`, `query`) and the path in it. */
export function requireValid(schema: CompiledSchema<unknown>, value: unknown, location: string): void {
  if (schema.check(value)) return;
  const faults = schema.faults(value).slice(0, FAULTS_SHOWN_MAX);
  throw new GatewayError(
    'InvalidInput',
    faults.map((fault) => `${location}${fault.path}: ${fault.message}`).join('; '),
  );
}

/** What a route without a sent body is handed. Throws `InvalidInput` where one is required. */
export function absentBody(ready: ReadyRoute): unknown {
  if (ready.bodyCheck === undefined) return undefined;
  if (ready.route.bodyOptional !== true) throw new GatewayError('InvalidInput', 'body: is required');
  const empty = {};
  requireValid(ready.bodyCheck, empty, 'body');
  return empty;
}

/** What a handler returned, as an answer: a `Reply` as it is, anything else in the success envelope. */
export function replyOf(value: unknown): Reply {
  return value instanceof Reply ? value : Reply.result(value === undefined ? null : value);
}

/** A path without that method, or no path at all. Charged like every request without a session, but for preflights. */
export function answerUnrouted(exchange: Exchange, match: Exclude<Match, { found: 'route' }>): Reply {
  exchange.inAccessCheck = false;
  if (isPreflight(exchange.head)) exchange.limiter.chargePreflight();
  else exchange.limiter.chargeAnonymous(1);
  if (match.found === 'nothing') throw new GatewayError('NotFound');
  const { site, head } = exchange;
  if (head.method === 'OPTIONS') {
    const offers = match.offered.flatMap((route) => route.offers?.(exchange.settings) ?? []);
    return preflight(site, head, match.methods, offers);
  }
  return errorReply(new GatewayError('MethodNotAllowed'), [['Allow', match.methods.join(', ')]]);
}
