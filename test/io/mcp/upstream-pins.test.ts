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
  const { settled } = linkOf({ servers });
  upstream.tools = tools;
  runTimers();
  await until(() => linkOf({ servers }).settled !== settled && rest.timers.length > 0);
}

const judge = (type: 'approve' | 'hide', { actors, servers }: Started, name: string, text: string) =>
  actors.system
    .ask(mcpServer, 'other', {
      type,
      server: 'other',
      name,
      digest: digestOf(text),
      by: '1842001',
      from: { address: '127.0.0.1' },
    })
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

t.test(
  'pins: a tool whose approved definition is back is served again, and a decision on the other stays',
  async (t) => {
    const started = await startWithUpstream(t, [tool('a')]);
    await list(started, [tool('a', 'other')]);
    t.same(shown(started.mcp), []);
    await judge('hide', started, 'a', textOf(started, 'a'));
    await list(started, [tool('a')]);
    t.same(shown(started.mcp), ['up_a']);
    await list(started, [tool('a', 'other')]);
    t.match(linkOf(started).settled.hidden, [{ state: 'hidden' }]);
    t.equal(started.found.length, 1, 'it is found once');
  },
);

// covers S193
t.test(
  'pins: a server that always lists something new is read once a minute, whatever it says',
  async (t) => {
    const started = await startWithUpstream(t, [tool('a')]);
    const streams = started.upstream.streams;
    await started.until(() => streams.size > 0);
    const noticed = async () => {
      const count = started.timers.length;
      const [before] = started.timers;
      started.upstream.changed();
      await started.until(() => started.timers.length >= count && started.timers[0] !== before);
      return started.timers[0]?.delayMs;
    };
    t.equal(await noticed(), 1_000);
    await list(started, [tool('a', '1')]);
    t.equal(await noticed(), 60_000);
    await list(started, [tool('a', '1')]);
    t.equal(await noticed(), 1_000, 'nothing was new');
  },
);

t.test('pins: a definition without room is left out and named, the others are served', async (t) => {
  const long = (name: string, letter = 'a') => ({
    ...tool(name),
    inputSchema: { type: 'object', description: letter.repeat(60_000) },
  });
  const names = Array.from({ length: 40 }, (_, at) => `t${at}`);
  const started = await startWithUpstream(
    t,
    names.map((name) => long(name)),
  );
  t.equal(shown(started.mcp).length, 40);
  const others = names.map((name) => long(`x${name}`));
  const kept = names.slice(0, 20);
  await list(started, [...others, ...kept.map((name) => long(name))]);
  t.equal(shown(started.mcp).length, 20);
  t.match(
    linkOf(started).settled,
    { hidden: { length: 40 }, leftOut: [] },
    'tools that are gone gave their room',
  );
  await list(started, [...kept.map((name) => long(name, 'b')), ...others]);
  const { hidden, leftOut } = linkOf(started).settled;
  t.ok(leftOut.length > 0);
  t.match(leftOut[0]?.reason, /no room/);
  t.equal(hidden.length + leftOut.length, 60);
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
