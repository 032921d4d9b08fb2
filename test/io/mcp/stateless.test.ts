/** Revision 2026-07-28 on /mcp: what it adds to results, what it refuses, and with which statuses. */
import t from 'tap';
import { REVISION_NAMES } from '../../../src/io/mcp/revisions.ts';
import { toolFaults } from '../../../src/io/mcp/tool.ts';
import { type McpFixture, SESSION_IDS, startMcp, TOKENS } from '../../support/mcp.ts';

const REVISION = '2026-07-28';
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const META = { [VERSION_KEY]: REVISION, [CAPABILITIES_KEY]: {} };
const SERVER = { 'io.modelcontextprotocol/serverInfo': { name: 'test', version: '0.0.1' } };
const COMPLETE = { resultType: 'complete', _meta: SERVER };

const REGION = { type: 'string', 'x-mcp-header': 'Region' };
const mcp: McpFixture = await startMcp({
  backend: () => ({ body: '{"result":{"id":9223372036854775807}}' }),
  configured: (backend) => ({
    tools: {
      by_region: {
        endpoint: `${backend}/x`,
        method: 'GET',
        description: 'A tool whose arguments are repeated in headers.',
        inputSchema: {
          type: 'object',
          properties: {
            region: REGION,
            at: { type: 'object', properties: { level: { type: 'integer', 'x-mcp-header': 'Level' } } },
          },
        },
      },
    },
    resources: {},
  }),
});
t.teardown(() => mcp.close());

interface Message {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
  /** Members of `_meta`; null: none. */
  readonly meta?: object | null;
  /** Undefined removes a header. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly token?: string;
}

async function send({ method, params = {}, meta = META, headers = {}, token = TOKENS.McpVerified }: Message) {
  const name = params['name'] ?? params['uri'];
  const all: Record<string, string | undefined> = {
    'mcp-protocol-version': REVISION,
    'mcp-method': method,
    'mcp-name': typeof name === 'string' ? name : undefined,
    authorization: token === '' ? undefined : `Bearer ${token}`,
    ...headers,
  };
  const given = Object.entries(all).filter((each): each is [string, string] => each[1] !== undefined);
  const whole = meta === null ? params : { ...params, _meta: meta };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: whole });
  const { status, headers: answered, text } = await mcp.post(body, Object.fromEntries(given));
  return { status, text, hasSession: answered.has('mcp-session-id'), json: JSON.parse(text) };
}

const refusal = ({ status, json }: { status: number; json: { error?: { code?: number } } }) =>
  [status, json.error?.code] as const;

t.test(
  'server/discover: names the revisions, the capabilities and the server, without a login',
  async (t) => {
    const { status, json, hasSession } = await send({ method: 'server/discover', token: '' });
    t.equal(status, 200);
    t.match(json.result, {
      ...COMPLETE,
      supportedVersions: REVISION_NAMES,
      capabilities: { tools: { listChanged: true }, resources: { listChanged: true }, prompts: {} },
      cacheScope: 'public',
    });
    t.equal(hasSession, false);
  },
);

t.test('lists of 2026-07-28: the same items, with resultType, ttlMs and a private cacheScope', async (t) => {
  for (const method of ['tools/list', 'resources/list']) {
    const { json } = await send({ method });
    const former = await mcp.rpc(method, undefined, TOKENS.McpVerified);
    t.strictSame(
      json.result,
      { ...COMPLETE, ttlMs: 60_000, cacheScope: 'private', ...former.result },
      method,
    );
  }
});

t.test('lists of 2026-07-28: the anonymous list may be cached for everybody', async (t) => {
  t.equal((await send({ method: 'tools/list', token: '' })).json.result.cacheScope, 'public');
  t.equal((await send({ method: 'resources/list', token: '' })).json.result.cacheScope, 'public');
});

t.test('lists of 2026-07-28: templates and prompts are empty, and a prompt is not found', async (t) => {
  const listed = { ...COMPLETE, ttlMs: 60_000, cacheScope: 'private' };
  const templates = await send({ method: 'resources/templates/list' });
  t.strictSame(templates.json.result, { ...listed, resourceTemplates: [] });
  t.strictSame((await send({ method: 'prompts/list' })).json.result, { ...listed, prompts: [] });
  t.strictSame(refusal(await send({ method: 'prompts/get', params: { name: 'x' } })), [200, -32602]);
});

t.test('lists of 2026-07-28: an unknown cursor is -32602, null counts as none', async (t) => {
  for (const method of ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list']) {
    t.strictSame(refusal(await send({ method, params: { cursor: 'abc' } })), [200, -32602], method);
    t.ok((await send({ method, params: { cursor: null } })).json.result, method);
  }
});

t.test('tools/call of 2026-07-28: the content is that of the other revisions, digits included', async (t) => {
  const { json, text } = await send({ method: 'tools/call', params: { name: 'wallet_get_balance' } });
  t.strictSame(json.result, {
    ...COMPLETE,
    content: [{ type: 'text', text: '{"result":{"id":9223372036854775807}}' }],
  });
  t.match(text, /9223372036854775807/);
});

t.test('resources/read of 2026-07-28: may not be cached', async (t) => {
  const { json } = await send({ method: 'resources/read', params: { uri: 'gatehouse://wallet/balance' } });
  t.match(json.result, { ...COMPLETE, ttlMs: 0, cacheScope: 'private', contents: [{ mimeType: /json/ }] });
});

t.test('resources/read of 2026-07-28: an unknown resource is -32602 with its uri', async (t) => {
  const answer = await send({ method: 'resources/read', params: { uri: 'test://nope' } });
  t.strictSame(refusal(answer), [200, -32602]);
  t.strictSame(answer.json.error.data, { uri: 'test://nope' });
});

t.test(
  'tools/call of 2026-07-28: authorization and arguments are refused as in the other revisions',
  async (t) => {
    const name = 'wallet_get_balance';
    t.strictSame(refusal(await send({ method: 'tools/call', params: { name }, token: '' })), [200, -32001]);
    t.strictSame(
      refusal(await send({ method: 'tools/call', params: { name }, token: 'closed' })),
      [200, -32001],
    );
    t.strictSame(refusal(await send({ method: 'tools/call', params: { name: 'nope' } })), [200, -32602]);
    t.strictSame(refusal(await send({ method: 'tools/call', params: {} })), [200, -32602]);
    const { json } = await send({ method: 'tools/call', params: { name: 'wallet_get_tx_info' } });
    t.match(json.result, { ...COMPLETE, isError: true });
  },
);

t.test('methods of 2026-07-28: what it does not have is 404 with -32601', async (t) => {
  const methods = ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'toString', 'nope'];
  for (const method of methods) t.strictSame(refusal(await send({ method })), [404, -32601], method);
});

t.test('_meta of 2026-07-28: a missing field is 400 with -32602', async (t) => {
  const faults = [
    null,
    {},
    { [VERSION_KEY]: REVISION },
    { [CAPABILITIES_KEY]: {} },
    { ...META, [CAPABILITIES_KEY]: [] },
  ];
  for (const meta of faults)
    t.strictSame(
      refusal(await send({ method: 'server/discover', meta })),
      [400, -32602],
      JSON.stringify(meta),
    );
});

// covers S75
t.test('headers of 2026-07-28: a missing or another one is 400 with -32020', async (t) => {
  const call = { method: 'tools/call', params: { name: 'wallet_get_balance' } };
  const faults: readonly NonNullable<Message['headers']>[] = [
    { 'mcp-method': undefined },
    { 'mcp-method': 'TOOLS/CALL' },
    { 'mcp-method': 'tools/list' },
    { 'mcp-name': undefined },
    { 'mcp-name': 'wallet_get_info' },
    { 'mcp-name': '=?base64?d2FsbGV0?=' },
    { 'mcp-name': '=?base64?d2F!?=' },
  ];
  for (const headers of faults)
    t.strictSame(refusal(await send({ ...call, headers })), [400, -32020], JSON.stringify(headers));
  const asked = mcp.asked.length;
  await send({ ...call, headers: { 'mcp-name': 'wallet_get_info' } });
  t.equal(mcp.asked.length, asked, 'no backend is called');
});

t.test('headers of 2026-07-28: Mcp-Name may be Base64, and spaces around it do not count', async (t) => {
  const name = 'wallet_get_balance';
  const encoded = `=?base64?${Buffer.from(name).toString('base64')}?=`;
  for (const value of [encoded, `  ${name}  `]) {
    const { json } = await send({ method: 'tools/call', params: { name }, headers: { 'mcp-name': value } });
    t.ok(json.result, value);
  }
});

// covers R37
t.test(
  'revision: a header that names none is 400 with -32022 and the revisions that are served',
  async (t) => {
    for (const requested of ['1900-01-01', 'garbage', 'toString', '']) {
      const { status, json } = await send({
        method: 'tools/list',
        headers: { 'mcp-protocol-version': requested },
      });
      t.strictSame(
        { status, ...json },
        {
          status: 400,
          jsonrpc: '2.0',
          id: 7,
          error: {
            code: -32022,
            message: 'Unsupported protocol version',
            data: { supported: REVISION_NAMES, requested },
          },
        },
      );
    }
  },
);

t.test('revision: _meta and the header must agree', async (t) => {
  const other = { ...META, [VERSION_KEY]: '2025-11-25' };
  t.strictSame(refusal(await send({ method: 'tools/list', meta: other })), [400, -32020]);
  for (const version of ['2025-11-25', undefined]) {
    const headers = { 'mcp-protocol-version': version };
    t.strictSame(refusal(await send({ method: 'tools/list', headers })), [400, -32020], String(version));
  }
});

t.test('revision: batches are refused, and notifications are accepted, in 2026-07-28', async (t) => {
  const headers = { 'mcp-protocol-version': REVISION };
  const ping = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: META } };
  t.equal((await mcp.post(JSON.stringify([ping]), headers)).status, 400);
  t.equal((await mcp.post('{', headers)).status, 400);
  t.equal((await mcp.post('{"jsonrpc":"2.0","id":1}', headers)).status, 400);
  const { status, text } = await mcp.post('{"jsonrpc":"2.0","method":"notifications/x"}', headers);
  t.strictSame([status, text], [202, '']);
});

t.test('revision: an ended Mcp-Session-Id does not matter in 2026-07-28', async (t) => {
  const id = SESSION_IDS.issue(undefined);
  const ended = await fetch(`${mcp.http.url}/mcp`, { method: 'DELETE', headers: { 'mcp-session-id': id } });
  t.equal(ended.status, 204);
  const { status } = await send({ method: 'tools/list', headers: { 'mcp-session-id': id } });
  t.equal(status, 200);
});

t.test('Mcp-Param: a header that repeats an argument must be there and match it', async (t) => {
  const call = async (values: object, headers: Message['headers'] = {}) =>
    refusal(await send({ method: 'tools/call', params: { name: 'by_region', arguments: values }, headers }));
  const encoded = `=?base64?${Buffer.from('Münster').toString('base64')}?=`;
  const good: readonly (readonly [object, Record<string, string>])[] = [
    [{}, {}],
    [{ at: {} }, {}],
    [{ region: 'eu' }, { 'mcp-param-region': 'eu' }],
    [{ region: 'Münster' }, { 'mcp-param-region': encoded }],
    [{ at: { level: 42 } }, { 'mcp-param-level': '42.0' }],
  ];
  for (const [values, headers] of good)
    t.strictSame((await call(values, headers))[1], undefined, JSON.stringify(values));
  const bad: readonly (readonly [object, Record<string, string>])[] = [
    [{ region: 'eu' }, {}],
    [{ region: 'eu' }, { 'mcp-param-region': 'us' }],
    [{ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVsbG8?=' }],
    [{}, { 'mcp-param-region': 'eu' }],
    [{ at: { level: 42 } }, { 'mcp-param-level': '43' }],
  ];
  for (const [values, headers] of bad)
    t.strictSame(await call(values, headers), [400, -32020], JSON.stringify([values, headers]));
  const former = await mcp.rpc(
    'tools/call',
    { name: 'by_region', arguments: { region: 'eu' } },
    TOKENS.McpVerified,
  );
  t.ok(former.result, 'other revisions do not read them');
});

t.test('x-mcp-header: what clients would refuse is a fault at load', async (t) => {
  const row = { endpoint: 'http://127.0.0.1:1/x', method: 'GET', description: 'x' };
  const faultsOf = (properties: object) =>
    toolFaults('a', { ...row, inputSchema: { type: 'object', properties } }).map(({ path }) => path);
  const at = (path: string) => [`/inputSchema/properties/${path}/x-mcp-header`];
  t.strictSame(
    faultsOf({ a: REGION, b: { type: 'object', properties: { c: { ...REGION, 'x-mcp-header': 'C' } } } }),
    [],
  );
  t.strictSame(faultsOf({ a: { ...REGION, 'x-mcp-header': '' } }), at('a'));
  t.strictSame(faultsOf({ a: { ...REGION, 'x-mcp-header': 'a b' } }), at('a'));
  t.strictSame(faultsOf({ a: { ...REGION, type: 'number' } }), at('a'));
  t.strictSame(faultsOf({ a: REGION, b: { ...REGION, 'x-mcp-header': 'REGION' } }), at('b'));
  t.strictSame(faultsOf({ a: { type: 'array', items: REGION } }), at('a/items'));
});
