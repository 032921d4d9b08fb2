import { readFileSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { type AccessPolicy, CALLER_CLASSES, type CallerClass } from '../../../src/domain/access.ts';
import { type ConfiguredRows, LiveCatalog, loadCatalog } from '../../../src/io/mcp/catalog.ts';
import { compileInputSchema } from '../../../src/io/mcp/input-schema.ts';
import { BATCH_MAX } from '../../../src/io/mcp/rpc.ts';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';
import { GATEWAY_SERVICES, type GatewayServices } from '../../../src/io/mcp/tools/gateway.ts';
import { jsonLines } from '../../../tools/pages/json-lines.ts';
import {
  type BackendAnswer,
  type BackendRequest,
  type McpFixture,
  type RpcAnswer,
  startMcp,
  TOKENS,
} from '../../support/mcp.ts';

t.setTimeout(120_000);

const MODULES = new Map([['wallet', 'http://127.0.0.1:9']]);
const SNAPSHOT = new URL('../../../../test/io/mcp/tools-list.json', import.meta.url);
const ROW = { endpoint: 'wallet:/x', method: 'POST', description: 'x', inputSchema: { type: 'object' } };
const RESOURCE = { endpoint: 'wallet:/x', name: 'x' };

/** `McpBasicPersonalReads` true, and false. */
const OPEN: AccessPolicy = { personalReads: true };
const CLOSED: AccessPolicy = { personalReads: false };

const load = (rows: Partial<ConfiguredRows>, policy = OPEN) =>
  loadCatalog(BUILT_IN, { tools: undefined, resources: undefined, ...rows }, MODULES, policy);

const bad = (schema: unknown) => ({ ...ROW, inputSchema: schema });
const DATA = { ...ROW, inputSchema: { type: 'object', properties: { data: {} } } };
const FAULTY = {
  tools: {
    'a name': ROW,
    ['x'.repeat(65)]: ROW,
    sessions: ROW,
    empty: {},
    text: 'no row',
    words: {
      ...ROW,
      description: '  ',
      method: 'TRACE',
      restricted: ['Basic'],
      appScope: 'yes',
      capabilityModule: 'x',
    },
    keys: { ...ROW, endPoint: 'x', timeoutMs: 0, rateLimit: { rps: 0 }, annotations: { readonly: true } },
    module: { ...ROW, endpoint: 'markets:/x' },
    scheme: { ...ROW, endpoint: 'ftp://x/y' },
    climb: { ...ROW, endpoint: 'wallet:/../x' },
    root: { ...DATA, method: 'GET', bodyRootProperty: 'data' },
    both: { ...DATA, queryParams: ['data'], bodyRootProperty: 'data' },
    places: {
      ...ROW,
      endpoint: 'wallet:/x/{roomId}/{room}',
      queryParams: ['q', 'room', 'toString'],
      bodyRootProperty: 'body',
      inputSchema: { type: 'object', properties: { room: {} } },
    },
    schema1: bad('x'),
    schema2: bad({ properties: {} }),
    schema3: bad({ type: 'object', anyOf: [] }),
    schema4: bad({ type: 'object', properties: { a: { type: 'strng', default: null } } }),
    schema5: bad({
      type: 'object',
      properties: { a: true, b: { $ref: '#/$defs/none' }, c: { pattern: '(' } },
    }),
    schema6: bad({ type: 'object', required: 'a', properties: 5 }),
  },
  resources: {
    'not a uri': RESOURCE,
    'gatehouse://wallet/balance': RESOURCE,
    'test://a': {
      endpoint: 'wallet:/x/{y}',
      name: '',
      mimeType: 'text',
      sessionScope: 1,
      queryString: 'a b',
      more: 1,
    },
  },
};

/** Tools that move money, take something away or end it have the destructive hint. */
const HINTS = 'destructiveHint idempotentHint openWorldHint readOnlyHint';
const DESTRUCTIVE = new Set([
  'revoke_app_access',
  'close_sessions',
  'wallet_internal_transfer',
  'wallet_create_withdraw',
  'market_create_swap',
  'market_create_order',
  'room_close',
  'payment_pay_card',
  'payment_cancel_p2p',
  'payment_confirm_crypto',
  'payment_cancel_crypto',
  'chat_soft_delete_message',
  'chat_hard_delete_message',
  'chat_leave_chat',
  'chat_hard_delete_chat',
  'chat_anon_soft_delete_message',
  'chat_anon_leave',
]);

/** A row for every combination of what decides visibility. */
const EVERY_ACCESS = [
  undefined,
  ['McpBasic'],
  ['McpVerified'],
  ['McpApp'],
  ['McpBasic', 'McpVerified', 'McpApp'],
].flatMap((restricted) =>
  [undefined, false, true].flatMap((appScope) =>
    [undefined, 'chat', 'wallet'].map((capabilityModule) =>
      Object.fromEntries(
        Object.entries({ restricted, appScope, capabilityModule }).filter(([, value]) => value !== undefined),
      ),
    ),
  ),
);

t.test(
  'tools/list and resources/list: the built-in catalog of every class is as it was (UPDATE_SNAPSHOT=1 renews it)',
  async (t) => {
    const loaded = load({});
    if (!loaded.ok) throw new Error('the built-in catalog does not load');
    const { tools, whole } = loaded.catalog;
    const { toolLists, resourceLists } = whole;
    const names = (caller: CallerClass) =>
      JSON.parse(String(toolLists[caller])).tools.map((one: { name: string }) => one.name);
    const uris = (caller: CallerClass) =>
      JSON.parse(String(resourceLists[caller])).resources.map((one: { uri: string }) => one.uri);
    const now = {
      visible: Object.fromEntries(CALLER_CLASSES.map((one) => [one, [...names(one), ...uris(one)]])),
      tools: JSON.parse(String(toolLists.anonymous)).tools,
      resources: JSON.parse(String(resourceLists.McpVerified)).resources,
    };
    if (process.env['UPDATE_SNAPSHOT'] !== undefined)
      writeFileSync(SNAPSHOT, jsonLines(now, ['visible', 'tools', 'resources']));
    t.strictSame(now, JSON.parse(readFileSync(SNAPSHOT, 'utf8')));
    t.equal(names('anonymous').length, tools.size);
    t.same(uris('anonymous'), ['gatehouse://gateway/info'], 'what may be read without a session');
  },
);

t.test(
  'built-in tools: title and all four hints, a described schema, money never for McpBasic or an app',
  async (t) => {
    const faults: string[] = [];
    for (const [name, row] of Object.entries(BUILT_IN.tools)) {
      const expect = (holds: boolean, fault: string) => {
        if (!holds) faults.push(`${name}: ${fault}`);
      };
      expect(compileInputSchema(row.inputSchema, 'own').ok, 'its schema does not compile');
      expect(Boolean(row.title) && row.description.length > 40, 'title and description');
      const hints = row.annotations ?? {};
      expect(Object.keys(hints).sort().join(' ') === HINTS, 'all four hints');
      expect(hints.readOnlyHint === (row.method === 'GET'), 'readOnlyHint');
      expect(hints.destructiveHint === DESTRUCTIVE.has(name), 'destructiveHint');
      expect(!DESTRUCTIVE.has(name) || row.appScope !== true, 'destructive, and open to apps');
      const isCapability = row.capabilityModule !== undefined;
      if (row.method === 'POST' && !isCapability)
        expect(row.restricted?.includes('McpBasic') === true, 'open to McpBasic');
      if (isCapability) expect(row.capabilityCodeBodyProperty === 'code', 'the code of a capability');
      const properties = row.inputSchema['properties'] as Record<string, Record<string, unknown>>;
      for (const [argument, schema] of Object.entries(properties)) {
        expect(typeof schema['description'] === 'string', `${argument} is not described`);
        expect(Array.isArray(schema['examples']), `${argument} has no examples`);
      }
    }
    t.same(faults, []);
    const balance = BUILT_IN.tools['wallet_get_balance']?.inputSchema;
    t.notOk(balance?.['required'], 'currency is optional');
  },
);

// covers R15 R36
t.test(
  'lists: no null anywhere, an object schema on every tool, uri and name on every resource',
  async (t) => {
    const loaded = load({ tools: { plain: ROW }, resources: { 'test://static-text': RESOURCE } });
    if (!loaded.ok) throw new Error('does not load');
    for (const caller of CALLER_CLASSES) {
      const lists = `${loaded.catalog.whole.toolLists[caller]}${loaded.catalog.whole.resourceLists[caller]}`;
      t.notMatch(lists, /null/);
    }
    const { tools }: { tools: unknown[] } = JSON.parse(String(loaded.catalog.whole.toolLists.anonymous));
    const { resources }: { resources: unknown[] } = JSON.parse(
      String(loaded.catalog.whole.resourceLists.McpVerified),
    );
    t.match(tools, new Array(tools.length).fill({ inputSchema: { type: /^object$/ } }));
    t.match(resources, new Array(resources.length).fill({ uri: /:/, name: /./ }));
  },
);

/** A row of tools and of resources for every combination of what decides visibility. */
function everyRow(): ConfiguredRows {
  const tools = EVERY_ACCESS.map((access, at) => [`custom-${at}`, { ...ROW, ...access }]);
  const resources = EVERY_ACCESS.flatMap((access, at) =>
    [undefined, false, true].map((sessionScope) => [
      `test://custom/${at}/${sessionScope}`,
      { ...RESOURCE, ...access, ...(sessionScope === undefined ? {} : { sessionScope }) },
    ]),
  );
  return { tools: Object.fromEntries(tools), resources: Object.fromEntries(resources) };
}

const CODES = { chat: 'invite-1', wallet: 'order-1' };
const UNKNOWN_CODE = { status: 404, body: '{"error":{"code":2009,"message":"Unknown code"}}' };

/** Two modules that each know one code, and answer everything else. */
function codeModules({ url }: BackendRequest): BackendAnswer {
  const { pathname, searchParams } = new URL(url, 'http://module');
  const family = /^\/(chat|wallet)\/v1\/capability\/resolve$/.exec(pathname)?.[1];
  if (family === undefined) return { body: '{"result":"fine"}' };
  if (searchParams.get('code') !== CODES[family as keyof typeof CODES]) return UNKNOWN_CODE;
  return { body: JSON.stringify({ result: { family, scope: 'x' } }) };
}

/** Everybody who may come, by the class that decides, and the headers that make them so. */
const CALLERS: Readonly<Record<CallerClass, Record<string, string>>> = {
  anonymous: {},
  McpBasic: { authorization: `Bearer ${TOKENS.McpBasic}` },
  'McpBasic:proven': { authorization: `Bearer ${TOKENS['McpBasic:proven']}` },
  McpVerified: { authorization: `Bearer ${TOKENS.McpVerified}` },
  McpApp: { authorization: `Bearer ${TOKENS.McpApp}` },
  'McpApp:proven': { authorization: `Bearer ${TOKENS['McpApp:proven']}` },
  'Capability:chat': {
    'x-mcp-code': CODES.chat,
    'x-device-guid': '0f8fad5b-d9cb-469f-a165-70867728950e',
  },
  'Capability:wallet': { 'x-mcp-code': CODES.wallet },
};

/** The gateway's own tools without an account behind them. */
const ANSWERING: GatewayServices = {
  tools: Object.fromEntries(
    Object.keys(GATEWAY_SERVICES.tools).map((name) => [name, async () => ({ name })]),
  ),
  resources: GATEWAY_SERVICES.resources,
};

async function startEveryRow(t: Test, { personalReads }: AccessPolicy) {
  const mcp = await startMcp({
    configured: everyRow,
    personalReads,
    backend: codeModules,
    codeModules: ['chat', 'wallet'],
    gateway: ANSWERING,
  });
  t.teardown(() => mcp.close());
  return mcp;
}

interface Questions {
  readonly method: string;
  /** Parameters of each. */
  readonly asked: readonly object[];
  readonly headers: Record<string, string>;
}

/** The answers in the order of the questions, some of which come in one body: each message is judged for itself. */
async function inBatches({ post }: McpFixture, { method, asked, headers }: Questions): Promise<RpcAnswer[]> {
  const answers: RpcAnswer[] = [];
  while (answers.length < asked.length) {
    const part = asked.slice(answers.length, answers.length + BATCH_MAX);
    const body = part.map((params, id) => ({ jsonrpc: '2.0', id, method, params }));
    const answered: RpcAnswer[] = JSON.parse((await post(JSON.stringify(body), headers)).text);
    answers.push(...answered.sort((a, b) => Number(a.id) - Number(b.id)));
  }
  return answers;
}

for (const policy of [OPEN, CLOSED]) {
  const shown = `personalReads ${policy.personalReads}`;
  // covers R15
  t.test(
    `list and call agree: every tool for every caller; without session or code all is listed and every call -32001 (${shown})`,
    async (t) => {
      const mcp = await startEveryRow(t, policy);
      const { tools } = mcp.catalog.current;
      for (const [caller, headers] of Object.entries(CALLERS)) {
        const list = await mcp.rpc('tools/list', {}, undefined, headers);
        const listed = new Set(list.result?.tools?.map(({ name }) => name));
        const wrong: string[] = [];
        // Arguments that are none come after every refusal of authority; `{}` goes as far as it may.
        const asked = [...tools.keys()].flatMap((name) =>
          ['none', {}].map((argument) => ({ name, arguments: argument })),
        );
        const answers = await inBatches(mcp, { method: 'tools/call', asked, headers });
        for (const [at, { result, error }] of answers.entries()) {
          const { name = '', arguments: argument } = asked[at] ?? {};
          const expected = caller !== 'anonymous' && listed.has(name);
          const isTaken =
            argument === 'none'
              ? error?.message.includes('arguments must be an object') === true
              : result !== undefined || error?.code === -32000;
          if (isTaken !== expected || (!isTaken && error?.code !== -32001)) wrong.push(`${name} ${argument}`);
        }
        t.strictSame(wrong, [], caller);
        t.equal(listed.size === tools.size, caller === 'anonymous', `${listed.size} tools for ${caller}`);
        t.ok(listed.size > 0);
        const unknown = await mcp.rpc('tools/call', { name: 'no_such_tool' }, undefined, headers);
        t.match(unknown.error, { code: -32602, message: /unknown tool/ });
      }
    },
  );

  t.test(
    `list and read agree: every resource for every caller, without a session the public ones alone (${shown})`,
    async (t) => {
      const mcp = await startEveryRow(t, policy);
      const { resources } = mcp.catalog.current;
      for (const [caller, headers] of Object.entries(CALLERS)) {
        const list = await mcp.rpc('resources/list', {}, undefined, headers);
        const listed = new Set(list.result?.resources?.map(({ uri }) => uri));
        const wrong: string[] = [];
        const asked = [...resources.keys()].map((uri) => ({ uri }));
        const answers = await inBatches(mcp, { method: 'resources/read', asked, headers });
        for (const [at, { result, error }] of answers.entries()) {
          const { uri = '' } = asked[at] ?? {};
          const readable = result !== undefined || error?.code === -32000;
          if (readable !== listed.has(uri) || (!readable && error?.code !== -32001)) wrong.push(uri);
        }
        t.strictSame(wrong, [], caller);
        t.ok(listed.size > 0 && listed.size < resources.size, `${listed.size} resources for ${caller}`);
        const unknown = await mcp.rpc('resources/read', { uri: 'test://none' }, undefined, headers);
        t.equal(unknown.error?.code, -32002);
      }
    },
  );
}

/** Tools of McpBasic with `McpBasicPersonalReads` false: prices, pairs, rooms, ways to pay, its own key. */
const PUBLIC_TOOLS = [
  'user_keys',
  'market_get_rates',
  'market_swap_info',
  'market_get_trade_info',
  'get_candles',
  'assets',
  'tokens_networks',
  'room_list',
  'payorder_terminals',
];
/** Tools that it gets besides with true. */
const PERSONAL_TOOLS = [
  'get_usr_apps',
  'get_app_info',
  'list_app_access',
  'wallet_get_info',
  'wallet_get_balance',
  'wallet_get_history_transactions',
  'wallet_get_tx_info',
  'wallet_list_addresses',
];

function servedTo(caller: CallerClass, policy: AccessPolicy): string[] {
  const loaded = load({}, policy);
  if (!loaded.ok) throw new Error('the built-in catalog does not load');
  const { tools, resources } = loaded.catalog;
  return [
    ...[...tools.values()].filter(({ callers }) => callers.has(caller)).map(({ name }) => name),
    ...[...resources.values()].filter(({ readers }) => readers.has(caller)).map(({ uri }) => uri),
  ].sort();
}

// covers R1 R76 S98
t.test('without proof: public data alone, and what the configuration opens besides', async (t) => {
  const open = [...PUBLIC_TOOLS, 'gatehouse://gateway/info'].sort();
  const personal = [...PERSONAL_TOOLS, 'gatehouse://wallet/info', 'gatehouse://wallet/balance'];
  t.strictSame(servedTo('McpBasic', CLOSED), open);
  t.strictSame(servedTo('McpBasic', OPEN), [...open, ...personal].sort());
  for (const policy of [OPEN, CLOSED])
    for (const proven of ['McpVerified', 'McpApp:proven'] as const)
      t.strictSame(servedTo(proven, policy), servedTo(proven, OPEN), `${proven}, whatever the policy`);
  const forApps = servedTo('McpApp:proven', OPEN);
  t.ok(forApps.includes('payorder_create'));
  t.strictSame(
    servedTo('McpApp', OPEN),
    forApps.filter((name) => name !== 'payorder_create'),
  );
  const forAnyApp = open.filter((name) => name !== 'user_keys');
  t.strictSame(servedTo('McpApp', CLOSED), forAnyApp, 'its id is no more of a secret than the key');
});

t.test('proof: configured rows cannot ask for it, they say in `restricted` whom they refuse', async (t) => {
  const faulty = load({ tools: { one: { ...ROW, proof: 'personal' } } });
  t.match(faulty, { ok: false, faults: [{ path: '/McpTools/one/proof' }] });
  const loaded = load({ tools: { one: ROW, two: { ...ROW, restricted: ['McpBasic'] } } }, CLOSED);
  if (!loaded.ok) throw new Error('does not load');
  t.equal(loaded.catalog.tools.get('one')?.callers.has('McpBasic'), true);
  t.equal(loaded.catalog.tools.get('two')?.callers.has('McpBasic'), false);
});

t.test('without proof: a refusal names the way in, where there is one', async (t) => {
  const mcp = closeAfter(t, await startMcp({ personalReads: false, gateway: ANSWERING }));
  const refusalOf = async (name: string, token: string) =>
    (await mcp.rpc('tools/call', { name, arguments: {} }, token)).error;
  for (const token of [TOKENS.McpBasic, TOKENS.McpApp])
    t.match(await refusalOf('wallet_get_balance', token), {
      code: -32001,
      message: /without proof of the key/,
    });
  t.match(await refusalOf('payorder_create', TOKENS.McpApp), { message: /without proof of the key/ });
  t.notMatch((await refusalOf('sessions', TOKENS.McpApp))?.message, /proof/, 'no app is served this');
  t.strictSame(mcp.asked, [], 'no module receives it');
});

// covers R36
t.test('resources/read: uri beside text and mimeType, the fixed query, errors of the backend', async (t) => {
  let status = 200;
  const mcp = await startMcp({
    backend: () => ({ status, body: '{"a":"b"}' }),
    configured: (backend) => ({
      tools: {},
      resources: {
        'test://static-text': {
          endpoint: `${backend}/text?a=1`,
          name: 'Text',
          mimeType: 'text/plain',
          queryString: 'b=%20c',
        },
        'test://down': { endpoint: 'http://127.0.0.1:1/', name: 'Down', sessionScope: false },
      },
    }),
  });
  t.teardown(() => mcp.close());
  const read = (uri: unknown, token?: string) => mcp.rpc('resources/read', { uri }, token);
  const contents = [{ uri: 'test://static-text', mimeType: 'text/plain', text: '{"a":"b"}' }];
  t.strictSame((await read('test://static-text', TOKENS.McpVerified)).result, { contents });
  t.equal(mcp.asked[0]?.url, '/text?a=1&b=%20c');
  status = 404;
  t.strictSame((await read('test://static-text', TOKENS.McpVerified)).result, { contents, isError: true });
  t.equal((await read('test://static-text')).error?.code, -32001);
  t.equal((await read('test://static-text', TOKENS.McpApp)).error?.code, -32001);
  t.equal((await read('test://unknown', TOKENS.McpVerified)).error?.code, -32002);
  t.equal((await read('test://unknown')).error?.code, -32002);
  t.equal((await read('test://down')).error?.code, -32000);
  for (const uri of [undefined, 5, '']) t.equal((await read(uri, TOKENS.McpVerified)).error?.code, -32602);
  const info = await read('gatehouse://gateway/info');
  t.strictSame(JSON.parse(info.result?.contents?.[0]?.text ?? ''), {
    result: { project: 'test', version: '0.0.1', utcNow: new Date(mcp.http.time.nowMs).toISOString() },
  });
});

// covers R15 R21 R24
t.test('load gate: every fault of every row at once, with its path', async (t) => {
  const loaded = load(FAULTY);
  if (loaded.ok) throw new Error('was accepted');
  t.strictSame(loaded.faults.map(({ path }) => path).sort(), [
    '/McpResources/gatehouse:~1~1wallet~1balance',
    '/McpResources/not a uri',
    '/McpResources/test:~1~1a/endpoint',
    '/McpResources/test:~1~1a/mimeType',
    '/McpResources/test:~1~1a/more',
    '/McpResources/test:~1~1a/name',
    '/McpResources/test:~1~1a/queryString',
    '/McpResources/test:~1~1a/sessionScope',
    '/McpTools/a name',
    '/McpTools/both/bodyRootProperty',
    '/McpTools/climb/endpoint',
    '/McpTools/empty/description',
    '/McpTools/empty/endpoint',
    '/McpTools/empty/inputSchema',
    '/McpTools/empty/method',
    '/McpTools/keys/annotations/readonly',
    '/McpTools/keys/endPoint',
    '/McpTools/keys/rateLimit/rps',
    '/McpTools/keys/timeoutMs',
    '/McpTools/module/endpoint',
    '/McpTools/places/bodyRootProperty',
    '/McpTools/places/endpoint',
    '/McpTools/places/queryParams/0',
    '/McpTools/places/queryParams/2',
    '/McpTools/root/bodyRootProperty',
    '/McpTools/schema1/inputSchema',
    '/McpTools/schema2/inputSchema/type',
    '/McpTools/schema3/inputSchema/anyOf',
    '/McpTools/schema4/inputSchema/properties/a/default',
    '/McpTools/schema4/inputSchema/properties/a/type',
    '/McpTools/schema5/inputSchema/properties/a',
    '/McpTools/schema5/inputSchema/properties/b/$ref',
    '/McpTools/schema5/inputSchema/properties/c/pattern',
    '/McpTools/schema6/inputSchema/properties',
    '/McpTools/schema6/inputSchema/required',
    '/McpTools/scheme/endpoint',
    '/McpTools/sessions',
    '/McpTools/text',
    '/McpTools/words/appScope',
    '/McpTools/words/capabilityModule',
    '/McpTools/words/description',
    '/McpTools/words/method',
    '/McpTools/words/restricted/0',
    `/McpTools/${'x'.repeat(65)}`,
  ]);
  const words = (path: string) => loaded.faults.find((fault) => fault.path === path)?.message;
  t.equal(words('/McpTools/words/method'), 'must be one of GET, POST, PUT, PATCH, DELETE');
  t.equal(words('/McpTools/module/endpoint'), 'module "markets" is not configured');
  t.equal(words('/McpTools/places/endpoint'), '"roomId" is no property of inputSchema');
  for (const rows of [{ tools: [] }, { tools: 'x' }, { resources: 5 }]) t.equal(load(rows).ok, false);
});

// covers R24
t.test('load gate: takes schemas of JSON Schema 2020-12 as they are and lists them unchanged', async (t) => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: { address: { type: 'object', properties: { street: { type: 'string' } } } },
    properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
    additionalProperties: false,
  };
  const loaded = load({ tools: { 'a/b.c_d-1': { ...ROW, inputSchema: schema } } });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));
  const listed = JSON.parse(String(loaded.catalog.whole.toolLists.anonymous)).tools.at(-1);
  t.strictSame(listed, { name: 'a/b.c_d-1', description: 'x', inputSchema: schema });
});

// covers R24
t.test('reload: swaps whole catalogs, keeps the old one when the new has a fault', async (t) => {
  const first = load({ tools: { one: ROW } });
  if (!first.ok) throw new Error('does not load');
  const live = new LiveCatalog(first.catalog);
  t.ok(live.reload(load({ tools: { two: ROW, 'bad name': ROW } })).length > 0);
  t.ok(live.current.tools.has('one'));
  t.strictSame(live.reload(load({ tools: { two: ROW } })), []);
  t.notOk(live.current.tools.has('one'));
  t.ok(live.current.tools.has('two'));
});

// covers R79
t.test('built-in tools of a module that is not configured: listed, and -32000 when called', async (t) => {
  const loaded = loadCatalog(BUILT_IN, { tools: {}, resources: {} }, new Map(), OPEN);
  if (!loaded.ok) throw new Error('does not load');
  const mcp = closeAfter(t, await startMcp());
  mcp.catalog.reload(loaded);
  const answer = await mcp.rpc('tools/call', { name: 'wallet_get_balance' }, TOKENS.McpVerified);
  t.match(answer.error, { code: -32000, message: 'Module unavailable' });
  const read = await mcp.rpc('resources/read', { uri: 'gatehouse://wallet/balance' }, TOKENS.McpVerified);
  t.match(read.error, { code: -32000, message: 'Module unavailable' });
});
