import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { GATEWAY_SERVICES, GATEWAY_TOOLS } from '../../../src/io/mcp/tools/gateway.ts';
import { promiseOf } from '../../support/http.ts';
import {
  type BackendRequest,
  type McpFixture,
  type McpFixtureOptions,
  startMcp,
  TOKENS,
} from '../../support/mcp.ts';

const VERIFIED = TOKENS.McpVerified;
const OPEN = { type: 'object', properties: { q: {}, absent: {}, data: {}, room: {} } };

async function start(t: Test, options: McpFixtureOptions): Promise<McpFixture> {
  return closeAfter(t, await startMcp(options));
}

/** A configured tool on the test's backend. */
const tool = (changes: object = {}) => ({
  method: 'POST',
  description: 'a tool',
  inputSchema: OPEN,
  ...changes,
});
const withTools = (tools: Record<string, object>) => (backend: string) => ({
  resources: {},
  tools: Object.fromEntries(
    Object.entries(tools).map(([name, row]) => [name, { endpoint: `${backend}/${name}`, ...row }]),
  ),
});
const text = (answer: { result?: { content?: readonly { text: string }[] } }) =>
  answer.result?.content?.[0]?.text;

// covers R49
t.test('result text: the bytes of the backend, whatever they are', async (t) => {
  const bodies = [
    '{"result":{"amount":0.1234567890123456789,"id":9223372036854775807}}',
    ' {\n  "a" : "\\u0041\\"\\\\ \\/" }\r\n',
    '"ü漢😀\u2028"',
    '<html>"quoted" \\ and \t tabs</html>',
    '',
    '[{"error":{"code":1}}]',
    '{"error":null,"result":1}',
    '{"result":{"error":{"code":1}}}',
  ];
  let at = 0;
  const mcp = await start(t, { backend: () => ({ body: bodies[at] ?? '', type: 'text/plain' }) });
  for (; at < bodies.length; at += 1) {
    const answer = await mcp.rpc('tools/call', { name: 'wallet_get_balance' }, VERIFIED);
    t.strictSame(answer.result, { content: [{ type: 'text', text: bodies[at] }] });
  }
});

// covers R49
t.test('isError: a status of 400 or more, or a top-level error that is an object', async (t) => {
  const failures = [
    { status: 400, body: '{"error":{"code":7,"message":"no"}}' },
    { status: 500, body: 'oops' },
    { status: 404, body: '{"result":1}' },
    { body: '{"error":{"code":7}}' },
    { body: ' { "result" : null , "error" : {} }' },
    { body: '{"\\u0065rror":{"code":7}}' },
    { body: '{"error":null,"error":{"code":7}}' },
  ];
  let at = 0;
  const mcp = await start(t, { backend: () => failures[at] ?? { body: '' } });
  for (; at < failures.length; at += 1) {
    const answer = await mcp.rpc('tools/call', { name: 'wallet_get_balance' }, VERIFIED);
    t.strictSame(answer.result, { content: [{ type: 'text', text: failures[at]?.body }], isError: true });
  }
  t.ok(mcp.audit.every(({ fields }) => fields['outcome'] === 'error'));
});

// covers R19 S28
t.test('headers: who calls, written by the gateway alone', async (t) => {
  const mcp = await start(t, {});
  const forged = {
    'x-crm': '1',
    'x-user-id': '1',
    'x-scopes': 'McpVerified',
    'x-keytype': 'FIDO2',
    'x-project': 'evil',
    'x-mcp-app-id': '1',
    'x-forwarded-for': '192.0.2.7, 192.0.2.8',
    cookie: 'sid=x',
  };
  for (const loginType of ['McpBasic', 'McpVerified', 'McpApp'] as const)
    await mcp.rpc('tools/call', { name: 'wallet_get_balance' }, TOKENS[loginType], forged);
  t.strictSame(
    mcp.asked.map(({ headers }) => [headers['x-scopes'], headers['x-mcp-app-id']]),
    [
      ['McpBasic', undefined],
      ['McpVerified', undefined],
      ['McpApp', '9001'],
    ],
  );
  for (const { headers } of mcp.asked) {
    t.match(headers, {
      'x-crm': '1842001',
      'x-user-id': '1842001',
      'x-keytype': 'UserKey',
      'x-project': 'test',
      'x-forwarded-for': '127.0.0.1',
    });
    t.match(headers['x-request-id'], /^test-/);
    t.equal(headers.cookie, undefined);
    t.equal(headers.authorization, undefined);
  }
});

// covers R22
t.test('custom tools: GET, POST, queryParams, bodyRootProperty and path placeholders', async (t) => {
  const mcp = await start(t, {
    configured: (backend) => ({
      resources: {},
      tools: {
        get: { ...tool({ method: 'GET' }), endpoint: `${backend}/get?fixed=1` },
        post: { ...tool(), endpoint: 'wallet:/own/post' },
        mixed: { ...tool({ queryParams: ['q', 'absent'] }), endpoint: `${backend}/mixed` },
        root: { ...tool({ bodyRootProperty: 'data', queryParams: ['q'] }), endpoint: `${backend}/root` },
        path: { ...tool(), endpoint: `${backend}/rooms/{room}/close` },
      },
    }),
  });
  const asked = async (name: string, values: object): Promise<BackendRequest | undefined> => {
    await mcp.rpc('tools/call', { name, arguments: values }, VERIFIED);
    return mcp.asked.at(-1);
  };
  t.match(await asked('get', { a: 'x y&z', n: 5, b: true, list: ['1', '2'], o: { k: 1 }, none: null }), {
    method: 'GET',
    url: '/get?fixed=1&a=x%20y%26z&n=5&b=true&list=1&list=2&o=%7B%22k%22%3A1%7D',
    body: '',
  });
  t.match(await asked('get', {}), { url: '/get?fixed=1' });
  t.match(await asked('post', { b: [1], a: 'ü' }), {
    method: 'POST',
    url: '/own/post',
    body: '{"b":[1],"a":"ü"}',
  });
  t.equal(mcp.asked.at(-1)?.headers['content-type'], 'application/json');
  t.match(await asked('mixed', { q: '1', a: 2 }), { url: '/mixed?q=1', body: '{"a":2}' });
  t.match(await asked('root', { q: '1', data: [1, { x: 2 }], lost: 3 }), {
    url: '/root?q=1',
    body: '[1,{"x":2}]',
  });
  t.match(await asked('path', { room: 'a b', k: 1 }), { url: '/rooms/a%20b/close', body: '{"k":1}' });
  const before = mcp.asked.length;
  for (const room of ['..', 'a/b', '', '%2e', undefined]) {
    const answer = await mcp.rpc('tools/call', { name: 'path', arguments: { room } }, VERIFIED);
    t.equal(answer.result?.isError, true);
    t.match(text(answer), /"detail":"room cannot stand/);
  }
  t.equal(mcp.asked.length, before, 'nothing reached the backend');
});

// covers R22
t.test('bodyRootProperty: left out makes the body {}, and arguments without a place are named', async (t) => {
  const root = tool({ bodyRootProperty: 'data', queryParams: ['q'] });
  const mcp = await start(t, {
    configured: (backend) => ({
      resources: {},
      tools: {
        root: { ...root, endpoint: `${backend}/root` },
        room: { ...root, endpoint: `${backend}/rooms/{room}` },
      },
    }),
  });
  const call = (name: string, values?: object) =>
    mcp.rpc('tools/call', { name, ...(values === undefined ? {} : { arguments: values }) }, VERIFIED);
  const passes: [string, object | undefined, string, string][] = [
    ['root', undefined, '/root', '{}'],
    ['root', {}, '/root', '{}'],
    ['root', { q: '1' }, '/root?q=1', '{}'],
    ['room', { room: 'a', q: '1' }, '/rooms/a?q=1', '{}'],
    ['root', { data: null }, '/root', 'null'],
    ['root', { data: 5, more: 1 }, '/root', '5'],
  ];
  for (const [name, values, url, body] of passes) {
    const answer = await call(name, values);
    t.equal(answer.result?.isError, undefined, JSON.stringify(values));
    t.match(mcp.asked.at(-1), { method: 'POST', url, body });
    t.equal(mcp.asked.at(-1)?.headers['content-type'], 'application/json');
  }
  const refusals: [string, object, RegExp][] = [
    ['root', { more: 1 }, /^more cannot be sent: the body is the value of data, which is left out$/],
    ['root', { q: '1', a: 1, b: null }, /^a, b cannot be sent: /],
    ['room', { room: 'a', extra: 1 }, /^extra cannot be sent: /],
  ];
  const before = mcp.asked.length;
  for (const [name, values, detail] of refusals) {
    const answer = await call(name, values);
    t.equal(answer.result?.isError, true);
    t.match(JSON.parse(text(answer) ?? '').error, { code: 1001, message: 'Invalid input format', detail });
  }
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`${at}`.padStart(500, 'n'), 1]));
  t.ok((text(await call('root', many)) ?? '').length < 1_000, 'names are cut, and not all are listed');
  t.equal(mcp.asked.length, before, 'nothing reached the backend');
});

// covers R23
t.test('arguments: null counts as none, for configured and built-in tools', async (t) => {
  const mcp = await start(t, {
    configured: withTools({
      get: tool({ method: 'GET' }),
      post: tool(),
      root: tool({ bodyRootProperty: 'data' }),
    }),
  });
  const call = (name: string) => mcp.rpc('tools/call', { name, arguments: null }, VERIFIED);
  for (const [name, method, url, body] of [
    ['get', 'GET', '/get', ''],
    ['post', 'POST', '/post', '{}'],
    ['root', 'POST', '/root', '{}'],
    ['wallet_get_balance', 'GET', '/wallet/v1/balance/get', ''],
  ] as const) {
    const answer = await call(name);
    t.equal(answer.error, undefined, name);
    t.match(mcp.asked.at(-1), { method, url, body });
  }
  const before = mcp.asked.length;
  const required = await call('wallet_get_tx_info');
  t.equal(required.result?.isError, true);
  t.match(text(required), /id is required/);
  t.equal(mcp.asked.length, before);
});

// covers R23
t.test('arguments: a mismatch is an isError text that names the field, and nothing is called', async (t) => {
  const mcp = await start(t, {
    configured: withTools({
      deep: tool({
        inputSchema: {
          type: 'object',
          properties: {
            a: { type: 'object', properties: { b: { type: 'array', items: { type: 'integer' } } } },
          },
          required: ['a'],
        },
      }),
      open: tool({ method: 'GET' }),
      signed: tool({
        method: 'GET',
        inputSchema: { type: 'object', properties: { at: { type: 'string', format: 'int64' } } },
      }),
    }),
  });
  const wrong: [string, object, RegExp][] = [
    ['wallet_get_balance', { currency: 5 }, /currency must be string/],
    ['wallet_get_balance', { curency: 'EUR' }, /curency is not an argument of this tool/],
    ['wallet_get_tx_info', {}, /id is required/],
    ['wallet_get_tx_info', { id: 'abc' }, /id must have the form of [0-9]+$/],
    ['wallet_get_tx_info', { id: 9007199254740992 }, /id /],
    ['wallet_get_tx_info', { id: 1.5 }, /id /],
    ['wallet_get_tx_info', { id: '9223372036854775808' }, /id must be an id of up to 19 digits/],
    ['signed', { at: '9223372036854775808' }, /at must be an id of up to 19 digits/],
    ['signed', { at: '-9223372036854775809' }, /at must be an id of up to 19 digits/],
    ['wallet_get_history_transactions', { limit: 1000 }, /limit /],
    ['wallet_internal_transfer', { toUserId: '1', currency: 'EUR', amount: 5 }, /amount must be string/],
    ['wallet_internal_transfer', { toUserId: '1', currency: 'EUR', amount: '-5' }, /amount /],
    ['wallet_internal_transfer', { toUserId: '1', currency: '../x', amount: '5' }, /currency /],
    ['deep', { a: { b: [1, 'x'] } }, /a\.b\.1 must be integer/],
  ];
  for (const [name, values, words] of wrong) {
    const answer = await mcp.rpc('tools/call', { name, arguments: values }, VERIFIED);
    t.match(
      { isError: answer.result?.isError, ...JSON.parse(text(answer) ?? '') },
      { isError: true, error: { code: 1001, message: 'Invalid input format', detail: words } },
      name,
    );
  }
  const exact =
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open","arguments":{"x":{"n":[1,9007199254740993]}}}}';
  const lossy = await mcp.post(exact, { authorization: `Bearer ${VERIFIED}` });
  t.match(JSON.parse(lossy.text).result, { isError: true });
  t.match(lossy.text, /x\.n\.1 has more digits/);
  const long = exact.replace('9007199254740993', `10.${'0'.repeat(250_000)}1`);
  t.match(
    (await mcp.post(long, { authorization: `Bearer ${VERIFIED}` })).text,
    /x\.n\.1 is a number of more than 40/,
  );
  const values = (count: number) => ({
    name: 'open',
    arguments: { n: Array.from({ length: count }, () => null) },
  });
  t.match(
    text(await mcp.rpc('tools/call', values(5_000), VERIFIED)),
    /arguments have more than 5000 values/,
    'the list is a value too',
  );
  t.equal(mcp.asked.length, 0);
  await mcp.rpc('tools/call', values(4_999), VERIFIED);
  t.equal(mcp.asked.length, 1, '5,000 values are taken');
  for (const id of ['9223372036854775807', 5]) {
    await mcp.rpc('tools/call', { name: 'wallet_get_tx_info', arguments: { id } }, VERIFIED);
    t.equal(mcp.asked.at(-1)?.url, `/wallet/v1/transactions/get?id=${id}`);
  }
  for (const at of ['-9223372036854775808', '9223372036854775807', -5]) {
    await mcp.rpc('tools/call', { name: 'signed', arguments: { at } }, VERIFIED);
    t.match(mcp.asked.at(-1)?.url, `at=${at}`);
  }
});

// covers R33 R49 R79
t.test('params: missing and unknown names are -32602, known but closed tools -32001', async (t) => {
  const mcp = await start(t, {});
  const rows: [object | undefined, string | undefined, number][] = [
    [undefined, VERIFIED, -32602],
    [{}, VERIFIED, -32602],
    [{ name: 5 }, VERIFIED, -32602],
    [{ name: '' }, VERIFIED, -32602],
    [{ name: 'nope' }, VERIFIED, -32602],
    [{ name: '__proto__' }, VERIFIED, -32602],
    [{ name: 'nope' }, undefined, -32602],
    [{ name: 'wallet_get_balance', arguments: [] }, VERIFIED, -32602],
    [{ name: 'wallet_get_balance', arguments: 'x' }, VERIFIED, -32602],
    [{ name: 'wallet_get_balance', arguments: 0 }, VERIFIED, -32602],
    [{ name: 'wallet_get_balance', arguments: null }, undefined, -32001],
    [{ name: 'wallet_get_balance' }, undefined, -32001],
    [{ name: 'wallet_create_withdraw' }, TOKENS.McpBasic, -32001],
    [{ name: 'wallet_create_withdraw' }, TOKENS.McpApp, -32001],
    [{ name: 'sessions' }, 'anonymous', -32001],
  ];
  for (const [params, token, code] of rows) {
    const answer = await mcp.rpc('tools/call', params, token);
    t.equal(answer.error?.code, code, JSON.stringify([params, token]));
  }
  t.equal(mcp.asked.length, 0);
  t.equal(mcp.audit.length, rows.length, 'every refusal leaves a record');
});

// covers R79
t.test(
  'failed backends: -32000 for refused, cut, slow and closed by the breaker; too large is an isError',
  async (t) => {
    let mode: 'cut' | 'never' | 'large' = 'cut';
    const mcp = await start(t, {
      configured: (backend) => ({
        resources: {},
        tools: {
          mode: { ...tool(), endpoint: `${backend}/mode` },
          brief: { ...tool({ timeoutMs: 60 }), endpoint: `${backend}/mode` },
          down: { ...tool({ method: 'GET' }), endpoint: 'http://127.0.0.1:1/x' },
        },
      }),
      backend: () =>
        mode === 'cut'
          ? { cut: '{"result":' }
          : mode === 'never'
            ? 'never'
            : { body: Buffer.alloc(4 * 1024 * 1024 + 1, 0x20) },
    });
    const error = async (name: string) => (await mcp.rpc('tools/call', { name }, VERIFIED)).error;
    t.match(await error('mode'), { code: -32000, message: 'Module failed' });
    mode = 'never';
    t.match(await error('brief'), { code: -32000, message: 'Module timed out' });
    t.equal(mcp.asked.length, 2, 'a POST is never sent twice');
    mode = 'large';
    const large = await mcp.rpc('tools/call', { name: 'mode' }, VERIFIED);
    t.equal(large.result?.isError, true);
    t.match(JSON.parse(text(large) ?? ''), { error: { code: 1015 } });
    for (let failures = 0; failures < 5; failures += 1)
      t.match(await error('down'), { code: -32000, message: 'Module failed' });
    t.match(await error('down'), { code: -32000, message: 'Module unavailable' });
    t.strictSame(
      mcp.audit.map(({ fields }) => fields['outcome']),
      Array(9).fill('failed'),
    );
  },
);

// covers R93
t.test('cancelled: stops the call of the same session and id, and no other', async (t) => {
  let arrived: () => void = () => undefined;
  const mcp = await start(t, {
    backend: () => {
      arrived();
      return 'never';
    },
  });
  const begin = async (id: string, headers: Record<string, string>) => {
    const reached = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const answer = mcp.post(
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"wallet_get_balance"}}`,
      headers,
    );
    await reached;
    return { answer, backend: mcp.asked.at(-1) };
  };
  const cancel = (id: string, headers: Record<string, string>) =>
    mcp.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`, headers);
  const own = { authorization: `Bearer ${VERIFIED}`, 'mcp-session-id': 'one' };
  for (const id of ['7', '"a\\u0062"', '9007199254740993']) {
    const { answer, backend } = await begin(id, own);
    const before = mcp.audit.length;
    await cancel(id, { authorization: `Bearer ${TOKENS.other}`, 'mcp-session-id': 'one' });
    await cancel(id, { authorization: 'Bearer unknown', 'mcp-session-id': 'one' });
    await cancel(id, { 'mcp-session-id': 'one' });
    await cancel(id, { ...own, 'mcp-session-id': 'two' });
    await cancel('8', own);
    t.equal(mcp.audit.length, before, 'no other caller found it');
    await cancel(id === '"a\\u0062"' ? '"ab"' : id, own);
    await backend?.gone;
    t.match((await answer).text, /"error":{"code":-32000,"message":"Tool execution error: cancelled"/);
    t.equal(mcp.audit.length, before + 1, 'only the last one found it');
    t.equal(mcp.audit.at(-1)?.fields['outcome'], 'cancelled');
  }
});

// covers R48
t.test('client gone: the call to the backend is given up', async (t) => {
  const { promise: reached, resolve: arrived } = promiseOf();
  const mcp = await start(t, {
    backend: () => {
      arrived();
      return 'never';
    },
  });
  const leaving = new AbortController();
  const gone = fetch(`${mcp.http.url}/mcp`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${VERIFIED}` },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wallet_get_balance"}}',
  });
  await reached;
  leaving.abort();
  await t.rejects(gone);
  await mcp.asked[0]?.gone;
  t.ok(true, 'the backend saw the connection close');
});

// covers R49
t.test('audit: one record a call, who and what and how it ended, never an argument', async (t) => {
  const mcp = await start(t, {});
  await mcp.rpc(
    'tools/call',
    { name: 'wallet_get_balance', arguments: { currency: 'SECRET' } },
    TOKENS.McpApp,
  );
  await mcp.rpc('tools/call', { name: 'x'.repeat(500), arguments: { code: 'SECRET' } });
  await mcp.rpc('resources/read', { uri: 'gatehouse://gateway/info' });
  t.match(mcp.audit[0], {
    event: 'mcp.tool',
    userId: '1842001',
    fields: { name: 'wallet_get_balance', outcome: 'ok', keyId: '77', loginType: 'McpApp', appId: '9001' },
  });
  t.match(mcp.audit[0]?.fields['requestId'], /^test-/);
  t.type(mcp.audit[0]?.fields['milliseconds'], 'number');
  t.match(mcp.audit[1], { userId: null, fields: { name: 'x'.repeat(64), outcome: 'denied', keyId: null } });
  t.match(mcp.audit[2], { event: 'mcp.resource', userId: null, fields: { outcome: 'ok' } });
  t.notMatch(JSON.stringify(mcp.audit), /SECRET/);
});

// covers S116
t.test("audit: a caller's X-Request-Id is kept beside ours, and no module sees it", async (t) => {
  const mcp = await start(t, {});
  const headers = { 'X-Request-Id': 'chosen-by-the-caller' };
  const call = { name: 'wallet_get_balance', arguments: { currency: 'USD' } };
  await mcp.rpc('tools/call', call, TOKENS.McpVerified, headers);
  const { requestId, clientRequestId } = mcp.audit[0]?.fields ?? {};
  t.match(requestId, /^test-/);
  t.equal(clientRequestId, 'chosen-by-the-caller');
  t.equal(mcp.asked[0]?.headers['x-request-id'], requestId);
});

// covers R35 R100
t.test(
  'limits: a bearer pays by its key, a batch by its length, others by connection and address',
  async (t) => {
    const mcp = await start(t, { sessionQuota: 3, settings: { ApiRPSLimit: 0, IpRPSLimit: 1 } });
    const ping = '{"jsonrpc":"2.0","id":"k","method":"ping"}';
    const authorization = `Bearer ${VERIFIED}`;
    t.match((await mcp.post(ping, { authorization })).headers.get('x-ratelimit'), 's=p;l=3;r=2;t=3');
    const refused = await mcp.post(`[${ping},${ping},${ping}]`, { authorization });
    t.equal(refused.status, 429);
    t.notOk(refused.text.includes('"id"'));
    t.strictSame(
      mcp.charged.map(({ cost }) => cost),
      [1, 3],
    );
    t.equal((await mcp.post(`[${ping},${ping}]`, { authorization })).status, 200, 'a refusal costs nothing');
    const single = await mcp.post(ping, { authorization });
    t.equal(single.status, 429);
    t.equal(single.headers.get('retry-after'), '3');
    t.strictSame(JSON.parse(single.text), {
      jsonrpc: '2.0',
      id: 'k',
      error: { code: 1002, message: 'Access rate limit', data: { retryAfterSeconds: 3 } },
    });
    t.equal(
      (await mcp.post('{"jsonrpc":"2.0","method":"notifications/initialized"}', { authorization })).status,
      429,
    );
    t.match((await mcp.post(ping)).headers.get('x-ratelimit'), /^s=i;l=5;r=4/);
    t.match(
      (await mcp.post(ping, { authorization: 'Bearer unknown' })).headers.get('x-ratelimit'),
      /^s=i;l=5;r=3/,
    );
    t.match((await mcp.post(`[${ping},${ping},${ping}]`)).headers.get('x-ratelimit'), /^s=i;l=5;r=0/);
    const spent = await mcp.post('nonsense');
    t.equal(spent.status, 429, 'what cannot be read is charged too');
    t.ok(Number(spent.headers.get('retry-after')) >= 1);
    t.match(JSON.parse(spent.text), { error: { code: 1002 } });
  },
);

t.test(
  'limits: a refused batch shows what is left, one that fits no window is -32600 and costs one',
  async (t) => {
    const mcp = await start(t, { sessionQuota: 10, settings: { ApiRPSLimit: 0, IpRPSLimit: 2 } });
    const batch = (size: number) => `[${new Array(size).fill('{"jsonrpc":"2.0","id":1,"method":"ping"}')}]`;
    const authorization = `Bearer ${VERIFIED}`;
    for (const headers of [{ authorization }, {}]) {
      const scope = headers.authorization === undefined ? 'i' : 'p';
      const left = async (size: number, status: number) => {
        const answer = await mcp.post(batch(size), headers);
        t.equal(answer.status, status, `${scope} ${size}`);
        return answer.headers.get('x-ratelimit')?.split(';')[2];
      };
      t.equal(await left(4, 200), 'r=6');
      t.equal(await left(7, 429), 'r=6');
      const tooLarge = await mcp.post(batch(11), headers);
      t.equal(tooLarge.status, 200);
      t.equal(tooLarge.headers.get('retry-after'), null);
      t.strictSame(JSON.parse(tooLarge.text), {
        jsonrpc: '2.0',
        error: {
          code: -32600,
          message: 'Invalid request: a batch of 11 fits no window, at most 10 at once',
        },
      });
      t.equal(await left(5, 200), 'r=0');
      t.equal((await mcp.post(batch(11), headers)).status, 429, 'and it is limited itself');
    }
  },
);

// covers R97
t.test(
  'limits: behind a trusted proxy the largest batch without a bearer is the quota of the address',
  async (t) => {
    const mcp = await start(t, {
      settings: { ApiRPSLimit: 2, IpRPSLimit: 12 },
      pipeline: { trustedProxies: ['127.0.0.1'] },
    });
    const batch = (size: number) => `[${new Array(size).fill('{"jsonrpc":"2.0","id":1,"method":"ping"}')}]`;
    const from = (address: string) => ({ 'x-forwarded-for': address });
    const fit = await mcp.post(batch(60), from('203.0.113.1'));
    t.equal(fit.headers.get('x-ratelimit')?.slice(0, 13), 's=i;l=60;r=0;');
    t.equal(JSON.parse(fit.text).length, 60);
    const tooLarge = await mcp.post(batch(61), from('203.0.113.2'));
    t.match(JSON.parse(tooLarge.text), { error: { code: -32600, message: /at most 60 at once/ } });
    const direct = await mcp.post(batch(11));
    t.match(JSON.parse(direct.text), { error: { code: -32600, message: /at most 10 at once/ } });
  },
);

// covers R16
t.test(
  'rateLimit of a row: counted per user after authorization, 429 alone, an item in a batch',
  async (t) => {
    const mcp = await start(t, {
      configured: withTools({ slow: tool({ rateLimit: { rps: 1 } }) }),
    });
    const one = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}';
    const authorization = `Bearer ${VERIFIED}`;
    t.equal((await mcp.rpc('tools/call', { name: 'slow' })).error?.code, -32001);
    for (let calls = 0; calls < 5; calls += 1) t.equal((await mcp.post(one, { authorization })).status, 200);
    const refused = await mcp.post(one, { authorization });
    t.equal(refused.status, 429);
    t.equal(refused.headers.get('retry-after'), '5');
    t.equal(refused.headers.get('x-ratelimit'), 's=s;l=5;r=0;t=5');
    t.strictSame(JSON.parse(refused.text).error, {
      code: 1002,
      message: 'Access rate limit',
      data: { retryAfterSeconds: 5, detail: 'tool slow' },
    });
    const batch = await mcp.post(`[${one}]`, { authorization });
    t.match([batch.status, JSON.parse(batch.text)], [200, [{ error: { code: 1002 } }]]);
    t.equal((await mcp.post(one, { authorization: `Bearer ${TOKENS.other}` })).status, 200);
    mcp.http.time.nowMs += 5_000;
    t.equal((await mcp.post(one, { authorization })).status, 200);
  },
);

t.test('gateway tools: the body of the REST twin, refusals as isError, a full bound as -32000', async (t) => {
  let outcome: () => Promise<unknown> = async () => [{ id: '1' }];
  const answer = () => outcome();
  const tools = Object.fromEntries(Object.keys(GATEWAY_TOOLS).map((name) => [name, answer]));
  const mcp = await start(t, { gateway: { tools, resources: GATEWAY_SERVICES.resources } });
  for (const name of [
    'sessions',
    'login_log',
    'user_keys',
    'get_usr_apps',
    'list_app_access',
    'close_sessions',
  ])
    t.equal(text(await mcp.rpc('tools/call', { name }, VERIFIED)), '{"result":[{"id":"1"}]}', name);
  outcome = async () => {
    throw new GatewayError('NotFound', 'no such session');
  };
  const refused = await mcp.rpc(
    'tools/call',
    { name: 'close_sessions', arguments: { sessionIds: ['1'] } },
    VERIFIED,
  );
  t.equal(refused.result?.isError, true);
  t.strictSame(JSON.parse(text(refused) ?? ''), {
    error: { code: 1004, message: 'Not found', detail: 'no such session' },
  });
  outcome = async () => {
    throw new GatewayError('Overloaded');
  };
  t.match((await mcp.rpc('tools/call', { name: 'sessions' }, VERIFIED)).error, {
    code: -32000,
    message: 'Overloaded',
  });
  t.strictSame(Object.keys(GATEWAY_SERVICES.tools).sort(), Object.keys(GATEWAY_TOOLS).sort());
  t.equal(mcp.asked.length, 0);
});

// covers R49
t.test(
  'destructive tools: an attempt is on disk before the call goes out, and without it nothing goes out',
  async (t) => {
    let storage = async () => undefined as undefined;
    const mcp = await start(t, { storage: () => storage() });
    const withdraw = {
      name: 'wallet_create_withdraw',
      arguments: { currency: 'EUR', amount: '5', address: 'ABCD' },
    };
    storage = async () => {
      t.equal(mcp.asked.length, 0, 'nothing went out before the record was there');
    };
    await mcp.rpc('tools/call', withdraw, VERIFIED);
    t.equal(mcp.asked.length, 1);
    t.strictSame(
      mcp.audit.map(({ fields }) => [fields['name'], fields['outcome']]),
      [
        ['wallet_create_withdraw', 'attempt'],
        ['wallet_create_withdraw', 'ok'],
      ],
    );
    storage = async () => {
      throw new GatewayError('JournalUnavailable');
    };
    const refused = await mcp.rpc('tools/call', withdraw, VERIFIED);
    t.match(refused.error, { code: -32000, message: 'Storage unavailable' });
    t.equal(mcp.http.finished.at(-1)?.error, 'JournalUnavailable', 'the log names it');
    t.equal(mcp.asked.length, 1);
    t.equal(
      (await mcp.rpc('tools/call', { name: 'wallet_get_balance' }, VERIFIED)).error,
      undefined,
      'reads go on',
    );
  },
);

t.test('log: the record of a request names the error of its JSON-RPC answer', async (t) => {
  const mcp = await start(t, {
    configured: (backend) => ({
      resources: {},
      tools: {
        fine: { ...tool(), endpoint: `${backend}/fine` },
        down: { ...tool({ method: 'GET' }), endpoint: 'http://127.0.0.1:1/x' },
      },
    }),
    backend: () => ({ body: '{"result":1}' }),
  });
  const errorOf = async (body: string) => {
    await mcp.post(body, { authorization: `Bearer ${VERIFIED}` });
    return mcp.http.finished.at(-1)?.error;
  };
  const call = (name: string, id = 1) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } });
  t.equal(await errorOf(call('fine')), undefined);
  t.equal(await errorOf(call('down')), 'ModuleFailed');
  t.equal(await errorOf(call('unknown')), 'InvalidParams');
  t.equal(await errorOf('{'), 'ParseError');
  t.equal(await errorOf('{"jsonrpc":"2.0","id":1}'), 'InvalidRequest');
  t.equal(await errorOf(`[${call('fine', 1)},${call('down', 2)}]`), 'ModuleFailed', 'one of a batch');
  t.equal(await errorOf('[{"jsonrpc":"2.0","id":1}]'), 'InvalidRequest', 'an invalid message of a batch');
  t.equal(await errorOf(`[${call('fine', 1)}]`), undefined);
});
