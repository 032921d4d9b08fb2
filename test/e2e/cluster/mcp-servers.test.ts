/** Another MCP server behind three nodes: one owner stores what is new, and a decision is in force at every node. */
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { callTool, rpc, signUpAgent } from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import {
  configureServers,
  nodesTest,
  resultOf,
  type ThreeNodes,
  verifiedBearer,
} from '../../support/cluster/three-nodes.ts';
import { startUpstream } from '../../support/upstreams/server.ts';

t.setTimeout(240_000);

const tool = (name: string, description = name) => ({ name, description, inputSchema: { type: 'object' } });

interface View {
  readonly served: readonly { readonly tool: string }[];
  readonly hidden: readonly { readonly tool: string; readonly digest: string }[];
}

/** Resolves when each node has said that it serves so many tools. */
async function serving({ nodes }: ThreeNodes, tools: number, server = 'weather'): Promise<void> {
  for (const { gateway } of nodes)
    await gateway.said(new RegExp(`"server":"${server}","tools":${tools},.*"mcp server up"`));
}

/** Each node has a process of its own, which serves the callers of this node. */
nodesTest('an MCP server by command is a process of each node', async (t, three) => {
  const [a, ...others] = three.nodes;
  const cookie = await three.adminOf(a);
  const file = fileURLToPath(new URL('../../support/upstreams/stdio-server.js', import.meta.url));
  const notes = { command: [process.execPath, file], tools: { allow: ['environment'] } };
  await configureServers(three, cookie, { notes });
  await serving(three, 1, 'notes');
  const bearer = await verifiedBearer(a, await signUpAgent(a.url));
  const markAt = async ({ url }: NodeProcess) => {
    const { text } = await callTool(url, bearer, 'notes_environment', {});
    return /GATEHOUSE_MCP_SERVER[^,}]*?([0-9]+-[0-9]+\/[0-9]+)/.exec(text)?.[1];
  };
  const marks = await Promise.all([a, ...others].map(markAt));
  t.equal(new Set(marks).size, three.nodes.length, marks.join());
  t.ok(marks.every((mark) => mark !== undefined));
  await configureServers(three, cookie, {});
});

// covers C22
nodesTest(
  'a definition of another MCP server is found at one node, and approved for all',
  async (t, three) => {
    const [a, b, c] = await three.othersFirst('mcpServer', 'weather');
    const cookie = await three.adminOf(a);
    const upstream = await startUpstream([tool('a'), tool('b'), tool('c')]);
    t.teardown(async () => {
      await configureServers(three, cookie, {});
      await upstream.close();
    });
    const streamed = new Promise<void>((resolve) => {
      upstream.onStream = () => {
        if (upstream.streams.size === 3) resolve();
      };
    });
    await configureServers(three, cookie, { weather: { url: upstream.url } });
    await serving(three, 3);
    await streamed;
    const bearer = await verifiedBearer(b, await signUpAgent(b.url));
    const listedAt = async ({ url }: NodeProcess) => {
      const { text } = await rpc(url, bearer, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
      return [...text.matchAll(/"name":"(weather_\w+)"/g)].map(([, name]) => name);
    };
    t.same(
      await Promise.all([a, b, c].map(listedAt)),
      Array(3).fill(['weather_a', 'weather_b', 'weather_c']),
    );

    upstream.tools = [tool('a', 'other'), tool('b', 'other'), tool('c')];
    upstream.changed();
    await serving(three, 1);
    const named = [a, b, c].flatMap(({ gateway }) =>
      [...gateway.output().stderr.matchAll(/"detail":"([^"]*)".*"mcp tools wait for approval"/g)].flatMap(
        ([, detail = '']) => detail.split(', '),
      ),
    );
    t.same(named.sort(), ['a', 'b'], 'each is found at one node');
    const viewAt = async (node: NodeProcess) => {
      const [view] = (await resultOf(
        node,
        await three.adminOf(node),
        '/ProxyAdmin/api/mcp_servers',
      )) as unknown as View[];
      return view;
    };
    const digest = (await viewAt(a))?.hidden.find((each) => each.tool === 'a')?.digest;
    await resultOf(a, cookie, '/ProxyAdmin/api/mcp_servers/approve', {
      server: 'weather',
      tool: 'a',
      digest,
    });
    await serving(three, 2);
    t.same(await Promise.all([a, b, c].map(listedAt)), Array(3).fill(['weather_a', 'weather_c']));
    t.match(await viewAt(c), { served: [{ tool: 'a' }, { tool: 'c' }], hidden: [{ tool: 'b' }] });
    t.match((await callTool(b.url, bearer, 'weather_a', {})).json, { result: {} });
    t.match((await callTool(b.url, bearer, 'weather_b', {})).json, { error: { code: -32602 } });
  },
);
