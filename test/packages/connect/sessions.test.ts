/** Logins, renewals and repeated calls of the connector, with an injected clock and scripted answers. */
import t from 'tap';
import { AgentSession } from '../../../packages/connect/src/agent-session.ts';
import { gatehouseFetch } from '../../../packages/connect/src/gatehouse-fetch.ts';
import { login } from '../../../packages/connect/src/login.ts';
import { send } from '../../../packages/connect/src/send.ts';
import {
  type FakeAnswer,
  failed,
  fakeSystem,
  isLogin,
  json,
  KEY,
  LIFE_MS,
  ORIGIN,
  refusal,
  type Sent,
  START_MS,
} from './system.ts';

const MCP = `${ORIGIN}/mcp`;
const GONE = { jsonrpc: '2.0', id: 1, error: { code: -32001, message: 'Unauthorized: session not found' } };
const FINE = { jsonrpc: '2.0', id: 1, result: {} };
const HOUR_MS = 3_600_000;

const bearerOf = ({ headers }: Sent) => headers.get('authorization');

/** A system that logs in, and answers everything else from the list. */
function scripted(answers: FakeAnswer[]) {
  return fakeSystem((sent) =>
    isLogin(sent) ? undefined : (answers.shift() ?? new Error('no more answers')),
  );
}

const post = (body: object = {}, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers,
  body: JSON.stringify(body),
});

t.test('connector: a request is repeated after 429 when the limit says so', async (t) => {
  const limited = () => json({}, { status: 429, headers: { 'retry-after': '3' } });
  const system = scripted([limited(), limited(), json(FINE)]);
  t.equal((await send(MCP, post(), system)).status, 200);
  t.strictSame(system.waited, [3000, 3000]);
});

t.test('connector: a limit longer than a caller waits is answered as it is', async (t) => {
  const system = scripted([json({}, { status: 429, headers: { 'retry-after': '60' } })]);
  t.equal((await send(MCP, post(), system)).status, 429);
  t.strictSame(system.waited, []);
});

t.test('connector: a request without connection is repeated at growing intervals, for 50 s', async (t) => {
  const refused = () => failed('ECONNREFUSED', 'connect');
  const system = scripted([refused(), refused(), refused(), json(FINE)]);
  t.equal((await send(MCP, post(), system)).status, 200);
  t.strictSame(system.waited, [250, 500, 1000]);
  const down = fakeSystem(() => refused());
  await t.rejects(send(MCP, post(), down), { cause: { code: 'ECONNREFUSED' } });
  const waitedMs = down.waited.reduce((sum, ms) => sum + ms, 0);
  t.ok(waitedMs > 40_000 && waitedMs <= 50_000, String(waitedMs));
});

t.test('connector: a request that may have been sent is not repeated', async (t) => {
  for (const code of ['ECONNRESET', 'UND_ERR_SOCKET', 'ENOTFOUND']) {
    const system = scripted([failed(code)]);
    await t.rejects(send(MCP, post(), system), { cause: { code } });
    t.equal(system.sent.length, 1, code);
  }
  const overloaded = scripted([json({}, { status: 503, headers: { 'retry-after': '1' } })]);
  t.equal((await send(MCP, post(), overloaded)).status, 503);
});

t.test('connector: a caller that gives up ends the waiting', async (t) => {
  const system = scripted([failed('ECONNREFUSED', 'connect')]);
  await t.rejects(send(MCP, { ...post(), signal: AbortSignal.abort(new Error('given up')) }, system), {
    message: 'given up',
  });
  t.equal(system.sent.length, 1);
});

t.test('connector: a clock that is an hour off is corrected by the Date of the refusal', async (t) => {
  for (const offMs of [HOUR_MS, -HOUR_MS]) {
    const system = fakeSystem((sent) => {
      const stampedMs = Number(sent.headers.get('x-timestamp')) * 1000;
      const isFresh = Math.abs(stampedMs - START_MS) <= 300_000;
      return isFresh ? undefined : refusal(401, 1104, 'Challenge expired');
    });
    system.time.ownMs = START_MS + offMs;
    const session = await login({ url: ORIGIN, key: KEY, ...system });
    t.equal(session.sessionId, 'session-1');
    t.equal(session.livesMs, LIFE_MS, 'its life does not depend on the own clock');
    t.equal(system.sent.length, 2);
  }
});

t.test('connector: a corrected clock stays corrected for later logins', async (t) => {
  const system = fakeSystem((sent) =>
    Number(sent.headers.get('x-timestamp')) * 1000 > START_MS + 300_000
      ? refusal(401, 1104, 'Challenge expired')
      : undefined,
  );
  system.time.ownMs = START_MS + HOUR_MS;
  const session = new AgentSession({ url: ORIGIN, key: KEY, ...system });
  session.forget(await session.token());
  t.equal(await session.token(), 'session-2');
  t.equal(system.sent.length, 3);
});

t.test('connector: a clock that stays refused is tried twice and then reported', async (t) => {
  const system = fakeSystem(() => refusal(401, 1104, 'Challenge expired'));
  await t.rejects(login({ url: ORIGIN, key: KEY, ...system }), { code: 1104 });
  t.equal(system.sent.length, 2);
});

t.test('connector: a login for an application names it, and a page of a proxy is a refusal', async (t) => {
  const system = fakeSystem(() => new Response('<html>', { status: 502 }));
  await t.rejects(login({ url: ORIGIN, key: KEY, appId: '9001', ...system }), {
    status: 502,
    message: 'HTTP 502',
  });
  t.equal(system.sent[0]?.headers.get('x-app-id'), '9001');
});

t.test(
  'connector: a session is renewed a tenth of its life before its end, beside a running call',
  async (t) => {
    const system = fakeSystem();
    const session = new AgentSession({ url: ORIGIN, key: KEY, ...system });
    t.equal(await session.token(), 'session-1');
    system.time.ownMs += LIFE_MS * 0.9 - 1;
    t.equal(await session.token(), 'session-1');
    t.equal(system.sent.length, 1, 'not earlier');
    system.time.ownMs += 1;
    system.time.gatewayMs = system.time.ownMs;
    t.equal(await session.token(), 'session-1', 'the old one still lives');
    system.time.ownMs += LIFE_MS * 0.1;
    system.time.gatewayMs = system.time.ownMs;
    t.equal(await session.token(), 'session-2');
    t.equal(system.sent.length, 2);
  },
);

t.test('connector: five minutes of calls with sessions of a minute see no refusal', async (t) => {
  const ends = new Map<string, number>();
  const system = fakeSystem((sent) => {
    if (isLogin(sent)) {
      ends.set(`Bearer session-${ends.size + 1}`, system.time.gatewayMs + LIFE_MS);
      return undefined;
    }
    return json((ends.get(bearerOf(sent) ?? '') ?? 0) > system.time.gatewayMs ? FINE : GONE);
  });
  const call = gatehouseFetch({ url: ORIGIN, key: KEY, ...system });
  for (let second = 0; second < 300; second += 1) {
    t.match(await (await call(MCP, post())).json(), FINE, `second ${second}`);
    await system.wait(1000);
  }
  t.equal(system.sent.length - 300, ends.size, 'no call was repeated');
  t.equal(ends.size, 6);
});

t.test('connector: calls at once share one login', async (t) => {
  const system = scripted([json(FINE), json(FINE), json(FINE)]);
  const call = gatehouseFetch({ url: ORIGIN, key: KEY, ...system });
  await Promise.all([call(MCP, post()), call(MCP, post()), call(MCP, post())]);
  t.equal(system.sent.filter(isLogin).length, 1);
});

t.test('connector: a refused login is not tried again within 5 s', async (t) => {
  const system = fakeSystem(() => refusal(401, 1101, 'Session not found'));
  const session = new AgentSession({ url: ORIGIN, key: KEY, ...system });
  await t.rejects(session.token(), { code: 1101 });
  system.time.ownMs += 4_999;
  await t.rejects(session.token(), { code: 1101 });
  t.equal(system.sent.length, 1);
  system.time.ownMs += 1;
  await t.rejects(session.token(), { code: 1101 });
  t.equal(system.sent.length, 2);
});

t.test('connector: a call refused for its session is repeated once with a new one', async (t) => {
  const system = scripted([json(GONE), json(FINE)]);
  const call = gatehouseFetch({ url: `${ORIGIN}/mcp`, key: KEY, ...system });
  t.strictSame(await (await call(MCP, post({ id: 1 }))).json(), FINE);
  t.strictSame(
    system.sent.filter((sent) => !isLogin(sent)).map((sent) => [bearerOf(sent), sent.body]),
    [
      ['Bearer session-1', '{"id":1}'],
      ['Bearer session-2', '{"id":1}'],
    ],
  );
});

t.test('connector: a second refusal, and one for another reason, are answered as they are', async (t) => {
  const denied = { ...GONE, error: { code: -32001, message: 'Unauthorized: this tool is not open' } };
  const result = { ...FINE, result: { text: 'session not found' } };
  for (const [answers, last, count] of [
    [[json(GONE), json(GONE), json(FINE)], GONE, 2],
    [[json(denied), json(FINE)], denied, 1],
    [[json(result), json(FINE)], result, 1],
  ] as const) {
    const system = scripted([...answers]);
    const call = gatehouseFetch({ url: ORIGIN, key: KEY, ...system });
    t.strictSame(await (await call(MCP, post())).json(), last);
    t.equal(system.sent.filter((sent) => !isLogin(sent)).length, count);
  }
});

t.test('connector: another origin gets the request without the bearer', async (t) => {
  const system = scripted([json(FINE)]);
  await gatehouseFetch({ url: ORIGIN, key: KEY, ...system })('https://other.example/mcp', post());
  t.strictSame(system.sent.map(bearerOf), [null]);
});

t.test(
  'connector: an ended Mcp-Session-Id is initialized again, once, under the id of the client',
  async (t) => {
    const opened = (id: string) => json(FINE, { headers: { 'mcp-session-id': id } });
    const ended = () => json({}, { status: 404 });
    const accepted = () => new Response(null, { status: 202 });
    const system = scripted([opened('a'), ended(), opened('b'), accepted(), json(FINE), json(FINE), ended()]);
    const call = gatehouseFetch({ url: ORIGIN, key: KEY, ...system });
    await call(MCP, post({ method: 'initialize' }, { accept: 'x/y' }));
    const withId = { 'mcp-session-id': 'a' };
    t.equal((await call(MCP, post({ id: 2 }, withId))).status, 200);
    t.equal((await call(MCP, post({ id: 3 }, withId))).status, 200);
    t.equal(
      (await call(MCP, { method: 'DELETE', headers: withId })).status,
      404,
      'an end is no reason to begin',
    );
    t.strictSame(
      system.sent
        .filter((sent) => !isLogin(sent))
        .map(({ headers, body }) => [headers.get('mcp-session-id'), body]),
      [
        [null, '{"method":"initialize"}'],
        ['a', '{"id":2}'],
        [null, '{"method":"initialize"}'],
        ['b', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
        ['b', '{"id":2}'],
        ['b', '{"id":3}'],
        ['b', ''],
      ],
    );
  },
);
