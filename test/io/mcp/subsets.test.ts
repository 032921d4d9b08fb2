/** Subsets of the catalog: `?tools=` and profiles, for lists and for calls, never more than the caller may see. */
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { CALLER_CLASSES } from '../../../src/domain/access.ts';
import { loadCatalog } from '../../../src/io/mcp/catalog.ts';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';
import { startMcp, TOKENS } from '../../support/mcp.ts';

const REVISION = '2026-07-28';
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientCapabilities': {},
};
const profiles = {
  shop: {
    tools: ['wallet_get_*', 'market'],
    resources: ['gatehouse://wallet/*'],
    title: 'Shop',
    instructions: 'Only reads.',
  },
  all: {},
};
const mcp = closeAfter(t, await startMcp({ configured: () => ({ tools: {}, resources: {}, profiles }) }));

async function ask(path: string, method: string, params: object = {}, token: string = TOKENS.McpVerified) {
  const answer = await fetch(`${mcp.http.url}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return { status: answer.status, json: JSON.parse(await answer.text()) };
}
const namesAt = async (path: string, token?: string): Promise<string[]> =>
  (await ask(path, 'tools/list', {}, token)).json.result.tools.map(({ name }: { name: string }) => name);
const codeAt = async (path: string, name: string) =>
  (await ask(path, 'tools/call', { name })).json.error?.code;

// covers R39
t.test('?tools=: names, patterns and words shorten the list, in its order', async (t) => {
  const all = await namesAt('/mcp');
  const rows: readonly (readonly [asked: string, fits: (name: string) => boolean])[] = [
    ['wallet_get_balance', (name) => name === 'wallet_get_balance'],
    ['wallet', (name) => name.startsWith('wallet_')],
    ['wallet,market_*', (name) => /^(wallet|market)_/.test(name)],
    ['*', () => true],
    ['*_get_*', (name) => name.includes('_get_')],
    ['wallet_*_info', (name) => /^wallet_.*_info$/.test(name)],
    ['wallet_get_balance*wallet', () => false],
    ['nope,%2A%2A%2Anope', () => false],
    ['', () => false],
  ];
  for (const [asked, fits] of rows)
    t.strictSame(await namesAt(`/mcp?tools=${asked}`), all.filter(fits), asked);
  t.strictSame(await namesAt('/mcp?tools=sessions&tools=market_swap_info'), ['sessions', 'market_swap_info']);
});

// covers S72
t.test('?tools=: entries after the hundredth match nothing', async (t) => {
  const many = Array.from({ length: 100 }, () => 'x').join(',');
  t.strictSame(await namesAt(`/mcp?tools=${many},wallet`), []);
});

t.test(
  '?tools=: a call outside is -32001 and reaches no backend, an unknown tool stays -32602',
  async (t) => {
    const asked = mcp.asked.length;
    t.equal(await codeAt('/mcp?tools=market', 'wallet_get_balance'), -32001);
    t.equal(await codeAt('/mcp?tools=market', 'nope'), -32602);
    t.equal(mcp.asked.length, asked);
    t.equal(await codeAt('/mcp?tools=wallet', 'wallet_get_balance'), undefined);
  },
);

// covers R39
t.test('profile: lists and calls its tools and resources alone', async (t) => {
  const all = await namesAt('/mcp');
  const inside = all.filter((name) => /^(wallet_get|market)_/.test(name));
  t.strictSame(await namesAt('/mcp/p/shop'), inside);
  t.equal(await codeAt('/mcp/p/shop', 'wallet_create_withdraw'), -32001);
  t.equal(await codeAt('/mcp/p/shop', 'wallet_get_balance'), undefined);
  const { json } = await ask('/mcp/p/shop', 'resources/list');
  t.ok(json.result.resources.length > 0);
  t.ok(json.result.resources.every(({ uri }: { uri: string }) => uri.startsWith('gatehouse://wallet/')));
  const read = (uri: string) => ask('/mcp/p/shop', 'resources/read', { uri });
  t.equal((await read('gatehouse://gateway/info')).json.error.code, -32001);
  t.ok((await read('gatehouse://wallet/balance')).json.result);
  t.strictSame(await namesAt('/mcp/p/all'), all, 'a profile without lists has everything');
});

t.test('profile: ?tools= shortens it further', async (t) => {
  t.strictSame(await namesAt('/mcp/p/shop?tools=wallet_get_balance,sessions'), ['wallet_get_balance']);
});

// covers R40
t.test(
  'profile: title and instructions are in initialize, other addresses have those of the gateway',
  async (t) => {
    const { result } = (await ask('/mcp/p/shop', 'initialize')).json;
    t.match(result, { serverInfo: { name: 'test', title: 'Shop' }, instructions: 'Only reads.' });
    const plain = (await ask('/mcp', 'initialize')).json.result;
    t.notOk('title' in plain.serverInfo);
    t.ok(plain.instructions.length > 100 && plain.instructions.length <= 600);
  },
);

t.test('profile: 2026-07-28 has its title and instructions, and 404 for an unknown one', async (t) => {
  const discover = (profile: string) =>
    fetch(`${mcp.http.url}/mcp/p/${profile}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'mcp-protocol-version': REVISION,
        'mcp-method': 'server/discover',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: META } }),
    });
  const { result } = (await (await discover('shop')).json()) as { result: object };
  t.match(result, {
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'test', title: 'Shop' } },
    instructions: 'Only reads.',
  });
  t.equal((await discover('nope')).status, 404);
});

t.test('profile: an unknown one is 404 for every method', async (t) => {
  for (const name of ['nope', 'toString', 'Shop', '__proto__']) {
    for (const method of ['GET', 'POST', 'DELETE'] as const) {
      const headers = { 'content-type': 'application/json' };
      const body = method === 'POST' ? '{"jsonrpc":"2.0","id":1,"method":"ping"}' : null;
      const { status } = await fetch(`${mcp.http.url}/mcp/p/${name}`, { method, headers, body });
      t.equal(status, 404, `${method} ${name}`);
    }
  }
});

t.test('subsets: a caller never sees more than without them', async (t) => {
  for (const token of ['', TOKENS.McpBasic, TOKENS.McpApp, TOKENS.McpVerified]) {
    const all = new Set(await namesAt('/mcp', token));
    for (const path of ['/mcp?tools=*', '/mcp/p/all', '/mcp/p/shop', '/mcp?tools=chat,wallet'])
      t.ok(
        (await namesAt(path, token)).every((name) => all.has(name)),
        `${token} ${path}`,
      );
  }
});

t.test('profiles: every fault is named with its path', async (t) => {
  const faultsOf = (rows: unknown) => {
    const loaded = loadCatalog(BUILT_IN, { tools: {}, resources: {}, profiles: rows }, new Map(), {
      personalReads: true,
    });
    return loaded.ok ? [] : loaded.faults.map(({ path }) => path);
  };
  t.strictSame(faultsOf([]), ['/McpProfiles']);
  t.strictSame(faultsOf({ Shop: {} }), ['/McpProfiles/Shop']);
  t.strictSame(faultsOf({ a: { tools: ['wallet', 'walet_*'] } }), ['/McpProfiles/a/tools/1']);
  t.strictSame(faultsOf({ a: { resources: ['shop://*'] } }), ['/McpProfiles/a/resources/0']);
  t.strictSame(faultsOf({ a: { tools: [] }, b: { tool: [] } }), [
    '/McpProfiles/a/tools',
    '/McpProfiles/b/tool',
  ]);
  t.strictSame(faultsOf({ a: { instructions: 'x'.repeat(601) } }), ['/McpProfiles/a/instructions']);
  t.strictSame(faultsOf(undefined), []);
});

t.test('profiles: list and call agree for every class of callers', async (t) => {
  const { tools, profiles: views } = mcp.catalog.current;
  for (const [name, view] of views) {
    for (const caller of CALLER_CLASSES.filter((each) => each !== 'anonymous')) {
      const listed = JSON.parse(view.toolLists[caller].toString()).tools.map(
        (tool: { name: string }) => tool.name,
      );
      const callable = [...tools.values()].filter((row) => row.callers.has(caller) && view.hasTool(row.name));
      t.strictSame(
        listed,
        callable.map((row) => row.name),
        `${name} ${caller}`,
      );
    }
  }
});
