/** The request pipeline, over real sockets with small routes. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { boolean, int64, integer, object, optional, text } from '../../../src/domain/schema.ts';
import { type AnyRoute, Reply, type SessionLookup } from '../../../src/io/http/table/route.ts';
import { BODY_BYTES_MAX } from '../../../src/io/http/table/router.ts';
import {
  BROWSER_SESSION,
  connectRaw,
  type HttpFixture,
  plainRoute,
  requestText,
  route,
  sendRaw,
  startHttp,
} from '../../support/http.ts';

/** Knows the cookie `alice`, the admin `root` and the bearer `agent`. */
const GATE: SessionLookup = {
  authenticate(token, kind, charge) {
    const known = kind === 'browser' ? ['alice', 'root'] : ['agent'];
    if (!known.includes(token)) return undefined;
    const quotaResult =
      charge === undefined
        ? undefined
        : { allowed: true, scope: charge.scope, quota: 15, remaining: 14, resetSeconds: 5 };
    const role = token === 'root' ? ({ role: 'admin' } as const) : {};
    return { session: { ...BROWSER_SESSION, kind, ...role }, quotaResult };
  },
};

const ROUTES: AnyRoute[] = [
  plainRoute('DELETE /gone', async () => Reply.empty(204)),
  plainRoute('GET /hello', () => 'hello'),
  plainRoute('GET /later', () => new Promise((resolve) => setImmediate(resolve, 'later'))),
  plainRoute('GET /item/:id', ({ params }) => params),
  plainRoute('GET /item/special', () => 'special'),
  plainRoute('DELETE /item/:other', ({ params }) => params),
  route(
    'GET /typed',
    { query: object({ count: integer({ minimum: 1 }), flag: optional(boolean()), name: optional(text()) }) },
    ({ query }) => query,
  ),
  route(
    'POST /echo',
    { auth: 'optional', body: object({ name: text({ maxLength: 20 }), id: optional(int64()) }) },
    ({ body, session }) => ({ body, userId: session?.userId ?? null }),
  ),
  route(
    'POST /maybe',
    { auth: 'optional', body: object({ name: optional(text()) }), bodyOptional: true },
    ({ body }) => body,
  ),
  route(
    'POST /raw',
    { limits: ['Self'], body: 'raw' },
    async ({ rawBody }) => new Reply(200, rawBody, 'application/octet-stream'),
  ),
  route('GET /mine', { auth: 'session' }, ({ session }) => session.userId),
  route('POST /mine', { auth: 'session' }, ({ session }) => session.userId),
  route('GET /either', { auth: 'either' }, ({ session }) => session.kind),
  route('POST /once', { idempotent: true }, ({ idempotencyKey, traceparent }) => [
    idempotencyKey ?? null,
    traceparent ?? null,
  ]),
  route('GET /admin', { auth: 'admin' }, () => 'admin'),
  plainRoute('GET /bug', () => {
    throw new Error('secret words');
  }),
  plainRoute('GET /latebug', async () => {
    throw new Error('secret words');
  }),
  plainRoute('GET /refused', () => {
    throw new GatewayError('Quarantined', 'why');
  }),
  plainRoute('GET /inject', ({ search }) =>
    Reply.empty(200, [['X-Thing', decodeURIComponent(search.slice(1))]]),
  ),
  route(
    'POST /rpc',
    { limits: ['Self'], body: 'raw', refusal: (error) => Reply.json(200, { rpc: error.row }) },
    () => {
      throw new GatewayError('InvalidParams');
    },
  ),
];

function start(t: Test, changes: Partial<Parameters<typeof startHttp>[0]> = {}): HttpFixture {
  return closeAfter(t, startHttp({ routes: ROUTES, gate: GATE, ...changes }));
}

t.test('pipeline: a plain value is answered in the success envelope with the security headers', async (t) => {
  const { ask, finished } = start(t);
  const answer = await ask('GET', '/hello');
  t.equal(answer.status, 200);
  t.equal(answer.body, '{"result":"hello"}');
  t.match(answer.headers, {
    'content-type': 'application/json',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'x-request-id': 'test-1',
  });
  t.match(finished, [
    {
      method: 'GET',
      route: '/hello',
      status: 200,
      responseBytes: 18,
      requestId: 'test-1',
      clientAddress: '127.0.0.1',
    },
  ]);
});

// covers S2
t.test(
  'pipeline: HEAD of a GET route is answered with headers only, and the next request parses',
  async (t) => {
    const { port } = start(t);
    const connection = closeAfter(t, connectRaw(port));
    for (const path of ['/hello', '/later']) {
      connection.send(requestText('HEAD', path));
      const head = await connection.answer(true);
      t.equal(head.status, 200);
      t.equal(head.headers['content-length'], String(`{"result":"${path.slice(1)}"}`.length));
      t.equal((await connection.ask(requestText('GET', '/hello'))).body, '{"result":"hello"}');
    }
  },
);

t.test(
  'pipeline: a body that no route reads is discarded, a 204 has none, and the connection stays open',
  async (t) => {
    const { port, finished } = start(t);
    const connection = closeAfter(t, connectRaw(port));
    const body = 'x'.repeat(200_000);
    for (const [method, path, status] of [
      ['DELETE', '/gone', 204],
      ['GET', '/hello', 200],
      ['GET', '/later', 200],
      ['POST', '/nothing', 404],
      ['POST', '/hello', 405],
    ] as const) {
      const answer = await connection.ask(requestText(method, path, {}, body));
      t.equal(answer.status, status, path);
      t.equal((await connection.ask(requestText('GET', '/hello'))).body, '{"result":"hello"}', path);
    }
    t.equal(finished.length, 10);
  },
);

t.test(
  'pipeline: parameters are decoded, literals have priority, unknown paths and methods get 404 and 405',
  async (t) => {
    const { ask } = start(t);
    const get = async (path: string, method = 'GET') => ask(method, path);
    t.equal((await get('/item/a%20b')).body, '{"result":{"id":"a b"}}');
    t.equal((await get('/item/x', 'DELETE')).body, '{"result":{"other":"x"}}');
    t.equal((await get('/item/special')).body, '{"result":"special"}');
    for (const path of ['/item/%2e%2e%2fetc', '/item/a%00b', '/item/a%5cb', '/item/%zz', '/item/%ff']) {
      t.equal((await get(path)).status, 400, path);
    }
    for (const path of ['/', '/nothing', '/hello/', '/HELLO', '//hello', '/item/', '/item/a/b', '/h%65llo']) {
      const answer = await get(path);
      t.equal(answer.status, 404, path);
      t.equal(answer.body, '{"error":{"code":1004,"message":"Not found"}}');
    }
    const wrong = await get('/item/7', 'POST');
    t.equal(wrong.status, 405);
    t.equal(wrong.headers['allow'], 'GET, DELETE, HEAD');
    t.equal(wrong.body, '{"error":{"code":1005,"message":"Method not allowed"}}');
    t.equal((await get('/echo', 'GET')).headers['allow'], 'POST');
    t.equal((await get('/hello', 'BREW')).status, 405);
  },
);

t.test(
  'pipeline: a query is typed by its schema; repeated, broken and invalid fields are 400 with the path',
  async (t) => {
    const { ask } = start(t);
    const get = async (query: string) => ask('GET', `/typed?${query}`);
    t.equal(
      (await get('count=3&flag=true&name=a+b%21')).body,
      '{"result":{"count":3,"flag":true,"name":"a b!"}}',
    );
    for (const [query, reason] of [
      ['', '/count'],
      ['count=0', '/count'],
      ['count=1.5', '/count'],
      ['count=1e3', '/count'],
      ['count=1&count=2', 'repeated'],
      ['count=1&na%6de=a&name=b', 'repeated'],
      ['count=1&name=%zz', 'broken escape'],
      ['count=1&__proto__=1', 'reserved'],
      [`count=1${'&a=1'.repeat(120)}`, 'too many'],
    ] as const) {
      const answer = await get(query);
      t.equal(answer.status, 400, query);
      t.match(JSON.parse(answer.body), { error: { code: 1001, message: 'Invalid input format' } });
      t.match(answer.body, reason, query);
    }
  },
);

// covers S12
t.test('pipeline: a JSON body is checked by its schema, whole or in pieces', async (t) => {
  const { ask, port } = start(t);
  const json = { 'Content-Type': 'application/json; charset=utf-8' };
  const whole = requestText('POST', '/echo', json, '{"name":"ä","id":"9","more":1}');
  t.equal((await sendRaw(port, whole)).status, 200);
  const body = '{"name":"in pieces"}';
  const chunked = requestText('POST', '/echo', { ...json, 'Transfer-Encoding': 'chunked' });
  const connection = closeAfter(t, connectRaw(port));
  connection.send(chunked);
  for (const letter of body) connection.send(`1\r\n${letter}\r\n`);
  t.equal((await connection.ask('0\r\n\r\n')).body, '{"result":{"body":{"name":"in pieces"},"userId":null}}');
  const differing: unknown[] = [];
  for (const [bad, reason] of [
    ['', 'is required'],
    ['{', 'not JSON'],
    ['[]', 'body'],
    ['{"name":1}', '/name'],
    ['{}', '/name'],
    [`{"name":"${'x'.repeat(21)}"}`, '/name'],
    ['{"name":"a","id":9007199254740993}', '/id'],
    ['{"name":"a","__proto__":{}}', 'reserved'],
    ['{"name":"a","x":[{"constr\\u0075ctor":1}]}', 'reserved'],
    ['{"name":"a","prototype":1}', 'reserved'],
    [`${'['.repeat(10_000)}${']'.repeat(10_000)}`, 'nested'],
    ['\ufeff{"name":"a"}', 'not JSON'],
  ] as const) {
    const answer = await ask('POST', '/echo', json, bad);
    if (answer.status !== 400 || !answer.body.includes(reason))
      differing.push([bad.slice(0, 40), reason, answer.status, answer.body]);
  }
  t.same(differing, []);
  const broken = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
  const head = requestText('POST', '/echo', { ...json, 'Content-Length': String(broken.length) });
  t.match((await sendRaw(port, head, broken)).body, 'not UTF-8');
  t.match(await ask('POST', '/echo'), { status: 400, body: /body: is required/ });
  t.equal((await ask('POST', '/maybe')).body, '{"result":{}}');
  t.equal((await ask('POST', '/maybe', json, '{"name":"x"}')).body, '{"result":{"name":"x"}}');
  t.equal((await ask('POST', '/raw', {}, 'bytes')).body, 'bytes');
  t.equal((await ask('POST', '/raw')).body, '');
  t.equal((await ask('POST', '/raw', {}, 'x'.repeat(BODY_BYTES_MAX))).status, 200);
});

// covers R33 R82
t.test('pipeline: the session comes from the cookie or the bearer that the route reads', async (t) => {
  const { ask, port } = start(t);
  const get = async (path: string, headers: Record<string, string>) => ask('GET', path, headers);
  const cookie = { Cookie: 'a=b; sid=alice; c=d' };
  const bearer = { Authorization: 'Bearer agent' };
  t.equal((await get('/mine', cookie)).body, '{"result":"42"}');
  t.equal((await get('/mine', { Cookie: 'sid=alice; sid=alice' })).body, '{"result":"42"}');
  t.equal(
    (await get('/mine', { Cookie: 'sid=of-a-sibling; sid=alice; sid=old' })).body,
    '{"result":"42"}',
    'values that open nothing do not count',
  );
  t.equal((await get('/either', cookie)).body, '{"result":"browser"}');
  t.equal((await get('/either', { ...cookie, ...bearer })).body, '{"result":"mcp"}');
  t.equal((await get('/either', { ...cookie, Authorization: 'Basic x' })).body, '{"result":"browser"}');
  for (const [path, headers] of [
    ['/mine', {}],
    ['/mine', bearer],
    ['/mine', { Cookie: 'sid=alice; sid=root' }],
    ['/mine', { Cookie: 'sid=mallory; sid=eve' }],
    ['/mine', { Cookie: 'sid=mallory' }],
    ['/mine', { Cookie: 'sid=' }],
    ['/mine', { Cookie: 'xsid=alice' }],
    ['/either', {}],
    ['/either', { ...cookie, Authorization: 'Bearer unknown' }],
    ['/admin', {}],
  ] as const) {
    const answer = await get(path, headers);
    t.same(
      [answer.status, answer.body],
      [401, '{"error":{"code":1101,"message":"Session not found"}}'],
      JSON.stringify(headers),
    );
  }
  const twice = 'GET /mine HTTP/1.1\r\nHost: localhost\r\nCookie: sid=alice\r\nCookie: sid=root\r\n\r\n';
  t.equal((await sendRaw(port, twice)).status, 401, 'two cookie fields with a live sid each');
  t.equal((await get('/admin', cookie)).status, 403);
  t.equal((await get('/admin', { Cookie: 'sid=root' })).body, '{"result":"admin"}');
  const outside = start(t, { site: { adminAllow: ['10.0.0.0/8'] } });
  t.equal((await outside.ask('GET', '/admin', { Cookie: 'sid=root' })).status, 403);
});

t.test('pipeline: a bug is reported to the operator and answered 500 without details', async (t) => {
  const { ask, port, bugs } = start(t);
  for (const path of [
    '/bug',
    '/latebug',
    '/inject?a%0d%0aSet-Cookie:%20x=1',
    '/inject?%00',
    '/inject?%c3%a4',
  ]) {
    const answer = await ask('GET', path);
    t.equal(answer.status, 500, path);
    t.equal(answer.body, '{"error":{"code":1000,"message":"Internal error"}}');
    t.notOk(answer.headers['set-cookie']);
  }
  t.equal(bugs.length, 5);
  const refused = await ask('GET', '/refused');
  t.equal(refused.status, 503);
  t.equal(refused.headers['retry-after'], '30');
  t.equal(refused.body, '{"error":{"code":1012,"message":"Temporarily unavailable","detail":"why"}}');
  t.equal((await ask('POST', '/rpc')).body, '{"rpc":"InvalidParams"}');
  const large = requestText('POST', '/rpc', { 'Content-Length': '70000' });
  t.equal((await sendRaw(port, large)).body, '{"rpc":"BodyTooLarge"}');
});

// covers S116
t.test(
  'pipeline: the gateway makes the request id; ids of callers, traces and repeats are read if well formed',
  async (t) => {
    const { ask, port, finished } = start(t);
    const send = (headers: Record<string, string>) => ask('POST', '/once', headers);
    for (const id of ['a'.repeat(65), 'a b', '../x', '"', '']) {
      t.match((await send({ 'X-Request-Id': id })).headers['x-request-id'], /^test-\d+$/, id);
      t.equal(finished.at(-1)?.clientRequestId, undefined, id);
    }
    const named = await send({ 'X-Request-Id': 'Az09._-' });
    t.match(named.headers['x-request-id'], /^test-\d+$/);
    t.match(finished.at(-1), { requestId: named.headers['x-request-id'], clientRequestId: 'Az09._-' });
    const trace = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`;
    t.equal((await send({ traceparent: trace })).body, `{"result":[null,"${trace}"]}`);
    for (const bad of [
      trace.toUpperCase(),
      `${trace}-x`,
      trace.replaceAll('a1', '00'),
      trace.replaceAll('b2', '00'),
    ]) {
      t.equal((await send({ traceparent: bad })).body, '{"result":[null,null]}', bad);
    }
    t.equal((await send({ 'Idempotency-Key': 'k-1' })).body, '{"result":["k-1",null]}');
    t.equal((await send({ 'Idempotency-Key': 'k'.repeat(128) })).status, 200);
    for (const bad of ['k'.repeat(129), 'two words', '']) {
      const refused = await send({ 'Idempotency-Key': bad });
      t.equal(refused.status, 400, bad);
      t.match(refused.body, 'Idempotency-Key');
    }
    const twice = requestText('POST', '/once').replace(
      '\r\n\r\n',
      '\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n',
    );
    t.equal((await sendRaw(port, twice)).status, 400);
  },
);

t.test('pipeline: the record names the error of the reply, in whatever form it was answered', async (t) => {
  const { ask, finished } = start(t);
  const errorOf = async (method: string, path: string, headers: Record<string, string> = {}) => {
    await ask(method, path, headers);
    return finished.at(-1)?.error;
  };
  t.equal(await errorOf('GET', '/refused'), 'Quarantined');
  t.equal(await errorOf('GET', '/bug'), 'InternalError');
  t.equal(await errorOf('GET', '/inject?%00'), 'InternalError', 'an invalid header');
  t.equal(await errorOf('GET', '/nowhere'), 'NotFound');
  t.equal(await errorOf('DELETE', '/refused'), 'MethodNotAllowed');
  t.equal(await errorOf('POST', '/rpc'), 'InvalidParams', 'a form of its own');
  t.equal(
    await errorOf('POST', '/rpc', { 'Content-Length': '70000' }),
    'BodyTooLarge',
    'refused by the head',
  );
  t.equal(await errorOf('POST', '/once'), undefined);
});
