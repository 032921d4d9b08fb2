/** Access to a route: its session rule, the limits that it is charged for (spec 8.1), and its schemas. */
import { GatewayError } from '../../domain/errors.ts';
import { readFormerNames } from '../../domain/former-names.ts';
import { decodeBase64url, isToken } from '../../domain/ids.ts';
import { type Role, reaches } from '../../domain/roles.ts';
import type { CompiledSchema } from '../../domain/schema.ts';
import { anyOriginHeaders, isPreflight, preflight } from './cors.ts';
import type { Exchange } from './exchange.ts';
import { checkCaller } from './origin.ts';
import { errorReply } from './reply.ts';
import { readBearer, sidsOf } from './request.ts';
import { type AnyRoute, Reply } from './route.ts';
import type { Match, ReadyRoute } from './router.ts';
import { checkSession } from './session-check.ts';
import { clearSid } from './sid-cookie.ts';

const PUBLIC_KEY_BYTES = 32;
/** Schema faults that one answer names. */
const FAULTS_SHOWN_MAX = 3;

/** Is there a bearer on a route that reads one? Then the cookie is ignored (docs/SECURITY.md). */
function hasBearer(exchange: Exchange, route: AnyRoute): boolean {
  if (route.auth !== 'either' && route.auth !== 'eitherOptional') return false;
  return /^bearer\b/i.test(exchange.head.joined('authorization', ',') ?? '');
}

/**
 * Charges a refusal before the limits of a route (Host, Origin, admin address, parameter) as a request without a
 * session. Returns the error to answer: the refusal, or that of the limit.
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

/** Authenticates the session and charges the limits. Throws `SessionNotFound`, `Forbidden`, `AccessRateLimit`, `InvalidInput`. */
export function authorize(exchange: Exchange, route: AnyRoute): void {
  const bearer = hasBearer(exchange, route);
  checkCaller(exchange.site, exchange.head, route, bearer, exchange.upgradeContext !== undefined);
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

/** An invalid key is refused: if it were ignored, the caller would assume that a repeat is safe. */
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
 * An expired cookie is ignored on routes that need no session (except with `strictSession`). An expired bearer is refused
 * unless the route ignores it. A missing but required session is charged to connection and address on every route.
 */
function findSession(exchange: Exchange, route: AnyRoute, bearer: boolean, counted: boolean): void {
  const token = bearer ? readBearer(exchange.head.header('authorization')) : liveSidOf(exchange);
  const charge = counted ? ({ scope: 's', cost: 1 } as const) : undefined;
  const authenticated =
    token === undefined
      ? undefined
      : checkSession(exchange.services.sessionLookup, exchange, token, bearer ? 'mcp' : 'browser', charge);
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

/** The `sid` of the request. Of several, the only one that opens a session; undefined when two do. */
function liveSidOf(exchange: Exchange): string | undefined {
  const sids = sidsOf(exchange.head);
  if (sids.length < 2) return sids[0];
  const { sessionLookup } = exchange.services;
  const live = sids.filter((sid) => checkSession(sessionLookup, exchange, sid, 'browser', undefined));
  return live.length === 1 ? live[0] : undefined;
}

/**
 * Does the request name an expired session on a route that may not treat its caller as unauthenticated? A cookie without
 * the form of a token is another site's, which no answer can clear.
 */
function isStale(exchange: Exchange, route: AnyRoute): boolean {
  return (
    route.strictSession === true && exchange.session === undefined && sidsOf(exchange.head).some(isToken)
  );
}

/** The form of an error: the route's own, or the envelope. A refused expired cookie is cleared, so that a repeated request signs up. */
export function formOf(error: GatewayError, exchange: Exchange): Reply | undefined {
  const { route, site } = exchange;
  if (route === undefined)
    return error.row === 'NotFound' ? exchange.services.notFound?.(exchange.head) : undefined;
  const own = route.refusal?.(error, exchange);
  if (own !== undefined || error.row !== 'SessionNotFound' || !isStale(exchange, route)) return own;
  return errorReply(error, clearSid(site.secureCookies));
}

/** Header `pkey` (spec 8.1): absent is not charged, malformed is refused. Keyed by the decoded bytes. */
function chargePublicKey(exchange: Exchange): void {
  if (exchange.head.repeatedHeaders.has('pkey')) throw new GatewayError('InvalidInput', 'pkey');
  const sent = exchange.head.header('pkey');
  if (sent === undefined) return;
  if (decodeBase64url(sent, PUBLIC_KEY_BYTES) === undefined) throw new GatewayError('InvalidInput', 'pkey');
  exchange.limiter.chargeKey('p', sent, 1);
}

/** Fields of a query or body under their current names. Throws `InvalidInput` if a field differs under both names. */
export function withCurrentNames({ formerNames }: AnyRoute, value: unknown, location: string): unknown {
  if (formerNames === undefined || typeof value !== 'object' || value === null || Array.isArray(value))
    return value;
  const read = readFormerNames(formerNames, value as Readonly<Record<string, unknown>>);
  if (!read.ok) throw new GatewayError('InvalidInput', `${location}: ${read.fault}`);
  return read.fields;
}

/** Throws `InvalidInput` that names the first faults: `body` or `query`, and the path in it. */
export function requireValid(schema: CompiledSchema<unknown>, value: unknown, location: string): void {
  if (schema.check(value)) return;
  const faults = schema.faults(value).slice(0, FAULTS_SHOWN_MAX);
  throw new GatewayError(
    'InvalidInput',
    faults.map((fault) => `${location}${fault.path}: ${fault.message}`).join('; '),
  );
}

/** The body that a route receives if none was sent. Throws `InvalidInput` if one is required. */
export function absentBody(ready: ReadyRoute): unknown {
  if (ready.bodyCheck === undefined) return undefined;
  if (ready.route.bodyOptional !== true) throw new GatewayError('InvalidInput', 'body: is required');
  const empty = {};
  requireValid(ready.bodyCheck, empty, 'body');
  return empty;
}

/** The handler's result as an answer: a `Reply` unchanged, anything else in the success envelope. */
export function replyOf(value: unknown): Reply {
  return value instanceof Reply ? value : Reply.result(value === undefined ? null : value);
}

/** Answers an unknown path or method. Charged as a request without a session; preflights are charged less. */
export function answerUnrouted(exchange: Exchange, match: Exclude<Match, { found: 'route' }>): Reply {
  exchange.inAccessCheck = false;
  if (isPreflight(exchange.head)) exchange.limiter.chargePreflight();
  else exchange.limiter.chargeAnonymous(1);
  if (match.found === 'nothing') throw new GatewayError('NotFound');
  const { site, head } = exchange;
  const anyOrigin = match.offered.some((route) => route.anyOrigin === true);
  if (anyOrigin) exchange.cors = anyOriginHeaders(head);
  if (head.method === 'OPTIONS') {
    const offers = match.offered.flatMap((route) => route.offers?.(exchange.settings) ?? []);
    return preflight(site, head, match.methods, offers, anyOrigin);
  }
  return errorReply(new GatewayError('MethodNotAllowed'), [['Allow', match.methods.join(', ')]]);
}
