/** Requests for a reverse proxy, as bytes, with what the gateway does with each: one table for test and page. */

/** Result at a proxy: the module got the request as it was sent, or with a change, or the client got a refusal. */
export type Outcome =
  | { readonly kind: 'arrives' }
  | { readonly kind: 'changed'; readonly what: string }
  /** The request arrives as sent, but for these fields, which are missing or have another value. */
  | { readonly kind: 'withheld'; readonly names: readonly string[] }
  | { readonly kind: 'refused'; readonly status: number; readonly code?: number }
  /** The connection ended without an answer. */
  | { readonly kind: 'closed' };

export interface ProxiedRequest {
  readonly name: string;
  /** Characters stand for one byte each. */
  readonly bytes: string;
  /** Request that the module must get, where it got anything. */
  readonly method: string;
  readonly target: string;
  /** Lower-case names; fields for the proxy itself are left out. */
  readonly fields: Readonly<Record<string, string>>;
  readonly body: string;
  /** Fields that a proxy may keep back. */
  readonly withheld: Readonly<Record<string, string>>;
  /** By the gateway. */
  readonly expected: Outcome;
}

interface Sent {
  readonly method?: string;
  readonly target?: string;
  readonly fields?: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
  /** The body as it is written, when it is not sent with a length. */
  readonly written?: string;
  /** HTTP version; 1.1 unless given. */
  readonly version?: string;
  /** Fields that the module must not get, or gets from the gateway. */
  readonly withheld?: readonly string[];
  /** Before the request line. */
  readonly before?: string;
  readonly host?: readonly string[];
}

const ARRIVES: Outcome = { kind: 'arrives' };
const BASE = '/core/v1';
/** Fields of one connection, or written anew by each proxy. */
const HOP_BY_HOP = new Set([
  'connection',
  'te',
  'trailer',
  'transfer-encoding',
  'content-length',
  'expect',
  'upgrade',
]);
const INVALID: Outcome = { kind: 'refused', status: 400, code: 1001 };
const NOT_ALLOWED: Outcome = { kind: 'refused', status: 405, code: 1005 };
const CLOSED: Outcome = { kind: 'closed' };
/** Refusal of the library: in HTML. */
const refusedBy = (status: number): Outcome => ({ kind: 'refused', status });

/** Path segments that are not plain. */
const PATHS: readonly (readonly [name: string, path: string, expected?: Outcome])[] = [
  ['a slash at the end', '/list/'],
  ['parameters of a segment', '/list;sort=name;x/all'],
  ['an encoded blank', '/a%20b'],
  ['UTF-8, upper-case escapes', '/%C3%A4'],
  ['UTF-8, lower-case escapes', '/%c3%a4'],
  ['an encoded letter', '/%41bc'],
  ['an encoded percent sign', '/100%25'],
  ['an encoded percent sign before digits', '/a%2520b'],
  ['a plus sign', '/a+b'],
  ['unreserved and reserved characters', "/~._-!$&'()*,=:@"],
  ['encoded braces', '/%7Bid%7D'],
  ['an encoded question mark and number sign', '/a%3Fb%23c'],
  ['dots inside a segment', '/a..b/...'],
  ['a path of 7,900 characters', `/${'a'.repeat(7_900)}`],
  ['a path of 8,100 characters', `/${'a'.repeat(8_100)}`, { kind: 'refused', status: 431, code: 1001 }],
  ['a dot segment', '/./a', INVALID],
  ['two dots', '/a/../b', INVALID],
  ['encoded dots', '/%2e%2E/b', INVALID],
  ['dots encoded twice', '/%252e%252e/b', INVALID],
  ['dots with parameters', '/..;x/b', INVALID],
  ['an empty segment', '//b', INVALID],
  ['an encoded slash', '/a%2Fb', INVALID],
  ['a slash encoded twice', '/a%252fb', INVALID],
  ['an encoded backslash', '/a%5Cb', INVALID],
  ['a backslash', '/a\\b', INVALID],
  ['an encoded NUL', '/a%00b', INVALID],
  ['a percent sign alone', '/100%', INVALID],
  ['an escape that is none', '/%zz', INVALID],
  ['braces', '/{id}', INVALID],
  ['a quote', '/a"b', INVALID],
  ['bytes above ASCII', '/\xc3\xa4', INVALID],
];

const QUERIES: readonly (readonly [name: string, query: string, expected?: Outcome])[] = [
  ['fields', 'a=1&b=2'],
  ['a repeated field', 'a=1&a=2'],
  ['nothing behind the question mark', ''],
  ['a second question mark', 'a?b'],
  ['quotes and angle brackets', `a='"<>`],
  ['brackets, braces, bar, caret, backtick, backslash', 'a[0]={1}|^`\\'],
  ['escapes in both cases', 'a=%2F%2f%20%C3%A4'],
  ['a plus sign and an equals sign', 'a=b+c=d'],
  ['no value', 'a&b=&=c'],
  ['semicolons', 'a=1;b=2'],
  ['dots and slashes', 'path=../../etc'],
  ['a percent sign alone', 'a=100%'],
  ['7,000 characters', `a=${'x'.repeat(7_000)}`],
  ['bytes above ASCII', 'a=\xc3\xa4', INVALID],
  ['a number sign', 'a=b#c', INVALID],
];

/** Without `withheld` the module gets the field as it was sent. */
const FIELDS: readonly (readonly [
  name: string,
  fields: readonly (readonly [name: string, value: string])[],
  withheld?: readonly string[],
  expected?: Outcome,
])[] = [
  [
    'Accept, Accept-Language, User-Agent',
    [
      ['Accept', 'text/html, */*;q=0.1'],
      ['Accept-Language', 'de'],
      ['User-Agent', 'x/1'],
    ],
  ],
  [
    'conditions',
    [
      ['If-Match', '"a"'],
      ['If-Modified-Since', 'Fri, 27 Nov 2026 10:00:00 GMT'],
      ['If-Range', '"a"'],
      ['Range', 'bytes=0-9'],
    ],
  ],
  [
    'If-None-Match with 20 tags',
    [['If-None-Match', Array.from({ length: 20 }, (_, index) => `"${'e'.repeat(40)}${index}"`).join(', ')]],
  ],
  ['a token of 900 bytes', [['X-Token', 't'.repeat(900)]]],
  ['W3C baggage of 2 KiB', [['baggage', `a=${'b'.repeat(2_000)}`]]],
  ['a field of 8 KiB', [['X-Long', 'l'.repeat(8_192)]]],
  ['a longer field', [['X-Long', 'l'.repeat(8_193)]], [], { kind: 'refused', status: 431, code: 1031 }],
  ['an empty field', [['X-Empty', '']]],
  ['a tab inside a value', [['X-Tab', 'a\tb']]],
  ['blanks inside a value', [['X-Blank', 'a  b']]],
  ['quotes and commas', [['X-Quoted', '"a,b"; c="\\""']]],
  [
    'a repeated field',
    [
      ['X-Many', 'a'],
      ['X-Many', 'b'],
    ],
  ],
  ['a name in upper case', [['X-UPPER', 'a']]],
  ['a name with digits', [['X-2fa-0', 'a']]],
  ['UTF-8 inside a value', [['X-Name', 'a\xc3\xa4b']]],
  ['Latin-1 inside a value', [['X-Name', 'a\xe4b']], [], INVALID],
  ['80 fields', Array.from({ length: 80 }, (_, index) => [`X-F${index}`, 'a'] as const)],
  [
    'Depth, Destination, Overwrite, If',
    [
      ['Depth', '1'],
      ['Destination', 'https://gate.example/core/v1/b'],
      ['Overwrite', 'F'],
      ['If', '(["a"])'],
    ],
  ],
  [
    'Prefer and Max-Forwards',
    [
      ['Prefer', 'return=minimal'],
      ['Max-Forwards', '3'],
    ],
  ],
  ['Content-Encoding', [['Content-Encoding', 'gzip']]],
  ['Accept-Encoding', [['Accept-Encoding', 'gzip, br']], ['accept-encoding']],
  ['an underscore in a name', [['X_Crm', '7']], ['x_crm']],
  ['a dot in a name', [['X.Crm', '7']], ['x.crm']],
  ['an identity field of the gateway', [['X-Crm', '7']], ['x-crm']],
  ['an identity field of other proxies', [['Remote-User', 'root']], ['remote-user']],
  [
    'X-Forwarded-For, -Host, -Proto',
    [
      ['X-Forwarded-For', '1.2.3.4'],
      ['X-Forwarded-Host', 'evil'],
      ['X-Forwarded-Proto', 'gopher'],
    ],
    ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'],
  ],
  ['Forwarded', [['Forwarded', 'for=1.2.3.4;host=evil']], ['forwarded']],
  ['a method override', [['X-HTTP-Method-Override', 'DELETE']], ['x-http-method-override']],
  ['cookies', [['Cookie', 'a=b']], ['cookie']],
  [
    'fields that Connection names',
    [
      ['Connection', 'X-Hop, keep-alive'],
      ['X-Hop', 'a'],
    ],
    ['x-hop'],
  ],
  [
    'an upgrade to h2c',
    [
      ['Connection', 'Upgrade'],
      ['Upgrade', 'h2c'],
    ],
  ],
  ['Expect: 100-continue', [['Expect', '100-continue']]],
];

const CHUNKS = '3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n';
const XML = '<?xml version="1.0"?><propfind xmlns="DAV:"><allprop/></propfind>';
const CHUNKED = [['Transfer-Encoding', 'chunked']] as const;

const OTHERS: readonly (readonly [name: string, sent: Sent, expected?: Outcome])[] = [
  ...(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'MKCOL', 'PROPFIND'] as const).map(
    (method) => [`${method} without a body`, { method }] as const,
  ),
  ...(['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'PROPPATCH', 'REPORT', 'OPTIONS'] as const).map(
    (method) => [`${method} with a body`, { method, body: XML }] as const,
  ),
  [
    'COPY with a destination',
    { method: 'COPY', fields: [['Destination', 'https://gate.example/core/v1/b']] },
  ],
  [
    'MOVE with a destination',
    { method: 'MOVE', fields: [['Destination', 'https://gate.example/core/v1/b']] },
  ],
  ['POST without a body', { method: 'POST', body: '' }],
  ['a body in chunks', { method: 'POST', fields: CHUNKED, body: 'abcdefg', written: CHUNKS }],
  [
    'a body in chunks, the coding in another case',
    { method: 'POST', fields: [['Transfer-Encoding', 'Chunked']], body: 'abcdefg', written: CHUNKS },
  ],
  ['a body of 1 MiB', { method: 'PUT', body: 'x'.repeat(1024 * 1024) }],
  ['a body of all bytes', { method: 'PUT', body: String.fromCharCode(...Array(256).keys()) }],
  ['a method that no module asked for', { method: 'LOCK' }, NOT_ALLOWED],
  ['a method that this module did not ask for', { method: 'PROPFIND', target: '/plain/v1/a' }, NOT_ALLOWED],
  ['TRACE', { method: 'TRACE' }, NOT_ALLOWED],
  ['a method in lower case', { method: 'get' }, NOT_ALLOWED],
  ['an encoded slash where the module takes it', { target: '/slashes/v1/group%2Fname' }],
  ['a slash encoded twice, where the module takes slashes', { target: '/slashes/v1/a%252Fb' }, INVALID],
  ['encoded dots and slash, where the module takes slashes', { target: '/slashes/v1/a%2F..%2Fb' }, INVALID],
  ['GET with a body', { method: 'GET', body: 'abc' }, INVALID],
  [
    'announced trailers',
    {
      method: 'POST',
      fields: [...CHUNKED, ['Trailer', 'X-Sum']],
      body: 'abc',
      written: '3\r\nabc\r\n0\r\n\r\n',
    },
    { kind: 'refused', status: 501, code: 1032 },
  ],
  [
    'a length and chunks',
    {
      method: 'POST',
      fields: [...CHUNKED, ['Content-Length', '3']],
      body: 'abc',
      written: '3\r\nabc\r\n0\r\n\r\n',
    },
    refusedBy(400),
  ],
  [
    'two lengths',
    {
      method: 'POST',
      fields: [
        ['Content-Length', '3'],
        ['Content-Length', '4'],
      ],
      body: 'abc',
      written: 'abc',
    },
    CLOSED,
  ],
  [
    'another coding',
    { method: 'POST', fields: [['Transfer-Encoding', 'gzip, chunked']], written: CHUNKS },
    CLOSED,
  ],
  ['two Host fields', { host: ['localhost', 'localhost'] }, refusedBy(400)],
  ['HTTP/1.0', { version: '1.0' }, refusedBy(505)],
  ['the absolute form', { target: 'http://localhost/core/v1/a' }, refusedBy(505)],
  ['an empty line before the request', { before: '\r\n' }, CLOSED],
  ['a control character in a value', { fields: [['X-Bell', 'a\x07b']] }, refusedBy(400)],
];

function requestOf(name: string, sent: Sent, expected: Outcome = ARRIVES): ProxiedRequest {
  const { method = 'GET', target = `${BASE}/a`, fields = [], body = '', withheld = [] } = sent;
  const { version = '1.1', before = '', host = ['localhost'], written } = sent;
  const hasLength = written === undefined && (body !== '' || method === 'POST');
  const lines = [...host.map((each) => ['Host', each] as const), ...fields];
  if (hasLength) lines.push(['Content-Length', String(body.length)]);
  const head = lines.map(([field, value]) => `${field}: ${value}\r\n`).join('');
  const arriving: Record<string, string> = {};
  const kept: Record<string, string> = {};
  for (const [field, value] of fields) {
    const key = field.toLowerCase();
    if (HOP_BY_HOP.has(key)) continue;
    const group = withheld.includes(key) ? kept : arriving;
    group[key] = group[key] === undefined ? value : `${group[key]}, ${value}`;
  }
  const bytes = `${before}${method} ${target} HTTP/${version}\r\n${head}\r\n${written ?? body}`;
  const outcome: Outcome = withheld.length > 0 ? { kind: 'withheld', names: Object.keys(kept) } : expected;
  return { name, bytes, method, target, fields: arriving, body, withheld: kept, expected: outcome };
}

export const PROXIED_REQUESTS: readonly ProxiedRequest[] = [
  ...OTHERS.map(([name, sent, expected]) => requestOf(name, sent, expected)),
  ...PATHS.map(([name, path, expected]) =>
    requestOf(`path: ${name}`, { target: `${BASE}${path}` }, expected),
  ),
  ...QUERIES.map(([name, query, expected]) =>
    requestOf(`query: ${name}`, { target: `${BASE}/a?${query}` }, expected),
  ),
  ...FIELDS.map(([name, fields, withheld, expected]) =>
    requestOf(`fields: ${name}`, { fields, ...(withheld && { withheld }) }, expected),
  ),
];
