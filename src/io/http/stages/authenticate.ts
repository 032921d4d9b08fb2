/** Stage `authenticate`: admin addresses, pages of foreign origins, and the session that a route takes. */
import { GatewayError } from '../../../domain/errors.ts';
import { isToken } from '../../../domain/ids.ts';
import { reaches } from '../../../domain/roles.ts';
import { isBasic, isConfidential, isFromBrowser, readBasic } from '../checks/basic.ts';
import { checkCaller } from '../checks/origin.ts';
import { checkSession } from '../checks/session-check.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { readBearer, sidsOf } from '../exchange/request.ts';
import type { AnyRoute } from '../table/route.ts';
import type { PipelineContext, RoutedExchange } from './stage.ts';

const SESSION_CHARGE = { scope: 's', cost: 1 } as const;

/** Throws `SessionNotFound`, `Forbidden`, `AccessRateLimit`. */
export function authenticate(exchange: RoutedExchange, pipeline: PipelineContext): boolean {
  const { ready } = exchange;
  const { route } = ready;
  if (route.auth === 'admin' || route.adminAddresses === true) requireAdminAddress(exchange, pipeline);
  const bearer = ready.readsBearer && /^bearer\b/i.test(exchange.head.joined('authorization', ',') ?? '');
  checkCaller(exchange.site, exchange.head, ready, bearer, exchange.upgradeContext !== undefined);
  exchange.inAccessCheck = false;
  if (route.takesBasic?.(exchange.head.path) === true && isConfidential(exchange, pipeline.addresses)) {
    exchange.asksForBasic = !isFromBrowser(exchange);
    if (isBasic(exchange.head.joined('authorization', ','))) findDevice(exchange);
    else findSession(exchange, bearer);
  } else if (route.auth !== 'none') findSession(exchange, bearer);
  if (ready.role !== undefined && !reaches(exchange.session?.role, ready.role))
    throw new GatewayError('Forbidden');
  return true;
}

/** A client that no trusted proxy names has the proxy's address, which `Admin.allow` may contain. */
function requireAdminAddress({ head, client, limiter, origin }: Exchange, pipeline: PipelineContext): void {
  const { address } = client;
  if (origin.unknown) throw new GatewayError('Forbidden');
  const isUnknown = !limiter.forwarded && head.header('x-forwarded-for') !== undefined;
  if (isUnknown && !pipeline.addresses.trusts(address)) {
    pipeline.options.onUntrustedProxy?.(address);
    throw new GatewayError('Forbidden');
  }
  if (!pipeline.isAdminAddress(address)) throw new GatewayError('Forbidden');
}

/**
 * The account charges a session in the call that finds it. An expired cookie is ignored on routes that need no session (except
 * with `strictSession`). An expired bearer is refused unless the route ignores it. A missing but required session is charged to
 * connection and address on every route.
 */
function findSession(exchange: RoutedExchange, bearer: boolean): void {
  const { route, counted } = exchange.ready;
  // With a bearer the cookie is ignored (docs/SECURITY.md).
  const token = bearer ? readBearer(exchange.head.header('authorization')) : liveSidOf(exchange);
  const charge = counted ? SESSION_CHARGE : undefined;
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

/** The token of a device. An unknown one is a guess, and so is a token with the name of another account. */
function findDevice(exchange: RoutedExchange): void {
  const { limiter, services } = exchange;
  limiter.checkUnknownKeys();
  const sent = readBasic(exchange.head.header('authorization'));
  const charge = exchange.ready.counted ? SESSION_CHARGE : undefined;
  const found =
    sent && checkSession(services.sessionLookup, exchange, sent.password, 'contactSync', charge, sent);
  if (found === undefined) {
    limiter.chargeAnonymous(1);
    limiter.chargeUnknownKey();
    throw new GatewayError('SessionNotFound');
  }
  exchange.session = found.session;
  limiter.noteSession(found.quotaResult);
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
export function isStale(exchange: Exchange, route: AnyRoute): boolean {
  return (
    route.strictSession === true && exchange.session === undefined && sidsOf(exchange.head).some(isToken)
  );
}
