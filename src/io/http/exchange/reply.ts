/**
 * The only response writer. It throws for header values that are no plain text, because uWebSockets.js would copy CR and
 * LF into the stream. All values are checked before the first byte is written.
 */
import { STATUS_CODES } from 'node:http';
import { type ErrorName, errorRow, type GatewayError } from '../../../domain/errors.ts';
import type { QuotaResult } from '../../../domain/limits/quotas.ts';
import { isContinued } from '../body/continue.ts';
import type { HttpResponse, UpgradeContext, UpgradeData } from '../listen/server.ts';
import { HandedOverReply, type HeaderList, Reply } from '../table/route.ts';
import { corked } from './cork.ts';
import { type AnsweredRequest, type ResponseOptions, responseOptions } from './response-options.ts';
import type { UpgradeReply } from './stream.ts';
import { UpgradedConnection } from './web-socket.ts';

/** RFC 9110 5.5 without obs-text. */
const VALUE_PATTERN = /^[\t\x20-\x7e]*$/;
/** RFC 9110 5.1: a token. */
const NAME_PATTERN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** RFC 6797 6.1: one year, the minimum of the preload lists. No `includeSubDomains`: other hosts are not the gateway's. */
const STRICT_TRANSPORT = '\r\nStrict-Transport-Security: max-age=31536000';

/** The usual type; it needs no check. */
const JSON_TYPE = 'application/json';

/**
 * Writes a whole answer, corked; returns the bytes of its body, also when the proxy sends them. Throws before writing if a
 * header is invalid.
 */
export function writeAnswer(response: HttpResponse, reply: Reply, options: ResponseOptions): number {
  writeFields(response, reply, options);
  const sentBytes = writeBody(response, reply, options);
  return reply instanceof HandedOverReply ? reply.lengthBytes : sentBytes;
}

interface UpgradedRequest extends AnsweredRequest {
  readonly origin: { readonly peer: string };
  readonly upgradeContext: UpgradeContext | undefined;
}

/**
 * Switches the connection to the WebSocket protocol: `response` may not be touched any more. Throws before writing if a
 * header is invalid. Only the fields are corked: after an upgrade the library's cork reads the state of the former
 * response, and may close the connection.
 */
export function writeUpgrade(
  response: HttpResponse,
  reply: UpgradeReply,
  request: UpgradedRequest,
  onBug: (error: unknown) => void,
): void {
  const { head, upgradeContext: context } = request;
  const key = head.header('sec-websocket-key');
  if (context === undefined || key === undefined) throw new TypeError('the request is no handshake');
  checkHeader('Sec-WebSocket-Protocol', reply.protocol);
  corked(response, () => writeFields(response, reply, responseOptions(request, false)));
  const connection = new UpgradedConnection(request.origin.peer, reply.listener, onBug);
  response.upgrade<UpgradeData>({ connection }, key, reply.protocol, '', context);
}

/** Writes the head of a streamed answer, corked. Throws as `writeAnswer` does. */
export function writeHead(response: HttpResponse, reply: Reply, options: ResponseOptions): void {
  writeFields(response, reply, options);
  if (options.close) response.writeHeader('Connection', 'close');
}

/**
 * Writes all fields in one native call. Line breaks are added only here: every other value was checked, or has a pattern
 * that excludes them.
 */
function writeFields(response: HttpResponse, reply: Reply, options: ResponseOptions): void {
  const { headers, contentType, status } = reply;
  const { cors, quotaResult } = options;
  if (contentType !== undefined && contentType !== JSON_TYPE) checkHeader('Content-Type', contentType);
  // The id is not checked: its own pattern is narrower.
  const isStored = headers.length > 0 && hasHeader(headers, 'cache-control');
  let rest = `nosniff${isStored ? '' : '\r\nCache-Control: no-store'}\r\nX-Request-Id: ${options.requestId}`;
  if (headers.length > 0) rest += fieldLines(headers);
  if (options.strictTransport) rest += STRICT_TRANSPORT;
  if (cors.length > 0) rest += fieldLines(cors);
  if (quotaResult !== undefined) rest += limitLines(quotaResult, options.windowSeconds);
  let first = '';
  if (isContinued(response)) first = `HTTP/1.1 ${statusLine(status)}\r\n`;
  // uWS itself writes 200 with the first field.
  else if (status !== 200) response.writeStatus(statusLine(status));
  if (contentType === undefined) response.writeHeader(`${first}X-Content-Type-Options`, rest);
  else response.writeHeader(`${first}Content-Type`, `${contentType}\r\nX-Content-Type-Options: ${rest}`);
}

function fieldLines(headers: HeaderList): string {
  let lines = '';
  for (const [name, value] of headers) {
    checkHeader(name, value);
    lines += `\r\n${name}: ${value}`;
  }
  return lines;
}

/** `X-RateLimit` (spec 8.1) and the fields of draft-ietf-httpapi-ratelimit-headers-10. Only letters and digits. */
function limitLines({ scope, quota, remaining, resetSeconds }: QuotaResult, windowSeconds: number): string {
  const left = `r=${remaining};t=${resetSeconds}`;
  return `\r\nX-RateLimit: s=${scope};l=${quota};${left}\r\nRateLimit-Policy: "${scope}";q=${quota};w=${windowSeconds}\r\nRateLimit: "${scope}";${left}`;
}

function writeBody(response: HttpResponse, reply: Reply, options: ResponseOptions): number {
  const { body } = reply;
  const sizeBytes = typeof body === 'string' ? Buffer.byteLength(body) : (body?.length ?? 0);
  const bodiless = isBodiless(reply) || options.headOnly;
  if (options.staysPending && (bodiless || sizeBytes === 0)) {
    response.writeHeader('Connection', 'close');
    const asGet = reply.isHead ? reply.headLengthBytes : sizeBytes;
    endHeadPending(response, options.headOnly ? asGet : bodiless ? undefined : 0);
    return 0;
  }
  const cut = options.close && !options.bodyPending && !bodiless;
  // uWS writes `Connection: close` itself when it closes the connection.
  if (options.close && !cut) response.writeHeader('Connection', 'close');
  if (bodiless) {
    // endWithoutBody(n) of uWS 20.51 leaves the response open: the length is written here.
    const lengthBytes = reply.isHead ? reply.headLengthBytes : sizeBytes;
    if (options.headOnly && lengthBytes !== undefined)
      response.writeHeader('Content-Length', String(lengthBytes));
    response.endWithoutBody();
    return 0;
  }
  response.end(body ?? '', cut);
  return sizeBytes;
}

/** RFC 9110 6.4.1. */
export function isBodiless({ status }: Reply): boolean {
  return status === 204 || status === 304;
}

/** Ends a head without a body; for uWebSockets.js the answer stays pending (docs/decisions/0090). */
export function endHeadPending(response: HttpResponse, lengthBytes: number | undefined): void {
  if (lengthBytes !== undefined) response.writeHeader('Content-Length', String(lengthBytes));
  response.writeHeader('Date', `${new Date().toUTCString()}\r\n`);
}

/** Ends a chunked answer likewise: a last chunk with one trailer field (RFC 9112 7.1.2). */
export function endPending(response: HttpResponse): void {
  response.writeHeader('\r\n0\r\nX-Answer', 'whole\r\n');
}

export function checkHeader(name: string, value: string): void {
  if (!NAME_PATTERN.test(name)) throw new TypeError(`invalid header name ${JSON.stringify(name)}`);
  checkValue(name, value);
}

function checkValue(name: string, value: string): void {
  if (!VALUE_PATTERN.test(value)) throw new TypeError(`invalid value for header ${name}`);
}

function hasHeader(headers: HeaderList, name: string): boolean {
  return headers.some(([present]) => present.toLowerCase() === name);
}

const STATUS_LINES = new Map<number, string>();

function statusLine(status: number): string {
  const known = STATUS_LINES.get(status);
  if (known !== undefined) return known;
  const isAnswer = status === 101 || (status >= 200 && status <= 599);
  if (!Number.isInteger(status) || !isAnswer) throw new RangeError(`no status: ${status}`);
  const line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
  STATUS_LINES.set(status, line);
  return line;
}

/** The error envelope (spec 7.1). */
export function errorReply(error: GatewayError, headers: HeaderList = []): Reply {
  return Reply.json(
    errorRow(error.row).status,
    { error: errorBody(error.row, error.detail) },
    headers,
    error.row,
  );
}

export function errorBody(
  name: ErrorName,
  detail?: string,
): { code: number; message: string; detail?: string } {
  const { code, message } = errorRow(name);
  return detail === undefined ? { code, message } : { code, message, detail };
}
