/**
 * Who a request on /mcp comes from (mcp.md): the bearer decides, a capability code counts only without one. Charges
 * the request where its scope lives: the session's key with a bearer, connection and address without.
 */
import type { Caller } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings.ts';
import { readBearer } from '../http/request.ts';
import type { RouteContext } from '../http/route.ts';
import { isObject } from './input-schema.ts';
import type { RpcRequest } from './rpc.ts';

/** Who a request says it is, before any message is looked at. */
export type Admission =
  | { readonly kind: 'session'; readonly session: SessionContext }
  /** A bearer came that opens nothing. It is never treated as absent. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none' };

const UNKNOWN: Admission = { kind: 'unknown' };
const NONE: Admission = { kind: 'none' };
const NOBODY: Caller = { kind: 'nobody' };

/** Requests per second of the scopes that a message is counted in. */
const KEY_SCOPE = ['PubKeyApiRPSLimit'] as const;
const OPEN_SCOPES = ['ApiRPSLimit', 'IpRPSLimit'] as const;

/**
 * Finds the session behind the bearer and charges `cost`, the number of messages. Throws `AccessRateLimit`, and
 * `InvalidRequest` for more messages than a whole window allows: waiting would not help. Those cost one.
 */
export function admit(context: RouteContext, cost: number): Admission {
  const authorization = context.header('authorization');
  if (authorization === undefined) {
    chargeOpen(context, cost);
    return context.repeatedHeaders.has('authorization') ? UNKNOWN : NONE;
  }
  const token = readBearer(authorization);
  const max = messagesMax(context.settings, KEY_SCOPE);
  const charge = { scope: 'p', cost: cost > max ? 1 : cost } as const;
  const entered = token === undefined ? undefined : context.gate.enter(token, 'mcp', charge, context.client);
  if (entered === undefined) {
    chargeOpen(context, cost);
    return UNKNOWN;
  }
  context.limiter.note(entered.verdict);
  requireFit(cost, max);
  return { kind: 'session', session: entered.session };
}

function chargeOpen({ limiter, settings }: RouteContext, cost: number): void {
  const max = messagesMax(settings, OPEN_SCOPES);
  limiter.chargeAnonymous(cost > max ? 1 : cost);
  requireFit(cost, max);
}

/** The smallest whole window of these scopes; endless when all of them are off. */
function messagesMax(
  settings: SettingsReader,
  scopes: readonly ('PubKeyApiRPSLimit' | 'ApiRPSLimit' | 'IpRPSLimit')[],
): number {
  const windowSeconds = settings.get('RateLimitWindowSeconds');
  return Math.min(...scopes.map((name) => settings.get(name) * windowSeconds || Number.POSITIVE_INFINITY));
}

function requireFit(cost: number, max: number): void {
  if (cost > max)
    throw new GatewayError('InvalidRequest', `a batch of ${cost} fits no window, at most ${max} at once`);
}

/** The caller of one message. Throws for a bearer or a code that opens nothing. */
export function callerOf(request: RpcRequest, context: RouteContext, admission: Admission): Caller {
  if (admission.kind === 'session') return admission;
  if (admission.kind === 'unknown')
    throw new GatewayError('Unauthorized', 'session not found or expired, log in again');
  // No module resolves codes, so there is no valid one.
  if (carriesCode(request, context)) throw new GatewayError('InvalidParams', 'invalid capability code');
  return NOBODY;
}

/** Spec 4.1: query `code`, header `X-MCP-Code`, `params.arguments.code` or `params.code`. */
function carriesCode({ params }: RpcRequest, context: RouteContext): boolean {
  if (context.header('x-mcp-code') !== undefined || context.repeatedHeaders.has('x-mcp-code')) return true;
  if (context.rawQuery !== '' && new URLSearchParams(context.rawQuery).has('code')) return true;
  return params['code'] !== undefined || (isObject(params['arguments']) && 'code' in params['arguments']);
}
