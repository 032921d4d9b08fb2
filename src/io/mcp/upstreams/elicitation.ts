/**
 * Asks a client that opens addresses for a login at another MCP server: by an error in revisions with a handshake (2025-11-25,
 * "URL Elicitation Required Error"), by a result in 2026-07-28 ("Multi Round-Trip Requests"), where the repeated call waits.
 */
import { randomUUID } from 'node:crypto';
import { isSessionAlive } from '../../http/checks/session-lookup.ts';
import type { BackendCalls, ToolCall } from '../calls/backend-call.ts';
import { isObject, type JsonObject } from '../input-schema.ts';
import { CAPABILITIES_KEY } from '../request-headers.ts';
import { errorWithData, RpcFailure, type RpcRequest, resultEnvelope } from '../rpc.ts';
import type { McpSessionIds } from '../session-ids.ts';
import { loginAddress, loginDetail } from './answers.ts';
import { callUpstream, type UpstreamCall, type UpstreamOutcome } from './calls.ts';
import type { UpstreamServer } from './types.ts';

/** Name of the input that the client is asked for, in the result and in the request that it repeats. */
const INPUT = 'login';

/** True if capabilities of a client have `elicitation.url`. */
export function declaresUrl(capabilities: unknown): boolean {
  const elicitation = isObject(capabilities) ? capabilities['elicitation'] : undefined;
  return isObject(elicitation) && isObject(elicitation['url']);
}

interface LoginCalls extends BackendCalls {
  readonly sessionIds: McpSessionIds;
}

/** `asksLogin`: to be answered with `loginRequest`. */
type LoginOutcome = UpstreamOutcome | { readonly kind: 'asksLogin' };

/** A call without credentials was not executed: it is sent once more when the person has connected the server meanwhile. */
export async function callWithLogin(backend: LoginCalls, given: UpstreamCall): Promise<LoginOutcome> {
  const { request, call, server } = given;
  const { personal } = server;
  const { caller } = call;
  if (personal === undefined || caller.kind !== 'session') return callUpstream(backend, given);
  const { userId } = caller.session;
  const action = call.inputRequired === undefined ? undefined : actionOf(request);
  const formerMs = action === 'accept' ? personal.connectedMs(userId) : undefined;
  const outcome = await callUpstream(backend, given);
  if (outcome.kind !== 'loginRequired' || !mayAsk(request, call, backend.sessionIds)) return outcome;
  if (action === undefined) return { kind: 'asksLogin' };
  if (action !== 'accept') return outcome;
  const isConnected = await personal.connected(userId, formerMs, (listener) =>
    call.context.onAbort(listener),
  );
  // The session may have ended during the wait.
  const { id } = caller.session;
  return isConnected && isSessionAlive(call.context.actors, userId, id)
    ? callUpstream(backend, given)
    : outcome;
}

function mayAsk(
  { params }: RpcRequest,
  { context, caller, inputRequired }: ToolCall,
  ids: McpSessionIds,
): boolean {
  if (inputRequired !== undefined) {
    const meta = params['_meta'];
    return isObject(meta) && declaresUrl(meta[CAPABILITIES_KEY]);
  }
  const id = context.header('mcp-session-id');
  return id !== undefined && caller.kind === 'session' && ids.asksByUrl(id, caller.session);
}

/** Returns the person's action when the client asked: undefined in a request that repeats none. */
function actionOf({ params }: RpcRequest): string | undefined {
  const responses = params['inputResponses'];
  const response = isObject(responses) && Object.hasOwn(responses, INPUT) ? responses[INPUT] : undefined;
  const action = isObject(response) ? response['action'] : undefined;
  return typeof action === 'string' ? action : undefined;
}

/**
 * The address is that of the home page and has nothing of the request: a person who opens it connects the server for their own
 * account. No stream leads to clients with a handshake, so none is notified of the end (`notifications/elicitation/complete`).
 */
export function loginRequest(server: UpstreamServer, call: ToolCall): string | RpcFailure {
  const params: JsonObject = {
    mode: 'url',
    url: loginAddress(server, call),
    message: `Connect ${server.title} to use it here.`,
  };
  const { id, inputRequired } = call;
  if (inputRequired !== undefined) {
    const inputRequests = JSON.stringify({ [INPUT]: { method: 'elicitation/create', params } });
    return resultEnvelope(id, `{${inputRequired}"inputRequests":${inputRequests}}`);
  }
  const elicitations = [{ ...params, elicitationId: randomUUID() }];
  const row = 'UrlElicitationRequired';
  return new RpcFailure(row, errorWithData(id, row, loginDetail(server, call), { elicitations }));
}
