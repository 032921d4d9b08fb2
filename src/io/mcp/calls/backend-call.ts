/** One call to a backend: its span, its place among the running calls, and the ways in which its caller ends it. */
import type { RouteContext } from '../../http/table/route.ts';
import type { Endpoint } from '../../http-client/endpoint.ts';
import type { ModuleRequest, ModuleResult } from '../../http-client/types.ts';
import type { ModuleClient } from '../../modules/client.ts';
import { isStreamed, StreamedAnswer } from '../../modules/streamed-answer.ts';
import { contextBelow, endModuleCall, openModuleCall, withTraceparent } from '../../tracing/calls.ts';
import type { RemoteParent } from '../../tracing/span.ts';
import type { CallRecord, RequestContext } from '../audit.ts';
import type { ProgressStream } from '../progress.ts';
import type { RpcRequest } from '../rpc.ts';
import { traceContextOf } from '../trace-context.ts';
import { type CallInFlight, type CallsInFlight, callScope } from './in-flight.ts';

/** One tools/call or resources/read: its caller, the id of the message, and its audit record. */
export interface ToolCall extends RequestContext {
  readonly id: string;
  readonly record: CallRecord;
  readonly members: string;
  /** `members` of a result that asks the client for something; undefined in revisions with a handshake. */
  readonly inputRequired: string | undefined;
  /** Progress for a client that asked for it. */
  progress?: ProgressStream;
  /** The span of the client, where the message names it and the head does not. */
  remoteParent?: RemoteParent;
}

/** JSON text of members that results begin with, a comma behind each. */
export interface ResultMembers {
  readonly members?: string;
  /** Members of a result that asks the client for something. */
  readonly inputRequired?: string;
}

export function toolCall(
  { id, params }: RpcRequest,
  requestContext: RequestContext,
  record: CallRecord,
  { members = '', inputRequired }: ResultMembers,
): ToolCall {
  const { caller, capability } = requestContext;
  const remoteParent = traceContextOf(params, requestContext.context);
  const context = contextOf(id, requestContext.context, record, remoteParent);
  const call: ToolCall =
    capability === undefined
      ? { id, context, caller, record, members, inputRequired }
      : { id, context, caller, capability, record, members, inputRequired };
  if (remoteParent !== undefined) call.remoteParent = remoteParent;
  return call;
}

/** Returns the context of a call; for a sampled request its own span is the parent of the call's spans. */
function contextOf(
  id: string,
  context: RouteContext,
  record: CallRecord,
  remoteParent: RemoteParent | undefined,
): RouteContext {
  const { span: parent } = context;
  if (parent === undefined) return context;
  const span =
    remoteParent === undefined
      ? parent.child(record.event, 'server')
      : parent.linked(remoteParent, record.event, 'server');
  span.set({ 'jsonrpc.request.id': id });
  record.span = span;
  return contextBelow(context, span);
}

export interface BackendRequest
  extends Pick<ModuleRequest, 'method' | 'url' | 'headers' | 'lines' | 'body' | 'timeoutMs'> {
  readonly endpoint: Endpoint;
  readonly readerOf: ModuleRequest['readerOf'];
  readonly channel?: ModuleRequest['channel'];
  /** Has the way to end the call once it has begun. */
  readonly running: RunningCall;
}

export interface RunningCall {
  stop?: () => void;
}

export interface BackendCalls {
  readonly modules: ModuleClient;
  readonly inFlight: CallsInFlight;
}

export function callBackend(
  { modules, inFlight }: BackendCalls,
  call: ToolCall,
  { method, url, headers, lines = '', body, timeoutMs, endpoint, readerOf, channel, running }: BackendRequest,
): Promise<ModuleResult> {
  const { context } = call;
  const scope = callScope(call);
  let flight: CallInFlight | undefined;
  const span = openModuleCall(context.span, method, url, endpoint.path);
  const request: ModuleRequest = {
    method,
    url,
    headers: withTraceparent(headers, span),
    lines,
    body,
    timeoutMs,
    endpoint: endpoint.reference,
    holder: context.holder,
    readerOf,
    channel,
    onBegin(giveUp) {
      running.stop = giveUp;
      if (scope !== undefined) flight = inFlight.begin(scope, call.id, giveUp);
      context.onAbort(giveUp);
    },
  };
  return modules.call(request).then((result) => {
    call.record.backendMs = (call.record.backendMs ?? 0) + result.elapsedMs;
    if (span !== undefined) endModuleCall(span, result);
    if (flight !== undefined) inFlight.done(flight);
    return result;
  });
}

/** Without `progress` the reports of a module that streams are read and dropped. */
export function readerOf(progress: ProgressStream | undefined, stop: () => void): ModuleRequest['readerOf'] {
  if (progress === undefined) return silentReader;
  return (status, contentType) => {
    if (!isStreamed(status, contentType)) return undefined;
    progress.begin(stop);
    return new StreamedAnswer((report) => progress.report(report));
  };
}

function silentReader(status: number, contentType: string): StreamedAnswer | undefined {
  return isStreamed(status, contentType) ? new StreamedAnswer() : undefined;
}
