/**
 * Header fields of requests and answers as descriptions of the API list them: one table each, so that every route that
 * reads or sends a field says the same of it.
 */
import { ID_EXAMPLE, KEY_EXAMPLE, MCP_SESSION_EXAMPLE, SIGNATURE_EXAMPLE } from '../../../domain/examples.ts';

interface HeaderField {
  readonly description: string;
  readonly schema: object;
}

const line = (...examples: string[]) => ({ type: 'string', examples });
const number = (example: number) => ({ type: 'integer', minimum: 0, examples: [example] });

export const REQUEST_FIELDS = {
  'X-PublicKey': {
    description: 'Ed25519 public key of 32 bytes, base64url without padding',
    schema: line(KEY_EXAMPLE),
  },
  'X-Timestamp': {
    description: 'Unix seconds, within 5 minutes of the time here. Together with X-Signature',
    schema: { ...line('1795167000'), pattern: '^-?[0-9]{1,19}$' },
  },
  'X-Signature': {
    description:
      'Ed25519 signature of 64 bytes over the 8 bytes of X-Timestamp as a little-endian int64, base64url without padding',
    schema: line(SIGNATURE_EXAMPLE),
  },
  'X-App-Id': {
    description: 'Id of a registered application: the login is one of its own (McpApp)',
    schema: line(ID_EXAMPLE),
  },
  'X-MCP-Code': {
    description: 'Capability code of an invitation or a payment order; it may be in the query instead',
    schema: line('K7QF2M9TXB'),
  },
  'X-Device-Guid': {
    description: 'Id of the device (UUID), which codes of chats ask for',
    schema: line('6f1c2b8e-0d53-4a07-9a51-3f6a0c9d2e10'),
  },
  'Mcp-Session-Id': {
    description: 'The id that `initialize` answered with',
    schema: line(MCP_SESSION_EXAMPLE),
  },
  'MCP-Protocol-Version': {
    description: 'Revision of MCP of this request; without it 2024-11-05',
    schema: line('2024-11-05', '2026-07-28'),
  },
  'Mcp-Method': {
    description: 'The method, again: required in revision 2026-07-28',
    schema: line('tools/call'),
  },
  'Mcp-Name': {
    description: 'The name of the tool or the URI of the resource, again: required in revision 2026-07-28',
    schema: line('wallet_get_balance'),
  },
  Origin: {
    description: 'Fetch standard: the origin of the page that asks',
    schema: line('https://gate.example'),
  },
  pkey: {
    description: 'Public key in base64url; adds the public-key scope of the rate limit',
    schema: line(KEY_EXAMPLE),
  },
  'Idempotency-Key': {
    description: 'A repeated request with the same key gets the first answer again',
    schema: { ...line('3f6a0c9d-1'), maxLength: 128 },
  },
  'Last-Event-ID': {
    description: 'Id of the last event that was seen: the stream continues after it',
    schema: line('1795167000000-4'),
  },
  Range: {
    description: 'RFC 9110 14: the requested bytes; of an upload, the position of the body in the file',
    schema: line('bytes=0-1023'),
  },
  'If-Match': { description: 'RFC 9110 13.1.1', schema: line('"1870000000000000001-907060870-5"') },
  'If-None-Match': { description: 'RFC 9110 13.1.2', schema: line('"1870000000000000001-907060870-5"') },
  'If-Modified-Since': { description: 'RFC 9110 13.1.3', schema: line('Fri, 20 Nov 2026 09:30:00 GMT') },
  'If-Unmodified-Since': { description: 'RFC 9110 13.1.4', schema: line('Fri, 20 Nov 2026 09:30:00 GMT') },
  'If-Range': {
    description: 'RFC 9110 13.1.5: the range holds for this tag or date alone, else the whole file is sent',
    schema: line('"1870000000000000001-907060870-5"'),
  },
  'Upload-Offset': {
    description: 'draft-ietf-httpbis-resumable-upload: position of the body in the file, in bytes',
    schema: number(0),
  },
  'Upload-Complete': {
    description: 'draft-ietf-httpbis-resumable-upload: `?1` where the file ends with this body, else `?0`',
    schema: { type: 'string', enum: ['?0', '?1'], examples: ['?1'] },
  },
  'Upload-Draft-Interop-Version': {
    description: 'draft-ietf-httpbis-resumable-upload: the version that the client speaks',
    schema: line('8'),
  },
  'Upload-Length': {
    description: 'draft-ietf-httpbis-resumable-upload: size of the whole file in bytes',
    schema: number(5),
  },
  'Content-Digest': {
    description: 'RFC 9530: digest of this body; a body that differs is refused',
    schema: line('sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:'),
  },
  'Repr-Digest': {
    description: 'RFC 9530: digest of the whole file; a file that differs is refused',
    schema: line('sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:'),
  },
  'Want-Repr-Digest': {
    description: 'RFC 9530: digests of the file that the answer should have, with a preference of 0 to 10',
    schema: line('sha-256=10, crc32=5'),
  },
} as const satisfies Record<string, HeaderField>;

export type RequestFieldName = keyof typeof REQUEST_FIELDS;

export const RESPONSE_FIELDS = {
  'Repr-Digest': {
    description: 'RFC 9530: CRC-32 of the whole file, and its SHA-256 where it is known',
    schema: line('crc32=:y/Q5Jg==:'),
  },
  'X-Request-Id': {
    description: 'Names the request in log and audit',
    schema: line('0mhx3k1v9p0000a7'),
  },
  'X-RateLimit': {
    description:
      'The scope that counted: its letter, requests of a window, those left, seconds until the next window',
    schema: line('s=s;l=15;r=14;t=5'),
  },
  RateLimit: {
    description: 'The same as draft-ietf-httpapi-ratelimit-headers-10',
    schema: line('"s";r=14;t=5'),
  },
  'RateLimit-Policy': {
    description: 'Requests and seconds of a window, by the same draft',
    schema: line('"s";q=15;w=5'),
  },
  'Retry-After': { description: 'Seconds to wait', schema: { type: 'integer', minimum: 1, examples: [5] } },
  'WWW-Authenticate': {
    description: 'RFC 9728 5.1: where the metadata of the resource is',
    schema: line(
      'Bearer resource_metadata="https://gate.example/.well-known/oauth-protected-resource/connect/mcp", scope="tools"',
    ),
  },
  Allow: { description: 'Methods of this address', schema: line('POST, DELETE') },
  'Accept-Encoding': { description: 'The coding of bodies that is taken', schema: line('identity') },
  'Set-Cookie': {
    description: 'The cookie `sid` of a browser session, or its end',
    schema: line('sid=0jTcPzqZ; Path=/; HttpOnly; SameSite=Lax; Max-Age=86400'),
  },
  'Cache-Control': {
    description: 'Who may keep the answer, and for how long',
    schema: line('private, max-age=31536000, immutable'),
  },
  Link: {
    description: 'RFC 8288: the next page, where there is one',
    schema: line('</ProxyAdmin/api/audit?before=812>; rel="next"'),
  },
  ETag: { description: 'Tag of the content', schema: line('"1870000000000000001-907060870-5"') },
  'Last-Modified': { description: 'When it was sent', schema: line('Fri, 20 Nov 2026 09:30:00 GMT') },
  'Accept-Ranges': {
    description: '`bytes`, or `none` of a part',
    schema: { type: 'string', enum: ['bytes', 'none'], examples: ['bytes'] },
  },
  'Content-Range': {
    description: 'The bytes of this answer and the size of the file; on 416 the size alone',
    schema: line('bytes 0-1023/20480'),
  },
  'Content-Disposition': {
    description: 'Whether a browser may show it, and its name (RFC 6266)',
    schema: line('attachment; filename="notes.txt"'),
  },
  Location: {
    description: 'The place to go to; on 307 a link of 60 s to the bytes at the object storage',
    schema: line('https://files.s3.example/7/1870000000000000001?X-Amz-Expires=60'),
  },
  'X-Chunk-CRC32': {
    description: 'CRC-32 of the whole file, unsigned decimal',
    schema: line('907060870'),
  },
  'X-File-Part': { description: '`whole-file` or `part-N/total`', schema: line('whole-file') },
  'Mcp-Session-Id': {
    description: 'Answer to `initialize`: send it with what follows',
    schema: line(MCP_SESSION_EXAMPLE),
  },
  'Upload-Offset': { description: 'Bytes that are kept', schema: number(262144) },
  'Upload-Complete': {
    description: '`?1` once the file is whole',
    schema: { type: 'string', enum: ['?0', '?1'], examples: ['?0'] },
  },
  'Upload-Length': {
    description: 'Size of the whole file in bytes, where it is known',
    schema: number(524288),
  },
  'Upload-Limit': {
    description: 'Largest file in bytes, and how long the draft waits in seconds',
    schema: line('max-size=20971520, max-age=3600'),
  },
} as const satisfies Record<string, HeaderField>;

export type ResponseFieldName = keyof typeof RESPONSE_FIELDS;
