/**
 * Audit records of tool calls, resource reads and proxied REST calls, refused ones included. They feed the metrics of calls
 * too.
 */
import { performance } from 'node:perf_hooks';
import type { AuditRecord } from '../../actors/runtime/actor.ts';
import { type Caller, callerClass } from '../../domain/access.ts';
import { type ErrorName, GatewayError } from '../../domain/errors.ts';
import type { RouteContext } from '../http/table/route.ts';
import type { ModuleError } from '../http-client/types.ts';
import { requestIdsOf } from '../observability/audit-fields.ts';
import type { CallObserver } from '../observability/metrics.ts';
import { endCall } from '../tracing/calls.ts';
import type { TraceSpan } from '../tracing/span.ts';
import type { RpcRequest } from './rpc.ts';

/** Characters of a tool name or URI that are stored, because callers may send any text. */
export const NAME_MAX = 64;
/** Characters of method and path of a REST call that are stored. The query is never stored. */
const REST_NAME_MAX = 256;

/** A request and its caller. */
export interface RequestContext {
  readonly context: RouteContext;
  readonly caller: Caller;
  /** The credentials of a caller of the kind `capability`. */
  readonly capability?: { readonly code: string; readonly deviceGuid?: string };
}

export type CallOutcome =
  /** A destructive call will be sent; its result follows in another record. */
  | 'attempt'
  /** The backend answered, with success or with its own error. */
  | 'ok'
  | 'error'
  /** Invalid arguments; an unknown name; not allowed for this caller; the limit of the row. */
  | 'invalid'
  | 'unknown'
  | 'denied'
  | 'limited'
  /** No answer of the backend; the caller disconnected or cancelled. */
  | 'failed'
  | 'cancelled';

export interface CallRecord {
  /** Time of a record that is made long after its request; else the time of the request. */
  readonly utcMs?: number;
  readonly event: 'mcp.tool' | 'mcp.prompt' | 'mcp.resource' | 'rest.call';
  readonly name: string;
  readonly startedMs: number;
  /** Milliseconds that the module took; set once it answered or failed. */
  backendMs?: number;
  readonly observe: CallObserver | undefined;
  /** Reports of progress of the module: those given to the client, and those that were not. */
  progress?: { readonly sent: number; readonly dropped: number };
  /** Span of a sampled request. */
  span?: TraceSpan;
}

export function recordOf(event: CallRecord['event'], name: unknown, observe?: CallObserver): CallRecord {
  const most = event === 'rest.call' ? REST_NAME_MAX : NAME_MAX;
  const shown = typeof name === 'string' ? name.slice(0, most) : '';
  return { event, name: shown, startedMs: performance.now(), observe };
}

export function audit(requestContext: RequestContext, record: CallRecord, outcome: CallOutcome): void {
  const { actors, client } = requestContext.context;
  const made = auditRecord(requestContext, record, outcome);
  observed(record, outcome);
  // Refusals that need neither a session nor a code must not fill the log.
  if (requestContext.caller.kind === 'anonymous') actors.auditRefusal(made, client.address);
  else actors.audit(made);
}

function observed(record: CallRecord, outcome: CallOutcome): void {
  const { event, name, startedMs, backendMs, observe, progress, span } = record;
  if (span !== undefined) endCall(span, record, outcome);
  observe?.({ event, name, outcome, elapsedMs: performance.now() - startedMs, backendMs, progress });
}

/** Time, user, key, login type, app, name, outcome, milliseconds, request id; never arguments. */
function auditRecord(
  { context, caller }: RequestContext,
  record: CallRecord,
  outcome: CallOutcome,
): AuditRecord {
  const session = caller.kind === 'session' ? caller.session : undefined;
  return {
    utcMs: record.utcMs ?? context.nowMs,
    event: record.event,
    userId: session?.userId ?? null,
    fields: {
      name: record.name,
      outcome,
      keyId: session?.keyId ?? null,
      loginType: caller.kind === 'capability' ? callerClass(caller) : (session?.loginType ?? null),
      appId: session?.appId ?? null,
      milliseconds: Math.round(performance.now() - record.startedMs),
      ...requestIdsOf(context),
    },
  };
}

/** Writes the record of a destructive call to disk before it is sent. False when the client disconnected meanwhile. */
export async function auditAttempt(requestContext: RequestContext, record: CallRecord): Promise<boolean> {
  let gone = false;
  requestContext.context.onAbort(() => {
    gone = true;
  });
  await requestContext.context.actors.auditFirst(auditRecord(requestContext, record, 'attempt'));
  if (gone) audit(requestContext, record, 'cancelled');
  return !gone;
}

const CALL_EVENTS: Readonly<Record<string, CallRecord['event']>> = {
  'tools/call': 'mcp.tool',
  'prompts/get': 'mcp.prompt',
};

/** A refusal before the call was parsed: an invalid bearer or an invalid code. */
export function auditRefused(request: RpcRequest, context: RouteContext, observe?: CallObserver): void {
  const { name, uri } = request.params;
  const event = CALL_EVENTS[request.method] ?? 'mcp.resource';
  auditDenied(context, recordOf(event, event === 'mcp.resource' ? uri : name, observe));
}

/** A refusal of an unauthenticated caller: recorded within a budget. */
export function auditDenied(context: RouteContext, record: CallRecord): void {
  const requestContext: RequestContext = { context, caller: { kind: 'anonymous' } };
  observed(record, 'denied');
  context.actors.auditRefusal(auditRecord(requestContext, record, 'denied'), context.client.address);
}

/** Records the refusal of one call. Returns the error to throw. */
export function refused(
  requestContext: RequestContext,
  record: CallRecord,
  outcome: CallOutcome,
  error: ErrorName,
  detail: string,
): GatewayError {
  audit(requestContext, record, outcome);
  return new GatewayError(error, detail);
}

/** The outcome in the audit log of a call that a module did not answer. */
export function outcomeOf(error: ModuleError): CallOutcome {
  if (error === 'AccessRateLimit') return 'limited';
  return error === 'Aborted' ? 'cancelled' : 'failed';
}
