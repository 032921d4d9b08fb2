/**
 * Messages of calls to another MCP server. The text of arguments goes out as the caller wrote it, and the text of a result
 * comes back as the server wrote it: numbers keep every digit, unknown members stay.
 */
import { hasMoreValues, memberSpan, memberSpans } from '../../../domain/raw-json.ts';
import type { AnswerReader } from '../../http-client/types.ts';
import { LineBuffer } from '../../modules/line-buffer.ts';
import type { ProgressReport } from '../../modules/streamed-answer.ts';
import { isObject, type JsonObject } from '../input-schema.ts';
import { paramText, type RpcRequest } from '../rpc.ts';

/** JSON values of one message: reading it takes time for each of them. */
const VALUES_MAX = 100_000;
/** JSON-RPC 2.0: an internal error. */
const UNNAMED_ERROR = -32603;
/** Members of `_meta` that the gateway sets itself, or that are between it and its caller. */
const OWN_META = /^(?:progressToken|traceparent|tracestate|baggage|io\.modelcontextprotocol\/.*)$/;

/**
 * The body of a request of a caller, by the name that the server knows. `id`: JSON text, which is the token of its progress
 * too.
 */
export function callMessage(
  id: string,
  ownName: string,
  request: RpcRequest,
  wantsProgress: boolean,
): string {
  const { method } = request;
  const meta = metaOf(request, wantsProgress ? [`"progressToken":${id}`] : []);
  const name = JSON.stringify(ownName);
  const params =
    method === 'resources/read' ? `"uri":${name}` : `"name":${name},"arguments":${valuesOf(request)}`;
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params}${meta}}}`;
}

function valuesOf(request: RpcRequest): string {
  const given = paramText(request, 'arguments');
  return given === undefined || given === 'null' ? '{}' : given;
}

function metaOf(request: RpcRequest, members: string[]): string {
  const text = request.params['_meta'] === undefined ? undefined : paramText(request, '_meta');
  if (text !== undefined)
    for (const [key, { start, end }] of memberSpans(text))
      if (!OWN_META.test(key)) members.push(`${JSON.stringify(key)}:${text.slice(start, end)}`);
  return members.length === 0 ? '' : `,"_meta":{${members.join(',')}}`;
}

export function cancelMessage(id: string): string {
  return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`;
}

/** The gateway declares no capability, so a server that asks it for something gets this. */
export function refusalMessage(id: string, method: string): string {
  const answer =
    method === 'ping'
      ? '"result":{}'
      : '"error":{"code":-32601,"message":"a gateway answers no requests of a server"}';
  return `{"jsonrpc":"2.0","id":${id},${answer}}`;
}

/** The response to a call. */
export type UpstreamResponse =
  | { readonly kind: 'result'; readonly text: string; readonly isError: boolean }
  | { readonly kind: 'error'; readonly code: number; readonly message: string }
  /** No response to this call, or no JSON. */
  | { readonly kind: 'invalid' }
  | { readonly kind: 'tooLarge' };

export function readResponse(text: string, id: string): UpstreamResponse {
  const value = parsedMessage(text);
  if (!isObject(value)) return { kind: value === 'tooLarge' ? 'tooLarge' : 'invalid' };
  if (JSON.stringify(value['id']) !== id) return { kind: 'invalid' };
  const { result, error } = value;
  if (isObject(error)) {
    const { code, message } = error;
    return {
      kind: 'error',
      code: typeof code === 'number' && Number.isFinite(code) ? code : UNNAMED_ERROR,
      message: typeof message === 'string' ? message : 'failed',
    };
  }
  const span = memberSpan(text, 'result');
  if (!isObject(result) || span === undefined) return { kind: 'invalid' };
  return { kind: 'result', text: text.slice(span.start, span.end), isError: result['isError'] === true };
}

/** `members` are those that results of the caller's revision begin with, a comma behind each. */
export function withMembers(result: string, members: string): string {
  if (members === '') return result;
  const given = memberSpans(result);
  if (!given.has('_meta') && !given.has('resultType')) {
    const inner = result.slice(result.indexOf('{') + 1);
    return /^\s*\}/.test(inner) ? `{${members.slice(0, -1)}}` : `{${members}${inner}`;
  }
  const own = `{${members.slice(0, -1)}}`;
  const parts = [...memberSpans(own)].map(([key, span]) => {
    const there = given.get(key);
    const text = own.slice(span.start, span.end);
    if (key !== '_meta' || there === undefined) return `${JSON.stringify(key)}:${text}`;
    const theirs = result.slice(there.start, there.end);
    return `"_meta":${withMembers(theirs.startsWith('{') ? theirs : '{}', `${text.slice(1, -1)},`)}`;
  });
  const kept = [...given].filter(([key]) => !memberSpan(own, key));
  const rest = kept.map(([key, { start, end }]) => `${JSON.stringify(key)}:${result.slice(start, end)}`);
  return `{${[...parts, ...rest].join(',')}}`;
}

interface StreamListener {
  /** JSON text. */
  readonly id: string;
  onProgress(report: ProgressReport): void;
  /** A request of the server; `id`: JSON text. */
  onRequest(id: string, method: string): void;
  /** The response is there; the server may keep the stream open all the same. */
  onResponse(): void;
}

/** An answer that is an event stream: progress and requests of the server, then the response, which is its body. */
export class UpstreamStream implements AnswerReader {
  readonly #listener: StreamListener;
  readonly #lines = new LineBuffer();
  #data: string[] = [];
  #response: string | undefined;

  constructor(listener: StreamListener) {
    this.#listener = listener;
  }

  read(bytes: Buffer): string | undefined {
    return this.#lines.read(bytes, (line) => this.#line(line.endsWith('\r') ? line.slice(0, -1) : line));
  }

  end(): Buffer | undefined {
    return this.#response === undefined ? undefined : Buffer.from(this.#response);
  }

  #line(line: string): string | undefined {
    if (line === '') return this.#event();
    if (line.startsWith('data:')) this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
    return undefined;
  }

  #event(): string | undefined {
    const text = this.#data.join('\n');
    this.#data = [];
    if (text === '' || this.#response !== undefined) return undefined;
    const message = parsedMessage(text);
    if (!isObject(message))
      return message === 'tooLarge' ? 'an event with too many values' : 'an event that is no JSON';
    const { method } = message;
    const id = idTextOf(text, message);
    if (typeof method !== 'string') {
      if (id !== this.#listener.id) return undefined;
      this.#response = text;
      this.#listener.onResponse();
    } else if (id !== undefined) this.#listener.onRequest(id, method);
    else if (method === 'notifications/progress') this.#progress(message['params']);
    return undefined;
  }

  #progress(params: unknown): void {
    const progress = progressOf(params);
    if (progress?.token === this.#listener.id) this.#listener.onProgress(progress.report);
  }
}

/** The report of a progress notification; `token`: the JSON text of the id that it names. */
export function progressOf(params: unknown): { token: string; report: ProgressReport } | undefined {
  if (!isObject(params)) return undefined;
  const { progressToken, progress, total, message } = params;
  if (!Number.isFinite(progress)) return undefined;
  const report = {
    progress: progress as number,
    ...(Number.isFinite(total) ? { total: total as number } : {}),
    ...(typeof message === 'string' ? { message } : {}),
  };
  return { token: JSON.stringify(progressToken) ?? '', report };
}

/** Undefined for a text that is no JSON. */
export function parsedMessage(text: string): unknown | 'tooLarge' {
  if (hasMoreValues(text, VALUES_MAX)) return 'tooLarge';
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function idTextOf(text: string, message: JsonObject): string | undefined {
  if (typeof message['id'] !== 'string' && typeof message['id'] !== 'number') return undefined;
  const span = memberSpan(text, 'id');
  return span === undefined ? undefined : text.slice(span.start, span.end);
}
