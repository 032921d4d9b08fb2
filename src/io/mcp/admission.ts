/**
 * Who a request on /mcp comes from (mcp.md): the bearer decides, a capability code counts only without one. Charges
 * the request where its scope lives: the session's key with a bearer, connection and address without.
 */
import type { Caller } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { SessionContext } from '../../domain/sessions.ts';
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

/** Finds the session behind the bearer and charges `cost`, the number of messages. Throws `AccessRateLimit`. */
export function admit(context: RouteContext, cost: number): Admission {
  const authorization = context.header('authorization');
  if (authorization === undefined) {
    context.limiter.chargeAnonymous(cost);
    return context.repeatedHeaders.has('authorization') ? UNKNOWN : NONE;
  }
  const token = readBearer(authorization);
  const entered =
    token === undefined ? undefined : context.gate.enter(token, 'mcp', { scope: 'p', cost }, context.client);
  if (entered === undefined) {
    context.limiter.chargeAnonymous(cost);
    return UNKNOWN;
  }
  context.limiter.note(entered.verdict);
  return { kind: 'session', session: entered.session };
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
