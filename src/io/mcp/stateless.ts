/**
 * Messages of revision 2026-07-28: one request a POST, without a session. Results are those of the other revisions with
 * `resultType`, the identity of the server and, where clients may cache them, `ttlMs` and `cacheScope`.
 */
import type { CallerClass } from '../../domain/access.ts';
import { type ErrorName, errorRow, GatewayError } from '../../domain/errors.ts';
import { StreamReply } from '../http/exchange/stream.ts';
import { Reply, type RouteContext } from '../http/table/route.ts';
import type { Authentication } from './authenticate.ts';
import type { CatalogView } from './catalog.ts';
import { type McpDispatcher, serverInfo } from './dispatcher.ts';
import { requireHeaderParams } from './header-params.ts';
import { instructionsFor } from './instructions.ts';
import { type ProgressStream, progressOf } from './progress.ts';
import { failureReply, rpcReply } from './replies.ts';
import { requireMatchingHead } from './request-headers.ts';
import { REVISION_NAMES } from './revisions.ts';
import {
  errorWithData,
  type RpcAnswer,
  RpcFailure,
  type RpcMessage,
  type RpcRequest,
  resultEnvelope,
} from './rpc.ts';

/** Milliseconds for which a client may keep a list. A reload of the catalog, which is rare, changes it. */
const LIST_TTL_MS = 60_000;
const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { listChanged: true },
  prompts: { listChanged: true },
};

/** HTTP statuses that differ from those of the error table. A client takes 403 for a refusal of the gateway's own token. */
const STATUSES: Partial<Record<ErrorName, number>> = {
  MethodNotFound: 404,
  InvalidRequest: 400,
  UpstreamLoginRequired: 200,
};

/** A stream is a reply of its own. */
type Answer = RpcAnswer | StreamReply | Promise<RpcAnswer | StreamReply>;
type Method = (
  request: RpcRequest,
  context: RouteContext,
  authentication: Authentication,
  progress: ProgressStream | undefined,
) => Answer;

/** JSON text that results begin with, a comma behind each member: `resultType`, `_meta` with the server, life in caches. */
interface Members {
  readonly calls: string;
  readonly reads: string;
  /** Members of a result that asks the client for something. */
  readonly inputRequired: string;
  readonly publicLists: string;
  readonly privateLists: string;
}

export class StatelessMessages {
  readonly #dispatcher: McpDispatcher;
  readonly #methods: Readonly<Record<string, Method>>;
  /** Members by the shown part of the catalog: the whole or a profile. */
  readonly #members = new WeakMap<CatalogView, Members>();

  constructor(dispatcher: McpDispatcher) {
    this.#dispatcher = dispatcher;
    const list: Method = (request, context, authentication) => this.#list(request, context, authentication);
    const call: Method = (...request) => this.#call(...request);
    this.#methods = {
      'server/discover': ({ id }, context, authentication) =>
        resultEnvelope(id, this.#discovered(context, authentication)),
      'tools/list': list,
      'resources/list': list,
      'resources/templates/list': list,
      'prompts/list': list,
      'prompts/get': call,
      'subscriptions/listen': (request, context, authentication) =>
        this.#dispatcher.listen(request, context, authentication),
      'tools/call': call,
      'resources/read': call,
    };
  }

  /** Answers the one message of a request. */
  answer(message: RpcMessage, context: RouteContext, authentication: Authentication): Reply | Promise<Reply> {
    if (message.kind === 'notification') return Reply.empty(202);
    if (message.kind === 'fault')
      return this.#failure(new GatewayError(message.error, message.detail), message, context);
    try {
      requireMatchingHead(message, context);
      const method = Object.hasOwn(this.#methods, message.method) ? this.#methods[message.method] : undefined;
      if (method === undefined) throw new GatewayError('MethodNotFound');
      const progress = progressOf(message, context);
      const answer = method(message, context, authentication, progress);
      if (!(answer instanceof Promise)) return replyOf(answer);
      const reply = answer.then(replyOf, (error) => this.#failure(error, message, context));
      return progress?.reply(reply) ?? reply;
    } catch (error) {
      return this.#failure(error, message, context);
    }
  }

  #discovered(context: RouteContext, authentication: Authentication): string {
    const instructions = instructionsFor(this.#dispatcher.viewOf(context), authentication);
    const facts = { supportedVersions: REVISION_NAMES, capabilities: CAPABILITIES, instructions };
    const { publicLists, privateLists } = this.#membersOf(context);
    const isConnected = authentication.kind === 'session' && authentication.session.grant !== undefined;
    return `{${isConnected ? privateLists : publicLists}${JSON.stringify(facts).slice(1)}`;
  }

  #list(request: RpcRequest, context: RouteContext, authentication: Authentication): Answer {
    requireFirstPage(request);
    const { publicLists, privateLists } = this.#membersOf(context);
    return this.#dispatcher.list(request, context, authentication, (caller: CallerClass) =>
      caller === 'anonymous' ? publicLists : privateLists,
    );
  }

  /** A module's answers may change at any time, so a read may not be cached. */
  #call(...[request, context, authentication, progress]: Parameters<Method>): Answer {
    const { name, arguments: values } = request.params;
    if (request.method === 'tools/call')
      requireHeaderParams(this.#dispatcher.headerParamsOf(name), values, context);
    const { calls, reads, inputRequired } = this.#membersOf(context);
    const members = request.method === 'resources/read' ? reads : calls;
    return this.#dispatcher.call(request, context, authentication, { progress, members, inputRequired });
  }

  #membersOf(context: RouteContext): Members {
    const view = this.#dispatcher.viewOf(context);
    const known = this.#members.get(view);
    if (known !== undefined) return known;
    const facts = JSON.stringify(serverInfo(context, view));
    const meta = `"_meta":{"io.modelcontextprotocol/serverInfo":${facts}},`;
    const calls = `"resultType":"complete",${meta}`;
    const made = {
      calls,
      inputRequired: `"resultType":"input_required",${meta}`,
      reads: `${calls}"ttlMs":0,"cacheScope":"private",`,
      publicLists: `${calls}"ttlMs":${LIST_TTL_MS},"cacheScope":"public",`,
      privateLists: `${calls}"ttlMs":${LIST_TTL_MS},"cacheScope":"private",`,
    };
    this.#members.set(view, made);
    return made;
  }

  #failure(
    error: unknown,
    { id, ...message }: RpcMessage & { id?: string | undefined },
    context: RouteContext,
  ): Reply {
    if (!(error instanceof GatewayError)) throw error;
    if (error.row === 'ResourceNotFound') {
      const uri = 'params' in message ? message.params['uri'] : undefined;
      const text = errorWithData(id, 'InvalidParams', 'resource not found', { uri });
      return rpcReply(200, new RpcFailure(error.row, text));
    }
    const status = STATUSES[error.row] ?? errorRow(error.row).status;
    const reply = failureReply(error, id, context);
    return reply.status !== 200 || status < 400 || status >= 500
      ? reply
      : new Reply(status, reply.body, reply.contentType, reply.headers, undefined, error.row);
  }
}

/** 400 with the revisions that are served, whatever the message is. */
export function unsupportedRevision(id: string | undefined, requested: string): Reply {
  const text = errorWithData(id, 'UnsupportedRevision', undefined, {
    supported: REVISION_NAMES,
    requested,
  });
  return rpcReply(errorRow('UnsupportedRevision').status, new RpcFailure('UnsupportedRevision', text));
}

function replyOf(answer: RpcAnswer | StreamReply): Reply {
  return answer instanceof StreamReply ? answer : rpcReply(200, answer);
}

/** All lists have one page, so no cursor was ever given out. Null counts as none. */
function requireFirstPage({ params }: RpcRequest): void {
  const { cursor } = params;
  if (cursor !== undefined && cursor !== null) throw new GatewayError('InvalidParams', 'unknown cursor');
}
