/** Prompts, resources and templates of other MCP servers: lists and calls of /mcp, access, and what is left out. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { loadCatalog } from '../../../src/io/mcp/catalog.ts';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';
import { laterNames } from '../../../src/io/mcp/upstreams/offers.ts';
import { type McpFixture, TOKENS } from '../../support/mcp.ts';
import { configurationOf, startGateway } from '../../support/upstreams/gateway.ts';
import { json, resultOf, startUpstream } from '../../support/upstreams/server.ts';

const LISTS = {
  'prompts/list': {
    prompts: [
      { name: 'greet', description: 'Greets.', arguments: [{ name: 'who', required: true }], icons: [] },
      { name: 'unseen', description: 'a\u200bb' },
      { name: 'two words' },
      { name: 'wrong', arguments: 'none' },
      'no object',
      { name: 'greet' },
    ],
  },
  'resources/list': {
    resources: [
      { uri: 'memo://one', name: 'One', mimeType: 'text/plain', size: 3, description: null },
      { uri: 'memo://nameless' },
      { uri: 'memo://with blank', name: 'x' },
      { uri: 'memo://long', name: 'x', description: 'a'.repeat(9_000) },
    ],
  },
  'resources/templates/list': {
    resourceTemplates: [{ uriTemplate: 'memo://by-id/{id}', name: 'By id' }],
  },
};
const OPEN = {
  promptAccess: { restricted: [] },
  resourceAccess: { restricted: [], appScope: true },
} as const;

async function start(t: Test, given: Partial<ReturnType<typeof configurationOf>> = OPEN) {
  const upstream = closeAfter(t, await startUpstream([]));
  upstream.lists = LISTS;
  const gateway = await startGateway(t, { other: configurationOf(upstream, given) });
  await gateway.until(() => gateway.servers.links[0]?.state === 'up');
  return { upstream, ...gateway };
}

/** Names or URIs that a list has of the server. */
async function listed(mcp: McpFixture, kind: keyof typeof MEMBERS, token?: string): Promise<unknown[]> {
  const { member, key } = MEMBERS[kind];
  const { result } = await mcp.rpc(kind, {}, token);
  const items = (result as unknown as Record<string, Record<string, unknown>[]>)[member] ?? [];
  return items.map((item) => item[key]).filter((name) => /^up[+_]/.test(String(name)));
}
const MEMBERS = {
  'prompts/list': { member: 'prompts', key: 'name' },
  'resources/list': { member: 'resources', key: 'uri' },
  'resources/templates/list': { member: 'resourceTemplates', key: 'uriTemplate' },
} as const;
const KINDS = Object.keys(MEMBERS) as (keyof typeof MEMBERS)[];

// covers R121
t.test(
  'upstream offers: prompts, resources and templates are listed to those who may use them',
  async (t) => {
    const { mcp, servers } = await start(t);
    const all = [['up_greet'], ['up+other:memo://one'], ['up+other:memo://by-id/{id}']];
    for (const token of [TOKENS.McpVerified, TOKENS.McpBasic])
      t.same(await Promise.all(KINDS.map((kind) => listed(mcp, kind, token))), all);
    t.same(await Promise.all(KINDS.map((kind) => listed(mcp, kind, TOKENS.McpApp))), [[], all[1], all[2]]);
    t.same(await Promise.all(KINDS.map((kind) => listed(mcp, kind))), [[], [], []], 'anonymous');
    const { result } = await mcp.rpc('prompts/list', {}, TOKENS.McpVerified);
    t.strictSame(result, {
      prompts: [{ name: 'up_greet', description: 'Greets.', arguments: [{ name: 'who', required: true }] }],
    });
    t.match(await mcp.rpc('initialize', {}), { result: { capabilities: { prompts: {} } } });
    const reasons = (servers.links[0]?.settled.leftOut ?? []).map(({ name, reason }) => `${name}: ${reason}`);
    t.match(reasons, [
      /^unseen: .*U\+200B/,
      /^two words: has no name/,
      /^wrong: \/arguments/,
      /^: has no name/,
      /^greet: is listed twice/,
      /^memo:\/\/nameless: \/name/,
      /^memo:\/\/with blank: has no URI/,
      /^memo:\/\/long: \/description/,
    ]);
  },
);

// covers R121
t.test('upstream offers: closed to McpBasic and McpApp unless the configuration opens them', async (t) => {
  const { mcp, upstream } = await start(t, {});
  t.same(await Promise.all(KINDS.map((kind) => listed(mcp, kind, TOKENS.McpBasic))), [[], [], []]);
  const asked = upstream.asked.length;
  for (const token of [TOKENS.McpBasic, TOKENS.McpApp, undefined])
    for (const uri of ['up+other:memo://one', 'up+other:memo://by-id/7'])
      t.match(await mcp.rpc('resources/read', { uri }, token), { error: { code: -32001 } });
  t.match(await mcp.rpc('prompts/get', { name: 'up_greet' }, TOKENS.McpBasic), { error: { code: -32001 } });
  t.equal(upstream.asked.length, asked, 'nothing was sent');
});

t.test(
  'upstream offers: a prompt and a resource are asked for by their own names, results pass unchanged',
  async (t) => {
    const { mcp, upstream } = await start(t);
    const given = '{"contents":[{"uri":"memo://one","text":"1","n":9007199254740993.10}],"more":[1.0]}';
    upstream.respond = ({ id }, response) => json(response, resultOf(id, given));
    const ask = async (method: string, params: object) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
      const { text } = await mcp.post(body, { authorization: `Bearer ${TOKENS.McpVerified}` });
      t.equal(text, resultOf('1', given));
      return JSON.parse(upstream.asked.at(-1)?.body ?? '') as { params: Record<string, unknown> };
    };
    const read = async (uri: string) => (await ask('resources/read', { uri })).params;
    t.strictSame(await read('up+other:memo://one'), { uri: 'memo://one' });
    t.strictSame(await read('up+other:memo://by-id/a%2Fb'), { uri: 'memo://by-id/a%2Fb' });
    t.match(await ask('prompts/get', { name: 'up_greet', arguments: { who: 'Anna' } }), {
      method: 'prompts/get',
      params: { name: 'greet', arguments: { who: 'Anna' } },
    });
    t.match(mcp.audit.at(-1), { event: 'mcp.prompt', fields: { name: 'up_greet', outcome: 'ok' } });
  },
);

t.test('upstream offers: unknown ones, wrong arguments and errors of the server are errors', async (t) => {
  const { mcp, upstream } = await start(t);
  const ask = (method: string, params: object) => mcp.rpc(method, params, TOKENS.McpVerified);
  const asked = upstream.asked.length;
  for (const name of ['greet', 'up_other', 'constructor', 7])
    t.match(await ask('prompts/get', { name }), { error: { code: -32602 } });
  t.match(await ask('prompts/get', { name: 'up_greet', arguments: [1] }), { error: { code: -32602 } });
  for (const uri of ['memo://one', 'up+other:memo://two', 'up+none:memo://one'])
    t.match(await ask('resources/read', { uri }), { error: { code: -32002 } });
  t.equal(upstream.asked.length, asked);
  for (const [code, expected] of [
    [-32002, -32002],
    [-32602, -32602],
    [-32603, -32000],
  ]) {
    upstream.respond = ({ id }, response) =>
      json(response, `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":"no such memo"}}`);
    t.match(await ask('resources/read', { uri: 'up+other:memo://one' }), {
      error: { code: expected, message: /no such memo/ },
    });
  }
  upstream.respond = (_, response) => void response.destroy();
  t.match(await ask('prompts/get', { name: 'up_greet' }), { error: { code: -32000 } });
});

t.test('upstream offers: a list that fails leaves out its items alone', async (t) => {
  const upstream = closeAfter(t, await startUpstream([{ name: 'a', inputSchema: { type: 'object' } }]));
  upstream.lists = { ...LISTS, 'prompts/list': { prompts: 'none' } };
  const { mcp, servers, until } = await startGateway(t, { other: configurationOf(upstream, OPEN) });
  await until(() => servers.links[0]?.state === 'up');
  t.ok(mcp.catalog.current.tools.has('up_a'));
  t.same(await listed(mcp, 'resources/list', TOKENS.McpVerified), ['up+other:memo://one']);
  t.match(servers.links[0]?.settled.leftOut[0], { name: 'prompts/list', reason: /has no list/ });
});

t.test(
  'upstream offers: a profile shows those that it names, and may name what is not listed yet',
  async (t) => {
    const { servers } = await start(t);
    const profiles = {
      memos: { tools: ['up_g*'], resources: ['up+other:memo://by-id/*'] },
      none: { tools: ['wallet'] },
    };
    const rows = {
      tools: {},
      resources: {},
      profiles,
      later: laterNames([{ name: 'other', prefix: 'up_' }]),
    };
    const load = (offers: ReturnType<typeof servers.offers>) =>
      loadCatalog(BUILT_IN, { ...rows, offers }, new Map(), { personalReads: true });
    t.equal(load([]).ok, true);
    const loaded = load(servers.offers());
    if (!loaded.ok) throw new Error('faults');
    const { memos, none } = Object.fromEntries(loaded.catalog.profiles);
    t.match(String(memos?.promptLists.McpVerified), /up_greet/);
    t.match(String(memos?.templateLists.McpVerified), /by-id/);
    t.notMatch(String(memos?.resourceLists.McpVerified), /memo:\/\/one/);
    t.equal(String(none?.promptLists.McpVerified), '{"prompts":[]}');
  },
);
