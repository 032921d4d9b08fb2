/**
 * tools/call, prompts/get and resources/read: authorization, argument check, backend request, audit record. A refusal is a thrown
 * `GatewayError`, a failed backend -32000, and a backend's own error a result with `isError` (spec 7.1).
 */
import { type CallerClass, callerClass, provenAlone } from '../../domain/access.ts';
import { errorRow, GatewayError } from '../../domain/errors.ts';
import { type FormerNames, readFormerNames } from '../../domain/former-names.ts';
import { InsufficientScope, scopeThatOpens } from '../../domain/oauth/scopes.ts';
import type { Endpoint } from '../http-client/endpoint.ts';
import { type ModuleResult, tooManyCalls } from '../http-client/types.ts';
import type { ModuleClient } from '../modules/client.ts';
import type { CallObserver } from '../observability/metrics.ts';
import {
  errorText,
  isErrorAnswer,
  isTooLargeToParse,
  type ResultForm,
  resourceResult,
  STRUCTURED_RESULT,
  TOOL_RESULT,
  toolResult,
} from './answer.ts';
import { faultOf, sizeFaultOf } from './argument-check.ts';
import { audit, auditAttempt, NAME_MAX, outcomeOf, type RequestContext, recordOf, refused } from './audit.ts';
import { yieldToLoop } from './batch.ts';
import {
  type BackendRequest,
  callBackend,
  type ResultMembers,
  type RunningCall,
  readerOf,
  type ToolCall,
  toolCall,
} from './calls/backend-call.ts';
import type { CallsInFlight } from './calls/in-flight.ts';
import { type Catalog, type ResourceEntry, shownTools, type ToolEntry, viewAt } from './catalog.ts';
import { argumentsOf, withCodeInQuery } from './code-injection.ts';
import { isObject, type JsonObject } from './input-schema.ts';
import { backendHeaders, backendRequest, type Outgoing } from './outgoing.ts';
import type { ProgressStream } from './progress.ts';
import { errorEnvelope, RpcFailure, type RpcRequest, resultEnvelope, rpcFailure } from './rpc.ts';
import type { McpSessionIds } from './session-ids.ts';
import { TIMEOUT_MS } from './tool.ts';
import type { ToolLimits } from './tool-limits.ts';
import type { GatewayCall, GatewayServices } from './tools/gateway.ts';
import { offerAnswer, toolAnswer } from './upstreams/answers.ts';
import type { UpstreamCall } from './upstreams/calls.ts';
import { callWithLogin, loginRequest } from './upstreams/elicitation.ts';
import type { OfferEntry } from './upstreams/offers.ts';
import type { UpstreamTool } from './upstreams/types.ts';

interface ToolCallOptions {
  readonly catalog: { readonly current: Catalog };
  readonly modules: ModuleClient;
  readonly gateway: GatewayServices;
  readonly inFlight: CallsInFlight;
  readonly sessionIds: McpSessionIds;
  readonly onCall?: CallObserver | undefined;
  readonly toolLimits: ToolLimits;
}

export interface CallOptions extends ResultMembers {
  /** Stream on which a tool call may report progress. */
  readonly progress?: ProgressStream | undefined;
}

/** JSON-RPC text of the answer. */
type RpcReply = string | RpcFailure;
type Answer = RpcReply | Promise<RpcReply>;

export class ToolCalls {
  readonly #options: ToolCallOptions;
  /** Unknown names, which callers may invent, are not labels of metrics. */
  readonly observe: CallObserver = (call) => {
    const { tools, resources, offers } = this.#options.catalog.current;
    const known = tools.has(call.name) || resources.has(call.name) || offers.has(call.name);
    this.#options.onCall?.(known ? call : { ...call, name: '' });
  };

  constructor(options: ToolCallOptions) {
    this.#options = options;
  }

  /** Throws the refusal. */
  answer(request: RpcRequest, requestContext: RequestContext, options: CallOptions): Answer {
    switch (request.method) {
      case 'tools/call':
        return this.#callTool(request, requestContext, options);
      case 'prompts/get':
        return this.#getPrompt(request, requestContext, options);
      default:
        return this.#readResource(request, requestContext, options);
    }
  }

  #callTool(request: RpcRequest, requestContext: RequestContext, options: CallOptions): Answer {
    const { name, arguments: given } = request.params;
    const { progress } = options;
    const call = toolCall(request, requestContext, recordOf('mcp.tool', name, this.observe), options);
    if (progress !== undefined) {
      call.progress = progress;
      call.record.progress = progress.counts;
    }
    if (typeof name !== 'string' || name === '')
      throw refused(call, call.record, 'unknown', 'InvalidParams', 'name of the tool is missing');
    const catalog = this.#options.catalog.current;
    const entry = catalog.tools.get(name);
    if (entry === undefined)
      throw refused(call, call.record, 'unknown', 'InvalidParams', `unknown tool ${quoted(name)}`);
    call.context.noteWork(entry.name);
    this.#authorize(call, entry.callers, 'tool', shownTools(catalog, call.context).has(name));
    // Null counts as absent: clients in languages without optional fields send it.
    if (given !== undefined && given !== null && !isObject(given))
      throw refused(call, call.record, 'invalid', 'InvalidParams', 'arguments must be an object');
    this.#limit(entry, call);
    const values = given ?? NO_ARGUMENTS;
    const sizeFault = sizeFaultOf(values);
    if (sizeFault !== undefined) return this.#argumentError(call, sizeFault);
    const named = readFormerNames(entry.row.formerNames ?? NO_NAMES, values);
    if (!named.ok) return this.#argumentError(call, named.fault);
    const args = argumentsOf(entry, named.fields, call);
    const fault = args.fault ?? faultOf(entry, args.checked, request);
    if (fault !== undefined) return this.#argumentError(call, fault);
    const { endpoint, upstream } = entry;
    const isDestructive = entry.row.annotations?.destructiveHint === true;
    if (upstream !== undefined && endpoint !== null && endpoint !== undefined) {
      const send = () => this.#callUpstream(upstream, endpoint, entry, request, call);
      return isDestructive ? this.#auditFirst(call, send) : send();
    }
    const outgoing = endpoint === null ? undefined : backendRequest(entry, args.sent);
    if (outgoing?.ok === false) return this.#argumentError(call, outgoing.fault);
    return isDestructive
      ? this.#auditFirst(call, () => this.#execute(entry, args.sent, outgoing, call))
      : this.#execute(entry, args.sent, outgoing, call);
  }

  /** `outgoing`: the request to the backend; undefined for a tool of the gateway itself. */
  #execute(entry: ToolEntry, values: JsonObject, outgoing: Sendable | undefined, call: ToolCall): Answer {
    if (outgoing === undefined || entry.endpoint === null) return this.#serve(entry, values, call);
    const form = entry.row.outputSchema === undefined ? TOOL_RESULT : STRUCTURED_RESULT;
    return this.#forward(entry.endpoint, outgoing, entry.timeoutMs, call, form);
  }

  /** A destructive call is sent only after its audit record is on disk. */
  async #auditFirst(call: ToolCall, send: () => Answer): Promise<RpcReply> {
    try {
      if (!(await auditAttempt(call, call.record))) return errorEnvelope(call.id, 'ToolFailed', 'cancelled');
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return rpcFailure(call.id, error.row, error.detail);
    }
    return send();
  }

  #callUpstream(
    tool: UpstreamTool,
    endpoint: Endpoint,
    { timeoutMs }: ToolEntry,
    request: RpcRequest,
    call: ToolCall,
  ): Answer {
    const { server, ownName } = tool;
    return this.#answerUpstream({ server, ownName, endpoint, timeoutMs, request, call, tool }, toolAnswer);
  }

  async #answerUpstream(asked: UpstreamCall, answerOf: typeof toolAnswer): Promise<RpcReply> {
    const { server, call } = asked;
    const outcome = await callWithLogin(this.#options, asked);
    if (outcome.kind === 'failed') return this.#failed(outcome.result, call, TOOL_RESULT);
    if (outcome.kind === 'asksLogin') {
      audit(call, call.record, 'denied');
      return loginRequest(server, call);
    }
    return answerOf(outcome, server, call);
  }

  /** Prompts are those of other MCP servers. */
  #getPrompt(request: RpcRequest, requestContext: RequestContext, options: CallOptions): Answer {
    const { name, arguments: given } = request.params;
    const call = toolCall(request, requestContext, recordOf('mcp.prompt', name, this.observe), options);
    const catalog = this.#options.catalog.current;
    const entry = typeof name === 'string' ? catalog.offers.prompt(name) : undefined;
    if (entry === undefined)
      throw refused(call, call.record, 'unknown', 'InvalidParams', `unknown prompt ${quoted(String(name))}`);
    const { offer, callers } = entry;
    this.#authorize(call, callers, 'prompt', shownTools(catalog, call.context).has(offer.name));
    if (given !== undefined && given !== null && !isObject(given))
      throw refused(call, call.record, 'invalid', 'InvalidParams', 'arguments must be an object');
    return this.#askUpstream(entry, offer.ownName, request, call);
  }

  /** `ownName`: name or URI at the server. */
  #askUpstream(
    { offer: { server }, endpoint }: OfferEntry,
    ownName: string,
    request: RpcRequest,
    call: ToolCall,
  ): Answer {
    const asked = { server, ownName, endpoint, timeoutMs: TIMEOUT_MS, request, call };
    return this.#answerUpstream(asked, offerAnswer);
  }

  #readResource(request: RpcRequest, requestContext: RequestContext, options: CallOptions): Answer {
    const { uri } = request.params;
    const call = toolCall(request, requestContext, recordOf('mcp.resource', uri, this.observe), options);
    if (typeof uri !== 'string' || uri === '')
      throw refused(call, call.record, 'unknown', 'InvalidParams', 'uri of the resource is missing');
    const catalog = this.#options.catalog.current;
    const entry = catalog.resources.get(uri);
    const offered = entry === undefined ? catalog.offers.resource(uri) : undefined;
    if (offered !== undefined) {
      const { name, ownName } = offered.offer;
      this.#authorize(call, offered.callers, 'resource', viewAt(catalog, call.context).hasResource(name));
      const prefixLength = name.length - ownName.length;
      return this.#askUpstream(offered, uri.slice(prefixLength), request, call);
    }
    if (entry === undefined) throw refused(call, call.record, 'unknown', 'ResourceNotFound', quoted(uri));
    this.#authorize(call, entry.readers, 'resource', viewAt(catalog, call.context).hasResource(uri));
    const form: ResultForm = {
      wrap: (text, isError, members) => resourceResult(entry, text, isError, members),
    };
    if (entry.endpoint === null) return this.#serveResource(entry, call, form);
    const url = withCodeInQuery(entry.url, call);
    const outgoing: Outgoing = { ok: true, method: 'GET', url, body: undefined };
    return this.#forward(entry.endpoint, outgoing, TIMEOUT_MS, call, form);
  }

  /** `isShown`: the address lists it to callers that may use it. */
  #authorize(
    call: ToolCall,
    allowed: ReadonlySet<CallerClass>,
    what: 'tool' | 'prompt' | 'resource',
    isShown: boolean,
  ): void {
    const caller = callerClass(call.caller);
    const isAllowed = allowed.has(caller);
    if (isAllowed && isShown) return;
    if (isAllowed)
      throw refused(call, call.record, 'denied', 'Unauthorized', `this address does not list this ${what}`);
    const isConnected = call.caller.kind === 'session' && call.caller.session.grant !== undefined;
    const wider = isConnected && isShown ? scopeThatOpens(allowed, caller) : undefined;
    if (wider !== undefined) {
      audit(call, call.record, 'denied');
      throw new InsufficientScope(wider, `this ${what} needs the scope ${wider}, authorize again for it`);
    }
    const detail =
      caller === 'anonymous'
        ? 'log in with POST /auth/v1/mcp_login and send Authorization: Bearer <sessionId>'
        : `this ${what} is not open to ${caller}${provenAlone(caller, allowed)}`;
    throw refused(call, call.record, 'denied', 'Unauthorized', detail);
  }

  #limit(entry: ToolEntry, call: ToolCall): void {
    const { rateLimit } = entry.row;
    const { context, caller, capability } = call;
    const holder = caller.kind === 'session' ? caller.session.userId : capability?.code;
    if (rateLimit === undefined || holder === undefined) return;
    const windowSeconds = context.settings.get('RateLimitWindowSeconds');
    const quota = this.#options.toolLimits.hit(entry.name, holder, rateLimit.rps, windowSeconds);
    if (!quota.allowed) audit(call, call.record, 'limited');
    context.limiter.noteOwn(quota, `tool ${entry.name}`);
  }

  /** A fault of the arguments: a result with `isError`, which a model can read and correct. */
  #argumentError(call: ToolCall, fault: string): string {
    audit(call, call.record, 'invalid');
    return resultEnvelope(call.id, toolResult(errorText('InvalidInput', fault), true, call.members));
  }

  /** A tool of the gateway itself; its text is the body of the matching REST route. */
  #serve(entry: ToolEntry, values: JsonObject, call: ToolCall): Answer {
    const tool = this.#options.gateway.tools[entry.name];
    if (tool === undefined || call.caller.kind !== 'session')
      throw new Error(`no function for the gateway tool ${entry.name}`);
    const gatewayCall: GatewayCall = {
      context: call.context,
      session: call.caller.session,
      arguments: values,
    };
    return this.#settle(tool(gatewayCall), call, TOOL_RESULT);
  }

  #serveResource(entry: ResourceEntry, call: ToolCall, form: ResultForm): Answer {
    const resource = this.#options.gateway.resources[entry.uri];
    if (resource === undefined) throw new Error(`no function for the gateway resource ${entry.uri}`);
    return this.#settle(Promise.resolve(resource(call.context)), call, form);
  }

  async #settle(value: Promise<unknown>, call: ToolCall, { wrap }: ResultForm) {
    try {
      const text = JSON.stringify({ result: await value });
      audit(call, call.record, 'ok');
      return resultEnvelope(call.id, wrap(text, false, call.members));
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      // A bound or the storage failed: reported like a module that is down.
      const failed = errorRow(error.row).status >= 500;
      audit(call, call.record, failed ? 'failed' : 'error');
      if (failed) return rpcFailure(call.id, error.row, error.detail, error.retryAfterSeconds);
      return resultEnvelope(call.id, wrap(errorText(error.row, error.detail), true, call.members));
    }
  }

  #forward(
    endpoint: Endpoint | undefined,
    outgoing: Sendable,
    timeoutMs: number,
    call: ToolCall,
    form: ResultForm,
  ): Answer {
    if (endpoint === undefined || outgoing.url === undefined) {
      audit(call, call.record, 'failed');
      return rpcFailure(call.id, 'ModuleUnavailable');
    }
    const running: RunningCall = {};
    const request: BackendRequest = {
      method: outgoing.method,
      url: outgoing.url,
      ...backendHeaders(call, outgoing.body !== undefined),
      body: outgoing.body,
      timeoutMs,
      endpoint,
      readerOf:
        call.record.event === 'mcp.tool' ? readerOf(call.progress, () => running.stop?.()) : undefined,
      running,
    };
    return callBackend(this.#options, call, request).then((result) => this.#answer(result, call, form));
  }

  #answer(result: ModuleResult, call: ToolCall, form: ResultForm): Answer {
    if (!result.ok) return this.#failed(result, call, form);
    const { status, body } = result.answer;
    if (body.length > WHOLE_BYTES_MAX) return this.#answerInSlices(body, status, call, form);
    const text = body.toString('utf8');
    const isError = isErrorAnswer(status, text);
    audit(call, call.record, isError ? 'error' : 'ok');
    const structured = isError ? undefined : form.structure?.(text);
    return resultEnvelope(call.id, form.wrap(text, isError, call.members, structured));
  }

  /** A long answer is judged, parsed, wrapped and written in event-loop ticks of their own. */
  async #answerInSlices(body: Buffer, status: number, call: ToolCall, form: ResultForm): Promise<RpcReply> {
    const { context, record } = call;
    context.noteWork(record.name);
    const text = body.toString('utf8');
    await yieldToLoop();
    context.noteWork(record.name);
    const isError = isErrorAnswer(status, text);
    const isParsed = form.structure !== undefined && !isError;
    if (isParsed && isTooLargeToParse(text)) {
      const reason = 'too large for structured content';
      return this.#failed({ ok: false, error: 'ModuleAnswerTooLarge', reason, elapsedMs: 0 }, call, form);
    }
    audit(call, call.record, isError ? 'error' : 'ok');
    await yieldToLoop();
    context.noteWork(record.name);
    const structured = isParsed ? form.structure(text) : undefined;
    await yieldToLoop();
    context.noteWork(record.name);
    const answer = resultEnvelope(call.id, form.wrap(text, isError, call.members, structured));
    await yieldToLoop();
    return answer;
  }

  #failed(
    { error, refusedBy }: Extract<ModuleResult, { ok: false }>,
    call: ToolCall,
    form: ResultForm,
  ): RpcReply {
    audit(call, call.record, outcomeOf(error));
    if (error === 'Aborted') return errorEnvelope(call.id, 'ToolFailed', 'cancelled');
    if (error === 'AccessRateLimit') throw tooManyCalls(refusedBy);
    if (error !== 'ModuleAnswerTooLarge') return rpcFailure(call.id, error);
    const text = form.wrap(errorText(error, 'ask for less at once'), true, call.members);
    return new RpcFailure(error, resultEnvelope(call.id, text));
  }
}

/** Bytes of an answer that is judged, wrapped and written in one tick. Every answer that is too large to parse is longer. */
const WHOLE_BYTES_MAX = 32 * 1024;

type Sendable = Extract<Outgoing, { ok: true }>;

const NO_NAMES: FormerNames = Object.freeze({});
const NO_ARGUMENTS: JsonObject = Object.freeze({});

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, NAME_MAX));
}
