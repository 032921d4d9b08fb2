import fc from 'fast-check';
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { anyCodePoint } from '../../../kit/code-points.ts';
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { INSTRUCTIONS } from '../../../src/io/mcp/instructions.ts';
import { runs } from '../../support/depth.ts';
import { sendRaw, startHttp } from '../../support/http.ts';
import { type McpFixture, SESSION_IDS, startMcp, TOKENS } from '../../support/mcp.ts';
import { routeTable } from '../../support/route-table.ts';

const mcp: McpFixture = await startMcp({ backend: () => ({ body: '{"result":{"a":1.50}}' }) });
t.teardown(() => mcp.close());

const message = (method: string, id: unknown = 1, params?: object) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) });
const notification = (method: string, params?: object) =>
  JSON.stringify({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) });
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const SILENT = [
  notification('notifications/initialized'),
  message('notifications/initialized', 3),
  notification('notifications/cancelled', { requestId: 5 }),
  notification('notifications/progress', { progressToken: 1, progress: 1 }),
  notification('tools/call', { name: 'wallet_get_balance' }),
  '{"jsonrpc":"2.0","id":7,"result":{}}',
  '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}',
  `[${notification('notifications/initialized')},${notification('notifications/progress')}]`,
];

/** Status, framing fields, media type and body, as they are sent. */
async function bareAnswer(body: string, headers: Readonly<Record<string, string>>): Promise<unknown[]> {
  const json = { 'Content-Type': 'application/json', ...headers };
  const { status, headers: given, body: sent } = await mcp.http.ask('POST', '/mcp', json, body);
  return [status, given['content-length'], given['transfer-encoding'], given['content-type'], sent];
}

// covers R109
t.test('initialize: always 2024-11-05, an opaque session id, no login needed', async (t) => {
  for (const asked of ['2024-11-05', '2025-06-18', '1900-01-01', 5, null]) {
    const body = message('initialize', 'a', { protocolVersion: asked });
    const { status, headers, text } = await mcp.post(body, bearer('anonymous'));
    t.equal(status, 200);
    t.match(headers.get('mcp-session-id') ?? '', /^[A-Za-z0-9_-]{20,}$/);
    t.equal(headers.get('content-type'), 'application/json');
    t.strictSame(JSON.parse(text), {
      jsonrpc: '2.0',
      id: 'a',
      result: {
        protocolVersion: '2024-11-05',
        capabilities: { tools: {}, resources: {} },
        serverInfo: { name: 'test', version: '0.0.1' },
        instructions: INSTRUCTIONS,
      },
    });
  }
  const first = await mcp.post(message('initialize'));
  const second = await mcp.post(message('initialize'));
  t.not(first.headers.get('mcp-session-id'), second.headers.get('mcp-session-id'));
});

// covers R46 R93
t.test(
  'notifications and responses of 2024-11-05: 200, Content-Length 0, no Content-Type, not a byte',
  async (t) => {
    const silent = SILENT.flatMap((body) =>
      [{}, bearer('anonymous'), bearer(TOKENS.McpVerified)].map((headers) => ({ body, headers })),
    );
    for (const { body, headers } of silent)
      t.strictSame(await bareAnswer(body, headers), [200, '0', undefined, undefined, ''], body);
    t.equal(mcp.asked.length, 0, 'a tools/call without id is not carried out');
  },
);

// covers R46
t.test(
  'notifications and responses with MCP-Protocol-Version: 202, Content-Length 0, not a byte',
  async (t) => {
    for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
      for (const body of SILENT) {
        const headers = { ...bearer(TOKENS.McpVerified), 'MCP-Protocol-Version': version };
        t.strictSame(
          await bareAnswer(body, headers),
          [202, '0', undefined, undefined, ''],
          `${version} ${body}`,
        );
      }
    const batch = `[${notification('notifications/initialized')},${message('ping', 1)}]`;
    const answer = await mcp.post(batch, { 'mcp-protocol-version': '2025-03-26' });
    t.equal(answer.status, 200, 'a batch with a request');
    t.strictSame(JSON.parse(answer.text), [{ jsonrpc: '2.0', id: 1, result: {} }]);
  },
);

// covers R34 R38
t.test(
  'methods: DELETE is 204 with a session id, all others 405 with Allow; preflights name the same',
  async (t) => {
    const ask = (method: string, headers = {}) => fetch(`${mcp.http.url}/mcp`, { method, headers });
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await ask(method, { accept: 'text/event-stream' });
      t.equal(answer.status, 405, method);
      t.equal(answer.headers.get('allow'), 'POST, DELETE', method);
      t.match(await answer.json(), { error: { code: 1005 } }, method);
    }
    t.equal((await ask('DELETE', { 'mcp-session-id': SESSION_IDS.issue(undefined) })).status, 204);
    const preflight = await ask('OPTIONS', { origin: `http://localhost:${mcp.http.port}` });
    t.equal(preflight.headers.get('allow'), 'POST, DELETE');
    t.equal(preflight.headers.get('access-control-allow-methods'), 'POST, DELETE');
    t.equal((await mcp.post(message('ping'), { origin: 'http://evil.example' })).status, 403);
  },
);

// covers R36
t.test(
  'ping: answered for everyone, an unknown bearer included; resources/templates/list: empty',
  async (t) => {
    for (const token of [undefined, 'anonymous', TOKENS.McpBasic]) {
      t.strictSame(await mcp.rpc('ping', undefined, token), { jsonrpc: '2.0', id: 1, result: {} });
    }
    for (const token of [undefined, TOKENS.McpBasic])
      t.strictSame((await mcp.rpc('resources/templates/list', {}, token)).result, { resourceTemplates: [] });
  },
);

// covers R46 R94
t.test('unknown methods: HTTP 200, -32601, the same id', async (t) => {
  for (const method of ['server/discover', 'prompts/list', 'logging/setLevel', '__proto__', '', 'toString']) {
    const { status, text } = await mcp.post(message(method, 'x-1'));
    t.equal(status, 200);
    t.strictSame(JSON.parse(text), {
      jsonrpc: '2.0',
      id: 'x-1',
      error: { code: -32601, message: 'Method not found' },
    });
  }
});

// covers R32 S12
t.test('parse error: HTTP 400, -32700, and no id', async (t) => {
  const bodies = [
    '',
    '{',
    'nonsense',
    '{"jsonrpc":"2.0","id":1,}',
    `${'['.repeat(10_000)}${']'.repeat(10_000)}`,
  ];
  bodies.push('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"__proto__":{}}}');
  bodies.push('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\\u0063onstructor":{}}}');
  for (const body of bodies) {
    const { status, text } = await mcp.post(body);
    t.equal(status, 400, body.slice(0, 60));
    t.equal(JSON.parse(text).error.code, -32700);
    t.notOk(text.includes('"id"'));
  }
});

// covers R32
t.test('invalid requests: -32600 that echoes the id where there is one', async (t) => {
  const invalid: [string, unknown][] = [
    ['5', undefined],
    ['"ping"', undefined],
    ['null', undefined],
    ['{}', undefined],
    ['{"jsonrpc":"2.0"}', undefined],
    ['{"jsonrpc":"1.0","id":4,"method":"ping"}', 4],
    ['{"id":"k","method":"ping"}', 'k'],
    ['{"jsonrpc":"2.0","id":4,"method":5}', 4],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', undefined],
    ['{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', undefined],
    ['{"jsonrpc":"2.0","id":[1],"method":"ping"}', undefined],
    ['{"jsonrpc":"2.0","id":true,"method":"ping"}', undefined],
  ];
  for (const [body, id] of invalid) {
    const { status, text } = await mcp.post(body);
    const answer = JSON.parse(text);
    t.strictSame([status, answer.error.code, answer.id], [200, -32600, id], body);
    t.notOk(text.includes('null'));
  }
  for (const params of ['[]', '"x"', '5', 'true']) {
    const { text } = await mcp.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${params}}`);
    t.match(JSON.parse(text), { id: 1, error: { code: -32602 } }, params);
  }
  const absent = await mcp.post('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}');
  t.ok(JSON.parse(absent.text).result.tools.length > 0, 'null params are none');
});

// covers R31
t.test('batch: each answered in order in one array, notifications silently', async (t) => {
  const { status, text } = await mcp.post(
    `[${message('ping', 1)},${notification('notifications/initialized')},${message('nope', '2')},5,${message('tools/call', 3, { name: 'wallet_get_balance' })},{"jsonrpc":"2.0","id":90071992547409931,"method":"ping"}]`,
    bearer(TOKENS.McpVerified),
  );
  t.equal(status, 200);
  const answers = JSON.parse(text);
  t.strictSame(
    answers.map((one: { id?: unknown; error?: { code: number } }) => one.error?.code ?? one.id),
    [1, -32601, -32600, 3, Number('90071992547409931')],
  );
  t.match(text, /"id":90071992547409931,/);
  t.equal(answers[3].result.content[0].text, '{"result":{"a":1.50}}');
});

// covers R31
t.test('batch: empty or over 100 is -32600 as a whole, 100 are served', async (t) => {
  for (const body of ['[]', ' [ ] ', `[${Array(101).fill(message('ping')).join(',')}]`]) {
    const { status, text } = await mcp.post(body);
    t.equal(status, 200);
    t.equal(JSON.parse(text).error.code, -32600);
  }
  const { text } = await mcp.post(`[${Array(100).fill(message('ping')).join(',')}]`);
  t.equal(JSON.parse(text).length, 100);
  const begun = await mcp.post(`[${message('initialize')}]`);
  t.ok(begun.headers.get('mcp-session-id'));
});

t.test('envelope: random batches get one answer for each request, ids in order', async (t) => {
  const id = fc.oneof(fc.integer(), fc.string(), fc.bigInt({ min: 0n, max: 2n ** 80n }));
  const idText = id.map((one) => (typeof one === 'bigint' ? String(one) : JSON.stringify(one)));
  const method = fc.constantFrom('ping', 'tools/list', 'nope', 'notifications/progress');
  const item = fc.record({ id: fc.option(idText, { nil: undefined }), method, first: fc.boolean() });
  const write = (one: { id: string | undefined; method: string; first: boolean }) => {
    const named = one.id === undefined ? '' : `"id":${one.id},`;
    return one.first
      ? `{${named}"jsonrpc":"2.0","method":"${one.method}"}`
      : `{"method":"${one.method}","params":{"id":[1]},${named}"jsonrpc":"2.0"}`;
  };
  await fc.assert(
    fc.asyncProperty(fc.array(item, { minLength: 1, maxLength: 20 }), async (items) => {
      const { status, text } = await mcp.post(`[${items.map(write).join(',')}]`);
      const expected = items.filter((one) => one.id !== undefined).map((one) => one.id);
      if (status !== 200) return false;
      if (expected.length === 0) return text === '';
      let at = 0;
      for (const one of expected) {
        at = text.indexOf(`"jsonrpc":"2.0","id":${one},`, at) + 1;
        if (at === 0) return false;
      }
      return JSON.parse(text).length === expected.length;
    }),
    runs(1_000),
  );
  t.ok(true);
});

// covers S41
t.test('envelope: random JSON and random bytes never cost more than a refusal', async (t) => {
  const body = fc.oneof(
    fc.json(),
    fc.string({ unit: anyCodePoint }),
    fc.jsonValue().map((one) => JSON.stringify([one])),
  );
  await fc.assert(
    fc.asyncProperty(body, async (text) => [200, 400].includes((await mcp.post(text)).status)),
    runs(1_000),
  );
  t.ok(true);
});

// covers R32 R66
t.test('content type: anything but JSON is 415, with a charset it is JSON', async (t) => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', '']) {
    const { status, text } = await mcp.post(message('ping'), { 'content-type': type });
    t.equal(status, 415, type);
    t.match(JSON.parse(text), { error: { code: 1007 } });
  }
  for (const type of ['application/json; charset=utf-8', 'Application/JSON'])
    t.equal((await mcp.post(message('ping'), { 'content-type': type })).status, 200, type);
});

// covers R32
t.test('body: one byte over 256 KiB is 413', async (t) => {
  const frame = message('ping', 1, { pad: '' }).length;
  t.equal((await mcp.post(message('ping', 1, { pad: 'x'.repeat(256 * 1024 - frame) }))).status, 200);
  const over = await mcp.post(message('ping', 1, { pad: 'x'.repeat(256 * 1024 - frame + 1) }));
  t.equal(over.status, 413);
});

// covers R38
t.test('paths of an authorization server: 404 with a small JSON body, whatever the method', async (t) => {
  const whole = closeAfter(t, startHttp({ routes: routeTable() }));

  const differing: unknown[] = [];
  for (const path of [
    '/.well-known/oauth-authorization-server/mcp',
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-protected-resource/mcp',
    '/.well-known/openid-configuration',
    '/.well-known/openid-configuration/mcp',
    '/mcp/.well-known/openid-configuration',
    '/register',
    '/authorize?response_type=code',
  ]) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await fetch(`${whole.url}${path}`, { method });
      const type = answer.headers.get('content-type') ?? '';
      const { error } = (await answer.json()) as { error?: { code: number } };
      if (answer.status !== 404 || !type.startsWith('application/json') || error?.code !== 1004)
        differing.push([`${method} ${path}`, answer.status, type, error]);
    }
  }
  t.same(differing, []);
});

// covers R38
t.test('Mcp-Session-Id: missing, unknown or foreign, the bearer decides', async (t) => {
  for (const headers of [{}, { 'mcp-session-id': 'unknown' }] as Record<string, string>[]) {
    const answer = await mcp.rpc('tools/call', { name: 'wallet_get_balance' }, TOKENS.McpVerified, headers);
    t.equal(answer.result?.content?.[0]?.text, '{"result":{"a":1.50}}');
  }
});

// covers R33
t.test('bearer: what opens nothing is -32001 in HTTP 200, never anonymous', async (t) => {
  const methods = [
    'tools/list',
    'tools/call',
    'resources/list',
    'resources/read',
    'resources/templates/list',
  ];
  for (const authorization of ['Bearer unknown', 'Bearer ', 'bearer', 'Basic dTpw', 'anonymous']) {
    for (const method of methods) {
      const body = message(method, 1, { name: 'sessions', uri: 'gatehouse://gateway/info' });
      const { status, text } = await mcp.post(body, { authorization });
      const { id, error } = JSON.parse(text);
      t.same([status, id, error?.code], [200, 1, -32001], `${authorization} ${method}`);
    }
  }
  const body = message('tools/list');
  const twice = `Authorization: Bearer verified\r\nAuthorization: Bearer basic\r\nContent-Length: ${body.length}`;
  const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${twice}`;
  const answer = await sendRaw(mcp.http.port, `${head}\r\n\r\n${body}`);
  t.match(JSON.parse(answer.body), { error: { code: -32001 } });
});

t.test('a full bound of the gateway: 503 with Retry-After and -32000 in one body', async (t) => {
  const bounds = new SharedBounds(new LiveSettings(), { requests: 2 });
  const full = closeAfter(t, await startMcp({ pipeline: { bounds } }));
  for (const address of ['192.0.2.1', '192.0.2.2']) bounds.of('requests').require(bounds.holders.of(address));
  const { status, headers, text } = await full.post(message('ping'));
  t.equal(status, 503);
  t.equal(headers.get('retry-after'), '1');
  t.strictSame(JSON.parse(text), { jsonrpc: '2.0', error: { code: -32000, message: 'Overloaded' } });
});

// covers S50
t.test('a share of a bound used up: 429 with 1002, and another network is served', async (t) => {
  const bounds = new SharedBounds(new LiveSettings(), { requests: 4 });
  const shared = closeAfter(t, await startMcp({ pipeline: { bounds } }));
  const neighbour = bounds.of('requests').require(bounds.holders.of('192.0.2.1'), 2);
  t.equal((await shared.post(message('ping'))).status, 200);
  const own = bounds.of('requests').require(bounds.holders.of('127.0.0.1'), 2);
  const { status, headers, text } = await shared.post(message('ping'));
  t.equal(status, 429);
  t.equal(headers.get('retry-after'), '1');
  t.match(JSON.parse(text), { error: { code: 1002, data: { retryAfterSeconds: 1 } } });
  for (const lease of [neighbour, own]) lease.release();
  t.equal((await shared.post(message('ping'))).status, 200);
});

t.test('all of the above: nothing was thrown that is no row of the error table', async (t) => {
  t.strictSame(mcp.http.bugs, []);
});
