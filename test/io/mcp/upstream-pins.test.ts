/** Definitions of another MCP server: the first list is approved, whatever differs later waits for an admin. */
import t from 'tap';
import { DEFINITIONS_MAX, digestOf, mcpServer } from '../../../src/actors/admin/mcp-server.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { type McpFixture, TOKENS } from '../../support/mcp.ts';
import { configurationOf, startGateway, startWithUpstream } from '../../support/upstreams/gateway.ts';

const tool = (name: string, description = name, more: object = {}) => ({
  name,
  description,
  inputSchema: { type: 'object' },
  ...more,
});
const shown = ({ catalog }: McpFixture) =>
  [...catalog.current.tools.keys()].filter((name) => name.startsWith('up_'));
const ask = (mcp: McpFixture, name: string) => mcp.rpc('tools/call', { name }, TOKENS.McpVerified);

type Started = Awaited<ReturnType<typeof startWithUpstream>>;

const linkOf = ({ servers }: Pick<Started, 'servers'>) => {
  const [link] = servers.links;
  if (link === undefined) throw new Error('no link');
  return link;
};

/** The server lists these from now on. */
async function list(
  { upstream, until, runTimers, servers, ...rest }: Started,
  tools: unknown[],
): Promise<void> {
  const { read } = linkOf({ servers });
  upstream.tools = tools;
  runTimers();
  await until(() => linkOf({ servers }).read !== read && rest.timers.length > 0);
}

const judge = (type: 'approve' | 'hide', { actors, servers }: Started, name: string, text: string) =>
  actors.system
    .ask(mcpServer, 'other', { type, name, digest: digestOf(text), by: '1842001', address: '127.0.0.1' })
    .then(() => servers.settle('other'));

const textOf = (started: Started, name: string): string => {
  const { hidden, served } = linkOf(started).settled;
  const found = [...hidden.map(({ tool }) => tool), ...served].find(({ ownName }) => ownName === name);
  return found?.text ?? '';
};

// covers R120 S193
t.test(
  'pins: a changed, a new and a renamed tool are neither listed nor called; the others are',
  async (t) => {
    const started = await startWithUpstream(
      t,
      ['a', 'b', 'c'].map((name) => tool(name)),
    );
    const { mcp, found, lines, upstream } = started;
    t.same(shown(mcp), ['up_a', 'up_b', 'up_c'], 'the first list is approved');
    await list(started, [
      tool('a', 'Also sends your mail.'),
      tool('b2', 'b'),
      tool('c', 'c', { icons: [1] }),
      tool('d'),
    ]);
    t.same(shown(mcp), ['up_c'], 'what no model reads changes nothing');
    t.same(found, [['other', 'a', 'b2', 'd']]);
    t.match(lines.at(-2), { name: 'mcpToolsWait', fields: { server: 'other', detail: 'a, b2, d' } });
    for (const name of ['up_a', 'up_b2', 'up_d']) t.match(await ask(mcp, name), { error: { code: -32602 } });
    t.match(await ask(mcp, 'up_c'), { result: {} });
    t.equal(upstream.asked.filter(({ method }) => method === 'tools/call').length, 1);
    t.same(
      linkOf(started).settled.hidden.map(({ tool: { ownName }, state }) => `${ownName} ${state}`),
      ['a changed', 'b2 new', 'd new'],
    );
    await list(started, [tool('a', 'Also sends your mail.'), tool('b2', 'b'), tool('c'), tool('d')]);
    t.equal(found.length, 1, 'the same is found once');
  },
);

t.test('pins: a tool whose approved definition is back is served again', async (t) => {
  const started = await startWithUpstream(t, [tool('a')]);
  await list(started, [tool('a', 'other')]);
  t.same(shown(started.mcp), []);
  await list(started, [tool('a')]);
  t.same(shown(started.mcp), ['up_a']);
  const { proposed } = started.servers.stored('other');
  t.same(proposed, {}, 'nothing waits');
});

// covers R120
t.test('pins: an approval serves what was seen and no later definition', async (t) => {
  const started = await startWithUpstream(t, [tool('a')]);
  await list(started, [tool('a', 'first')]);
  const seen = textOf(started, 'a');
  await list(started, [tool('a', 'second')]);
  await t.rejects(judge('approve', started, 'a', seen), GatewayError);
  t.same(shown(started.mcp), []);
  await judge('approve', started, 'a', textOf(started, 'a'));
  t.same(shown(started.mcp), ['up_a']);
  t.equal(started.mcp.catalog.current.tools.get('up_a')?.row.description, 'second');
});

t.test(
  'pins: a tool can be hidden, also one that was approved, and stays so until an approval',
  async (t) => {
    const started = await startWithUpstream(t, [tool('a'), tool('b')]);
    const text = textOf(started, 'a');
    await judge('hide', started, 'a', text);
    t.same(shown(started.mcp), ['up_b']);
    await list(started, [tool('a'), tool('b'), tool('c')]);
    t.same(shown(started.mcp), ['up_b']);
    await judge('hide', started, 'c', textOf(started, 'c'));
    t.same(
      linkOf(started).settled.hidden.map(({ state }) => state),
      ['hidden', 'hidden'],
    );
    await judge('approve', started, 'a', text);
    t.same(shown(started.mcp), ['up_a', 'up_b']);
  },
);

// covers R120
t.test('pins: after a restart approved tools are listed although their server is down', async (t) => {
  const { upstream, actors } = await startWithUpstream(t, [tool('a'), tool('b')]);
  await upstream.close();
  const again = await startGateway(t, { other: configurationOf(upstream) }, {}, actors);
  await again.until(() => shown(again.mcp).length === 2);
  t.match(await ask(again.mcp, 'up_a'), { error: { code: -32000 } });
  t.match((await again.mcp.rpc('tools/list', {}, TOKENS.McpVerified)).result?.tools?.at(-1), {
    name: 'up_b',
  });
});

t.test('pins: tools that a server lists no more give their room to new ones', async (t) => {
  const names = (from: number) => Array.from({ length: DEFINITIONS_MAX }, (_, at) => tool(`t${from + at}`));
  const started = await startWithUpstream(t, names(0));
  t.equal(shown(started.mcp).length, DEFINITIONS_MAX);
  await list(started, names(10));
  t.equal(shown(started.mcp).length, DEFINITIONS_MAX - 10);
  t.equal(linkOf(started).settled.hidden.length, 10);
  const { approved, proposed } = started.servers.stored('other');
  t.equal(Object.keys(approved).length + Object.keys(proposed).length, DEFINITIONS_MAX);
});
