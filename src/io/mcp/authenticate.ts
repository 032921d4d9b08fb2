/**
 * Authenticates requests on /mcp (spec 4.1, 5.2). The bearer decides; a capability code counts only without a bearer. A
 * request is charged to the key of its session, or without a bearer to connection and address.
 */
import { createHash } from 'node:crypto';
import type { Caller } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { checkSession } from '../http/checks/session-check.ts';
import { readBearer } from '../http/exchange/request.ts';
import type { Reply, RouteContext, SessionLookup } from '../http/table/route.ts';
import type { RequestContext } from './audit.ts';
import { type CapabilityCodes, invalidCode } from './capability.ts';
import { codeCredential, deviceCredential } from './credentials.ts';
import type { RpcRequest } from './rpc.ts';

/** The result for a request, before its messages are parsed. */
export type Authentication =
  | { readonly kind: 'session'; readonly session: SessionContext }
  /** An invalid bearer, which is never treated as absent. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none' };

/** An address that serves MCP. */
export interface McpEndpoint {
  readonly path: string;
  /** Text for it beside the description of the methods. */
  readonly summary: string;
  /** The resource that tokens must be issued for; null: tokens of mcp_login. */
  audienceOf(context: RouteContext): string | null;
  /** The answer to a caller without a session there; absent: such callers are served as spec 4.1 says. */
  challenge?(context: RouteContext, authentication: Authentication, id: string | undefined): Reply;
}

const UNKNOWN: Authentication = { kind: 'unknown' };
const NONE: Authentication = { kind: 'none' };
const ANONYMOUS: Caller = { kind: 'anonymous' };

/** Settings of the scopes that count a message, in requests per second. */
const KEY_SCOPE = ['PubKeyApiRPSLimit'] as const;
const OPEN_SCOPES = ['ApiRPSLimit', 'IpRPSLimit'] as const;
const FORWARDED_SCOPES = ['IpRPSLimit'] as const;

/**
 * Finds the session of the bearer and charges `cost`, the number of messages. Throws `AccessRateLimit`. Throws
 * `InvalidRequest` for more messages than a whole window allows, which costs one, because waiting would not help.
 * `audience`: the resource that the token must have been issued for; null for tokens of mcp_login.
 */
export function authenticate(
  sessions: SessionLookup,
  context: RouteContext,
  cost: number,
  audience: string | null = null,
): Authentication {
  const authorization = context.header('authorization');
  if (authorization === undefined) {
    chargeOpen(context, cost);
    return context.repeatedHeaders.has('authorization') ? UNKNOWN : NONE;
  }
  const token = readBearer(authorization);
  const max = messagesMax(context.settings, KEY_SCOPE);
  const charge = { scope: 'p', cost: cost > max ? 1 : cost } as const;
  const found =
    token === undefined ? undefined : checkSession(sessions, context, token, 'mcp', charge, { audience });
  if (found === undefined) {
    chargeOpen(context, cost);
    return UNKNOWN;
  }
  context.limiter.noteSession(found.quotaResult);
  requireFit(cost, max);
  context.identify(found.session);
  return { kind: 'session', session: found.session };
}

function chargeOpen({ limiter, settings }: RouteContext, cost: number): void {
  const max = messagesMax(settings, limiter.forwarded ? FORWARDED_SCOPES : OPEN_SCOPES);
  limiter.chargeAnonymous(cost > max ? 1 : cost);
  requireFit(cost, max);
}

/** The smallest window of these scopes; infinite when all of them are off. */
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
 * The caller of one message. Throws for an invalid bearer. Rejects for an invalid code, a code that cannot be checked now,
 * and a chat code without a device id.
 */
export function requestContextOf(
  request: RpcRequest,
  context: RouteContext,
  authentication: Authentication,
  codes: CapabilityCodes,
): RequestContext | Promise<RequestContext> {
  if (authentication.kind === 'session') return { context, caller: authentication };
  if (authentication.kind === 'unknown')
    throw new GatewayError('Unauthorized', 'session not found or expired, log in again');
  const code = codeCredential(request.params, context);
  if (code.kind === 'none') return { context, caller: ANONYMOUS };
  return withCode(request, context, code.kind === 'value' ? code.value : undefined, codes);
}

/**
 * Each use of a code is counted like one of an unproven public key. A wrong code is also charged to the budget of unknown
 * keys of the address; once that is spent, only cached good codes are accepted.
 */
async function withCode(
  request: RpcRequest,
  context: RouteContext,
  code: string | undefined,
  codes: CapabilityCodes,
): Promise<RequestContext> {
  const { limiter, nowMs } = context;
  const known = code === undefined ? undefined : codes.cached(code, nowMs);
  if (known === undefined) limiter.checkUnknownKeys();
  if (code !== undefined) limiter.chargeCode(createHash('sha256').update(code).digest('base64url'));
  const family = known ?? (code === undefined ? 'unknown' : await codes.resolve(code, context));
  if (family === 'unavailable') throw new GatewayError('ToolFailed', 'capability module unavailable');
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
