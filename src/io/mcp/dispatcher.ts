/** Dispatches the methods of /mcp. Answers are JSON-RPC texts. */
import { type CallerClass, callerClass } from '../../domain/access.ts';
import { errorRow, GatewayError } from '../../domain/errors.ts';
import type { StreamReply } from '../http/exchange/stream.ts';
import type { RouteContext, SessionLookup } from '../http/table/route.ts';
import type { ModuleClient } from '../modules/client.ts';
import type { CallObserver } from '../observability/metrics.ts';
import { auditRefused, type RequestContext } from './audit.ts';
import { type Authentication, requestContextOf } from './authenticate.ts';
import { cancelScope, capabilityScope } from './calls/in-flight.ts';
import type { CapabilityCodes } from './capability.ts';
import { type Catalog, type CatalogView, shownTools, viewAt } from './catalog.ts';
import { codeCredential, deviceCredential } from './credentials.ts';
import type { HeaderParam } from './header-params.ts';
import { instructionsFor } from './instructions.ts';
import type { ListChanges } from './list-changes.ts';
import type { NodeSignals } from './node-signals.ts';
import type { ProgressStream } from './progress.ts';
import {
  paramText,
  type RepeatedResult,
  type RpcAnswer,
  type RpcFailure,
  type RpcMessage,
  type RpcRequest,
  type RpcText,
  resultEnvelope,
  rpcFailure,
} from './rpc.ts';
import type { McpSessionIds } from './session-ids.ts';
import { type CallOptions, ToolCalls } from './tool-calls.ts';
import type { ToolLimits } from './tool-limits.ts';
import type { GatewayServices } from './tools/gateway.ts';
import { OFFER_KINDS, OFFERED } from './upstreams/offers.ts';
import type { OfferKind } from './upstreams/types.ts';

/** The reported version (spec 9), whatever version a client requests. */
export const PROTOCOL_VERSION = '2024-11-05';

export interface McpDeps {
  readonly sessions: SessionLookup;
  /** `current` is read once per message, so that a message sees one catalog. */
  readonly catalog: { readonly current: Catalog };
  readonly modules: ModuleClient;
  readonly gateway: GatewayServices;
  readonly codes: CapabilityCodes;
  readonly listChanges: ListChanges;
  readonly signals: NodeSignals;
  readonly sessionIds: McpSessionIds;
  readonly toolLimits: ToolLimits;
  /** Called for every call and every refusal. */
  readonly onCall?: CallObserver | undefined;
}

type Answer = RpcAnswer | Promise<RpcAnswer>;

/** Lists that each person has of their own at some servers. */
const OFFERED_BY: Readonly<Record<string, OfferKind>> = Object.fromEntries(
  OFFERED.map((kind) => [OFFER_KINDS[kind].method, kind]),
);
type RpcNotification = Extract<RpcMessage, { kind: 'notification' }>;

export class McpDispatcher {
  readonly #catalog: McpDeps['catalog'];
  readonly #signals: NodeSignals;
  readonly #calls: ToolCalls;
  readonly #codes: CapabilityCodes;
  readonly #listChanges: ListChanges;

  constructor(options: McpDeps) {
    this.#listChanges = options.listChanges;
    this.#catalog = options.catalog;
    this.#codes = options.codes;
    this.#signals = options.signals;
    this.#calls = new ToolCalls({ ...options, inFlight: options.signals.calls });
  }

  /** Throws the row of a refusal. */
  answer(
    request: RpcRequest,
    context: RouteContext,
    authentication: Authentication,
    progress?: ProgressStream,
  ): Answer {
    switch (request.method) {
      case 'initialize':
        return resultEnvelope(
          request.id,
          initialized(context, this.viewOf(context), authentication, this.#catalog.current),
        );
      case 'ping':
        return resultEnvelope(request.id, '{}');
      case 'tools/list':
      case 'resources/list':
      case 'resources/templates/list':
        return this.list(request, context, authentication);
      case 'tools/call':
      case 'resources/read':
        return this.call(request, context, authentication, { progress });
      case 'prompts/list':
        this.#requirePrompts();
        return this.list(request, context, authentication);
      case 'prompts/get':
        this.#requirePrompts();
        return this.call(request, context, authentication, { progress });
      default:
        throw new GatewayError('MethodNotFound');
    }
  }

  /** Handles a message without an answer. Only a cancellation has an effect, on calls of the same caller. */
  onNotification(message: RpcNotification, context: RouteContext, authentication: Authentication): void {
    if (message.method !== 'notifications/cancelled') return;
    const id = paramText(message, 'requestId');
    const scope = cancellationScope(context, authentication);
    if (id !== undefined && scope !== undefined) this.#signals.cancel(scope, id);
  }

  /** Clients of these revisions ask for prompts only where `initialize` says that there are some. */
  #requirePrompts(): void {
    if (!this.#catalog.current.offers.hasPrompts) throw new GatewayError('MethodNotFound');
  }

  /** tools/list and the lists of resources and prompts. `membersOf`: further members of the result for a class of callers. */
  list(
    request: RpcRequest,
    context: RouteContext,
    authentication: Authentication,
    membersOf?: (caller: CallerClass) => string,
  ): Answer {
    return after(requestContextOf(request, context, authentication, this.#codes), (requestContext) =>
      this.#list(request, requestContext, membersOf),
    );
  }

  /** tools/call, prompts/get and resources/read. */
  call(
    request: RpcRequest,
    context: RouteContext,
    authentication: Authentication,
    options: CallOptions,
  ): Answer {
    return after(this.#requestContext(request, context, authentication), (requestContext) =>
      this.#calls.answer(request, requestContext, options),
    );
  }

  /** Arguments of a tool that clients of stateless revisions repeat in headers. */
  headerParamsOf(tool: unknown): readonly HeaderParam[] {
    const entry = typeof tool === 'string' ? this.#catalog.current.tools.get(tool) : undefined;
    return entry?.headerParams ?? [];
  }

  /** subscriptions/listen of stateless revisions. */
  listen(
    request: RpcRequest,
    context: RouteContext,
    authentication: Authentication,
  ): StreamReply | Promise<StreamReply> {
    const requestContext = requestContextOf(request, context, authentication, this.#codes);
    const open = (known: RequestContext) => this.#listChanges.open(request, known);
    return requestContext instanceof Promise ? requestContext.then(open) : open(requestContext);
  }

  /** False at an address of a profile that is not configured. */
  hasProfile({ params }: RouteContext): boolean {
    const name = params['profile'];
    return name === undefined || this.#catalog.current.profiles.has(name);
  }

  /**
   * Returns the catalog as the address of the request shows it. Throws `NotFound` for a profile that is not configured.
   */
  viewOf(context: RouteContext): CatalogView {
    return viewAt(this.#catalog.current, context);
  }

  #list(
    request: RpcRequest,
    { caller, context }: RequestContext,
    membersOf: ((caller: CallerClass) => string) | undefined,
  ): RpcText | Promise<RpcText> {
    const which = callerClass(caller);
    const answer = (list: RepeatedResult) =>
      (membersOf === undefined ? list : list.withMembers(membersOf(which))).answer(request.id);
    const kind = OFFERED_BY[request.method];
    const personal = kind === undefined ? [] : this.#catalog.current.offers.personalFor(kind, which);
    if (kind === undefined || personal.length === 0 || caller.kind !== 'session')
      return answer(this.#listOf(request.method, which, context));
    const { userId } = caller.session;
    return Promise.all(personal.map((sessions) => sessions.offers(userId, kind))).then((own) => {
      const catalog = this.#catalog.current;
      return answer(catalog.listWith(kind, which, viewAt(catalog, context), own.flat()));
    });
  }

  #listOf(method: string, caller: CallerClass, context: RouteContext): RepeatedResult {
    const catalog = this.#catalog.current;
    if (method === 'tools/list') return shownTools(catalog, context).listFor(caller);
    const { resourceLists, templateLists, promptLists } = viewAt(catalog, context);
    if (method === 'prompts/list') return promptLists[caller];
    return (method === 'resources/list' ? resourceLists : templateLists)[caller];
  }

  #requestContext(
    request: RpcRequest,
    context: RouteContext,
    authentication: Authentication,
  ): RequestContext | Promise<RequestContext> {
    const refuse = (error: unknown): never => {
      auditRefused(request, context, this.#calls.observe);
      throw error;
    };
    try {
      const requestContext = requestContextOf(request, context, authentication, this.#codes);
      return requestContext instanceof Promise ? requestContext.catch(refuse) : requestContext;
    } catch (error) {
      return refuse(error);
    }
  }
}

/** The scope of the credentials in header or query. The code was good when its call started. */
function cancellationScope(context: RouteContext, authentication: Authentication): string | undefined {
  const mcpSessionId = context.header('mcp-session-id');
  if (authentication.kind === 'session') return cancelScope(authentication.session.id, mcpSessionId);
  const code = codeCredential({}, context);
  const device = deviceCredential({}, context);
  if (authentication.kind === 'unknown' || code.kind !== 'value') return undefined;
  return capabilityScope(
    { code: code.value, ...(device.kind === 'value' ? { deviceGuid: device.value } : {}) },
    mcpSessionId,
  );
}

function after(
  requestContext: RequestContext | Promise<RequestContext>,
  then: (requestContext: RequestContext) => Answer,
): Answer {
  return requestContext instanceof Promise ? requestContext.then(then) : then(requestContext);
}

/** The error of one message. Anything but a row of the table is a bug and is rethrown to the pipeline. */
export function failureOf(error: unknown, id: string | undefined): RpcFailure {
  if (!(error instanceof GatewayError)) throw error;
  const { row, detail, retryAfterSeconds } = error;
  const { status } = errorRow(row);
  // A limit, or a node of a cluster that has no lease: an answer with HTTP 200 says here when to come back.
  const isPassing = status === 429 || status === 503;
  return rpcFailure(id, row, detail, isPassing ? retryAfterSeconds : undefined);
}

/** Name and version of the server, and the title of a profile. */
export function serverInfo({ site }: RouteContext, { title }: CatalogView) {
  return { name: site.project, ...(title === undefined ? {} : { title }), version: site.version };
}

function initialized(
  context: RouteContext,
  view: CatalogView,
  authentication: Authentication,
  { offers }: Catalog,
): string {
  const prompts = offers.hasPrompts ? { prompts: {} } : {};
  return JSON.stringify({
    protocolVersion: PROTOCOL_VERSION,
    capabilities: { tools: {}, resources: {}, ...prompts },
    serverInfo: serverInfo(context, view),
    instructions: instructionsFor(view, authentication),
  });
}
