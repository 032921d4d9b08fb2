/**
 * JSON-RPC 2.0 on /mcp: parses bodies and builds envelopes. Ids keep their JSON text, so that integers above 2^53 and escaped
 * strings are returned unchanged.
 */

import { type ErrorName, errorRow, rpcCode } from '../../domain/errors.ts';
import { keepNewest } from '../../domain/limits/newest.ts';
import { itemSpans, memberSpan, type Span } from '../../domain/raw-json.ts';
import { isObject, type JsonObject } from './input-schema.ts';

/** Messages of one batch. */
export const BATCH_MAX = 100;

export interface RpcRequest {
  readonly kind: 'request';
  /** JSON text of the id. */
  readonly id: string;
  readonly method: string;
  readonly params: JsonObject;
  /** Position of the message in the body. */
  readonly text: string;
  readonly span: Span;
}

export type RpcMessage =
  | RpcRequest
  /** Gets no answer: a notification, or a response, although the gateway sends no requests. */
  | { readonly kind: 'notification'; readonly method: string; readonly text: string; readonly span: Span }
  | {
      readonly kind: 'fault';
      readonly id: string | undefined;
      readonly error: ErrorName;
      readonly detail: string;
    };

export type RpcBody =
  | { readonly kind: 'single'; readonly message: RpcMessage }
  | { readonly kind: 'batch'; readonly messages: readonly RpcMessage[] }
  /** Refused as a whole. */
  | { readonly kind: 'refused'; readonly error: 'ParseError' | 'InvalidRequest'; readonly detail?: string };

/** Reads a body that was decoded by `parse`, which throws on anything that is not acceptable JSON. */
export function readRpc(text: string, value: unknown): RpcBody {
  if (!Array.isArray(value)) return { kind: 'single', message: readMessage(text, wholeOf(text), value) };
  if (value.length === 0) return { kind: 'refused', error: 'InvalidRequest', detail: 'the batch is empty' };
  if (value.length > BATCH_MAX)
    return { kind: 'refused', error: 'InvalidRequest', detail: `a batch holds at most ${BATCH_MAX}` };
  const spans = itemSpans(text);
  return {
    kind: 'batch',
    messages: value.map((item, index) => readMessage(text, spans[index] ?? wholeOf(text), item)),
  };
}

function wholeOf(text: string): Span {
  return { start: 0, end: text.length };
}

function readMessage(text: string, span: Span, value: unknown): RpcMessage {
  if (!isObject(value)) return invalid(undefined, 'a message is an object');
  const { method, params } = value;
  const id = idOf(text, span, value);
  if (value['jsonrpc'] !== '2.0') return invalid(id, 'jsonrpc must be "2.0"');
  if (typeof method !== 'string') {
    // A response of the client; the gateway sends no requests, so it is ignored.
    if (method === undefined && ('result' in value || 'error' in value))
      return { kind: 'notification', method: '', text, span };
    return invalid(id, 'method must be a string');
  }
  // Spec 4.1 answers this notification with an empty body, although its example has an id.
  if (!('id' in value) || method === 'notifications/initialized')
    return { kind: 'notification', method, text, span };
  if (id === undefined) return invalid(undefined, 'id must be a string or a number');
  if (params === undefined || params === null)
    return { kind: 'request', id, method, params: NO_PARAMS, text, span };
  if (!isObject(params))
    return { kind: 'fault', id, error: 'InvalidParams', detail: 'params must be an object' };
  return { kind: 'request', id, method, params, text, span };
}

/** Ids whose answer is cached. An answer with all built-in tools has 40 KB. */
const KEPT_MAX = 16;
/** Characters of a cached id. V8 keeps the whole body alive for a longer substring. */
const KEPT_ID_MAX = 12;
const NO_PARAMS: JsonObject = Object.freeze({});

function invalid(id: string | undefined, detail: string): RpcMessage {
  return { kind: 'fault', id, error: 'InvalidRequest', detail };
}

function idOf(text: string, span: Span, value: JsonObject): string | undefined {
  if (typeof value['id'] !== 'string' && typeof value['id'] !== 'number') return undefined;
  const found = memberSpan(text, 'id', span.start);
  return found === undefined ? undefined : text.slice(found.start, found.end);
}

/** JSON text of `params.<name>` of a message, as sent. */
export function paramText(message: { text: string; span: Span }, name: string): string | undefined {
  const found = paramSpan(message, name);
  return found === undefined ? undefined : message.text.slice(found.start, found.end);
}

export function paramSpan(message: { text: string; span: Span }, name: string): Span | undefined {
  const params = memberSpan(message.text, 'params', message.span.start);
  return params === undefined ? undefined : memberSpan(message.text, name, params.start);
}

/** An answer with a `result` in JSON text. */
export function resultEnvelope(id: string, resultJson: string): string {
  return `${envelopeStart(id)}${resultJson}}`;
}

const ENVELOPE_END = Buffer.from('}');

function envelopeStart(id: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":`;
}

/**
 * Caches answers with the same long `result` as bytes, by their ids. There are few different ids, because clients count from
 * the start.
 */
export class RepeatedResult {
  readonly #result: Buffer;
  readonly #answers = new Map<string, Buffer>();
  #extended: RepeatedResult | undefined;

  constructor(resultJson: string) {
    this.#result = Buffer.from(resultJson);
  }

  answer(id: string): Buffer {
    const kept = this.#answers.get(id);
    if (kept !== undefined) return kept;
    // Encoded once; an answer with an id that is not cached costs a copy.
    const made = Buffer.concat([Buffer.from(envelopeStart(id)), this.#result, ENVELOPE_END]);
    if (id.length > KEPT_ID_MAX) return made;
    keepNewest(this.#answers, KEPT_MAX, id, made);
    return made;
  }

  toString(): string {
    return this.#result.toString();
  }

  get sizeBytes(): number {
    return this.#result.length;
  }

  /** The same result with further members in front, a comma behind each. They depend on the gateway alone: the first are kept. */
  withMembers(members: string): RepeatedResult {
    this.#extended ??= new RepeatedResult(`{${members}${this.toString().slice(1)}`);
    return this.#extended;
  }
}

/** JSON text, or its cached bytes. */
export type RpcText = string | Buffer;
export type RpcAnswer = RpcText | RpcFailure;

/** The text of an answer together with the failure that the log names. */
export class RpcFailure {
  readonly text: string;
  readonly error: ErrorName;

  constructor(error: ErrorName, text: string) {
    this.error = error;
    this.text = text;
  }
}

/** An `errorEnvelope` that the log names. */
export function rpcFailure(
  id: string | undefined,
  error: ErrorName,
  detail?: string,
  retryAfterSeconds?: number,
): RpcFailure {
  return new RpcFailure(error, errorEnvelope(id, error, detail, retryAfterSeconds));
}

/**
 * Clients cannot read `id: null` , so the member is left out without an id. The message of a limit is that of the
 * table; `data` names the limit.
 */
export function errorEnvelope(
  id: string | undefined,
  error: ErrorName,
  detail?: string,
  retryAfterSeconds?: number,
): string {
  const limited = error === 'AccessRateLimit';
  const facts = limited && detail !== undefined ? { retryAfterSeconds, detail } : { retryAfterSeconds };
  const data = retryAfterSeconds === undefined ? undefined : facts;
  return errorWithData(id, error, limited ? undefined : detail, data);
}

/** An error whose `data` is for programs. */
export function errorWithData(
  id: string | undefined,
  error: ErrorName,
  detail: string | undefined,
  data: object | undefined,
): string {
  const words = errorRow(error).message;
  const message = JSON.stringify(detail === undefined ? words : `${words}: ${detail}`);
  const shownId = id === undefined ? '' : `"id":${id},`;
  const shownData = data === undefined ? '' : `,"data":${JSON.stringify(data)}`;
  return `{"jsonrpc":"2.0",${shownId}"error":{"code":${rpcCode(error)},"message":${message}${shownData}}}`;
}
