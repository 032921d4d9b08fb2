/**
 * The one writer of answers. Every header value passes here: uWebSockets.js copies CR and LF into the stream as they
 * are, so a value that is not plain text throws instead. All is judged before the first byte is written.
 */
import { STATUS_CODES } from 'node:http';
import { type ErrorName, errorRow, type GatewayError } from '../../domain/errors.ts';
import type { Verdict } from '../../domain/quotas.ts';
import { type HeaderList, Reply } from './route.ts';
import type { HttpResponse } from './server.ts';

/** RFC 9110 5.5 without obs-text. */
const VALUE_PATTERN = /^[\t\x20-\x7e]*$/;
/** RFC 9110 5.1: a token. */
const NAME_PATTERN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The usual type, known to be fit. */
const JSON_TYPE = 'application/json';

/**
 * Two fields in one call, as the three of the limits below: each call crosses into native code with two strings. Only
 * texts that are made here may hold a line break.
 */
const NOSNIFF_UNSTORED = 'nosniff\r\nCache-Control: no-store';

/** What an answer needs beside the reply. */
export interface AnswerFacts {
  /** Echoed or made here; fits a header by its pattern. */
  readonly requestId: string;
  readonly cors: HeaderList;
  /** What `X-RateLimit` shows; undefined on requests that no limit met. */
  readonly verdict: Verdict | undefined;
  readonly windowSeconds: number;
  /** HEAD: the length is named, the body is not sent. */
  readonly headOnly: boolean;
  /** The connection ends after this answer. */
  readonly close: boolean;
  /** More of the request may still arrive. Cutting the connection then would lose the answer in most clients. */
  readonly bodyPending: boolean;
}

/** Writes an answer whole; the bytes of its body. Call it corked. Throws before writing when a header is unfit. */
export function writeAnswer(response: HttpResponse, reply: Reply, facts: AnswerFacts): number {
  writeFields(response, reply, facts);
  return writeBody(response, reply, facts);
}

/** Writes the head of an answer that leaves piece by piece. Call it corked. Throws as `writeAnswer` does. */
export function writeHead(response: HttpResponse, reply: Reply, facts: AnswerFacts): void {
  writeFields(response, reply, facts);
  if (facts.close) response.writeHeader('Connection', 'close');
}

function writeFields(response: HttpResponse, reply: Reply, facts: AnswerFacts): void {
  const { headers, contentType } = reply;
  for (const [name, value] of headers) checkHeader(name, value);
  for (const [name, value] of facts.cors) checkHeader(name, value);
  if (contentType !== undefined && contentType !== JSON_TYPE) checkHeader('Content-Type', contentType);
  checkValue('X-Request-Id', facts.requestId);
  response.writeStatus(statusLine(reply.status));
  if (contentType !== undefined) response.writeHeader('Content-Type', contentType);
  const isStored = headers.length > 0 && hasHeader(headers, 'cache-control');
  response.writeHeader('X-Content-Type-Options', isStored ? 'nosniff' : NOSNIFF_UNSTORED);
  response.writeHeader('X-Request-Id', facts.requestId);
  for (const [name, value] of headers) response.writeHeader(name, value);
  for (const [name, value] of facts.cors) response.writeHeader(name, value);
  if (facts.verdict !== undefined) writeLimits(response, facts.verdict, facts.windowSeconds);
}

/** `X-RateLimit` (spec 8.1) and the fields of draft-ietf-httpapi-ratelimit-headers-10. Letters and numbers alone. */
function writeLimits(response: HttpResponse, verdict: Verdict, windowSeconds: number): void {
  const { scope, quota, remaining, resetSeconds } = verdict;
  const own = `s=${scope};l=${quota};r=${remaining};t=${resetSeconds}`;
  const policy = `"${scope}";q=${quota};w=${windowSeconds}`;
  const rest = `"${scope}";r=${remaining};t=${resetSeconds}`;
  response.writeHeader('X-RateLimit', `${own}\r\nRateLimit-Policy: ${policy}\r\nRateLimit: ${rest}`);
}

function writeBody(response: HttpResponse, reply: Reply, facts: AnswerFacts): number {
  const { body, status } = reply;
  const sizeBytes = typeof body === 'string' ? Buffer.byteLength(body) : (body?.length ?? 0);
  const bodiless = status === 204 || status === 304 || facts.headOnly;
  const cut = facts.close && !facts.bodyPending && !bodiless;
  // uWS names the close itself when it cuts the connection.
  if (facts.close && !cut) response.writeHeader('Connection', 'close');
  if (bodiless) {
    // endWithoutBody(n) of this build leaves the response open: the length goes in by hand.
    const lengthBytes = reply.isHead ? reply.headLengthBytes : sizeBytes;
    if (facts.headOnly && lengthBytes !== undefined)
      response.writeHeader('Content-Length', String(lengthBytes));
    response.endWithoutBody();
    return 0;
  }
  response.end(body ?? '', cut);
  return sizeBytes;
}

export function checkHeader(name: string, value: string): void {
  if (!NAME_PATTERN.test(name)) throw new TypeError(`unfit header name ${JSON.stringify(name)}`);
  checkValue(name, value);
}

function checkValue(name: string, value: string): void {
  if (!VALUE_PATTERN.test(value)) throw new TypeError(`unfit value for header ${name}`);
}

function hasHeader(headers: HeaderList, name: string): boolean {
  return headers.some(([present]) => present.toLowerCase() === name);
}

const STATUS_LINES = new Map<number, string>();

function statusLine(status: number): string {
  const known = STATUS_LINES.get(status);
  if (known !== undefined) return known;
  if (!Number.isInteger(status) || status < 200 || status > 599) throw new RangeError(`no status: ${status}`);
  const line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
  STATUS_LINES.set(status, line);
  return line;
}

/** The error envelope (spec 7.1) with `Retry-After` where waiting helps. */
export function errorReply(error: GatewayError, headers: HeaderList = []): Reply {
  const retry = error.retryAfterSeconds;
  return Reply.json(
    errorRow(error.row).status,
    { error: errorBody(error.row, error.detail) },
    retry === undefined ? headers : [...headers, ['Retry-After', String(Math.max(1, Math.ceil(retry)))]],
  );
}

export function errorBody(
  name: ErrorName,
  detail?: string,
): { code: number; message: string; detail?: string } {
  const { code, message } = errorRow(name);
  return detail === undefined ? { code, message } : { code, message, detail };
}
