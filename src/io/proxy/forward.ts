/** Sends a proxied request to its module, with the headers, audit record and breaker of a tool call. */
import type { Caller } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { Reply, RouteContext } from '../http/table/route.ts';
import { type ProxiedTarget, proxiedUrl } from '../http-client/endpoint.ts';
import {
  type DroppedFields,
  factsOf,
  forwardedHeaders,
  gatewayLines,
  viaOf,
  withTrace,
} from '../http-client/headers.ts';
import type { RelayRequest } from '../http-client/types.ts';
import {
  audit,
  auditAttempt,
  auditDenied,
  type CallOutcome,
  type CallRecord,
  outcomeOf,
  type RequestContext,
  recordOf,
} from '../mcp/audit.ts';
import { TIMEOUT_MS } from '../mcp/tool.ts';
import type { ModuleClient } from '../modules/client.ts';
import type { CallObserver } from '../observability/metrics.ts';
import { endAnswered, openModuleCall, withTraceparent } from '../tracing/calls.ts';
import type { TraceSpan } from '../tracing/span.ts';
import { ProxiedCall, type ProxiedEnding } from './answer.ts';
import { endpointOf, type ModuleRules, moduleOf } from './reach.ts';

export interface ForwardDeps {
  readonly modules: ModuleClient;
  /** Base address by module name. */
  readonly moduleAddresses: ReadonlyMap<string, string>;
  readonly moduleRules: ReadonlyMap<string, ModuleRules>;
  /** Longest silence of a module in milliseconds; the time-out of tools unless given. */
  readonly proxyTimeoutMs?: number;
  /** Called for every call and every refusal. */
  readonly onCall?: CallObserver | undefined;
  /** Fields of a request were dropped because of a character of their name. */
  readonly onFieldsDropped?: ((count: number) => void) | undefined;
}

/** Bodies are streamed in both directions at the pace of the receiver. Resolves with the head of the answer. */
export function forward(deps: ForwardDeps, context: RouteContext, caller: Caller): Promise<Reply> {
  const requestContext = requestContextOf(context);
  const record = callRecordOf(deps, context);
  const request = requestOf(deps, requestContext, caller, record);
  // Only the module knows which calls destroy something, so the intent of every call that may write is recorded first.
  const writes = request.method !== 'GET' && request.method !== 'HEAD';
  if (!writes) return send(deps, requestContext, record, request);
  return auditAttempt(requestContext, record).then((isThere) => {
    if (!isThere) throw new GatewayError('ModuleFailed');
    return send(deps, requestContext, record, request);
  });
}

function send(
  deps: ForwardDeps,
  requestContext: RequestContext,
  record: CallRecord,
  request: ProxiedRequest,
): Promise<Reply> {
  const { context } = requestContext;
  const startedMs = performance.now();
  const span = openModuleCall(context.span, request.method, request.url, undefined);
  const call = new ProxiedCall({
    isHead: request.method === 'HEAD',
    isPersonal: context.session !== undefined,
    url: request.url,
    rawPath: context.rawPath,
    onEnded(ending) {
      record.backendMs = performance.now() - startedMs;
      if (span !== undefined) endForwarded(span, ending);
      audit(requestContext, record, outcomeOfEnding(ending));
    },
  });
  request.headers = withTraceparent(request.headers, span);
  const flow = deps.modules.relay(request, call);
  call.attach(flow);
  context.onAbort(() => flow.stop());
  return call.reply;
}

/** The record names the session, also where the module gets no account. */
export function requestContextOf(context: RouteContext): RequestContext {
  const { session } = context;
  return { context, caller: session === undefined ? { kind: 'anonymous' } : { kind: 'session', session } };
}

/** Records a call that was refused before it was sent. */
export function auditUnreached(deps: ForwardDeps, context: RouteContext): void {
  auditDenied(context, callRecordOf(deps, context));
}

/** Paths come from callers, so a metric names the module only. */
export function callRecordOf(
  { onCall }: ForwardDeps,
  { method, rawPath }: Pick<RouteContext, 'method' | 'rawPath'>,
): CallRecord {
  const name = moduleOf(rawPath);
  return recordOf('rest.call', `${method} ${rawPath}`, (call) => onCall?.({ ...call, name }));
}

export function outcomeOfEnding(ending: ProxiedEnding): CallOutcome {
  if (ending.kind === 'failed') return outcomeOf(ending.error);
  return ending.status >= 400 ? 'error' : 'ok';
}

export function endForwarded(span: TraceSpan, ending: ProxiedEnding): void {
  if (ending.kind === 'failed') span.end(ending.error);
  else endAnswered(span, ending.status);
}

interface ProxiedRequest extends RelayRequest {
  readonly url: ProxiedTarget;
  headers: RelayRequest['headers'];
}

/** Throws `InvalidInput` for a path that is not plain, and a GET or HEAD with a body. */
export function requestOf(
  deps: ForwardDeps,
  requestContext: RequestContext,
  caller: Caller,
  record: CallRecord,
): ProxiedRequest {
  const { context } = requestContext;
  const { rawPath, incoming } = context;
  const refuse = (detail: string): never => {
    audit(requestContext, record, 'invalid');
    throw new GatewayError('InvalidInput', detail);
  };
  const method = context.method as RelayRequest['method'];
  // A server that ignores the body would parse it as the next request of the connection (request smuggling).
  if (incoming !== undefined && (method === 'GET' || method === 'HEAD')) refuse(`body: ${method} has none`);
  if (incoming !== undefined && context.header('trailer') !== undefined) {
    audit(requestContext, record, 'invalid');
    throw new GatewayError('TrailersNotSupported');
  }
  const dropped: DroppedFields = { count: 0 };
  let forwarded: Record<string, string>;
  try {
    const received = context.allHeaders();
    forwarded = forwardedHeaders(received, dropped);
    forwarded['via'] = viaOf(received);
  } catch (error) {
    audit(requestContext, record, 'invalid');
    throw error;
  }
  if (dropped.count > 0) deps.onFieldsDropped?.(dropped.count);
  const facts = factsOf(context);
  const module = moduleOf(rawPath);
  const slashes = deps.moduleRules.get(module)?.encodedSlashes;
  const url = proxiedUrl(deps.moduleAddresses.get(module) ?? '', rawPath, context.search, slashes);
  return {
    method,
    url: url ?? refuse('path: expected plain segments without encoded separators'),
    headers: withTrace(facts, forwarded),
    lines: gatewayLines(caller, facts),
    hasBytes: true,
    timeoutMs: deps.proxyTimeoutMs ?? TIMEOUT_MS,
    // Shares the breaker of the tools of that endpoint.
    endpoint: endpointOf(rawPath),
    body: incoming,
    holder: context.holder,
  };
}
