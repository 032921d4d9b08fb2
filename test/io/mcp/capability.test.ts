/** Capability mode on /mcp: codes instead of a session (spec 4.1, 5.2, 7.3). */
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import {
  type BackendAnswer,
  type BackendRequest,
  type McpFixtureOptions,
  startMcp,
  TOKENS,
} from '../../support/mcp.ts';

const CHAT = 'invite-1';
const WALLET = 'order-1';
const DEVICE = '0f8fad5b-d9cb-469f-a165-70867728950e';
const UNKNOWN: BackendAnswer = { status: 404, body: '{"error":{"code":2009,"message":"Unknown code"}}' };

/** Two modules that each know one code; everything else is answered as fine. */
function modules({ url }: BackendRequest): BackendAnswer {
  const { pathname, searchParams } = new URL(url, 'http://module');
  const code = searchParams.get('code');
  if (pathname === '/chat/v1/capability/resolve')
    return code === CHAT ? { body: '{"result":{"family":"chat","scope":"invite","id":"1"}}' } : UNKNOWN;
  if (pathname === '/wallet/v1/capability/resolve')
    return code === WALLET ? { body: '{"result":{"family":"wallet","scope":"payment_order"}}' } : UNKNOWN;
  return { body: '{"result":"fine"}' };
}

const schema = (properties: object = {}, more: object = {}) => ({ type: 'object', properties, ...more });

function configured(backend: string) {
  const row = { description: 'A tool.', inputSchema: schema() };
  const own = { ...row, capabilityCodeBodyProperty: 'key' };
  return {
    tools: {
      chat_get: { ...own, capabilityModule: 'chat', method: 'GET', endpoint: `${backend}/c/get` },
      chat_post: { ...own, capabilityModule: 'chat', method: 'POST', endpoint: `${backend}/c/post` },
      pay: {
        ...own,
        capabilityModule: 'wallet',
        method: 'POST',
        endpoint: `${backend}/w/pay`,
        inputSchema: schema(
          { code: { type: 'string' }, amount: { type: 'string' } },
          { required: ['code', 'amount'], additionalProperties: false },
        ),
      },
      pay_root: {
        ...own,
        capabilityModule: 'wallet',
        method: 'POST',
        endpoint: `${backend}/w/root`,
        bodyRootProperty: 'order',
        inputSchema: { type: 'object', properties: { order: {} } },
      },
      pay_rare: {
        ...own,
        capabilityModule: 'wallet',
        method: 'GET',
        endpoint: `${backend}/w/rare`,
        rateLimit: { rps: 1 },
      },
      session_tool: { ...row, method: 'POST', endpoint: `${backend}/s` },
    },
    resources: {
      'test://order': { endpoint: `${backend}/r?a=1`, name: 'order', capabilityModule: 'wallet' },
      'test://room': { endpoint: `${backend}/r`, name: 'room', capabilityModule: 'chat' },
      'test://own': { endpoint: `${backend}/r`, name: 'own' },
    },
  };
}

const OPTIONS: McpFixtureOptions = { configured, backend: modules, codeModules: ['chat', 'wallet'] };

async function mcpOf(t: { teardown(handler: () => Promise<void>): void }, options: McpFixtureOptions = {}) {
  const mcp = closeAfter(t, await startMcp({ ...OPTIONS, ...options }));
  const call = (name: string, args: object, headers: Record<string, string> = {}, token?: string) =>
    mcp.rpc('tools/call', { name, arguments: args }, token, headers);
  const calls = () => mcp.asked.filter(({ url }) => !url.includes('/capability/'));
  return { ...mcp, call, calls };
}

const withCode = (code: string) => ({ 'x-mcp-code': code });
const withChat = { 'x-mcp-code': CHAT, 'x-device-guid': DEVICE };

// covers R79
t.test('capability: only tools and resources of the family of the code are listed', async (t) => {
  const mcp = await mcpOf(t);
  const names = async (headers: Record<string, string>) => {
    const tools = (await mcp.rpc('tools/list', {}, undefined, headers)).result?.tools ?? [];
    const resources = (await mcp.rpc('resources/list', {}, undefined, headers)).result?.resources ?? [];
    const own = (name: string) =>
      /^(?:chat_get|chat_post|pay|pay_root|pay_rare|session_tool|test:.*)$/.test(name);
    t.notOk([...tools].some(({ name }) => /^(?:wallet_|sessions|user_keys)/.test(name)));
    return [...tools.map(({ name }) => name), ...resources.map(({ uri }) => uri)].filter(own).sort();
  };
  t.same(await names(withChat), ['chat_get', 'chat_post', 'test://room']);
  t.same(await names(withCode(WALLET)), ['pay', 'pay_rare', 'pay_root', 'test://order']);
});

// covers R80
t.test(
  'capability: the code counts in every place that the specification names, and the device id too',
  async (t) => {
    const mcp = await mcpOf(t);
    const send = async (query: string, headers: Record<string, string>, params: object) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body };
      return (await (await fetch(`${mcp.http.url}/mcp${query}`, init)).json()) as { result?: object };
    };
    const name = 'chat_post';
    const ways: [string, Record<string, string>, object][] = [
      [`?code=${CHAT}&device_guid=${DEVICE}`, {}, { name }],
      ['', withChat, { name }],
      ['', {}, { name, arguments: { code: CHAT, device_guid: DEVICE.toUpperCase(), text: 'a' } }],
      ['', { 'x-device-guid': DEVICE }, { name, code: CHAT }],
    ];
    for (const [query, headers, params] of ways) {
      const answer = await send(query, headers, params);
      t.match(
        answer.result,
        { content: [{ text: '{"result":"fine"}' }] },
        JSON.stringify([query, headers, params]),
      );
    }
    for (const { headers, body } of mcp.calls()) {
      t.match(headers, { 'x-scopes': 'Capability:chat', 'x-keytype': 'Unknown', 'x-device-guid': DEVICE });
      t.equal(headers['x-crm'], undefined);
      t.match(JSON.parse(body), { key: CHAT });
      t.notMatch(body, /device_guid|"code"/, 'both are dropped from the arguments');
    }
    t.equal(mcp.calls().length, ways.length);
  },
);

// covers R22 R80
t.test(
  'capability: the code is injected in the body of a POST, its root, and the query of a GET',
  async (t) => {
    const mcp = await mcpOf(t);
    await mcp.call('chat_get', { a: '1', code: CHAT, device_guid: DEVICE, key: 'mine' });
    await mcp.call('pay', { amount: '1.00' }, withCode(WALLET));
    await mcp.call('pay_root', { order: { a: 1, key: 'mine' }, code: WALLET });
    await mcp.call('pay_root', {}, withCode(WALLET));
    await mcp.rpc('tools/call', { name: 'pay_root', arguments: null }, undefined, withCode(WALLET));
    t.same(
      mcp.calls().map(({ method, url, body }) => [method, url, body]),
      [
        ['GET', `/c/get?a=1&key=${CHAT}`, ''],
        ['POST', '/w/pay', `{"amount":"1.00","key":"${WALLET}"}`],
        ['POST', '/w/root', `{"a":1,"key":"${WALLET}"}`],
        ['POST', '/w/root', `{"key":"${WALLET}"}`],
        ['POST', '/w/root', `{"key":"${WALLET}"}`],
      ],
    );
    const odd = await mcp.call('pay_root', { order: [1] }, withCode(WALLET));
    t.match(odd.result, { isError: true, content: [{ text: /order must be an object/ }] });
    const stray = await mcp.call('pay_root', { code: WALLET, device_guid: DEVICE, note: 'x' });
    t.match(stray.result, { isError: true, content: [{ text: /"detail":"note cannot be sent: / }] });
    t.equal(mcp.calls().length, 5, 'neither was sent');
    const missing = await mcp.call('pay', {}, withCode(WALLET));
    t.match(missing.result, { isError: true, content: [{ text: /amount/ }] }, 'the schema still holds');
    await mcp.rpc('resources/read', { uri: 'test://order' }, undefined, withCode(WALLET));
    t.equal(mcp.calls().at(-1)?.url, `/r?a=1&code=${WALLET}`);
  },
);

// covers R79
t.test(
  'capability: a tool of the other family or of a session is -32001, an unknown one -32602',
  async (t) => {
    const mcp = await mcpOf(t);
    const codeOf = async (name: string, headers: Record<string, string>) =>
      (await mcp.call(name, {}, headers)).error?.code;
    t.equal(await codeOf('pay', withChat), -32001);
    t.equal(await codeOf('chat_get', withCode(WALLET)), -32001);
    t.equal(await codeOf('session_tool', withCode(WALLET)), -32001);
    t.equal(await codeOf('wallet_get_balance', withCode(WALLET)), -32001);
    t.equal(await codeOf('no_such', withCode(WALLET)), -32602);
    const read = async (uri: string) =>
      (await mcp.rpc('resources/read', { uri }, undefined, withCode(WALLET))).error?.code;
    t.same(
      [await read('test://room'), await read('test://own'), await read('test://none')],
      [-32001, -32001, -32002],
    );
    t.equal(mcp.calls().length, 0);
    t.match(mcp.audit.at(0), { userId: null, fields: { outcome: 'denied', loginType: 'Capability:chat' } });
    t.notMatch(JSON.stringify(mcp.audit), /order-1|invite-1/, 'no code in the audit');
  },
);

// covers R79 R80
t.test('capability: a code that opens nothing is one and the same -32602, on lists too', async (t) => {
  const mcp = await mcpOf(t);
  const wrong: [object, Record<string, string>][] = [
    [{}, withCode('order-2')],
    [{}, withCode('x'.repeat(300))],
    [{ code: 7 }, {}],
    [{ code: null }, {}],
    [{ code: '' }, {}],
    [{ arguments: { code: ['order-1'] } }, {}],
    [{ arguments: { code: WALLET } }, withCode('order-2')],
  ];
  const errors: unknown[][] = [];
  for (const method of ['tools/list', 'tools/call', 'resources/list', 'resources/read'])
    for (const [params, headers] of wrong) {
      const answer = await mcp.rpc(
        method,
        { name: 'pay', uri: 'test://order', ...params },
        undefined,
        headers,
      );
      errors.push([method, answer.error]);
    }
  t.same(
    errors,
    errors.map(([method]) => [method, { code: -32602, message: 'Invalid params: invalid capability code' }]),
  );
  const twice = await fetch(`${mcp.http.url}/mcp?code=${WALLET}&code=${WALLET}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  t.match(await twice.json(), { error: { code: -32602 } });
  t.strictSame(
    (await mcp.rpc('ping', {}, undefined, withCode('order-2'))).result,
    {},
    'a ping asks no module',
  );
});

t.test('capability: a chat code without a device id, or with one that is no UUID, is -32602', async (t) => {
  const mcp = await mcpOf(t);
  for (const device of ['', 'abc', `${DEVICE}0`, DEVICE.replaceAll('-', '')]) {
    const headers = device === '' ? withCode(CHAT) : { ...withChat, 'x-device-guid': device };
    for (const method of ['tools/list', 'tools/call']) {
      const answer = await mcp.rpc(method, { name: 'chat_get' }, undefined, headers);
      t.match(answer.error, { code: -32602, message: /device id/ }, `${method} ${device}`);
    }
  }
  const wallet = await mcp.call('pay', { amount: '1' }, { ...withCode(WALLET), 'x-device-guid': 'abc' });
  t.equal(wallet.error, undefined, 'codes of orders need none');
});

t.test(
  'capability: a valid bearer wins and the code is plain data; a stale bearer is never a code',
  async (t) => {
    const mcp = await mcpOf(t);
    const answer = await mcp.call(
      'session_tool',
      { code: 'mine', device_guid: 'x' },
      withCode('no'),
      TOKENS.McpVerified,
    );
    t.equal(answer.error, undefined);
    t.same(JSON.parse(mcp.calls()[0]?.body ?? ''), { code: 'mine', device_guid: 'x' });
    t.equal(mcp.asked.length, 1, 'no module was asked about the code');
    t.match((await mcp.call('pay', { amount: '1' }, withCode(WALLET), 'stale')).error, { code: -32001 });
  },
);

// covers R79
t.test(
  'capability: a module that cannot say is -32000; no module can open the tools of another',
  async (t) => {
    let mode: 'down' | 'liar' | 'absent' | 'odd' = 'down';
    const backend = (request: BackendRequest): BackendAnswer => {
      if (!request.url.startsWith('/chat/')) return modules(request);
      if (mode === 'absent') return { status: 404, body: 'no such page' };
      if (mode === 'odd') return { body: 'not JSON' };
      return mode === 'liar' ? { body: '{"result":{"family":"wallet"}}' } : { cut: '{' };
    };
    const mcp = await mcpOf(t, { backend });
    const unavailable = { code: -32000, message: 'Tool execution error: capability module unavailable' };
    const errorOf = async (code: string) => (await mcp.call('pay', { amount: '1' }, withCode(code))).error;
    t.same(await errorOf('other'), unavailable);
    t.equal(await errorOf(WALLET), undefined, 'the other module still answers');
    mode = 'liar';
    t.same(await errorOf('other'), unavailable);
    mode = 'odd';
    t.same(await errorOf('other'), unavailable);
    mode = 'absent';
    t.match(await errorOf('other'), { code: -32602 });
    const none = await mcpOf(t, { codeModules: [] });
    t.same((await none.call('pay', { amount: '1' }, withCode(WALLET))).error, unavailable);
  },
);

// covers R79
t.test('capability: a good code is remembered for 10 s, a wrong one is not; a batch asks once', async (t) => {
  let known = false;
  const backend = (request: BackendRequest) =>
    known || request.url.includes(WALLET) ? modules(request) : UNKNOWN;
  const mcp = await mcpOf(t, { backend });
  const asks = () => mcp.asked.filter(({ url }) => url.includes('/capability/')).length;
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  await mcp.post(JSON.stringify([list, { ...list, id: 2 }, { ...list, id: 3 }]), withCode(WALLET));
  t.equal(asks(), 2, 'each of two modules once');
  await mcp.rpc('tools/list', {}, undefined, withCode(WALLET));
  t.equal(asks(), 2);
  mcp.http.time.nowMs += 10_000;
  await mcp.rpc('tools/list', {}, undefined, withCode(WALLET));
  t.equal(asks(), 4);
  t.match(await mcp.rpc('tools/list', {}, undefined, withChat), { error: { code: -32602 } });
  known = true;
  t.equal((await mcp.rpc('tools/list', {}, undefined, withChat)).error, undefined);
});

// covers R80 R103
t.test(
  'capability: uses of a code and wrong codes of an address are limited; a good code still works',
  async (t) => {
    const limits = { ApiRPSLimit: 0, IpRPSLimit: 0, PubKeyApiRPSLimit: 1, UnknownKeyFailuresPerMinute: 3 };
    const mcp = await mcpOf(t, { settings: limits });
    const statusOf = async (code: string) =>
      (await mcp.post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', withCode(code))).status;
    for (let use = 0; use < 5; use += 1) t.equal(await statusOf(WALLET), 200);
    const refused = await mcp.post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', withCode(WALLET));
    t.equal(refused.status, 429);
    t.ok(Number(refused.headers.get('retry-after')) >= 1);
    t.match(refused.headers.get('x-ratelimit'), /^s=i;l=5;r=0;t=[1-5]$/);
    t.match(JSON.parse(refused.text), { id: 1, error: { code: 1002 } });
    mcp.http.time.nowMs += 5_000;
    for (const code of ['a', 'b', 'c']) t.equal(await statusOf(code), 200, 'a -32602');
    const before = mcp.asked.length;
    t.equal(await statusOf('d'), 429);
    t.equal(mcp.asked.length, before, 'not even asked about');
    t.equal(await statusOf(WALLET), 200, 'one that is known to be good');
  },
);

t.test(
  'capability: the limit of a tool counts per code; cancelling reaches only calls under the same code',
  async (t) => {
    const limited = await mcpOf(t);
    for (let use = 0; use < 5; use += 1)
      t.equal((await limited.call('pay_rare', {}, withCode(WALLET))).error, undefined);
    t.match((await limited.call('pay_rare', {}, withCode(WALLET))).error, { code: 1002 });

    const begun: (() => void)[] = [];
    const backend = (request: BackendRequest): BackendAnswer => {
      if (request.url.includes('/capability/')) return modules(request);
      begun.shift()?.();
      return 'never';
    };
    const mcp = await mcpOf(t, { backend });
    const started = new Promise<void>((resolve) => begun.push(resolve));
    const call = mcp.call('chat_post', {}, withChat);
    await started;
    const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}';
    let over = false;
    mcp.calls()[0]?.gone.then(() => {
      over = true;
    });
    for (const headers of [{}, withCode(CHAT), withCode(WALLET), { ...withChat, 'mcp-session-id': 'x' }])
      await mcp.post(cancel, headers);
    t.notOk(over);
    await mcp.post(cancel, withChat);
    t.match((await call).error, { code: -32000, message: /cancelled/ });
  },
);
