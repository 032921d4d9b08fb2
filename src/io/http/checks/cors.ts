/** CORS for pages of allowed origins, and the answers to OPTIONS (Fetch standard). */

import type { Site } from '../../../domain/site.ts';
import type { IncomingHead } from '../exchange/request.ts';
import { type HeaderList, Reply } from '../table/route.ts';
import { checkOrigin } from './origin.ts';

/** Seconds for which a browser may remember a preflight. */
const PREFLIGHT_SECONDS = 600;
const ALLOW_HEADERS =
  'Authorization, Content-Type, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, X-MCP-Code, X-Device-Guid, pkey, Idempotency-Key, Range, If-Match, If-None-Match, If-Range, Upload-Complete, Upload-Offset, Upload-Length, Upload-Draft-Interop-Version, Content-Digest, Repr-Digest, Want-Repr-Digest, X-PublicKey, X-Timestamp, X-Signature, X-App-Id';
/** Arguments that MCP clients repeat (src/io/mcp/header-params.ts). CORS has no wildcard for the end of a name. */
const ARGUMENT_HEADER = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,64}$/i;
const ARGUMENT_HEADERS_MAX = 32;
const EXPOSE_HEADERS =
  'Mcp-Session-Id, X-RateLimit, Retry-After, ETag, Accept-Ranges, Content-Range, Content-Disposition, Repr-Digest, X-Chunk-CRC32, X-File-Part, Upload-Complete, Upload-Offset, Upload-Length, Upload-Limit, RateLimit, RateLimit-Policy, X-Request-Id, WWW-Authenticate';
const NONE: HeaderList = [];
const ANY_ORIGIN: HeaderList = [
  ['Access-Control-Allow-Origin', '*'],
  ['Access-Control-Expose-Headers', EXPOSE_HEADERS],
];

/** Fields that let a page of an allowed origin read the answer. */
export function corsHeaders(site: Site, head: IncomingHead): HeaderList {
  const origin = head.header('origin');
  if (origin === undefined || !site.origins.has(origin)) return NONE;
  return [
    ['Access-Control-Allow-Origin', origin],
    ['Access-Control-Allow-Credentials', 'true'],
    ['Access-Control-Expose-Headers', EXPOSE_HEADERS],
    ['Vary', 'Origin'],
  ];
}

/** The same for pages of every origin, on routes that read no cookie. */
export function anyOriginHeaders(head: IncomingHead): HeaderList {
  return head.header('origin') === undefined ? NONE : ANY_ORIGIN;
}

/** Is it a CORS-preflight request (Fetch standard)? */
export function isPreflight(head: IncomingHead): boolean {
  const isAsked = head.header('access-control-request-method') !== undefined;
  return head.method === 'OPTIONS' && isAsked && head.header('origin') !== undefined;
}

/**
 * The answer to OPTIONS: `methods` of the path, and further fields in `offers`. Throws `Forbidden` for a foreign origin,
 * unless the path is open to every origin.
 */
export function preflight(
  site: Site,
  head: IncomingHead,
  methods: readonly string[],
  offers: HeaderList = NONE,
  anyOrigin = false,
): Reply {
  const allow: [string, string] = ['Allow', methods.join(', ')];
  if (!head.repeatedHeaders.has('origin') && head.header('origin') === undefined) {
    return Reply.empty(204, [allow, ...offers]);
  }
  if (!anyOrigin) checkOrigin(site, head);
  return Reply.empty(204, [
    allow,
    ['Access-Control-Allow-Methods', methods.join(', ')],
    ['Access-Control-Allow-Headers', [ALLOW_HEADERS, ...argumentHeaders(head)].join(', ')],
    ['Access-Control-Max-Age', String(PREFLIGHT_SECONDS)],
    ...offers,
  ]);
}

/** Those that the page asks for. */
function argumentHeaders(head: IncomingHead): string[] {
  const asked = head.joined('access-control-request-headers', ',') ?? '';
  const names = asked.split(',').map((name) => name.trim());
  return names.filter((name) => ARGUMENT_HEADER.test(name)).slice(0, ARGUMENT_HEADERS_MAX);
}
