/** Admin JSON of other MCP servers: state, tools that wait with both definitions, and decisions. */
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { actorPins } from '../../../src/io/mcp/upstreams/pins.ts';
import { UpstreamServers } from '../../../src/io/mcp/upstreams/servers.ts';
import { startAdmin } from '../../support/admin.ts';
import { configurationOf, NO_TOKENS } from '../../support/upstreams/gateway.ts';
import { startUpstream } from '../../support/upstreams/server.ts';

const tool = (name: string, description = name) => ({ name, description, inputSchema: { type: 'object' } });

interface View {
  readonly state: string;
  readonly served: readonly { tool: string; digest: string }[];
  readonly hidden: readonly {
    tool: string;
    state: string;
    digest: string;
    approved: string | null;
    listed: string;
  }[];
}

async function start(t: Test) {
  const upstream = await startUpstream([tool('a'), tool('b'), tool('not.one')]);
  let changed: () => void = () => undefined;
  let servers: UpstreamServers | undefined;
  const admin = await startAdmin({
    mcpServers(actors) {
      servers = new UpstreamServers({
        log: { write: () => undefined },
        version: '0.0.1',
        owner: () => 'test',
        monotonicMs: () => 0,
        random: () => 1,
        timer: () => () => undefined,
        yieldToLoop: () => setImmediate(),
        pins: actorPins(() => actors.system),
        tokens: NO_TOKENS,
        isAdmin: () => false,
        onFound: () => undefined,
        onTools: () => changed(),
      });
      return servers;
    },
  });
  t.teardown(async () => {
    await servers?.close();
    await upstream.close();
    await admin.stop();
  });
  /** Resolves once this holds; asked after each list. */
  const until = (holds: () => boolean) =>
    new Promise<void>((resolve) => {
      changed = () => {
        if (holds()) resolve();
      };
    });
  const isUp = until(() => servers?.links[0]?.state === 'up');
  servers?.follow({ weather: configurationOf(upstream) });
  await isUp;
  const view = async () => (await admin.ask('mcp_servers')).result as readonly View[];
  return { ...admin, upstream, until, view, link: () => servers?.links[0] };
}

// covers R120
t.test(
  'admin mcp servers: both definitions are shown, and an approval counts at once and is audited',
  async (t) => {
    const { ask, change, upstream, until, view, link } = await start(t);
    const state = { name: 'weather', prefix: 'up_', state: 'up', reason: null };
    const tools = { served: [{ tool: 'a' }, { tool: 'b' }], hidden: [] };
    const leftOut = [{ tool: 'not.one', reason: /no name/ }];
    t.match(await view(), [{ ...state, calls: 0, failed: 0, p99Milliseconds: null, ...tools, leftOut }]);
    upstream.tools = [tool('a', 'other'), tool('b'), tool('c')];
    const isListed = until(() => link()?.settled.hidden.length === 2);
    t.equal((await change('mcp_servers/reload', { server: 'weather' })).status, 200);
    await isListed;
    const [shown] = await view();
    const [changed, added] = shown?.hidden ?? [];
    t.match(changed, { tool: 'a', state: 'changed', sinceUtc: /Z$/ });
    t.match(JSON.parse(changed?.approved ?? ''), { description: 'a' });
    t.match(JSON.parse(changed?.listed ?? ''), { description: 'other' });
    t.match(added, { tool: 'c', state: 'new', approved: null });
    const decided = { server: 'weather', tool: 'a', digest: changed?.digest };
    const approved = await change('mcp_servers/approve', decided);
    t.match(approved, { status: 200, result: { served: tools.served, hidden: [{ tool: 'c' }] } });
    t.equal((await change('mcp_servers/approve', decided)).status, 404, 'it waits no more');
    const hidden = await change('mcp_servers/hide', { server: 'weather', tool: 'c', digest: added?.digest });
    t.match(hidden, { result: { hidden: [{ tool: 'c', state: 'hidden' }] } });
    const { result } = await ask('audit?event=mcp_tool_approved');
    t.match(JSON.stringify(result), /"name":"a"/);
  },
);

t.test(
  'admin mcp servers: an unknown server, another digest and a caller without the role are refused',
  async (t) => {
    const { ask, change, owner, view } = await start(t);
    const [shown] = await view();
    const digest = shown?.served[0]?.digest;
    for (const path of ['approve', 'hide', 'reload'])
      t.equal((await change(`mcp_servers/${path}`, { server: 'none', tool: 'a', digest })).status, 404, path);
    const hide = async (fields: object, account?: typeof owner) =>
      (await change('mcp_servers/hide', { server: 'weather', tool: 'a', digest, ...fields }, account)).status;
    t.same([await hide({ tool: 'b' }), await hide({ tool: 'constructor' })], [404, 404]);
    t.same([await hide({ digest: 'x' }), await hide({}, owner)], [400, 403]);
    t.equal((await ask('mcp_servers', owner)).status, 403);
  },
);
