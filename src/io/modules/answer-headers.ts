/** What of a module's answer headers reaches the client of a proxied REST call. */
import type { HeaderList } from '../http/route.ts';
import type { ModuleAnswer } from './module-call.ts';

/**
 * RFC 9110 7.6.1 and the framing, which the gateway writes itself; what only the gateway says on its own origin
 * (cookies, CORS, limits, request id, transport security); and what would reach beyond this one answer.
 */
const KEPT_BACK: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'content-type',
  'content-encoding',
  'date',
  'server',
  'set-cookie',
  'set-cookie2',
  'www-authenticate',
  'x-request-id',
  'x-ratelimit',
  'ratelimit',
  'ratelimit-policy',
  'x-content-type-options',
  'strict-transport-security',
  'alt-svc',
  'clear-site-data',
  'service-worker-allowed',
  'refresh',
  'traceparent',
  'tracestate',
]);
const CORS = /^access-control-/;
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** Bytes of names and values together. */
const HEADERS_MAX_BYTES = 16 * 1024;
/** A page of a module would run on the gateway's origin, next to its cookies: without a policy of its own it may do nothing. */
const POLICY = ['Content-Security-Policy', "default-src 'none'; sandbox"] as const;

/** End-to-end headers that are fit to be written; the others are left out. */
export function answerHeaders({ headers }: Pick<ModuleAnswer, 'headers'>): HeaderList {
  const named = new Set(
    textsOf(headers['connection']).flatMap((text) => text.toLowerCase().split(/[ \t,]+/)),
  );
  const kept: [string, string][] = [];
  let sizeBytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (KEPT_BACK.has(name) || CORS.test(name) || named.has(name) || !NAME.test(name)) continue;
    for (const text of textsOf(value)) {
      sizeBytes += name.length + text.length;
      if (VALUE.test(text) && sizeBytes <= HEADERS_MAX_BYTES) kept.push([name, text]);
    }
  }
  return kept.some(([name]) => name === 'content-security-policy') ? kept : [...kept, POLICY];
}

/** Declared bytes of the answer; undefined without a readable declaration. */
export function declaredLength({ headers }: Pick<ModuleAnswer, 'headers'>): number | undefined {
  const [text = '', ...more] = textsOf(headers['content-length']);
  return more.length === 0 && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}

function textsOf(value: string | string[] | undefined): string[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}
