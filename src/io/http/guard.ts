/**
 * Requests that must not reach a route, judged on the head alone. uWebSockets.js takes the first of two
 * Content-Length fields and treats any Transfer-Encoding as chunked, so what follows on the socket could be read as
 * a request by one side only (request smuggling, RFC 9112 11.2). Such connections are closed without an answer.
 */
import type { IncomingHead } from './request.ts';

/** Path and query together. RFC 9110 4.1 asks for at least 8,000. */
const URL_LENGTH_MAX = 8_000;
/** Fields of one request. uWS itself stops at 98. */
const HEADERS_MAX = 100;

type GuardDecision = 'pass' | 'close' | 'tooLarge';

const LENGTH_PATTERN = /^[0-9]{1,15}$/;

export function guard(head: IncomingHead): GuardDecision {
  const length = head.header('content-length');
  const encoding = head.header('transfer-encoding');
  const repeated = head.repeatedHeaders;
  if (repeated.size > 0 && (repeated.has('content-length') || repeated.has('transfer-encoding')))
    return 'close';
  if (length !== undefined && (encoding !== undefined || !LENGTH_PATTERN.test(length))) return 'close';
  if (encoding !== undefined && encoding !== 'chunked') return 'close';
  if (repeated.has('host')) return 'close';
  if (head.path.length + head.rawQuery.length > URL_LENGTH_MAX || head.headerCount > HEADERS_MAX) {
    return 'tooLarge';
  }
  return 'pass';
}
