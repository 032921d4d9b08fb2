/** Headers of a module that a client may see, and those that the gateway sends whatever the module says. */
import t from 'tap';
import { type AnsweredCall, answerHeaders, answerType } from '../../../src/io/http-client/answer-headers.ts';

const POLICY = "default-src 'none'; sandbox";
const CALL: AnsweredCall = {
  isPersonal: true,
  url: new URL('http://10.0.0.5:9000/base/core/v1/thing/make?a=1'),
  rawPath: '/core/v1/thing/make',
};
const AT_THE_ROOT: AnsweredCall = { ...CALL, url: new URL('http://10.0.0.5:9000/core/v1/thing/make') };
const ANONYMOUS: AnsweredCall = { ...CALL, isPersonal: false };

type Headers = Record<string, string | string[]>;

function fieldsOf(headers: Headers): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((text) => [name, text]));
}

/** All but the policy, which always is there. */
function passed(headers: Headers, call = CALL): [string, string][] {
  return answerHeaders({ fields: fieldsOf(headers) }, call)
    .filter(([name]) => name !== 'Content-Security-Policy')
    .map(([name, value]) => [name, value]);
}

function textOf(name: string, value: string | string[], call = CALL): string | undefined {
  return passed({ [name]: value }, call).find(([kept]) => kept === name)?.[1];
}

// covers R1
t.test('policy: a module adds to the policy of the gateway and never replaces it', (t) => {
  const policyOf = (value?: string | string[]) =>
    answerHeaders(
      { fields: fieldsOf(value === undefined ? {} : { 'content-security-policy': value }) },
      CALL,
    ).filter(([name]) => name.toLowerCase().startsWith('content-security'));
  const field = (...more: string[]) => [['Content-Security-Policy', [POLICY, ...more].join(', ')]];
  t.strictSame(policyOf(), field());
  for (const empty of ['', ' ', ',', ' ; , ;']) t.strictSame(policyOf(empty), field(), JSON.stringify(empty));
  for (const weak of ['x', 'default-src *', 'sandbox allow-scripts allow-same-origin', "script-src 'none'"])
    t.strictSame(policyOf(weak), field(weak), weak);
  t.strictSame(policyOf(['default-src *', '', 'sandbox']), field('default-src *', 'sandbox'));
  for (const unfit of ['x "open', 'x\r\nSet-Cookie: sid=1', 'caf\u00e9', 'x'.repeat(20_000)])
    t.strictSame(policyOf(unfit), field(), 'an unfit one adds nothing');
  const large = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`x-${at}`, 'x'.repeat(1_000)]));
  const kept = answerHeaders({ fields: fieldsOf({ ...large, 'content-security-policy': 'x' }) }, CALL);
  t.ok(kept.length < 20, 'too many headers are left out');
  t.strictSame(kept.at(-1), field('x')[0], 'and the policy stays');
  t.end();
});

// covers R1
t.test('answer headers: those with an effect beyond the answer and unknown names are dropped', (t) => {
  const names = [
    ...['nel', 'report-to', 'reporting-endpoints', 'speculation-rules', 'use-as-dictionary', 'set-login'],
    ...['available-dictionary', 'origin-agent-cluster', 'alt-svc', 'clear-site-data', 'expect-ct'],
    ...['strict-transport-security', 'public-key-pins', 'accept-ch', 'critical-ch', 'service-worker-allowed'],
    ...['set-cookie', 'set-cookie2', 'sec-session-registration', 'sourcemap', 'refresh', 'www-authenticate'],
    ...['access-control-allow-origin', 'timing-allow-origin', 'permissions-policy', 'referrer-policy'],
    ...['content-security-policy-report-only', 'cross-origin-opener-policy', 'activate-storage-access'],
    ...[
      'cdn-cache-control',
      'surrogate-control',
      'surrogate-key',
      'pragma',
      'via',
      'server',
      'date',
      'trailer',
    ],
    ...[
      'content-length',
      'content-type',
      'content-encoding',
      'transfer-encoding',
      'connection',
      'keep-alive',
    ],
    ...[
      'traceparent',
      'ratelimit',
      'ratelimit-policy',
      'supports-loading-mode',
      'of-tomorrow',
      'constructor',
    ],
    ...['x-accel-redirect', 'x-accel-expires', 'x-sendfile', 'x-litespeed-cache-control', 'x-powered-by'],
  ];
  t.same(
    names.filter((name) => passed({ [name]: '1' }).length > 0),
    [],
  );
  t.end();
});

// covers R1
t.test('answer headers: the names of the gateway never pass, in any spelling', (t) => {
  const names = [
    'x-crm',
    'x-scopes',
    'x-keytype',
    'x-project',
    'x-mcp-app-id',
    'x-user-id',
    'mcp-session-id',
  ];
  const more = [
    'x-request-id',
    'x-module-key',
    'x-device-guid',
    'x-ratelimit',
    'x-api-key',
    'x-forwarded-for',
  ];
  const spellings = [...names, ...more, 'x-content-type-options'].flatMap((name) => [
    name,
    name.replaceAll('-', '_'),
    name.replace(/-(?=[^-]*$)/, '_'),
  ]);
  t.same(
    spellings.filter((spelling) => passed({ [spelling]: '1' }).length > 0),
    [],
  );
  t.end();
});

t.test(
  'answer headers: those about the answer pass, unless Connection names them or they are invalid',
  (t) => {
    const fit: [string, string][] = [
      ['etag', '"7"'],
      ['last-modified', 'Sat, 21 Nov 2026 00:00:00 GMT'],
      ['accept-ranges', 'bytes'],
      ['content-range', 'bytes 0-1/2'],
      ['content-disposition', 'attachment; filename="a"'],
      ['retry-after', '9'],
      ['allow', 'GET'],
      ['x-total', '12'],
      ['x-frame-options', 'DENY'],
    ];
    t.strictSame(passed(Object.fromEntries(fit)), fit);
    t.strictSame(passed({ vary: ['Accept', 'Accept-Language'] }), [
      ['vary', 'Accept'],
      ['vary', 'Accept-Language'],
    ]);
    t.strictSame(passed({ connection: 'close, X-Total', 'x-total': '1', 'x-more': 'a\nb' }), []);
    t.end();
  },
);

t.test('links: relative ones pass; absolute ones and those that a browser loads do not', (t) => {
  for (const link of ['</core/v1/a?after=7>; rel="next"', '<a>; rel=prev, <b>; rel=last'])
    t.equal(textOf('link', link), link);
  for (const link of [
    '<http://10.0.0.5:9000/a>; rel=next',
    '<//evil.example/a>; rel=next',
    '<\\\\evil.example/a>; rel=next',
    '<a>; rel=next, < https://evil.example>; rel=last',
    '</a>; rel=preload; as=script',
    '</a>; rel="next Prefetch"',
    '</a>; rel=compression-dictionary',
  ])
    t.equal(textOf('link', link), undefined, link);
  t.end();
});

// covers R1
t.test('caching: an answer to a session is private, whatever the module sends', (t) => {
  const cases: Record<string, string> = {
    public: 'private',
    'public, max-age=60': 'private, max-age=60',
    'max-age=60, s-maxage=600': 'private, max-age=60',
    'PUBLIC, Max-Age="60", immutable': 'private, max-age=60, immutable',
    'private="set-cookie, x-a", max-age=5': 'private, max-age=5',
    'no-cache="x-a", public': 'private, no-cache',
    'max-age=-1': 'private, max-age=0',
    'max-age=5, max-age=500': 'private, max-age=5',
    [`max-age${' '.repeat(9_000)}=${' '.repeat(6_000)}60, immutable`]: 'private, max-age=60, immutable',
    'must-revalidate, proxy-revalidate': 'private, must-revalidate',
    'public, no-store': 'no-store',
    'must-understand, no-store, max-age=5': 'no-store',
    's-maxage=600': 'no-store',
    '': 'no-store',
    nonsense: 'no-store',
  };
  const sent = Object.keys(cases);
  const rows = (row: (text: string) => unknown) => Object.fromEntries(sent.map((text) => [text, row(text)]));
  t.same(
    rows((text) => textOf('cache-control', text)),
    cases,
  );
  t.same(
    rows((text) => textOf('cache-control', text, ANONYMOUS)),
    rows((text) => text),
    'without a session the module decides',
  );
  t.same(
    rows((text) => passed({ 'cache-control': text }).find(([name]) => name === 'vary')?.[1]),
    rows((text) => (cases[text] === 'no-store' ? undefined : 'Authorization, Cookie')),
  );
  t.equal(textOf('cache-control', ['public', 'max-age=7']), 'private, max-age=7', 'several fields are one');
  t.strictSame(passed({ 'surrogate-control': 'max-age=9' }), [], 'the writer says no-store then');
  t.end();
});

// covers R1
t.test('Location: a path of the module is mapped to its gateway path, all else is dropped', (t) => {
  const cases: Record<string, string | undefined> = {
    '/base/core/v1/thing/7?b=2#c': '/core/v1/thing/7?b=2#c',
    '/core/v1/thing/7': '/core/v1/thing/7',
    'http://10.0.0.5:9000/base/core/v1/thing/7': '/core/v1/thing/7',
    '7': '/core/v1/thing/7',
    '../../v2/other': '/core/v2/other',
    '?page=2': '/core/v1/thing/make?page=2',
    'http://10.0.0.5:9001/base/core/v1/thing/7': undefined,
    'https://10.0.0.5:9000/base/core/v1/thing/7': undefined,
    'http://192.168.0.1/core/v1/a': undefined,
    'http://169.254.169.254/latest': undefined,
    'https://evil.example/core/v1/a': undefined,
    '//evil.example/core/v1/a': undefined,
    '/\\evil.example/core/v1/a': undefined,
    'javascript:alert(1)': undefined,
    'data:text/html,1': undefined,
    'http://[': undefined,
    '/auth/v1/logout': undefined,
    '/base/auth/v1/logout': undefined,
    '/base/core/../auth/v1/logout': undefined,
    '/base/wallet/v1/a': undefined,
    '/': undefined,
  };
  for (const name of ['location', 'content-location'])
    t.same(Object.fromEntries(Object.keys(cases).map((sent) => [sent, textOf(name, sent)])), cases, name);
  t.equal(textOf('location', 'http://10.0.0.5:9000/core/v1/a', AT_THE_ROOT), '/core/v1/a');
  t.equal(textOf('location', '/other/v1/a', AT_THE_ROOT), undefined);
  t.equal(textOf('location', '/core/v1/caf\u00e9'), undefined, 'unfit');
  t.end();
});

t.test('type: multipart answers are sent as bytes', (t) => {
  for (const type of ['multipart/x-mixed-replace', ' Multipart/X-Mixed-Replace; boundary=b'])
    t.equal(answerType(type), 'application/octet-stream', type);
  for (const type of ['application/json', 'text/html; charset=utf-8', 'multipart/byteranges; boundary=b'])
    t.equal(answerType(type), type);
  t.equal(answerType(''), undefined);
  t.end();
});
