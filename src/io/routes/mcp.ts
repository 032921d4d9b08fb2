/**
 * The HTTP transport of MCP (spec 4.1): content type, batches, status of answers; methods are in io/mcp/. The open endpoint is
 * /mcp; others require a token (io/connect). Paths that clients probe (`/register`, `/authorize`) are no routes: 404.
 */
import { type ErrorName, errorRow, GatewayError } from '../../domain/errors.ts';
import { MCP_SESSION_EXAMPLE } from '../../domain/examples.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import { readJson } from '../http/exchange/json.ts';
import { errorReply } from '../http/exchange/reply.ts';
import {
  type AnyRoute,
  defineRoute,
  type HeaderList,
  Reply,
  type RouteContext,
  type SessionLookup,
} from '../http/table/route.ts';
import { type Authentication, authenticate, type McpEndpoint } from '../mcp/authenticate.ts';
import { BatchAnswers, SLICE_MESSAGES, type YieldToLoop, yieldToLoop } from '../mcp/batch.ts';
import { failureOf, type McpDeps, McpDispatcher } from '../mcp/dispatcher.ts';
import type { NodeSignals } from '../mcp/node-signals.ts';
import { describeMcp, MCP_DESCRIPTION } from '../mcp/openapi/described.ts';
import { progressOf } from '../mcp/progress.ts';
import { failureReply, rpcReply } from '../mcp/replies.ts';
import { type AskedRevision, askedRevision, namesRevision, requireHandshake } from '../mcp/revisions.ts';
import {
  type RpcAnswer,
  type RpcBody,
  type RpcMessage,
  type RpcRequest,
  readRpc,
  rpcFailure,
} from '../mcp/rpc.ts';
import type { McpSessionIds } from '../mcp/session-ids.ts';
import { StatelessMessages, unsupportedRevision } from '../mcp/stateless.ts';
import { PROFILE_PARAMS } from '../mcp/subsets.ts';
import { BUILT_IN } from '../mcp/tools/built-in.ts';
import { declaresUrl } from '../mcp/upstreams/elicitation.ts';

/** Bytes of one POST, a batch included. */
const BODY_MAX_BYTES = 256 * 1024;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const METHODS = 'POST, DELETE';

const OPEN_ENDPOINTS: readonly McpEndpoint[] = [
  { path: '/mcp', summary: 'MCP over JSON-RPC 2.0: one message or a batch', audienceOf: () => null },
  {
    path: '/mcp/p/:profile',
    summary: 'The same with the tools and resources of one profile of the configuration',
    audienceOf: () => null,
  },
];

/** `yielding`: how a batch yields to the event loop. `protectedOnes`: addresses beside /mcp that need a token. */
export function createMcpRoutes(
  deps: McpDeps,
  yielding: YieldToLoop = yieldToLoop,
  protectedOnes: readonly McpEndpoint[] = [],
): AnyRoute[] {
  const transport = new McpHttpHandler(deps, yielding);
  return [...OPEN_ENDPOINTS, ...protectedOnes].flatMap((endpoint) => routesOf(endpoint, transport));
}

function routesOf(endpoint: McpEndpoint, transport: McpHttpHandler): AnyRoute[] {
  const isProtected = endpoint.challenge !== undefined;
  const own = {
    path: endpoint.path,
    spec: '4.1',
    slashToo: true,
    group: 'mcp',
    auth: 'none',
    limits: ['Self'],
    refusal,
    ...(isProtected ? ({ anyOrigin: true } as const) : {}),
  } as const;
  const isProfile = endpoint.path.includes('/:profile');
  const refusals: readonly ErrorName[] = [
    ...(isProtected ? (['TokenRequired'] as const) : []),
    ...(isProfile ? (['NotFound'] as const) : []),
  ];
  const params = isProfile ? { params: PROFILE_PARAMS } : {};
  return [
    defineRoute({
      ...own,
      method: 'POST',
      summary: endpoint.summary,
      description: MCP_DESCRIPTION,
      docs: { ...describeMcp(BUILT_IN.tools), ...params },
      body: 'raw',
      bodyMaxBytes: BODY_MAX_BYTES,
      errors: [
        'ParseError',
        'UnsupportedMediaType',
        ...refusals,
        ...(isProtected ? (['InsufficientScope'] as const) : []),
      ],
      handle: (context) => transport.post(context, endpoint),
    }),
    defineRoute({
      ...own,
      method: 'GET',
      notOffered: true,
      summary: 'No event stream is offered here',
      description:
        'Always 405. Clients of later versions of the protocol ask for a stream first and go on without.',
      docs: {
        ...params,
        answers: {},
      },
      errors: ['MethodNotAllowed', ...refusals],
      handle: (context) => transport.get(context, endpoint),
    }),
    defineRoute({
      ...own,
      method: 'DELETE',
      summary: 'End an Mcp-Session-Id',
      description:
        'The bearer lives on; messages with the ended id are 404 from then on. An id of another account, or one that was not issued here, is 404. Without the field the answer is 405.',
      docs: {
        ...params,
        reads: { 'Mcp-Session-Id': 'optional' },
        answers: { 204: { description: 'It is ended' } },
        examples: { usual: { headers: { 'Mcp-Session-Id': MCP_SESSION_EXAMPLE } } },
      },
      errors: ['MethodNotAllowed', 'NotFound', ...refusals],
      handle: (context) => transport.end(context, endpoint),
    }),
  ];
}

class McpHttpHandler {
  readonly #sessions: SessionLookup;
  readonly #dispatcher: McpDispatcher;
  readonly #stateless: StatelessMessages;
  readonly #signals: NodeSignals;
  readonly #sessionIds: McpSessionIds;
  readonly #yieldToLoop: YieldToLoop;

  constructor(deps: McpDeps, yieldToLoop: YieldToLoop) {
    this.#sessions = deps.sessions;
    this.#dispatcher = new McpDispatcher(deps);
    this.#stateless = new StatelessMessages(this.#dispatcher);
    this.#signals = deps.signals;
    this.#sessionIds = deps.sessionIds;
    this.#yieldToLoop = yieldToLoop;
  }

  /** No event stream is offered. */
  get(context: RouteContext, endpoint: McpEndpoint): Reply {
    this.#requireProfile(context, endpoint);
    const authentication = this.#authenticate(context, endpoint, 1);
    return challengeTo(authentication, context, endpoint) ?? notAllowed();
  }

  async end(context: RouteContext, endpoint: McpEndpoint): Promise<Reply> {
    this.#requireProfile(context, endpoint);
    const authentication = this.#authenticate(context, endpoint, 1);
    const challenged = challengeTo(authentication, context, endpoint);
    if (challenged !== undefined) return challenged;
    const sessionId = context.header('mcp-session-id');
    if (sessionId === undefined) return notAllowed();
    if (!this.#sessionIds.mayEnd(sessionId, sessionOf(authentication)))
      throw new GatewayError('NotFound', 'this Mcp-Session-Id is not one of yours');
    await this.#signals.end(sessionId);
    return Reply.empty(204);
  }

  post(context: RouteContext, endpoint: McpEndpoint): Reply | Promise<Reply> {
    if (context.params['profile'] !== undefined) this.#requireProfile(context, endpoint);
    if (endpoint.challenge !== undefined) return this.#answer(context, endpoint);
    return this.#refusedHead(context, endpoint) ?? this.#answer(context, endpoint);
  }

  /** Throws `NotFound` for an address of no profile, which costs as much as a message. */
  #requireProfile(context: RouteContext, endpoint: McpEndpoint): void {
    if (this.#dispatcher.hasProfile(context)) return;
    this.#authenticate(context, endpoint, 1);
    throw new GatewayError('NotFound', 'there is no such profile');
  }

  #authenticate(context: RouteContext, endpoint: McpEndpoint, cost: number): Authentication {
    return authenticate(this.#sessions, context, cost, endpoint.audienceOf(context));
  }

  /** Refuses by the head alone, charged as one message. Where a token is needed, it is checked first. */
  #refusedHead(context: RouteContext, endpoint: McpEndpoint): Reply | undefined {
    const isCharged = endpoint.challenge !== undefined;
    if (!JSON_TYPE.test(context.header('content-type') ?? '')) {
      if (!isCharged) this.#authenticate(context, endpoint, 1);
      throw new GatewayError('UnsupportedMediaType', 'Content-Type must be application/json');
    }
    if (askedRevision(context) !== 'handshake') return undefined;
    if (!this.#signals.ended.has(context.header('mcp-session-id'))) return undefined;
    if (!isCharged) this.#authenticate(context, endpoint, 1);
    const ended = rpcFailure(undefined, 'NotFound', 'this Mcp-Session-Id was ended, initialize again');
    return rpcReply(404, ended);
  }

  #answer(context: RouteContext, endpoint: McpEndpoint): Reply | Promise<Reply> {
    const body = readBody(context.rawBody);
    const id = body.kind === 'single' ? idOf(body.message) : undefined;
    let authentication: Authentication;
    try {
      const cost = body.kind === 'batch' ? body.messages.length : 1;
      authentication = this.#authenticate(context, endpoint, cost);
    } catch (error) {
      return failureReply(error, id, context);
    }
    if (endpoint.challenge !== undefined) {
      if (authentication.kind !== 'session') return endpoint.challenge(context, authentication, id);
      const refused = this.#refusedHead(context, endpoint);
      if (refused !== undefined) return refused;
    }
    const asked = askedRevision(context);
    if (asked !== 'handshake') return this.#later(body, asked, context, authentication);
    if (body.kind === 'refused') {
      return rpcReply(errorRow(body.error).status, rpcFailure(undefined, body.error, body.detail));
    }
    return body.kind === 'single'
      ? this.#single(body.message, context, authentication, endpoint)
      : this.#batch(body.messages, context, authentication, endpoint);
  }

  /** A body of revision 2026-07-28, or of one that is not known. */
  #later(
    body: RpcBody,
    asked: Exclude<AskedRevision, 'handshake'>,
    context: RouteContext,
    authentication: Authentication,
  ): Reply | Promise<Reply> {
    if (asked !== 'stateless')
      return unsupportedRevision(body.kind === 'single' ? idOf(body.message) : undefined, asked.unknown);
    if (body.kind === 'single') return this.#stateless.answer(body.message, context, authentication);
    const { error, detail } =
      body.kind === 'refused'
        ? body
        : ({ error: 'InvalidRequest', detail: 'send one message, not a batch' } as const);
    return rpcReply(400, rpcFailure(undefined, error, detail));
  }

  #single(
    message: RpcMessage,
    context: RouteContext,
    authentication: Authentication,
    endpoint: McpEndpoint,
  ): Reply | Promise<Reply> {
    if (message.kind === 'notification') {
      this.#dispatcher.onNotification(message, context, authentication);
      return accepted(context, endpoint);
    }
    if (message.kind === 'fault') {
      return ok(rpcFailure(message.id, message.error, message.detail));
    }
    try {
      requireHandshake(message);
      const progress = progressOf(message, context);
      const answer = this.#dispatcher.answer(message, context, authentication, progress);
      if (answer instanceof Promise) {
        const reply = answer.then(ok, (error) => failureReply(error, message.id, context));
        return progress?.reply(reply) ?? reply;
      }
      return message.method === 'initialize'
        ? rpcReply(200, answer, this.#sessionHeader(authentication, message))
        : ok(answer);
    } catch (error) {
      return failureReply(error, message.id, context);
    }
  }

  async #batch(
    messages: readonly RpcMessage[],
    context: RouteContext,
    authentication: Authentication,
    endpoint: McpEndpoint,
  ): Promise<Reply> {
    const due = messages.filter((message) => message.kind !== 'notification');
    const answers = new BatchAnswers(due.map(({ id }) => id));
    let isGone = false;
    context.onAbort(() => {
      isGone = true;
    });
    for (const [index, message] of messages.entries()) {
      if (index > 0 && index % SLICE_MESSAGES === 0) await this.#yieldToLoop();
      if (isGone) break;
      if (message.kind === 'notification') this.#dispatcher.onNotification(message, context, authentication);
      else if (message.kind === 'fault')
        answers.add(message.id, rpcFailure(message.id, message.error, message.detail));
      else if (answers.isFull) answers.addTooLarge(message.id);
      else answers.add(message.id, this.#answerOf(message, context, authentication));
    }
    const whole = await answers.whole();
    if (whole === undefined) return accepted(context, endpoint);
    const begun = due.find((message) => message.kind === 'request' && message.method === 'initialize');
    const headers = begun?.kind === 'request' ? this.#sessionHeader(authentication, begun) : [];
    return new Reply(200, whole, 'application/json', headers, undefined, answers.error);
  }

  #sessionHeader(authentication: Authentication, { params }: RpcRequest): HeaderList {
    const id = this.#sessionIds.issue(sessionOf(authentication), declaresUrl(params['capabilities']));
    return [['Mcp-Session-Id', id]];
  }

  #answerOf(
    message: RpcRequest,
    context: RouteContext,
    authentication: Authentication,
  ): RpcAnswer | Promise<RpcAnswer> {
    const failed = (error: unknown) => failureOf(error, message.id);
    try {
      const answer = this.#dispatcher.answer(message, context, authentication);
      return answer instanceof Promise ? answer.catch(failed) : answer;
    } catch (error) {
      return failed(error);
    }
  }
}

function readBody(bytes: Buffer): RpcBody {
  try {
    const { text, value } = readJson(bytes);
    return readRpc(text, value);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { detail } = error;
    return { kind: 'refused', error: 'ParseError', ...(detail === undefined ? {} : { detail }) };
  }
}

function idOf(message: RpcMessage): string | undefined {
  return message.kind === 'notification' ? undefined : message.id;
}

/**
 * The answer to notifications and responses. From 2025-03-26 on it is 202, and Codex ends the handshake at a 200 without a media
 * type. Spec 4.1 has 200, as 2024-11-05 does, which knows no `MCP-Protocol-Version`.
 */
function accepted(context: RouteContext, { challenge }: McpEndpoint): Reply {
  return Reply.empty(challenge !== undefined || namesRevision(context) ? 202 : 200);
}

/** The answer to a caller without a session, where the endpoint needs one. */
function challengeTo(
  authentication: Authentication,
  context: RouteContext,
  { challenge }: McpEndpoint,
): Reply | undefined {
  return authentication.kind === 'session' ? undefined : challenge?.(context, authentication, undefined);
}

function sessionOf(authentication: Authentication): SessionContext | undefined {
  return authentication.kind === 'session' ? authentication.session : undefined;
}

function notAllowed(): Reply {
  return errorReply(new GatewayError('MethodNotAllowed'), [['Allow', METHODS]]);
}

const ok = (answer: RpcAnswer) => rpcReply(200, answer);

/** Limits, overload and a stop are JSON-RPC errors. Other refusals before the body keep the REST envelope. */
function refusal(error: GatewayError): Reply | undefined {
  const { status } = errorRow(error.row);
  const isLimit = error.row === 'AccessRateLimit';
  if (status < 500 && !isLimit) return undefined;
  const retry = isLimit ? error.retryAfterSeconds : undefined;
  return rpcReply(status, rpcFailure(undefined, error.row, error.detail, retry));
}
