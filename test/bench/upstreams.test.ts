/** Tools of other MCP servers under load: they are listed and called as those of rows are, and the target bounds their cost. */
import t from 'tap';
import { startServer } from '../../bench/measure/children.ts';
import { loadOf } from '../../bench/report/report.ts';
import { judge } from '../../bench/report/targets.ts';
import type { Bench } from '../../bench/scenario.ts';
import { mcpCall } from '../../bench/scenarios/mcp-call.ts';
import { gatewayUnderLoad, makeAgents, sessionOf } from '../../bench/subjects/gateway.ts';
import { listWith, rowsOf, startUpstreams, toolOf } from '../../bench/subjects/upstreams.ts';
import { callTool } from '../../kit/agent.ts';
import { benchOf } from './fixtures/bench.ts';

t.setTimeout(120_000);

async function gatewayWith(bench: Bench, configuration: object) {
  const { url } = await gatewayUnderLoad(bench, {}, { configuration });
  const [person] = await makeAgents(bench, url, 1);
  if (person === undefined) throw new Error('no account');
  return { url, bearer: await sessionOf(url, person) };
}

const definitionsIn = (list: string, names: readonly string[]) => {
  const { result } = JSON.parse(list) as {
    result: { tools: { name: string; description: string; inputSchema: object }[] };
  };
  return result.tools
    .filter(({ name }) => names.includes(name))
    .map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
};

t.test('upstreams: 501 tools come from two servers, with the definitions of the rows', async (t) => {
  const bench = benchOf(t);
  const { servers, names } = await startUpstreams(bench, 501);
  t.equal(Object.keys(servers).length, 2);
  t.equal(new Set(names).size, 501);
  const backend = await startServer('wallet');
  bench.onTeardown(() => backend.stop());
  const behind = await gatewayWith(bench, { McpServers: servers });
  const list = await listWith(behind.url, behind.bearer, names);
  const endpoint = `${backend.url}/wallet/v1/balance/get`;
  const rows = await gatewayWith(bench, { McpTools: rowsOf(names, endpoint) });
  const ofRows = definitionsIn(await listWith(rows.url, rows.bearer, names), names);
  t.equal(ofRows.length, 501);
  const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
  t.same(definitionsIn(list, names).sort(byName), ofRows.sort(byName));
  const last = names.at(-1) ?? '';
  const calls = await Promise.all([behind, rows].map(({ url, bearer }) => callTool(url, bearer, last)));
  for (const { json } of calls) t.match(json, { result: { content: [{ text: /1000\.00000000/ }] } });
  t.same(
    calls.map(({ json }) => Object(json['result']).isError ?? false),
    [false, false],
  );
  const waited = listWith(
    behind.url,
    behind.bearer,
    ['wallet_get_balance', last, `up9_${toolOf(0).name}`],
    0,
  );
  await t.rejects(waited, { message: 'tools/list: 1 tools are not listed' }, 'one that does not come');
});

t.test('mcp-call: an upstream tool answers under load beside the HTTP tool, without an error', async (t) => {
  const short = { durationMs: 50, warmupMs: 0, connections: 2, rounds: 1, roundsMax: 1, users: 1 };
  const bench = benchOf(t, { ...short, peers: false });
  const { comparison } = await mcpCall.run(bench);
  const upstream = comparison.subjects.find(({ name }) => name === 'gatehouse, upstream tool');
  const load = loadOf(upstream?.rounds[0]);
  t.ok((load?.answersInAll ?? 0) > 0, `${load?.answersInAll} answers`);
  t.same(load?.errors, {});
  t.ok(comparison.ratios.some(({ of, against }) => of === 'gatehouse' && against === upstream?.name));
});

t.test('targets: the processor time of an upstream tool is bounded from above', async (t) => {
  const target = mcpCall.targets?.find((each) => 'against' in each && each.against.includes('upstream'));
  t.match(target, { by: 'processor time', atMost: 1.15 });
  if (target === undefined || !('against' in target)) throw new Error('no target');
  const verdict = (median: number) => {
    const spread = { median, from: median, to: median, lowest: median, highest: median };
    const { against } = target;
    const ratio = { of: 'gatehouse', against, rate: spread, processorTime: spread };
    const subjects = [{ name: 'gatehouse', rounds: [], medianPerSecond: 1 }];
    return judge([target], { subjects, ratios: [ratio] }, [])[0]?.verdict;
  };
  t.same([1.15, 1.16].map(verdict), ['met', 'missed']);
});
