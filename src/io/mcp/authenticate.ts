/**
 * Who a request on /mcp comes from (mcp.md): the bearer decides, a capability code counts only without one. Charges
 * the request where its scope lives: the session's key with a bearer, connection and address without.
 */
import { createHash } from 'node:crypto';
import type { Caller } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { readBearer } from '../http/request.ts';
import type { RouteContext, SessionLookup } from '../http/route.ts';
import type { RequestContext } from './audit.ts';
import { type CapabilityCodes, invalidCode } from './capability.ts';
import { codeCredential, deviceCredential } from './credentials.ts';
import type { RpcRequest } from './rpc.ts';

/** Who a request says it is, before any message is looked at. */
export type Authentication =
  | { readonly kind: 'session'; readonly session: SessionContext }
  /** A bearer came that opens nothing. It is never treated as absent. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none' };

const UNKNOWN: Authentication = { kind: 'unknown' };
const NONE: Authentication = { kind: 'none' };
const ANONYMOUS: Caller = { kind: 'anonymous' };

/** Requests per second of the scopes that a message is counted in. */
const KEY_SCOPE = ['PubKeyApiRPSLimit'] as const;
const OPEN_SCOPES = ['ApiRPSLimit', 'IpRPSLimit'] as const;
const FORWARDED_SCOPES = ['IpRPSLimit'] as const;

/**
 * Finds the session behind the bearer and charges `cost`, the number of messages. Throws `AccessRateLimit`, and
 * `InvalidRequest` for more messages than a whole window allows: waiting would not help. Those cost one.
 */
export function authenticate(sessions: SessionLookup, context: RouteContext, cost: number): Authentication {
  const authorization = context.header('authorization');
  if (authorization === undefined) {
    chargeOpen(context, cost);
    return context.repeatedHeaders.has('authorization') ? UNKNOWN : NONE;
  }
  const token = readBearer(authorization);
  const max = messagesMax(context.settings, KEY_SCOPE);
  const charge = { scope: 'p', cost: cost > max ? 1 : cost } as const;
  const entered =
    token === undefined ? undefined : sessions.authenticate(token, 'mcp', charge, context.client);
  if (entered === undefined) {
    chargeOpen(context, cost);
    return UNKNOWN;
  }
  context.limiter.noteSession(entered.quotaResult);
  requireFit(cost, max);
  context.identify(entered.session);
  return { kind: 'session', session: entered.session };
}

function chargeOpen({ limiter, settings }: RouteContext, cost: number): void {
  const max = messagesMax(settings, limiter.forwarded ? FORWARDED_SCOPES : OPEN_SCOPES);
  limiter.chargeAnonymous(cost > max ? 1 : cost);
  requireFit(cost, max);
}

/** The smallest whole window of these scopes; endless when all of them are off. */
function messagesMax(
  settings: SettingsReader,
  scopes: readonly ('PubKeyApiRPSLimit' | 'ApiRPSLimit' | 'IpRPSLimit')[],
): number {
  const windowSeconds = settings.get('RateLimitWindowSeconds');
  let max = Number.POSITIVE_INFINITY;
  for (const name of scopes) {
    const requests = settings.get(name) * windowSeconds;
    if (requests > 0 && requests < max) max = requests;
  }
  return max;
}

function requireFit(cost: number, max: number): void {
  if (cost > max)
    throw new GatewayError('InvalidRequest', `a batch of ${cost} fits no window, at most ${max} at once`);
}

/**
 * Who asks in one message. Throws for a bearer that opens nothing; rejects for a code that opens nothing, for one that
 * cannot be checked now, and for a chat code without a device id.
 */
export function requestContextOf(
  request: RpcRequest,
  context: RouteContext,
  admission: Authentication,
  codes: CapabilityCodes,
): RequestContext | Promise<RequestContext> {
  if (admission.kind === 'session') return { context, caller: admission };
  if (admission.kind === 'unknown')
    throw new GatewayError('Unauthorized', 'session not found or expired, log in again');
  const code = codeCredential(request.params, context);
  if (code.kind === 'none') return { context, caller: ANONYMOUS };
  return withCode(request, context, code.kind === 'value' ? code.value : undefined, codes);
}

/**
 * Each use of a code counts like one of a public key that nobody has proven; a wrong one also counts against the
 * address, in the budget of those who try keys. Once that is spent, no code is looked at that is not known to be good.
 */
async function withCode(
  request: RpcRequest,
  context: RouteContext,
  code: string | undefined,
  codes: CapabilityCodes,
): Promise<RequestContext> {
  const { limiter, nowMs } = context;
  const known = code === undefined ? undefined : codes.remembered(code, nowMs);
  if (known === undefined) limiter.checkUnknownKeys();
  if (code !== undefined) limiter.chargeCode(createHash('sha256').update(code).digest('base64url'));
  const family = known ?? (code === undefined ? 'unknown' : await codes.resolve(code, context));
  if (family === 'silent') throw new GatewayError('ToolFailed', 'capability module unavailable');
  if (family === 'unknown' || code === undefined) {
    limiter.chargeUnknownKey();
    throw invalidCode();
  }
  const caller: Caller = { kind: 'capability', family };
  if (family !== 'chat') return { context, caller, capability: { code } };
  const device = deviceCredential(request.params, context);
  if (device.kind === 'value') return { context, caller, capability: { code, deviceGuid: device.value } };
  throw new GatewayError('InvalidParams', 'device id is missing or malformed: send a UUID as X-Device-Guid');
}
