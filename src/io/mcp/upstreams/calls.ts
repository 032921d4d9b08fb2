/**
 * Requests to another MCP server over the module client. A call is repeated only when the server refused it for a lost
 * session. The caller's bearer and identity never go there.
 */
import { performance } from 'node:perf_hooks';
import { GatewayError } from '../../../domain/errors.ts';
import type { Endpoint } from '../../http-client/endpoint.ts';
import type { ModuleAnswer, ModuleResult } from '../../http-client/types.ts';
import type { ModuleClient } from '../../modules/client.ts';
import type { ProgressReport } from '../../modules/streamed-answer.ts';
import { yieldToLoop } from '../batch.ts';
import { type BackendCalls, callBackend, type RunningCall, type ToolCall } from '../calls/backend-call.ts';
import { type CallInFlight, callScope } from '../calls/in-flight.ts';
import type { RpcRequest } from '../rpc.ts';
import {
  callMessage,
  cancelMessage,
  readResponse,
  refusalMessage,
  type UpstreamResponse,
  UpstreamStream,
  withMembers,
} from './message.ts';
import type {
  PersonalServer,
  PersonalSessions,
  UpstreamServer,
  UpstreamSession,
  UpstreamTool,
} from './types.ts';

const IS_EVENTS = /^text\/event-stream\s*(?:;|$)/i;
/** A server that keeps a stream open behind the response is waited for so long; then the connection is closed. */
const OPEN_STREAM_MS = 200;
const NOTIFICATION_MS = 5_000;
/** Requests of the server that are answered in one call. */
const REQUESTS_MAX = 16;
/** Bytes of an answer that is read and wrapped in one tick. */
const WHOLE_BYTES_MAX = 32 * 1024;

export interface UpstreamCall {
  readonly server: UpstreamServer;
  /** Name or URI there. */
  readonly ownName: string;
  readonly endpoint: Endpoint;
  readonly timeoutMs: number;
  readonly request: RpcRequest;
  readonly call: ToolCall;
  /** Tool of tools/call. */
  readonly tool?: UpstreamTool;
}

type Failure = Extract<ModuleResult, { ok: false }>;
export type UpstreamOutcome =
  /** `text`: the JSON of the result. */
  | { readonly kind: 'answer'; readonly text: string; readonly isError: boolean }
  /** An error of the server. */
  | { readonly kind: 'refused'; readonly code: number; readonly message: string }
  | { readonly kind: 'failed'; readonly result: Failure }
  /** The server takes no credentials that the caller has, or there are none. */
  | { readonly kind: 'loginRequired' }
  /** Another definition of the tool waits for an admin. */
  | { readonly kind: 'unapproved' };

/** The ids of calls differ from the numbers that the client library counts in the same session. */
let calls = 0;

export function callUpstream(backend: BackendCalls, given: UpstreamCall): Promise<UpstreamOutcome> {
  const { personal } = given.server;
  return personal === undefined ? callServer(backend, given) : callAsPerson(backend, given, personal);
}

/** A refused token is renewed, and the call, which was not executed, is repeated once. */
async function callAsPerson(
  backend: BackendCalls,
  given: UpstreamCall,
  personal: PersonalSessions,
): Promise<UpstreamOutcome> {
  const { caller } = given.call;
  if (caller.kind !== 'session') return { kind: 'loginRequired' };
  const { userId } = caller.session;
  try {
    const server = await personal.enter(userId);
    try {
      if (given.tool !== undefined && server.differs(given.tool)) return { kind: 'unapproved' };
      const { token } = server;
      const outcome = await callServer(backend, { ...given, server });
      if (outcome.kind !== 'loginRequired') return outcome;
      if (server.token.keyId === token.keyId) await personal.renew(userId, token);
      return await callServer(backend, { ...given, server });
    } finally {
      server.leave();
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    if (error.row === 'UpstreamLoginRequired') return { kind: 'loginRequired' };
    return failed('ModuleUnavailable', `no session: ${error.row}`);
  }
}

function callServer(backend: BackendCalls, given: UpstreamCall): Promise<UpstreamOutcome> {
  const { session } = given.server;
  if (session === undefined) return Promise.resolve(failed('ModuleUnavailable', 'no session'));
  const startedMs = performance.now();
  return attempt(backend, given, session, given.timeoutMs).then((ended) => {
    if (!isLost(ended, session)) return outcomeOf(ended, given);
    return repeated(backend, given, session, startedMs);
  });
}

async function repeated(
  backend: BackendCalls,
  given: UpstreamCall,
  lost: UpstreamSession,
  startedMs: number,
): Promise<UpstreamOutcome> {
  const session = await renewedFor(backend, given, lost);
  if (session === 'cancelled') return failed('Aborted', 'the caller left or cancelled');
  if (session === undefined) return failed('ModuleUnavailable', 'the session is lost');
  const leftMs = given.timeoutMs - (performance.now() - startedMs);
  if (leftMs <= 0) return failed('ModuleTimedOut', 'deadline');
  const ended = await attempt(backend, given, session, Math.ceil(leftMs));
  return outcomeOf(ended, given);
}

/** Meanwhile the call can be cancelled as while it runs. */
async function renewedFor(
  { inFlight }: BackendCalls,
  { server, call }: UpstreamCall,
  lost: UpstreamSession,
): Promise<UpstreamSession | undefined | 'cancelled'> {
  const scope = callScope(call);
  let flight: CallInFlight | undefined;
  const cancelled = new Promise<'cancelled'>((resolve) => {
    const stop = () => resolve('cancelled');
    call.context.onAbort(stop);
    if (scope !== undefined) flight = inFlight.begin(scope, call.id, stop);
  });
  try {
    return await Promise.race([server.renewed(lost), cancelled]);
  } finally {
    if (flight !== undefined) inFlight.done(flight);
  }
}

interface Ended {
  readonly id: string;
  readonly result: ModuleResult;
}

function attempt(
  backend: BackendCalls,
  { server, ownName, endpoint, request, call }: UpstreamCall,
  session: UpstreamSession,
  timeoutMs: number,
): Promise<Ended> {
  calls += 1;
  const id = `"g${calls}"`;
  let stream: UpstreamStream | undefined;
  let timer: NodeJS.Timeout | undefined;
  let asked = 0;
  const running: RunningCall = {};
  const stop = () => running.stop?.();
  const onProgress = (report: ProgressReport) => {
    call.progress?.begin(stop);
    call.progress?.report(report);
  };
  const openStream = () =>
    new UpstreamStream({
      id,
      onProgress,
      onRequest(requestId, method) {
        asked += 1;
        if (asked <= REQUESTS_MAX) post(backend.modules, server, session, refusalMessage(requestId, method));
      },
      onResponse() {
        timer = setTimeout(stop, OPEN_STREAM_MS);
      },
    });
  const sent = callBackend(backend, call, {
    method: 'POST',
    url: server.url,
    headers: headersOf(server, session),
    body: callMessage(id, ownName, request, call.progress !== undefined),
    timeoutMs,
    endpoint,
    channel: server.pipe?.channel(id, onProgress),
    running,
    readerOf: (status, contentType) => {
      if (status < 300 && IS_EVENTS.test(contentType)) stream = openStream();
      return stream;
    },
  });
  return sent.then((result) => {
    clearTimeout(timer);
    const body = result.ok ? undefined : stream?.end();
    const whole = body === undefined ? result : answered(body, result.elapsedMs);
    if (!whole.ok && (whole.error === 'Aborted' || whole.error === 'ModuleTimedOut'))
      post(backend.modules, server, session, cancelMessage(id));
    server.noteCall(whole);
    return { id, result: whole };
  });
}

/** The response had arrived before the connection ended. */
function answered(body: Buffer, elapsedMs: number): ModuleResult {
  return { ok: true, answer: { status: 200, contentType: 'text/event-stream', body }, elapsedMs };
}

/** Nothing waits for the answer, and none is needed: the server learns of it or does not. */
function post(modules: ModuleClient, server: UpstreamServer, session: UpstreamSession, body: string): void {
  if (server.pipe !== undefined) {
    server.pipe.notify(body);
    return;
  }
  void modules.call({
    method: 'POST',
    url: server.url,
    headers: headersOf(server, session),
    body,
    timeoutMs: NOTIFICATION_MS,
    endpoint: `mcp:${server.name}`,
  });
}

function headersOf({ headers }: UpstreamServer, { id, revision }: UpstreamSession): Record<string, string> {
  const own = {
    ...headers,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'mcp-protocol-version': revision,
  };
  return id === undefined ? own : { ...own, 'mcp-session-id': id };
}

/** A server that does not know the session refuses with 404, older ones with 400, and names no request. */
function isLost({ id, result }: Ended, session: UpstreamSession): boolean {
  if (!result.ok || session.id === undefined) return false;
  const { status, body } = result.answer;
  if (status !== 404 && status !== 400) return false;
  return body.length > WHOLE_BYTES_MAX || readResponse(body.toString('utf8'), id).kind !== 'error';
}

function outcomeOf(
  { id, result }: Ended,
  { call, server }: UpstreamCall,
): UpstreamOutcome | Promise<UpstreamOutcome> {
  if (!result.ok) return { kind: 'failed', result };
  const { answer } = result;
  if (answer.status === 401 && isPersonal(server)) return { kind: 'loginRequired' };
  if (answer.body.length > WHOLE_BYTES_MAX) return inSlices(id, answer, call);
  return read(readResponse(answer.body.toString('utf8'), id), answer, call);
}

function isPersonal(server: UpstreamServer): server is PersonalServer {
  return 'token' in server;
}

async function inSlices(id: string, answer: ModuleAnswer, call: ToolCall): Promise<UpstreamOutcome> {
  await yieldToLoop();
  call.context.noteWork(call.record.name);
  const text = answer.body.toString('utf8');
  await yieldToLoop();
  call.context.noteWork(call.record.name);
  const response = readResponse(text, id);
  await yieldToLoop();
  call.context.noteWork(call.record.name);
  return read(response, answer, call);
}

function read(response: UpstreamResponse, { status }: ModuleAnswer, { members }: ToolCall): UpstreamOutcome {
  if (response.kind === 'tooLarge') return failed('ModuleAnswerTooLarge', 'too many values');
  if (response.kind === 'error') return { ...response, kind: 'refused' };
  if (response.kind === 'invalid' || status >= 300)
    return failed('ModuleFailed', `no response, status ${status}`);
  return { kind: 'answer', text: withMembers(response.text, members), isError: response.isError };
}

function failed(error: Failure['error'], reason: string): Extract<UpstreamOutcome, { kind: 'failed' }> {
  return { kind: 'failed', result: { ok: false, error, reason, elapsedMs: 0 } };
}
