/** The reverse proxy of REST calls, against a module on a socket of its own. */
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { holdTimeouts } from '../../support/held-timers.ts';
import { connectRaw, requestText, sendRaw } from '../../support/http.ts';
import {
  APP_BEARER,
  BASIC_BEARER,
  BEARER,
  type ProxyFixtureOptions,
  SID,
  SIGNED_APP_BEARER,
  startProxy,
} from '../../support/module.ts';

const COOKIE = { cookie: `sid=${SID}` };
const TOKEN = { authorization: `Bearer ${BEARER}` };
const DENIED = { code: 1103, message: 'Access denied' };

async function proxyOf(t: Test, options: ProxyFixtureOptions = {}) {
  return closeAfter(t, await startProxy(options));
}

const errorOf = async (answer: Response) => {
  const { error } = (await answer.json()) as { error?: { code: number } };
  return [answer.status, error?.code];
};

t.test(
  'proxy: a call goes to the module with its query and bytes, and the answer comes back unchanged',
  async (t) => {
    const text = '{"result":{"id":"9223372036854775807","amount":12.500}}';
    const proxy = await proxyOf(t, {
      answer: (_asked, response) =>
        response.writeHead(201, { 'content-type': 'application/json; charset=utf-8', etag: '"7"' }).end(text),
    });
    const body = '{ "a" : 1.50 }';
    const headers = { ...TOKEN, 'content-type': 'application/json' };
    const answer = await proxy.send('/core/v1/thing/make?a=1&b=%20x', { method: 'POST', headers, body });
    t.equal(answer.status, 201);
    t.equal(await answer.text(), text);
    t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
    t.equal(answer.headers.get('etag'), '"7"');
    t.match(answer.headers.get('x-ratelimit'), /^s=s;l=15;/, 'the scope of sessions');
    const [asked] = proxy.asked;
    t.match(asked, { method: 'POST', url: '/base/core/v1/thing/make?a=1&b=%20x' });
    t.equal(asked?.body.toString(), body);
    t.equal(asked?.headers['content-type'], 'application/json');
  },
);

// covers R1
t.test(
  'proxy: PUT, PATCH, DELETE and HEAD arrive as such; HEAD names the length of the module',
  async (t) => {
    const proxy = await proxyOf(t, {
      answer: ({ method }, response) =>
        method === 'DELETE'
          ? response.writeHead(204).end()
          : response.writeHead(200, { 'content-length': '7' }).end(method === 'HEAD' ? undefined : '1234567'),
    });
    for (const method of ['PUT', 'PATCH', 'DELETE', 'HEAD']) {
      const answer = await proxy.send('/core/v2/thing/one', { method, headers: TOKEN });
      t.equal(answer.status, method === 'DELETE' ? 204 : 200, method);
      if (method === 'HEAD') t.equal(answer.headers.get('content-length'), '7');
    }
    t.same(
      proxy.asked.map(({ method }) => method),
      ['PUT', 'PATCH', 'DELETE', 'HEAD'],
    );
  },
);

// covers R1
t.test(
  'proxy: the module learns who calls from the gateway alone, in every spelling of a header',
  async (t) => {
    const proxy = await proxyOf(t);
    const lies = {
      'X-Crm': '1',
      X_Crm: '1',
      'x_user-id': '1',
      'X-Scopes': 'Admin',
      X_KEYTYPE: 'FIDO2',
      'X-Project': 'other',
      'X-MCP-App-Id': '1',
      'X-Module-Key': 'k',
      'X-Forwarded-For': '1.2.3.4',
      X_Forwarded_Host: 'evil',
      'X-Forwarded-Host': 'evil',
      'X-Forwarded-Proto': 'gopher',
      Forwarded: 'for=1.2.3.4;host=evil',
      'X-HTTP-Method-Override': 'DELETE',
      'X-Original-URL': '/core/v1/admin/all',
      Cookie: `sid=${SID}; other=1`,
      'Proxy-Authorization': 'Basic eA==',
      Connection: 'keep-alive, X-Hop',
      'X-Hop': 'mine',
      'Accept-Language': 'de',
      'Accept-Encoding': 'gzip',
    };
    await proxy.http.ask('GET', '/core/v1/a/b', { ...lies, Authorization: `Bearer ${BEARER}` });
    await proxy.http.ask('GET', '/core/v1/a/b', lies);
    const [agent, person] = proxy.asked.map(({ headers }) => headers);
    t.match(agent, {
      'x-crm': '1842001',
      'x-user-id': '1842001',
      'x-scopes': 'McpVerified',
      'x-keytype': 'UserKey',
    });
    t.match(person, {
      'x-crm': '1842001',
      'x-scopes': 'Browser',
      'x-keytype': 'FIDO2',
      'x-project': 'test',
      'accept-encoding': 'identity',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': `localhost:${proxy.http.port}`,
      'x-forwarded-proto': 'http',
      forwarded: `for=127.0.0.1;host="localhost:${proxy.http.port}";proto=http`,
    });
    const arrived = Object.keys(person ?? {}).sort();
    t.same(arrived, [
      'accept-encoding',
      'accept-language',
      'connection',
      'forwarded',
      'host',
      'via',
      'x-crm',
      'x-forwarded-for',
      'x-forwarded-host',
      'x-forwarded-proto',
      'x-keytype',
      'x-project',
      'x-request-id',
      'x-scopes',
      'x-user-id',
    ]);
  },
);

t.test(
  'proxy: without a session, or with one that opens nothing, a call is 1101 and never reaches the module',
  async (t) => {
    const proxy = await proxyOf(t, { rules: { public: ['/core/v1/news'] } });
    const attempts: Record<string, string>[] = [
      {},
      { cookie: 'sid=stale' },
      { authorization: 'Bearer stale' },
      { ...COOKIE, authorization: 'Bearer stale' },
      { authorization: `Bearer ${SID}` },
      { cookie: `sid=${BEARER}` },
    ];
    for (const headers of attempts)
      t.same(
        await errorOf(await proxy.send('/core/v1/a/b', { headers })),
        [401, 1101],
        JSON.stringify(headers),
      );
    const stale = { authorization: 'Bearer stale' };
    t.same(await errorOf(await proxy.send('/core/v1/news/all', { headers: stale })), [401, 1101]);
    t.equal(proxy.asked.length, 0);
    t.equal(proxy.audit.length, attempts.length + 1);
    t.match(proxy.audit[0], {
      event: 'rest.call',
      userId: null,
      fields: { outcome: 'denied', name: 'GET /core/v1/a/b' },
    });
  },
);

t.test('proxy: a public path needs no session, in one spelling, up to the end of a segment', async (t) => {
  const proxy = await proxyOf(t, { rules: { public: ['/core/v1/news/'] } });
  const open = await proxy.send('/core/v1/news/today?x=1', { headers: { cookie: 'sid=stale' } });
  t.equal(open.status, 200);
  t.equal(proxy.asked[0]?.headers['x-crm'], undefined);
  t.equal(proxy.asked[0]?.headers['x-scopes'], undefined);
  await proxy.send('/core/v1/news', { headers: COOKIE });
  t.equal(proxy.asked[1]?.headers['x-crm'], '1842001', 'a session that is there counts');
  for (const path of ['/core/v1/newsroom/a', '/core/v1/%6eews/a', '/core/v1/NEWS/a', '/core/v2/news/a'])
    t.same(await errorOf(await proxy.send(path)), [401, 1101], path);
  for (const path of [
    '/core/v1/news/../a/b',
    '/core/v1/news/%2e%2e/a',
    '/core/v1/news/..;/a',
    '/core/v1/news//a',
  ])
    t.equal((await proxy.http.ask('GET', path)).status, 400, path);
  t.equal(proxy.asked.length, 2);
});

// covers S120
t.test(
  'proxy: path parameters neither hide a path for the gateway alone nor make another path',
  async (t) => {
    const proxy = await proxyOf(t, { rules: { public: ['/core/v1/news', '/chat/v1'] } });
    const reserved = [
      '/chat/v1/files;x/create',
      '/chat/v1/files;x=1;y/create;z',
      '/chat/v1/files%3Bx/create',
      '/chat/v1/files;a%2fb/create',
      '/chat/v1/fil%65s;x/create',
      '/chat/v1/;x/files/create',
      '/chat/v1/%3bx/files/create',
      '/chat/v1//files/complete',
      '/chat/v1/codes;x/deliver',
      '/chat/v1/capability;x/resolve',
      '/chat/v1/chats;jsessionid=1/personal',
      '/chat;x/v1/files/create',
      '/chat/v1;x/files/create',
    ];
    for (const path of reserved)
      t.same(await errorOf(await proxy.send(path, { headers: TOKEN })), [404, 1004], path);
    const refused = [
      '/core/v1/news/..;x/secret',
      '/core/v1/news/..%3Bx/secret',
      '/core/v1/news/%2e%2e;x/secret',
      '/core/v1/news/..%253Bx/secret',
      '/core/v1/news/.;x/secret',
      '/core/v1/news/;x/secret',
      '/core/v1/news/%3bx/secret',
      '/core/v1/news/today/;',
    ];
    for (const path of refused) t.equal((await proxy.http.ask('GET', path)).status, 400, path);
    const closed = ['/core/v1/newsroom;x/news', '/core/v1/;news/a', '/core/v1/a;/news', '/core/v1/a%3B/news'];
    for (const path of closed) t.same(await errorOf(await proxy.send(path)), [401, 1101], path);
    t.equal(proxy.asked.length, 0, 'none of them reached the module');
    const open = ['/core/v1/news;x', '/core/v1/news;v=1/today', '/core/v1/news/today;y=2'];
    for (const path of open) t.equal((await proxy.send(path)).status, 200, path);
    t.same(
      proxy.asked.map(({ url }) => url),
      open.map((path) => `/base${path}`),
      'forwarded as they came',
    );
  },
);

t.test('proxy: a path of no module, without a version, or for the gateway alone is 404', async (t) => {
  const proxy = await proxyOf(t, { rules: { public: ['/core/v1'] } });
  const paths = [
    '/other/v1/a/b',
    '/core/v0/a',
    '/core/x/a',
    '/core/v1',
    '/core/v1/',
    '/core/v1/capability/resolve?code=1',
    '/core/v1/%63apability/resolve',
    '/core/v1/codes/deliver',
    '/core/v1/accounts/removed',
    '/chat/v1/files/create',
    '/chat/v2/files/complete',
    '/chat/v1/%66iles/CANCEL/',
    '/chat/v1/files/describe',
    '/chat/v1/chats/personal',
    '/.well-known/oauth-protected-resource/mcp',
  ];
  for (const path of paths)
    t.same(await errorOf(await proxy.send(path, { headers: TOKEN })), [404, 1004], path);
  t.equal(proxy.asked.length, 0);
  t.equal((await proxy.send('/chat/v1/files/list', { headers: TOKEN })).status, 200);
  t.equal(
    (await proxy.send('/core/v1/files/create', { headers: TOKEN })).status,
    200,
    'a name of the chat alone',
  );
});

t.test('proxy: a foreign page cannot change anything with a cookie; a bearer is its own proof', async (t) => {
  const proxy = await proxyOf(t);
  const foreign = { origin: 'https://evil.example' };
  const post = (headers: Record<string, string>) => proxy.send('/core/v1/a/b', { method: 'POST', headers });
  t.same(await errorOf(await post({ ...COOKIE, ...foreign })), [403, 1103]);
  t.same(await errorOf(await post({ ...COOKIE, 'sec-fetch-site': 'cross-site' })), [403, 1103]);
  t.equal((await post({ ...TOKEN, ...foreign })).status, 200);
  t.equal((await post({ ...COOKIE, origin: proxy.http.url })).status, 200);
  t.equal(proxy.asked.length, 2);
  const preflight = await proxy.send('/core/v1/a/b', {
    method: 'OPTIONS',
    headers: { origin: proxy.http.url },
  });
  t.equal(preflight.status, 204);
  t.match(preflight.headers.get('access-control-allow-methods'), /PATCH/);
});

t.test('proxy: an upgrade to another protocol than WebSocket is not taken up', async (t) => {
  const proxy = await proxyOf(t);
  const headers = { Connection: 'Upgrade', Upgrade: 'h2c', Authorization: `Bearer ${BEARER}` };
  const answer = await proxy.http.ask('GET', '/core/v1/a/b', headers);
  t.equal(answer.status, 200);
  t.equal(proxy.asked.length, 1);
  t.equal(proxy.asked[0]?.headers.upgrade, undefined);
});

t.test('proxy: a request that announces trailers is 501; the module is not called', async (t) => {
  const proxy = await proxyOf(t);
  const head = `POST /core/v1/a/b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${BEARER}\r\n`;
  const announced = `${head}Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const refused = await sendRaw(proxy.http.port, announced);
  t.equal(refused.status, 501);
  t.match(refused.body, /"code":1032/);
  t.equal(proxy.asked.length, 0);
});

t.test('proxy: the coding chunked is taken in any case', async (t) => {
  const proxy = await proxyOf(t);
  const head = `POST /core/v1/a/b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${BEARER}\r\n`;
  const sent = await sendRaw(
    proxy.http.port,
    `${head}Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
  );
  t.equal(sent.status, 200);
  t.equal(proxy.asked[0]?.body.toString(), 'abc');
});

t.test('proxy: a method of WebDAV reaches a module that asks for it, any other is 405', async (t) => {
  const proxy = await proxyOf(t, {
    rules: { methods: ['PROPFIND', 'OPTIONS'] },
    answer: (_asked, response) => response.writeHead(207, { dav: '1, 2' }).end('<multistatus/>'),
  });
  const send = (method: string, path: string, more: Record<string, string> = {}) =>
    proxy.http.ask(method, path, { Authorization: `Bearer ${BEARER}`, Depth: '1', ...more });
  const found = await send('PROPFIND', '/core/v1/files/all');
  t.same([found.status, found.headers['dav'], found.body], [207, '1, 2', '<multistatus/>']);
  t.match(proxy.asked[0], { method: 'PROPFIND', headers: { depth: '1' } });
  t.equal((await send('OPTIONS', '/core/v1/files/all')).status, 207);
  for (const [method, path] of [
    ['MOVE', '/core/v1/files/all'],
    ['PROPFIND', '/chat/v1/files/all'],
    ['TRACE', '/core/v1/files/all'],
  ] as const) {
    const refused = await send(method, path);
    t.equal(refused.status, 405, `${method} ${path}`);
    t.equal(refused.headers['allow']?.includes('PROPFIND'), path.startsWith('/core/'), `${method} ${path}`);
  }
  const preflight = { Origin: 'http://localhost', 'Access-Control-Request-Method': 'PROPFIND' };
  await send('OPTIONS', '/core/v1/files/all', preflight);
  t.same(
    proxy.asked.map(({ method }) => method),
    ['PROPFIND', 'OPTIONS'],
    'a preflight stays with the gateway',
  );
});

t.test('proxy: an encoded slash reaches a module that takes it, and climbs nowhere', async (t) => {
  const proxy = await proxyOf(t, { rules: { encodedSlashes: true } });
  const status = async (path: string) => (await proxy.send(path, { headers: TOKEN })).status;
  t.equal(await status('/core/v1/repos/group%2Fname/raw'), 200);
  t.equal(proxy.asked[0]?.url, '/base/core/v1/repos/group%2Fname/raw');
  for (const path of [
    '/core/v1/repos/%2e%2e%2Fsecret',
    '/core/v1/repos/a%2F..%2Fsecret',
    '/core/v1/repos/a%2F%2e%2e',
    '/core/v1/repos/a%252Fb',
    '/core/v1/repos/a%5cb',
    '/chat/v1/repos/group%2Fname',
  ])
    t.equal(await status(path), 400, path);
  t.equal(await status('/core/v1%2Fcapability%2Fresolve'), 404, 'for the gateway alone');
  t.equal(await status('/core/v1/capability%2Fresolve'), 404, 'for the gateway alone');
  t.equal(proxy.asked.length, 1);
});

t.test('proxy: a GET with a body is refused; a body beyond what tools may send arrives whole', async (t) => {
  const proxy = await proxyOf(t);
  const bearer = { Authorization: `Bearer ${BEARER}` };
  const smuggled = requestText('GET', '/core/v1/a/b', bearer, 'GET /core/v1/admin HTTP/1.1\r\n\r\n');
  t.equal((await sendRaw(proxy.http.port, smuggled)).status, 400);
  t.equal(proxy.asked.length, 0);
  const body = randomBytes(5 * 1024 * 1024);
  t.equal((await proxy.send('/core/v1/a/b', { method: 'POST', headers: TOKEN, body })).status, 200);
  t.ok(proxy.asked[0]?.body.equals(body));
  t.equal(proxy.asked[0]?.headers['content-length'], String(body.length));
});

t.test("proxy: the module's own errors pass with status and bytes, and are audited as errors", async (t) => {
  const proxy = await proxyOf(t, {
    answer: ({ url }, response) => {
      const status = Number(url.slice(-3));
      response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '9' });
      response.end(`{"error":{"code":${status},"message":"mine"}}`);
    },
  });
  for (const status of [400, 404, 409, 500, 503]) {
    const answer = await proxy.send(`/core/v1/answer/${status}`, { headers: TOKEN });
    t.equal(answer.status, status);
    t.equal(answer.headers.get('retry-after'), '9');
    t.equal(await answer.text(), `{"error":{"code":${status},"message":"mine"}}`);
  }
  t.ok(proxy.audit.every(({ fields }) => fields['outcome'] === 'error'));
});

t.test('proxy: redirected, packed, cut and odd answers are the failures of the error table', async (t) => {
  const proxy = await proxyOf(t, {
    answer({ url }, response) {
      if (url.endsWith('redirect')) response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
      else if (url.endsWith('gzip'))
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{"result":1}'));
      else if (url.endsWith('odd')) response.writeHead(799).end('?');
      else {
        response.writeHead(200, { 'content-length': '1000' });
        response.write('half', () => response.destroy());
      }
    },
  });
  const codeAt = async (path: string) =>
    errorOf(await proxy.send(`/core/v1/answer/${path}`, { headers: TOKEN }));
  t.same(await codeAt('redirect'), [502, 1008]);
  t.same(await codeAt('gzip'), [502, 1008]);
  t.same(await codeAt('odd'), [502, 1008]);
  t.same(await codeAt('cut'), [502, 1008]);
  await proxy.asked.at(-1)?.gone;
  t.ok(proxy.audit.every(({ fields }) => fields['outcome'] === 'failed'));
});

t.test(
  'proxy: a module that says nothing is 504 at the time-out; after twenty such calls the breaker answers',
  async (t) => {
    const timers = holdTimeouts(t, 30);
    const proxy = await proxyOf(t, { proxyTimeoutMs: 30, answer: () => undefined });
    for (let call = 0; call < 20; call += 1) {
      const asked = proxy.next();
      const answer = proxy.send('/core/v1/a/b', { headers: TOKEN });
      await asked;
      timers.pass(30);
      t.same(await errorOf(await answer), [504, 1009]);
    }
    const answer = await proxy.send('/core/v1/a/b', { headers: TOKEN });
    t.equal(answer.headers.get('retry-after'), '10');
    t.same(await errorOf(answer), [503, 1010]);
    t.equal(proxy.asked.length, 20);
  },
);

t.test('proxy: the call is given up when the client goes away', async (t) => {
  const proxy = await proxyOf(t, { answer: () => undefined });
  const connection = connectRaw(proxy.http.port);
  const arrived = proxy.next();
  connection.send(requestText('GET', '/core/v1/a/b', { Authorization: `Bearer ${BEARER}` }));
  const asked = await arrived;
  connection.close();
  await asked.gone;
  while (proxy.audit.length === 0) await new Promise((resolve) => setImmediate(resolve));
  t.match(proxy.audit, [{ fields: { outcome: 'cancelled' } }]);
});

t.test(
  'proxy: an answer brings no cookie, no CORS, no hop-by-hop header, and a page of a module may do nothing',
  async (t) => {
    const proxy = await proxyOf(t, {
      answer: (_asked, response) =>
        response
          .writeHead(200, {
            'content-type': 'text/html',
            'set-cookie': ['sid=stolen; Path=/', 'b=2'],
            'access-control-allow-origin': '*',
            'clear-site-data': '"cookies"',
            'x-ratelimit': 's=s;l=1;r=0;t=9',
            connection: 'keep-alive, x-hop',
            'x-hop': '1',
            'x-latin': 'caf\u00e9',
            vary: 'Accept',
            link: ['<a>', '<b>'],
            'content-security-policy': 'default-src *; sandbox allow-scripts allow-same-origin',
            'report-to': '{"group":"a","max_age":9,"endpoints":[{"url":"https://evil.example"}]}',
            via: '1.1 inner',
            'x-crm': '7',
            'mcp-session-id': 's',
            location: '/base/core/v1/page/7?a=1',
            'cache-control': 'private, max-age=5',
          })
          .end('<script>1</script>'),
    });
    const { headers } = await proxy.send('/core/v1/page/get', { headers: COOKIE });
    const dropped = ['set-cookie', 'access-control-allow-origin', 'clear-site-data', 'x-hop', 'x-latin'];
    for (const name of [...dropped, 'report-to', 'via', 'x-crm', 'mcp-session-id'])
      t.equal(headers.get(name), null, name);
    t.equal(headers.get('location'), '/core/v1/page/7?a=1');
    t.equal(headers.get('vary'), 'Accept, Authorization, Cookie');
    t.match(headers.get('x-ratelimit'), /^s=s;l=15;/);
    t.equal(headers.get('link'), '<a>, <b>');
    t.equal(headers.get('cache-control'), 'private, max-age=5');
    t.equal(
      headers.get('content-security-policy'),
      "default-src 'none'; sandbox, default-src *; sandbox allow-scripts allow-same-origin",
    );
    t.equal(headers.get('x-content-type-options'), 'nosniff');
  },
);

// covers R1
t.test(
  'proxy: no shared cache may keep what was asked with a session; without one the module decides',
  async (t) => {
    const proxy = await proxyOf(t, {
      rules: { public: ['/core/v1/news'] },
      answer: (_asked, response) =>
        response
          .writeHead(200, {
            'content-type': 'multipart/x-mixed-replace; boundary=b',
            'cache-control': 'public, max-age=60, s-maxage=600',
          })
          .end('--b\r\nSet-Cookie: sid=1\r\n\r\n1\r\n--b--'),
    });
    const cachingOf = async (path: string, headers: Record<string, string>, method = 'GET') => {
      const answer = await proxy.send(path, { method, headers });
      t.equal(
        answer.headers.get('content-type'),
        'application/octet-stream',
        'parts with headers do nothing',
      );
      return answer.headers.get('cache-control');
    };
    for (const session of [COOKIE, TOKEN]) {
      t.equal(await cachingOf('/core/v1/balance/get', session), 'private, max-age=60');
      t.equal(await cachingOf('/core/v1/balance/get', session, 'HEAD'), 'private, max-age=60');
      t.equal(await cachingOf('/core/v1/news/all', session), 'private, max-age=60', 'on a public path too');
    }
    t.equal(await cachingOf('/core/v1/news/all', {}), 'public, max-age=60, s-maxage=600');
  },
);

// covers R1
t.test('proxy: Via names the gateway after the hops before it', async (t) => {
  const proxy = await proxyOf(t);
  for (const via of [undefined, '1.1 edge, 1.0 old'])
    await proxy.send('/core/v1/a/b', { headers: via === undefined ? TOKEN : { ...TOKEN, via } });
  t.same(
    proxy.asked.map(({ headers }) => headers.via),
    ['1.1 gatehouse', '1.1 edge, 1.0 old, 1.1 gatehouse'],
  );
});

// covers R1
t.test(
  'proxy: each call leaves a record; one that may change something leaves it before it goes out',
  async (t) => {
    let storage: () => Promise<void> = async () => undefined;
    const proxy = await proxyOf(t, { storage: () => storage() });
    await proxy.send('/core/v1/a/b?code=secret', { headers: COOKIE });
    await proxy.send('/core/v1/a/b', { method: 'POST', headers: TOKEN });
    t.match(
      proxy.audit.map(({ event, userId, fields }) => [event, userId, fields['name'], fields['outcome']]),
      [
        ['rest.call', '1842001', 'GET /core/v1/a/b', 'ok'],
        ['rest.call', '1842001', 'POST /core/v1/a/b', 'attempt'],
        ['rest.call', '1842001', 'POST /core/v1/a/b', 'ok'],
      ],
    );
    t.notMatch(JSON.stringify(proxy.audit), /secret/, 'never the query');
    storage = () => Promise.reject(new GatewayError('StorageFull'));
    t.same(await errorOf(await proxy.send('/core/v1/a/b', { method: 'POST', headers: TOKEN })), [503, 1013]);
    t.equal(proxy.asked.length, 2, 'without the record it does not go out');
  },
);

// covers R1
t.test('proxy: calls without a session are limited by connection', async (t) => {
  const proxy = await proxyOf(t, { rules: { public: ['/core/v1'] }, settings: { ApiRPSLimit: 1 } });
  const statuses: number[] = [];
  for (let call = 0; call < 12; call += 1) statuses.push((await proxy.send('/core/v1/a/b')).status);
  t.ok(statuses.includes(429), statuses.join(' '));
  t.equal((await proxy.send('/core/v1/a/b', { headers: TOKEN })).status, 200, 'a session has its own scope');
});

// covers R1 R76
t.test(
  'proxy: McpBasic and McpApp reach by REST what their tools and resources reach, and nothing else',
  async (t) => {
    const proxy = await proxyOf(t, { rules: { public: ['/core/v1/open'] } });
    const cases: [method: string, path: string, basic: number, app: number][] = [
      ['GET', '/core/v1/news/list', 200, 403],
      ['HEAD', '/core/v1/news/list', 200, 403],
      ['POST', '/core/v1/news/list', 403, 403],
      ['DELETE', '/core/v1/news/list', 403, 403],
      ['GET', '/core/v1/news/list;x', 200, 403],
      ['GET', '/core/v1/news/list/', 403, 403],
      ['GET', '/core/v1/news/%6cist', 403, 403],
      ['GET', '/core/v1/news', 403, 403],
      ['POST', '/core/v1/order/make', 403, 200],
      ['GET', '/core/v1/order/make', 403, 403],
      ['PUT', '/core/v1/order/make', 403, 403],
      ['GET', '/core/v1/rates/get', 403, 200],
      ['POST', '/core/v1/rates/get', 403, 403],
      ['POST', '/core/v1/wallet/empty', 403, 403],
      ['GET', '/core/v1/open/page', 200, 200],
    ];
    for (const [method, path, basic, app] of cases)
      for (const [token, status] of [
        [BASIC_BEARER, basic],
        [APP_BEARER, app],
        [BEARER, 200],
      ] as const) {
        const before = proxy.asked.length;
        const answer = await proxy.send(path, { method, headers: { authorization: `Bearer ${token}` } });
        const calls = proxy.asked.length - before;
        t.same([answer.status, calls], [status, status === 200 ? 1 : 0], `${token} ${method} ${path}`);
        if (status === 403 && method !== 'HEAD') t.match(await answer.json(), { error: DENIED });
      }
    const denied = proxy.audit.filter(({ fields }) => fields['outcome'] === 'denied');
    t.equal(
      denied.length,
      cases.flatMap(([, , basic, app]) => [basic, app]).filter((status) => status === 403).length,
    );
    const made = proxy.asked.find(({ method, url }) => method === 'POST' && url.endsWith('/order/make'));
    t.match(made?.headers, { 'x-scopes': 'McpApp', 'x-mcp-app-id': '9001' });
  },
);

// covers S98
t.test('proxy: without proof personal rows are out of reach by REST as they are by tool', async (t) => {
  // Statuses of McpBasic, McpApp and a signed McpApp, with personal reads and without.
  const cases = [
    ['GET', '/wallet/v1/balance/get', [200, 200, 200], [403, 403, 200]],
    ['POST', '/wallet/v1/orders/create', [403, 403, 200], [403, 403, 200]],
    ['GET', '/core/v1/news/list', [200, 403, 403], [200, 403, 403]],
  ] as const;
  for (const personalReads of [true, false]) {
    const proxy = await proxyOf(t, { personalReads });
    for (const [method, path, open, closed] of cases) {
      for (const [at, token] of [BASIC_BEARER, APP_BEARER, SIGNED_APP_BEARER].entries()) {
        const before = proxy.asked.length;
        const status = (personalReads ? open : closed)[at];
        const answer = await proxy.send(path, { method, headers: { authorization: `Bearer ${token}` } });
        const calls = proxy.asked.length - before;
        const name = `${token} ${method} ${path}, personalReads ${personalReads}`;
        t.same([answer.status, calls], [status, status === 200 ? 1 : 0], name);
      }
      for (const headers of [TOKEN, COOKIE])
        if (method === 'GET') t.equal((await proxy.send(path, { headers })).status, 200, 'proven');
    }
  }
});

// covers S102
t.test(
  'proxy: a public path names no account that nothing proved, where personal reads are closed',
  async (t) => {
    for (const personalReads of [true, false]) {
      const proxy = await proxyOf(t, { personalReads, rules: { public: ['/core/v1/open'] } });
      const told: Record<string, [unknown, unknown]> = {};
      for (const token of [BASIC_BEARER, APP_BEARER, SIGNED_APP_BEARER, BEARER]) {
        const answer = await proxy.send('/core/v1/open/page', {
          headers: { authorization: `Bearer ${token}` },
        });
        t.equal(answer.status, 200, token);
        const { 'x-crm': account, 'x-scopes': scopes } = proxy.asked.at(-1)?.headers ?? {};
        told[token] = [account, scopes];
      }
      const unproven = (loginType: string) =>
        personalReads ? ['1842001', loginType] : [undefined, undefined];
      t.same(told, {
        [BASIC_BEARER]: unproven('McpBasic'),
        [APP_BEARER]: unproven('McpApp'),
        [SIGNED_APP_BEARER]: ['1842001', 'McpApp'],
        [BEARER]: ['1842001', 'McpVerified'],
      });
      const users = proxy.audit.map(({ userId }) => userId);
      t.same(users, ['1842001', '1842001', '1842001', '1842001'], 'the records name the session');
    }
  },
);
