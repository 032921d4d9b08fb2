/**
 * tools/call and resources/read: authorization, arguments, the way to the backend and back, and the audit record of
 * every call and every refusal. What a caller may not do leaves as a thrown `GatewayError`; a failed backend is
 * -32000; a backend's own error is a result with `isError` (spec 7.1).
 */
import { type CallerClass, callerClass, provenAlone } from '../../domain/access.ts';
import { errorRow, GatewayError } from '../../domain/errors.ts';
import { type FormerNames, readFormerNames } from '../../domain/former-names.ts';
import { type ModuleRequest, type ModuleResult, tooManyCalls } from '../http-client/types.ts';
import type { ModuleClient } from '../modules/client.ts';
import type { Endpoint } from '../modules/endpoint.ts';
import type { CallObserver } from '../observability/metrics.ts';
import { errorText, isErrorAnswer, resourceResult, toolResult } from './answer.ts';
import { faultOf } from './argument-check.ts';
import {
  audit,
  auditAttempt,
  type CallRecord,
  NAME_MAX,
  outcomeOf,
  type RequestContext,
  recordOf,
  refused,
} from './audit.ts';
import type { Catalog, ResourceEntry, ToolEntry } from './catalog.ts';
import { argumentsOf, withCodeInQuery } from './code-injection.ts';
import { type CallInFlight, type CallsInFlight, callScope } from './in-flight.ts';
import { isObject, type JsonObject } from './input-schema.ts';
import { backendHeaders, backendRequest, type Outgoing } from './outgoing.ts';
import { errorEnvelope, type RpcRequest, resultEnvelope } from './rpc.ts';
import { TIMEOUT_MS } from './tool.ts';
import { ToolLimits } from './tool-limits.ts';
import type { GatewayCall, GatewayServices } from './tools/gateway.ts';

export interface ToolCallOptions {
  readonly catalog: { readonly current: Catalog };
  readonly modules: ModuleClient;
  readonly gateway: GatewayServices;
  readonly inFlight: CallsInFlight;
  readonly onCall?: CallObserver | undefined;
}

/** JSON-RPC text of the answer. */
type Answer = string | Promise<string>;

export class ToolCalls {
  readonly #options: ToolCallOptions;
  readonly #limits = new ToolLimits();
  /** Names that callers make up are no labels. */
  readonly observe: CallObserver = (call) => {
    const { tools, resources } = this.#options.catalog.current;
    const known = tools.has(call.name) || resources.has(call.name);
    this.#options.onCall?.(known ? call : { ...call, name: '' });
  };

  constructor(options: ToolCallOptions) {
    this.#options = options;
  }

  /** tools/call. Throws the row of the refusal. */
  callTool(request: RpcRequest, requestContext: RequestContext): Answer {
    const { name, arguments: given } = request.params;
    const record = recordOf('mcp.tool', name, this.observe);
    if (typeof name !== 'string' || name === '')
      throw refused(requestContext, record, 'unknown', 'InvalidParams', 'name of the tool is missing');
    const entry = this.#options.catalog.current.tools.get(name);
    if (entry === undefined)
      throw refused(requestContext, record, 'unknown', 'InvalidParams', `unknown tool ${quoted(name)}`);
    this.#authorize(requestContext, record, entry.callers, 'tool');
    // Null counts as none: clients of languages without optional fields send it.
    if (given !== undefined && given !== null && !isObject(given))
      throw refused(requestContext, record, 'invalid', 'InvalidParams', 'arguments must be an object');
    this.#limit(entry, requestContext, record);
    const named = readFormerNames(entry.row.formerNames ?? NO_NAMES, given ?? NO_ARGUMENTS);
    if (!named.ok) return this.#argumentError(requestContext, record, request.id, named.fault);
    const taken = argumentsOf(entry, named.fields, requestContext);
    const fault = taken.fault ?? faultOf(entry, taken.checked, request);
    if (fault !== undefined) return this.#argumentError(requestContext, record, request.id, fault);
    const go = this.#wayOf(entry, taken.sent, request.id, requestContext, record);
    return entry.row.annotations?.destructiveHint === true
      ? this.#traced(go, request.id, requestContext, record)
      : go();
  }

  /** What carries the call out once nothing stands against it. */
  #wayOf(
    entry: ToolEntry,
    values: JsonObject,
    id: string,
    requestContext: RequestContext,
    record: CallRecord,
  ): () => Answer {
    const { endpoint } = entry;
    if (endpoint === null) return () => this.#serve(entry, values, id, requestContext, record);
    const outgoing = backendRequest(entry, values);
    if (outgoing.ok)
      return () => this.#forward(endpoint, outgoing, entry.timeoutMs, id, requestContext, record, toolResult);
    const answer = this.#argumentError(requestContext, record, id, outgoing.fault);
    return () => answer;
  }

  /** A destructive call leaves a record on disk before it goes out; without one it does not go out. */
  async #traced(
    go: () => Answer,
    id: string,
    requestContext: RequestContext,
    record: CallRecord,
  ): Promise<string> {
    try {
      if (!(await auditAttempt(requestContext, record))) return errorEnvelope(id, 'ToolFailed', 'cancelled');
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return errorEnvelope(id, error.row, error.detail);
    }
    return go();
  }

  /** resources/read. Throws the row of the refusal. */
  readResource(request: RpcRequest, requestContext: RequestContext): Answer {
    const { uri } = request.params;
    const record = recordOf('mcp.resource', uri, this.observe);
    if (typeof uri !== 'string' || uri === '')
      throw refused(requestContext, record, 'unknown', 'InvalidParams', 'uri of the resource is missing');
    const entry = this.#options.catalog.current.resources.get(uri);
    if (entry === undefined)
      throw refused(requestContext, record, 'unknown', 'ResourceNotFound', quoted(uri));
    this.#authorize(requestContext, record, entry.readers, 'resource');
    const wrap = (text: string, isError: boolean) => resourceResult(uri, entry.mimeType, text, isError);
    if (entry.endpoint === null) return this.#serveResource(entry, request.id, requestContext, record, wrap);
    const url = withCodeInQuery(entry.url, requestContext);
    const outgoing: Outgoing = { ok: true, method: 'GET', url, body: undefined };
    return this.#forward(entry.endpoint, outgoing, TIMEOUT_MS, request.id, requestContext, record, wrap);
  }

  #authorize(
    requestContext: RequestContext,
    record: CallRecord,
    allowed: ReadonlySet<CallerClass>,
    what: 'tool' | 'resource',
  ): void {
    const caller = callerClass(requestContext.caller);
    if (allowed.has(caller)) return;
    const detail =
      caller === 'anonymous'
        ? 'log in with POST /auth/v1/mcp_login and send Authorization: Bearer <sessionId>'
        : `this ${what} is not open to ${caller}${provenAlone(caller, allowed)}`;
    throw refused(requestContext, record, 'denied', 'Unauthorized', detail);
  }

  #limit(entry: ToolEntry, requestContext: RequestContext, record: CallRecord): void {
    const { rateLimit } = entry.row;
    const { context, caller, capability } = requestContext;
    const holder = caller.kind === 'session' ? caller.session.userId : capability?.code;
    if (rateLimit === undefined || holder === undefined) return;
    const windowSeconds = context.settings.get('RateLimitWindowSeconds');
    const verdict = this.#limits.hit(entry.name, holder, rateLimit.rps, windowSeconds, context.nowMs);
    if (!verdict.allowed) audit(requestContext, record, 'limited');
    context.limiter.noteOwn(verdict, `tool ${entry.name}`);
  }

  /** A mistake in the arguments: a result that a model can read and mend (mcp.md). */
  #argumentError(requestContext: RequestContext, record: CallRecord, id: string, fault: string): string {
    audit(requestContext, record, 'invalid');
    return resultEnvelope(id, toolResult(errorText('InvalidInput', fault), true));
  }

  /** A tool of the gateway itself; its text is the body of its REST twin. */
  #serve(
    entry: ToolEntry,
    values: JsonObject,
    id: string,
    requestContext: RequestContext,
    record: CallRecord,
  ): Answer {
    const tool = this.#options.gateway.tools[entry.name];
    if (tool === undefined || requestContext.caller.kind !== 'session')
      throw new Error(`no function for the gateway tool ${entry.name}`);
    const call: GatewayCall = {
      context: requestContext.context,
      session: requestContext.caller.session,
      arguments: values,
    };
    return this.#settle(tool(call), id, requestContext, record, toolResult);
  }

  #serveResource(
    entry: ResourceEntry,
    id: string,
    requestContext: RequestContext,
    record: CallRecord,
    wrap: Wrap,
  ): Answer {
    const resource = this.#options.gateway.resources[entry.uri];
    if (resource === undefined) throw new Error(`no function for the gateway resource ${entry.uri}`);
    return this.#settle(Promise.resolve(resource(requestContext.context)), id, requestContext, record, wrap);
  }

  async #settle(
    value: Promise<unknown>,
    id: string,
    requestContext: RequestContext,
    record: CallRecord,
    wrap: Wrap,
  ) {
    try {
      const text = JSON.stringify({ result: await value });
      audit(requestContext, record, 'ok');
      return resultEnvelope(id, wrap(text, false));
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      // A bound or the storage: the same as a module that is down.
      const failed = errorRow(error.row).status >= 500;
      audit(requestContext, record, failed ? 'failed' : 'error');
      if (failed) requestContext.context.error = error.row;
      if (failed) return errorEnvelope(id, error.row, error.detail, error.retryAfterSeconds);
      return resultEnvelope(id, wrap(errorText(error.row, error.detail), true));
    }
  }

  #forward(
    endpoint: Endpoint | undefined,
    outgoing: Extract<Outgoing, { ok: true }>,
    timeoutMs: number,
    id: string,
    requestContext: RequestContext,
    record: CallRecord,
    wrap: Wrap,
  ): Answer {
    if (endpoint === undefined || outgoing.url === undefined) {
      audit(requestContext, record, 'failed');
      requestContext.context.error = 'ModuleUnavailable';
      return errorEnvelope(id, 'ModuleUnavailable');
    }
    const { context } = requestContext;
    const { inFlight } = this.#options;
    const scope = callScope(requestContext);
    let call: CallInFlight | undefined;
    const request: ModuleRequest = {
      method: outgoing.method,
      url: outgoing.url,
      headers: backendHeaders(requestContext, outgoing.body !== undefined),
      body: outgoing.body,
      timeoutMs,
      endpoint: endpoint.reference,
      holder: context.holder,
      onBegin(giveUp) {
        if (scope !== undefined) call = inFlight.begin(scope, id, giveUp);
        context.onAbort(giveUp);
      },
    };
    return this.#options.modules.call(request).then((result) => {
      record.backendMs = result.elapsedMs;
      if (call !== undefined) inFlight.done(call);
      return this.#answer(result, id, requestContext, record, wrap);
    });
  }

  #answer(
    result: ModuleResult,
    id: string,
    requestContext: RequestContext,
    record: CallRecord,
    wrap: Wrap,
  ): string {
    if (result.ok) {
      const { status, body } = result.answer;
      const text = body.toString('utf8');
      const isError = isErrorAnswer(status, text);
      audit(requestContext, record, isError ? 'error' : 'ok');
      return resultEnvelope(id, wrap(text, isError));
    }
    const { error } = result;
    audit(requestContext, record, outcomeOf(error));
    if (error === 'Aborted') return errorEnvelope(id, 'ToolFailed', 'cancelled');
    if (error === 'AccessRateLimit') throw tooManyCalls(result.refusedBy);
    requestContext.context.error = error;
    if (error === 'ModuleAnswerTooLarge')
      return resultEnvelope(id, wrap(errorText('ModuleAnswerTooLarge', 'ask for less at once'), true));
    return errorEnvelope(id, error);
  }
}

type Wrap = (text: string, isError: boolean) => string;

const NO_NAMES: FormerNames = Object.freeze({});
const NO_ARGUMENTS: JsonObject = Object.freeze({});

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, NAME_MAX));
}
