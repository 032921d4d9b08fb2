/** Host check, CORS and the rules against foreign pages (docs/SECURITY.md), over real sockets. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import { object, text } from '../../../../src/domain/schema.ts';
import type { AnyRoute } from '../../../../src/io/http/table/route.ts';
import {
  ALICE_ALONE,
  type HttpFixture,
  requestText,
  route,
  sendRaw,
  startHttp,
} from '../../../support/http.ts';

const COOKIE = { Cookie: 'sid=alice' };
const JSON_TYPE = { 'Content-Type': 'application/json' };

let handled = 0;
const count = () => ++handled;
const ROUTES: AnyRoute[] = [
  route('GET /read', { auth: 'optional' }, count),
  route('POST /change', { auth: 'session', body: object({ name: text() }) }, count),
  route('POST /logout', { auth: 'session' }, count),
  route('POST /login', { auth: 'optional', body: object({ name: text() }) }, count),
  route('POST /either', { auth: 'either' }, count),
  route('POST /mcp', { limits: ['Self'], body: 'raw' }, count),
  route('DELETE /mcp', { limits: ['Self'] }, count),
];

function start(t: Test, site: Parameters<typeof startHttp>[0]['site'] = {}): HttpFixture {
  return closeAfter(t, startHttp({ routes: ROUTES, gate: ALICE_ALONE, site }));
}

// covers R83 S16
t.test(
  'origin: a foreign page cannot change anything, and its request never reaches the route',
  async (t) => {
    const { ask, port } = start(t);
    const before = handled;
    const body = '{"name":"x"}';
    for (const path of ['/change', '/login']) {
      for (const headers of [
        { Origin: 'http://evil.example' },
        { Origin: 'null' },
        { Origin: `http://localhost:${port}.evil.example` },
        { Origin: `https://localhost:${port}` },
        { Origin: `http://localhost:${port}`, 'Sec-Fetch-Site': 'cross-site' },
        { 'Sec-Fetch-Site': 'cross-site' },
      ]) {
        const answer = await ask('POST', path, { ...COOKIE, ...JSON_TYPE, ...headers }, body);
        t.match(
          { status: answer.status, ...JSON.parse(answer.body) },
          { status: 403, error: { code: 1103, message: 'Access denied' } },
          `${path} ${JSON.stringify(headers)}`,
        );
      }
    }
    const twice = `POST /logout HTTP/1.1\r\nHost: localhost\r\nCookie: sid=alice\r\nOrigin: http://localhost:${port}\r\nOrigin: http://evil.example\r\n\r\n`;
    t.equal((await sendRaw(port, twice)).status, 403, 'two Origin fields');
    t.equal(handled, before);
  },
);

// covers R83
t.test('origin: own pages, same-site requests and clients that send neither header pass', async (t) => {
  const { ask, port } = start(t);
  const body = '{"name":"x"}';
  for (const headers of [
    {},
    { Origin: `http://localhost:${port}` },
    { Origin: `http://127.0.0.1:${port}`, 'Sec-Fetch-Site': 'same-origin' },
    { 'Sec-Fetch-Site': 'none' },
  ]) {
    const answer = await ask('POST', '/change', { ...COOKIE, ...JSON_TYPE, ...headers }, body);
    t.equal(answer.status, 200, JSON.stringify(headers));
  }
  t.equal((await ask('POST', '/logout', COOKIE)).status, 200, 'no body, no content type');
  const bearer = { Authorization: 'Bearer alice', Origin: 'http://evil.example' };
  t.equal((await ask('POST', '/either', bearer)).status, 200, 'a bearer is no cookie');
  const foreign = { ...COOKIE, Origin: 'http://evil.example' };
  t.equal((await ask('POST', '/either', foreign)).status, 403, 'a cookie is');
  t.equal((await ask('GET', '/read', foreign)).status, 200, 'reading changes nothing');
});

t.test(
  'body: a compressed one is 415 and names the coding that is taken, another type does not',
  async (t) => {
    const { ask } = start(t);
    const before = handled;
    const sent = (path: string, headers: Record<string, string>) =>
      ask('POST', path, { ...JSON_TYPE, ...headers }, '{"name":"x"}');
    for (const path of ['/login', '/mcp'])
      for (const coding of ['gzip', 'br', 'identity, gzip', 'GZIP', 'gzip\r\nContent-Encoding: identity']) {
        const answer = await sent(path, { 'Content-Encoding': coding });
        t.equal(answer.status, 415, `${path} ${coding}`);
        t.equal(answer.headers['accept-encoding'], 'identity', `${path} ${coding}`);
      }
    t.equal(handled, before);
    for (const coding of ['', 'identity', ' Identity '])
      t.equal((await sent('/login', { 'Content-Encoding': coding })).status, 200, coding);
    const other = await ask('POST', '/login', { 'Content-Type': 'text/plain' }, 'x');
    t.equal(other.status, 415);
    t.equal(other.headers['accept-encoding'], undefined);
  },
);

// covers R66 R83 S16
t.test('origin: a body of another type is 415, with a cookie 403', async (t) => {
  const { port } = start(t);
  const before = handled;
  for (const type of [
    'application/x-www-form-urlencoded',
    'text/plain',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'text/plain; application/json',
    'application/json, text/plain',
    '',
  ]) {
    const headers: Record<string, string> = type === '' ? {} : { 'Content-Type': type };
    const form = requestText('POST', '/login', headers, '{"name":"x"}');
    t.equal((await sendRaw(port, form)).status, 415, type);
    const withCookie = requestText('POST', '/change', { ...COOKIE, ...headers }, '{"name":"x"}');
    t.equal((await sendRaw(port, withCookie)).status, 403, type);
  }
  t.equal(handled, before);
  for (const type of [
    'application/json',
    'Application/JSON;charset=UTF-8',
    'application/json ; charset="utf-8"',
  ]) {
    const good = requestText('POST', '/login', { 'Content-Type': type }, '{"name":"x"}');
    t.equal((await sendRaw(port, good)).status, 200, type);
  }
});

// covers R33 R34 R82 S35
t.test('origin: on a loopback bind /mcp refuses a foreign Origin, every route a foreign Host', async (t) => {
  const { ask, port } = start(t);
  const post = async (path: string, headers: Record<string, string>, method = 'POST') =>
    (await ask(method, path, headers)).status;
  t.equal(await post('/mcp', { Origin: 'http://evil.example' }), 403);
  t.equal(await post('/mcp', { Origin: 'http://evil.example' }, 'DELETE'), 403);
  t.equal(await post('/mcp', { Origin: `http://localhost:${port}` }), 200);
  t.equal(await post('/mcp', { 'Sec-Fetch-Site': 'cross-site' }), 200, 'no cookie is read there');
  for (const host of ['evil.example', 'localhost.evil.example', '', 'localhost:x', '127.0.0.1.nip.io']) {
    t.equal(await post('/mcp', { Host: host }), 403, host);
    t.equal(await post('/read', { Host: host }, 'GET'), 403, host);
  }
  for (const host of ['localhost', `localhost:${port}`, 'LOCALHOST:1', '127.0.0.1', '[::1]:8080', '[::1]']) {
    t.equal(await post('/read', { Host: host }, 'GET'), 200, host);
  }
  const open = start(t, { checkHost: false });
  const foreign = requestText('POST', '/mcp', { Host: 'any.example', Origin: 'http://any.example' });
  t.equal((await sendRaw(open.port, foreign)).status, 200, 'not on an open bind outside production');
});

// covers R34
t.test('origin: only allowed origins receive CORS fields and preflights', async (t) => {
  const { ask, port } = start(t);
  const origin = `http://localhost:${port}`;
  const read = await ask('GET', '/read', { Origin: origin });
  t.match(read.headers, {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': /^Mcp-Session-Id, X-RateLimit, Retry-After, ETag,/,
    vary: 'Origin',
  });
  const failed = await ask('GET', '/nothing', { Origin: origin });
  t.equal(failed.status, 404);
  t.equal(failed.headers['access-control-allow-origin'], origin, 'a page may read its errors');
  const foreign = await ask('GET', '/read', { Origin: 'http://evil.example' });
  t.notOk(foreign.headers['access-control-allow-origin']);
  const asks = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type' };
  const preflight = await ask('OPTIONS', '/mcp', { Origin: origin, ...asks });
  t.equal(preflight.status, 204);
  t.equal(preflight.headers['access-control-allow-methods'], 'POST, DELETE');
  t.match(
    preflight.headers['access-control-allow-headers'],
    'Authorization, Content-Type, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, X-MCP-Code, X-Device-Guid',
  );
  const allowed = new Set(preflight.headers['access-control-allow-headers']?.toLowerCase().split(', '));
  for (const name of ['x-publickey', 'x-timestamp', 'x-signature', 'x-app-id'])
    t.ok(allowed.has(name), `mcp_login reads ${name}`);
  const exposed = new Set(read.headers['access-control-expose-headers']?.toLowerCase().split(', '));
  for (const name of ['x-ratelimit', 'ratelimit', 'ratelimit-policy', 'retry-after', 'x-request-id'])
    t.ok(exposed.has(name), `a page reads ${name}`);
  t.equal((await ask('OPTIONS', '/mcp', { Origin: 'http://evil.example' })).status, 403);
  t.equal((await ask('OPTIONS', '/read')).headers['allow'], 'GET, HEAD');
  t.equal((await ask('OPTIONS', '/nothing', { Origin: origin })).status, 404);
});

t.test(
  'preflight: allows the headers of MCP arguments that are asked for, and no other further ones',
  async (t) => {
    const { ask, port } = start(t);
    const origin = `http://localhost:${port}`;
    const allowedFor = async (asked: string) => {
      const headers = {
        Origin: origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': asked,
      };
      const answer = await ask('OPTIONS', '/mcp', headers);
      t.equal(answer.status, 204, asked);
      return answer.headers['access-control-allow-headers']?.split(', ') ?? [];
    };
    const fixed = await allowedFor('content-type');
    t.notOk(fixed.some((name) => /^mcp-param/i.test(name)));
    t.same(await allowedFor('content-type,mcp-param-region, Mcp-Param-Tenant-Id'), [
      ...fixed,
      'mcp-param-region',
      'Mcp-Param-Tenant-Id',
    ]);
    const unfit = `mcp-param-,mcp-param-a b,mcp-param-${'x'.repeat(65)},x-mcp-param-a,mcp-params-a,x-forwarded-for,*`;
    t.same(await allowedFor(unfit), fixed, 'other names');
    const many = Array.from({ length: 40 }, (_, at) => `mcp-param-${at}`);
    t.same(await allowedFor(many.join(',')), [...fixed, ...many.slice(0, 32)], 'at most 32');
  },
);
