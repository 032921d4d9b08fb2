/** Endpoints and headers of backend calls: what arguments and clients can and cannot change. */
import fc from 'fast-check';
import t from 'tap';
import { anyCodePoint } from '../../../kit/code-points.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { LoginType, SessionContext } from '../../../src/domain/sessions.ts';
import {
  type Endpoint,
  endpointUrl,
  parseEndpoint,
  proxiedUrl,
} from '../../../src/io/http-client/endpoint.ts';
import { type CallFacts, forwardedHeaders, gatewayHeaders } from '../../../src/io/http-client/headers.ts';
import { count, runs } from '../../support/depth.ts';

const MODULES = new Map([
  ['wallet', 'http://10.0.0.5:9000'],
  ['chat', 'https://chat.example/base/'],
]);

function endpoint(reference: string): Endpoint {
  const result = parseEndpoint(reference, MODULES);
  if (!result.ok) throw new Error(result.fault);
  return result.endpoint;
}

function urlOf(reference: string, values?: Record<string, unknown>, query?: Record<string, unknown>): string {
  const result = endpointUrl(endpoint(reference), values, query);
  if (!result.ok) return `refused: ${result.argument}`;
  const { origin, pathname, search } = result.url;
  return `${origin}${pathname}${search}`;
}

function session(loginType: LoginType | null, more: Partial<SessionContext> = {}): SessionContext {
  return {
    id: '1',
    kind: loginType === null ? 'browser' : 'mcp',
    loginType,
    userId: '1152921504606846976',
    keyId: '2',
    keyType: 'UserKey',
    publicKey: 'A'.repeat(43),
    appId: null,
    proven: loginType !== 'McpBasic',
    createdMs: 0,
    expiresMs: 1,
    ...more,
  };
}

/** Row and detail of the error that refuses these facts; undefined when they pass. */
function refusalOf(facts: CallFacts): [string, string | undefined] | undefined {
  try {
    gatewayHeaders({ kind: 'anonymous' }, facts);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return [error.row, error.detail];
    throw error;
  }
}

t.test('endpoint: a module reference and a URL become the called address', async (t) => {
  t.equal(urlOf('wallet:/wallet/v1/balance/get'), 'http://10.0.0.5:9000/wallet/v1/balance/get');
  t.equal(urlOf('chat:/chat/v1/chats/list'), 'https://chat.example/base/chat/v1/chats/list');
  t.equal(urlOf('http://127.0.0.1:8/x?fixed=1'), 'http://127.0.0.1:8/x?fixed=1');
  t.equal(urlOf('https://a.example'), 'https://a.example/');
  t.equal(urlOf('http://[::1]:8080/x'), 'http://[::1]:8080/x');
  t.match(endpoint('wallet:/a/{id}'), { module: 'wallet', pathArguments: ['id'] });
});

t.test('endpoint: a wrong reference is refused with its fault', async (t) => {
  const faults: Record<string, RegExp> = {
    'payments:/x': /module "payments" is not configured/,
    'wallet:x': /not an http/,
    'wallet://evil.example/x': /not an http/,
    '/x': /not an http/,
    '': /not an http/,
    'ftp://a.example/x': /not an http/,
    'file:///etc/passwd': /not an http/,
    'http://user:secret@a.example/': /user name/,
    'http://a.example/a/../b': /not plain/,
    'http://a.example/a/%2e%2E/b': /not plain/,
    'http://a.example/a/.%2e;x/b': /not plain/,
    'http://a.example/a/..%3Bx/b': /not plain/,
    'http://a.example/a%2fb': /not plain/,
    'http://a.example/a%5cb': /not plain/,
    'http://a.example/a\\b': /not plain/,
    'http://a.example/a b': /not plain/,
    'http://a.example/%zz': /not plain/,
    'http://a.example/a#b': /not an http/,
    'http://a.example/a?b=ä': /not encoded/,
    'http://a.example/{a-b}': /placeholder/,
    'http://a.example/{a': /placeholder/,
    'http://a.example/{}': /placeholder/,
    'http://[::1/x': /not an http/,
  };
  for (const [reference, fault] of Object.entries(faults)) {
    t.match(parseEndpoint(reference, MODULES), { ok: false, fault }, reference);
  }
});

t.test(
  'endpoint: arguments are encoded in the query; null is left out, lists repeat, objects are JSON',
  async (t) => {
    t.equal(
      urlOf(
        'wallet:/x',
        {},
        { a: 'ä&b=c#?', n: 1.5, b: true, none: null, gone: undefined, l: [1, 'z'], o: { k: 1 } },
      ),
      'http://10.0.0.5:9000/x?a=%C3%A4%26b%3Dc%23%3F&n=1.5&b=true&l=1&l=z&o=%7B%22k%22%3A1%7D',
    );
    t.equal(urlOf('http://h.example/x?f=1', {}, { f: '2' }), 'http://h.example/x?f=1&f=2');
    t.equal(urlOf('wallet:/x', {}, { bad: '\ud800' }), 'refused: bad');
    t.equal(urlOf('wallet:/x', {}, { small: 'a', large: 'x'.repeat(9_000) }), 'refused: large');
    t.equal(
      urlOf('wallet:/x', {}, { many: Array(900).fill('abc'), more: ['x'.repeat(900)] }),
      'refused: many',
    );
    t.equal(urlOf('wallet:/x', {}, { n: [[[], [1, [2]]], null] }), 'http://10.0.0.5:9000/x?n=1&n=2');
  },
);

// covers S13
t.test('endpoint: a path argument stays one segment, or is refused by name', async (t) => {
  const reference = 'wallet:/files/{id}/get';
  t.equal(urlOf(reference, { id: 'a b?c#d' }), 'http://10.0.0.5:9000/files/a%20b%3Fc%23d/get');
  t.equal(urlOf(reference, { id: '100%' }), 'http://10.0.0.5:9000/files/100%25/get');
  t.equal(urlOf(reference, { id: '%2f' }), 'refused: id', 'a separator for a server that decodes twice');
  t.equal(urlOf(reference, { id: 7 }), 'http://10.0.0.5:9000/files/7/get');
  t.equal(urlOf(reference, { id: '$&$1' }), 'http://10.0.0.5:9000/files/%24%26%241/get');
  const refused = ['', '.', '..', 'a/b', '..\\x', '%2e%2e', 'a\nb', 'a\u0000', '\udc00', null, {}, ['a']];
  for (const id of [...refused, undefined]) {
    t.equal(urlOf(reference, { id }), 'refused: id', String(id));
  }
  for (const id of ['..;x', '.;', '..;', '..;a=b;c']) t.equal(urlOf(reference, { id }), 'refused: id', id);
  t.equal(urlOf(reference, { id: '...;x' }), 'http://10.0.0.5:9000/files/...%3Bx/get');
  t.equal(urlOf('wallet:/files/.{id}/get', { id: '.' }), 'refused: id', 'together with what is configured');
  t.equal(
    urlOf('wallet:/x/{constructor}'),
    'refused: constructor',
    'no inherited property fills a path argument',
  );
});

t.test(
  'endpoint: with encodedSlashes a path argument may hold a slash and still climbs nowhere',
  async (t) => {
    const parsed = parseEndpoint('wallet:/repos/{name}/raw', MODULES, new Set(['wallet']));
    const made = (name: string) => parsed.ok && endpointUrl(parsed.endpoint, { name });
    t.match(made('group/name'), { ok: true, url: { pathname: '/repos/group%2Fname/raw' } });
    for (const name of ['../x', 'a/..', 'a/../b', 'a\\b', '%2f'])
      t.match(made(name), { ok: false, argument: 'name' }, name);
  },
);

// covers R20 S26
t.test('endpoint: whatever the arguments are, host and path shape do not change', async (t) => {
  const target = endpoint('wallet:/a/{one}/b/{two}');
  fc.assert(
    fc.property(
      fc.string({ unit: anyCodePoint }),
      fc.string(),
      fc.dictionary(fc.string(), fc.jsonValue()),
      (one, two, query) => {
        const result = endpointUrl(target, { one, two }, query);
        if (!result.ok) return true;
        const segments = result.url.pathname.split('/');
        return (
          result.url.origin === 'http://10.0.0.5:9000' &&
          segments.length === 5 &&
          segments[1] === 'a' &&
          segments[3] === 'b' &&
          new URL(`${result.url.origin}${result.url.pathname}${result.url.search}`).hash === ''
        );
      },
    ),
    runs(5_000),
  );
  t.pass('all inputs');
});

// covers S120
t.test('proxied path: passes unchanged, or is refused when ambiguous', async (t) => {
  const base = 'http://10.0.0.5:9000/';
  t.equal(proxiedUrl(base, '/wallet/v1/x/y', '?a=%20b')?.href, 'http://10.0.0.5:9000/wallet/v1/x/y?a=%20b');
  t.equal(proxiedUrl(base, '/wallet/v1/%C3%A4', '')?.href, 'http://10.0.0.5:9000/wallet/v1/%C3%A4');
  t.equal(proxiedUrl(base, '/w/a;x=1/b;y', '')?.href, 'http://10.0.0.5:9000/w/a;x=1/b;y');
  const climbing = [
    '/w/../x',
    '/w/./x',
    '/w/%2e%2e/x',
    '/w/%2E./x',
    '/w/..;a/x',
    '/w/..%3ba/x',
    '/w/.;a/x',
    '/w/..',
  ];
  const empty = ['/w/;/x', '/w/;a=1/x', '/w/%3B/x', '/w/x/;'];
  const hidden = ['/w/a%2fb', '/w/a%5Cb', '/w//x', '//evil.example/x', '/w\\x', '/w/%00'];
  const twice = ['%252e%252e/x', 'a%252Fb', 'a%255cb', 'a%25252fb', 'a%25%32%66b', '..%253bx/y', 'a%25%32'];
  const paths = [...climbing, ...empty, ...hidden, ...twice.slice(0, -1).map((path) => `/w/${path}`)];
  t.equal(proxiedUrl(base, `/w/${twice.at(-1)}`, '')?.pathname, '/w/a%25%32', 'no dot and no separator');
  t.equal(proxiedUrl(base, '/w/100%25/a%2520b', '')?.pathname, '/w/100%25/a%2520b');
  paths.push('w/x', '', '/w/%', '/w/ä', '/w/{id}', '/w/x?y', '/w/x#y');
  t.same(
    paths.filter((path) => proxiedUrl(base, path, '') !== undefined),
    [],
  );
  t.same(
    ['a b', 'a\r\nb', 'a#b', 'ä=1', 'x'.repeat(9_000)].filter((query) =>
      proxiedUrl(base, '/w/x', `?${query}`),
    ),
    [],
  );
});

t.test('proxied path: equals the URL of base, path and query', async (t) => {
  const text = (characters: string) =>
    fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength: 12 });
  const path = text("aZ09._~!$&'()*+,;=:@%-/").map((rest) => `/w/v1/${rest}`);
  const query = fc.oneof(fc.constant(''), text('aZ09._~!$&\'()*+,;=:@%-/?"<>^`{|}[]\\'));
  const base = fc.constantFrom(
    'http://10.0.0.5:9000',
    'http://localhost/',
    'https://a.example/base/',
    'http://[::1]:80/b',
  );
  let taken = 0;
  fc.assert(
    fc.property(base, path, query, (base, path, query) => {
      const search = query === '' ? '' : `?${query}`;
      const made = proxiedUrl(base, path, search);
      if (made === undefined) return true;
      taken += 1;
      const { origin, pathname } = new URL(`${base.replace(/\/+$/, '')}${path}`);
      // The query stays as it came: `URL` would encode quotes and angle brackets.
      return (
        made.origin === origin &&
        made.pathname === pathname &&
        made.search === search &&
        made.href === origin + pathname + search
      );
    }),
    runs(20_000),
  );
  t.ok(taken > count(5_000), `${taken} were taken`);
});

t.test('gateway headers: identify the caller, by kind of caller', async (t) => {
  const facts = { project: 'demo', requestId: 'r-1' };
  const user = { 'x-crm': '1152921504606846976', 'x-user-id': '1152921504606846976' };
  const common = { 'x-project': 'demo', 'x-request-id': 'r-1' };
  t.strictSame(gatewayHeaders({ kind: 'session', session: session(null) }, facts), {
    ...common,
    ...user,
    'x-scopes': 'Browser',
    'x-keytype': 'UserKey',
  });
  t.strictSame(
    gatewayHeaders({ kind: 'session', session: session('McpApp', { appId: '99' }) }, facts)['x-mcp-app-id'],
    '99',
  );
  t.strictSame(
    gatewayHeaders({ kind: 'session', session: session('McpVerified', { appId: '99' }) }, facts),
    { ...common, ...user, 'x-scopes': 'McpVerified', 'x-keytype': 'UserKey' },
    'the app id only for McpApp',
  );
  t.strictSame(gatewayHeaders({ kind: 'capability', family: 'wallet' }, facts), {
    ...common,
    'x-scopes': 'Capability:wallet',
    'x-keytype': 'Unknown',
  });
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  t.strictSame(gatewayHeaders({ kind: 'anonymous' }, { ...facts, traceparent }), { ...common, traceparent });
});

// covers S15
t.test('gateway headers: a value that could break a header is refused with its name', async (t) => {
  for (const requestId of ['a\r\nx-crm: 1', 'a\nb', 'a\u0000b', 'ä', ' a', 'a ', '', 'x'.repeat(513)]) {
    t.strictSame(refusalOf({ project: 'p', requestId }), ['InvalidInput', 'X-Request-Id']);
  }
  t.strictSame(refusalOf({ project: 'a\rb', requestId: 'r' }), ['InvalidInput', 'X-Project']);
});

t.test('client headers: credentials, hop-by-hop and named ones are removed, others pass', async (t) => {
  t.strictSame(
    forwardedHeaders([
      ['Accept', 'application/json'],
      ['Accept-Language', 'de'],
      ['Content-Type', 'application/json'],
      ['If-None-Match', '"a"'],
      ['Cookie', 'sid=secret'],
      ['Authorization', 'Bearer secret'],
      ['X-MCP-Code', 'secret'],
      ['pkey', 'x'],
      ['Connection', 'X-Internal, keep-alive'],
      ['X-Internal', 'x'],
      ['X-Forwarded-For', '1.2.3.4'],
      ['X_Forwarded_For', '1.2.3.4'],
      ['Transfer-Encoding', 'chunked'],
      ['Transfer_Encoding', 'chunked'],
      ['Host', 'gate.example'],
      ['Sec-Fetch-Site', 'same-origin'],
      ['X-Odd', 'ä'],
      ['X-Empty', ''],
      ['X-Tab', 'a\tb'],
      ['Baggage', 'x'.repeat(8_192)],
    ]),
    {
      accept: 'application/json',
      'accept-language': 'de',
      'content-type': 'application/json',
      'if-none-match': '"a"',
      'x-odd': '\u00c3\u00a4',
      'x-empty': '',
      'x-tab': 'a\tb',
      baggage: 'x'.repeat(8_192),
    },
  );
});

t.test(
  'client headers: a value of more than 8 KiB, or not in UTF-8, is refused with the name of its field',
  async (t) => {
    const fault = (value: string) => {
      try {
        return forwardedHeaders([['X-Token', value]]);
      } catch (error) {
        return error instanceof GatewayError ? [error.row, error.detail?.split(':')[0]] : error;
      }
    };
    t.same(fault('x'.repeat(8_193)), ['FieldTooLong', 'X-Token']);
    t.same(fault('a\ufffdb'), ['InvalidInput', 'X-Token']);
    t.same(fault('a\u007fb'), ['InvalidInput', 'X-Token']);
    t.same(
      forwardedHeaders([['Cookie', 'x'.repeat(9_000)]]),
      {},
      'a field that is not passed on has no limit',
    );
  },
);

t.test('gateway headers: the public address is that of BaseUrl, also in the form of RFC 7239', async (t) => {
  const of = (clientAddress: string, baseUrl: string) => {
    const facts = { project: 'demo', requestId: 'r-1', clientAddress, baseUrl };
    const headers = gatewayHeaders({ kind: 'anonymous' }, facts);
    return [headers['x-forwarded-host'], headers['x-forwarded-proto'], headers['forwarded']];
  };
  t.same(of('192.0.2.1', 'https://gate.example'), [
    'gate.example',
    'https',
    'for=192.0.2.1;host="gate.example";proto=https',
  ]);
  t.same(of('2001:db8::1', 'http://gate.example:8080'), [
    'gate.example:8080',
    'http',
    'for="[2001:db8::1]";host="gate.example:8080";proto=http',
  ]);
});
