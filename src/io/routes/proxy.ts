/**
 * The reverse proxy of ordinary REST calls: `/{module}/v{n}/…` goes to the module of that name, with the session,
 * limits, headers, audit and breaker of a tool call (mcp.md "Calls to the backends"). Bodies are streamed both ways, at
 * the pace of whoever takes them.
 */
import { type Caller, loginClass } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import { text } from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { RouteDocs } from '../http/openapi/route-docs.ts';
import { type AnyRoute, defineRoute, type Reply, type RouteContext } from '../http/route.ts';
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
import type { Catalog } from '../mcp/catalog.ts';
import { TIMEOUT_MS } from '../mcp/tool.ts';
import type { ModuleClient } from '../modules/client.ts';
import { type ProxiedTarget, proxiedUrl, withoutParameters } from '../modules/endpoint.ts';
import { factsOf, forwardedHeaders, gatewayHeaders, viaOf } from '../modules/headers.ts';
import type { CallObserver } from '../observability/metrics.ts';
import { ProxiedCall, type ProxiedEnding } from '../proxy/answer.ts';

const PROXIED_PATH = /^\/([a-z][a-z0-9-]{0,31})\/v[1-9][0-9]{0,3}\/./;
/**
 * Served by modules for the gateway alone: through the proxy a code could be tried outside the limits on codes, a
 * message be sent in the gateway's name, or a file be completed that has no bytes. Compared as a module might read it:
 * as it came and decoded, without parameters and empty segments.
 */
const FOR_THE_GATEWAY =
  /^\/(?:[^/]+\/v[0-9]+\/(?:capability|codes\/deliver)|chat\/v[0-9]+\/(?:files\/(?:create|complete|cancel|describe)|chats\/personal))(?:[/;]|$)/i;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export interface ProxyDeps {
  readonly modules: ModuleClient;
  /** Base address by module name. */
  readonly moduleAddresses: ReadonlyMap<string, string>;
  /** Path prefixes by module name that need no session (`Modules.<name>.public`). */
  readonly publicPaths: ReadonlyMap<string, readonly string[]>;
  /** What bounds sessions that may not do everything. */
  readonly catalog: { readonly current: Catalog };
  /** Longest silence of a module in milliseconds; the time-out of tools unless given. */
  readonly proxyTimeoutMs?: number;
  /** Told of every call and every refusal. */
  readonly onCall?: CallObserver | undefined;
}

/** The module's own API is its to describe; here is what is the same for all of them. */
function docsOf(method: string): RouteDocs {
  const description =
    'Goes to the module with the account of the session, through limits, audit and breaker. `path` may have several segments, and the query goes along. Paths that are public in the configuration need no session. McpBasic and McpApp reach what their tools reach.';
  return {
    description,
    body:
      method === 'GET'
        ? null
        : { type: '*/*', optional: true, description: 'Bytes of any type, passed on as they come' },
    params: {
      module: text({
        description: 'Name of the module',
        pattern: '^[a-z][a-z0-9-]{0,31}$',
        form: 'a name',
        examples: ['wallet'],
      }),
      version: text({
        description: '`v` and a number',
        pattern: '^v[1-9][0-9]{0,3}$',
        form: 'a version',
        examples: ['v1'],
      }),
      path: text({
        description: 'The rest of the path; slashes stay as they are',
        examples: ['balance/get'],
      }),
    },
  };
}

/** One route per method; HEAD rides on GET. */
export function createProxyRoutes(deps: ProxyDeps): AnyRoute[] {
  return METHODS.map((method) =>
    defineRoute({
      method,
      path: '/:module/:version/:path',
      // What the paths of modules hold is theirs to know: links that log somebody in are usual.
      secretPath: true,
      summary: 'A call to a backend module; the path is all that follows',
      docs: docsOf(method),
      bytes: { 200: 'What the module answered, its other statuses too, as it came' },
      group: 'modules',
      auth: 'either',
      limits: [],
      body: 'stream',
      errors: ['Forbidden', 'NotFound', 'ModuleFailed', 'ModuleTimedOut', 'ModuleUnavailable'],
      serves: (rawPath) => serves(deps, rawPath),
      isPublic: (rawPath) => isPublic(deps, rawPath),
      refusal(error, context) {
        if (error.row === 'SessionNotFound' || error.row === 'Forbidden')
          auditDenied(context, callOf(deps, context));
        return undefined;
      },
      handle(context) {
        const caller = callerOf(deps, context);
        if (caller === undefined) throw new GatewayError('Forbidden');
        return forward(deps, context, caller);
      },
    }),
  );
}

function moduleOf(rawPath: string): string {
  return PROXIED_PATH.exec(rawPath)?.[1] ?? '';
}

/** The endpoint that a path names; parameters of its segments make no other one of it. */
function referenceOf(rawPath: string): string {
  return `${moduleOf(rawPath)}:${withoutParameters(rawPath)}`;
}

/** All other paths are nothing here: 404 before any session is asked for. */
function serves({ moduleAddresses }: ProxyDeps, rawPath: string): boolean {
  const module = moduleOf(rawPath);
  return module !== '' && moduleAddresses.has(module) && !isForTheGateway(rawPath);
}

/** A path that does not decode is no plain path either, and is refused further on. */
function isForTheGateway(rawPath: string): boolean {
  if (FOR_THE_GATEWAY.test(plainPath(rawPath))) return true;
  return /%(?![89a-f])/i.test(rawPath) && FOR_THE_GATEWAY.test(plainPath(decodeAscii(rawPath)));
}

function plainPath(path: string): string {
  return withoutParameters(path).replace(/\/{2,}/g, '/');
}

function decodeAscii(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** A prefix ends at a segment: `/core/v1/news` opens `/core/v1/news/today` and not `/core/v1/newsroom`. */
function isPublic({ publicPaths }: ProxyDeps, rawPath: string): boolean {
  const prefixes = publicPaths.get(moduleOf(rawPath)) ?? [];
  const path = withoutParameters(rawPath);
  return prefixes.some((prefix) => {
    const trimmed = withoutParameters(prefix).replace(/\/+$/, '');
    return path === trimmed || path.startsWith(`${trimmed}/`);
  });
}

/**
 * As whom the module is asked; undefined for what is out of reach. A path of `public` is open to all. Where personal reads
 * ask for proof, the module gets no account there that nothing proved.
 */
function callerOf(deps: ProxyDeps, context: RouteContext): Caller | undefined {
  const { session, rawPath } = context;
  if (session === undefined) return { kind: 'anonymous' };
  const asSession: Caller = { kind: 'session', session };
  if (isWithinReach(deps, context, session)) return asSession;
  if (!isPublic(deps, rawPath)) return undefined;
  const mayBeNamed = session.proven || deps.catalog.current.policy.personalReads;
  return mayBeNamed ? asSession : { kind: 'anonymous' };
}

/**
 * McpBasic proves no key and McpApp is bound to what has `appScope` (spec 5.1): by REST they reach what a tool or a
 * resource of theirs would ask of the module, by its very path. All other sessions reach all.
 */
function isWithinReach(
  { catalog }: ProxyDeps,
  { method, rawPath }: RouteContext,
  session: SessionContext,
): boolean {
  const caller = loginClass(session);
  if (caller === undefined || caller === 'McpVerified') return true;
  const reference = referenceOf(rawPath);
  const reads = method === 'GET' || method === 'HEAD';
  const { tools, resources } = catalog.current;
  for (const { row, callers } of tools.values()) {
    const isSame = row.endpoint === reference && row.method === (reads ? 'GET' : method);
    if (isSame && callers.has(caller)) return true;
  }
  for (const { row, readers } of resources.values())
    if (reads && row.endpoint === reference && readers.has(caller)) return true;
  return false;
}

/** Paths are the callers' own: the metrics name the module alone. */
function callOf({ onCall }: ProxyDeps, { method, rawPath }: RouteContext): CallRecord {
  const name = moduleOf(rawPath);
  return recordOf('rest.call', `${method} ${rawPath}`, (call) => onCall?.({ ...call, name }));
}

async function forward(deps: ProxyDeps, context: RouteContext, asked: Caller): Promise<Reply> {
  const { session } = context;
  // The record names the session, also where the module gets no account.
  const requestContext: RequestContext = {
    context,
    caller: session === undefined ? { kind: 'anonymous' } : { kind: 'session', session },
  };
  const record = callOf(deps, context);
  const request = requestOf(deps, requestContext, asked, record);
  // Which calls destroy something is the module's knowledge: each one that may change anything is taken for one.
  const changes = request.method !== 'GET' && request.method !== 'HEAD';
  if (changes && !(await auditAttempt(requestContext, record))) throw new GatewayError('ModuleFailed');
  const startedMs = performance.now();
  const call = new ProxiedCall({
    isHead: request.method === 'HEAD',
    isPersonal: context.session !== undefined,
    url: request.url,
    rawPath: context.rawPath,
    onEnded(ending) {
      record.backendMs = performance.now() - startedMs;
      audit(requestContext, record, endingOutcome(ending));
    },
  });
  const flow = deps.modules.relay({ ...request, body: context.incoming, holder: context.holder }, call);
  call.attach(flow);
  context.onAbort(() => flow.stop());
  return call.reply;
}

function endingOutcome(ending: ProxiedEnding): CallOutcome {
  if (ending.kind === 'failed') return outcomeOf(ending.error);
  return ending.status >= 400 ? 'error' : 'ok';
}

/** Throws `InvalidInput` for what no module is asked: an upgrade, a path that is not plain, a GET with a body. */
function requestOf(
  deps: ProxyDeps,
  requestContext: RequestContext,
  asked: Caller,
  record: CallRecord,
): Omit<RelayRequest, 'body'> & { readonly url: ProxiedTarget } {
  const { context } = requestContext;
  const { rawPath, incoming } = context;
  const refuse = (detail: string): never => {
    audit(requestContext, record, 'invalid');
    throw new GatewayError('InvalidInput', detail);
  };
  const method = context.method as RelayRequest['method'];
  if (/\bwebsocket\b/i.test(context.header('upgrade') ?? '') || context.header('sec-websocket-key'))
    refuse('upgrade: WebSocket connections are not proxied');
  // A server that ignores such a body would take it for the next request on the kept connection.
  if (incoming !== undefined && (method === 'GET' || method === 'HEAD')) refuse(`body: ${method} has none`);
  const module = moduleOf(rawPath);
  const received = [...context.allHeaders()];
  const url = proxiedUrl(deps.moduleAddresses.get(module) ?? '', rawPath, context.rawQuery);
  return {
    method,
    url: url ?? refuse('path: expected plain segments without encoded separators'),
    // Into one object: a new one out of three costs more than all that is in it.
    headers: Object.assign(
      forwardedHeaders(received),
      { via: viaOf(received) },
      gatewayHeaders(asked, factsOf(context)),
    ),
    timeoutMs: deps.proxyTimeoutMs ?? TIMEOUT_MS,
    // The name under which the tools of that endpoint have their breaker.
    endpoint: referenceOf(rawPath),
  };
}
