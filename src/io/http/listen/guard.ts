/**
 * Refuses request smuggling (RFC 9112 11.2) on the head alone, by closing the connection. uWebSockets.js takes the first
 * of two Content-Length fields and reads any Transfer-Encoding as chunked.
 */
import type { IncomingHead } from '../exchange/request.ts';

/** Characters of path and query. RFC 9110 4.1 recommends at least 8,000. */
const URL_LENGTH_MAX = 8_000;
/** Fields of one request. uWS itself refuses more than 98. */
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
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') return 'close';
  if (repeated.has('host')) return 'close';
  if (head.path.length + head.rawQuery.length > URL_LENGTH_MAX || head.headerCount > HEADERS_MAX) {
    return 'tooLarge';
  }
  return 'pass';
}
