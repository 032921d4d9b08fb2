/** 10, 100 and 1,000 configured tools beside the built-in ones: what a call and a list cost. A gateway for each. */
import { expectOk, rpc } from '../../tools/agent.ts';
import { type Ask, bearersOf, callTool, listTools } from '../asks.ts';
import { startServer } from '../children.ts';
import { type CurveLine, chartsOf, cpuUsOf, growthOf, growthPair } from '../curves.ts';
import { gatewayUnderLoad, makeAgents } from '../gateway.ts';
import type { Comparison, Subject } from '../measure.ts';
import type { Bench, Scenario, Series } from '../scenario.ts';

const TOOLS = [10, 100, 1_000];
const USERS = 16;
const MODULE_KEY = 'bench-module-key-0001';
const CALL = 'tools/call';
const LIST = 'tools/list';
const points = (label: string) =>
  TOOLS.map((x) => ({ x, subject: `${label}, ${x.toLocaleString('en')} tools` }));
type Label = typeof CALL | typeof LIST;
const LINES: readonly CurveLine[] = [CALL, LIST].map((label) => ({ label, points: points(label) }));

export const curveTools: Scenario = {
  name: 'curve-tools',
  summary: 'tools/call and tools/list with 10, 100 and 1,000 configured tools',
  noTarget: 'the tools are in the configuration',
  async run(bench) {
    const backend = await startServer('wallet');
    bench.afterwards(() => backend.stop());
    const gateways: ToolGateway[] = [];
    for (const tools of TOOLS) gateways.push(await gatewayWith(bench, backend.url, tools));
    const subjects = ([CALL, LIST] as const).flatMap((label) =>
      gateways.map(({ tools, url, pids, asks }): Subject => {
        const name = `${label}, ${tools.toLocaleString('en')} tools`;
        return { ...bench.subject(name, pids, () => ({ url, ...asks[label] })), group: name };
      }),
    );
    const comparison = await bench.compare(subjects, { pairs: LINES.map(growthPair) });
    const bytes = gateways.map(({ tools, listBytes }) => ({ tools, listBytes }));
    return {
      comparison,
      notes: bytes.map(
        ({ tools, listBytes }) => `${tools} tools: a list of ${(listBytes / 1_024).toFixed(1)} KiB.`,
      ),
      figures: LINES.map((line) => growthOf(comparison, line)),
      series: [
        ...chartsOf(comparison, { label: 'configured tools', log: true }, LINES),
        perKib(comparison, bytes),
      ],
    };
  },
};

interface ToolGateway {
  readonly tools: number;
  readonly url: string;
  readonly pids: readonly number[];
  readonly asks: Readonly<Record<Label, Ask>>;
  readonly listBytes: number;
}

async function gatewayWith(bench: Bench, backendUrl: string, tools: number): Promise<ToolGateway> {
  const configuration = { McpTools: configuredTools(tools) };
  const modules = { wallet: { url: backendUrl, key: MODULE_KEY } };
  const { url, pids } = await gatewayUnderLoad(bench, modules, { configuration });
  const bearers = await bearersOf(url, await makeAgents(bench, url, USERS));
  // The last one: whoever searches one after the other finds it last.
  const asks = {
    [CALL]: callTool(url, bearers, nameOf(tools - 1)),
    [LIST]: listTools(url, bearers),
  };
  return { tools, url, pids, asks, listBytes: await sizeOfList(url, bearers[0] ?? '') };
}

/** Rows of `Config.McpTools` as an operator would write them. */
export function configuredTools(count: number): Record<string, object> {
  const row = (index: number) => ({
    endpoint: 'wallet:/wallet/v1/balance/get',
    method: 'GET',
    description: `Balance of the wallet, as configured tool number ${index} tells it.`,
    inputSchema: {
      type: 'object',
      properties: { currency: { type: 'string', description: 'Code of a currency; all without it.' } },
    },
  });
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [nameOf(index), row(index)]));
}

function nameOf(index: number): string {
  return `bench_tool_${index}`;
}

async function sizeOfList(url: string, bearer: string): Promise<number> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const answer = expectOk('tools/list', await rpc(url, bearer, message));
  return Buffer.byteLength(answer.text);
}

/** A longer list is more to send: the cost of a list for each KiB of it should fall. */
function perKib(comparison: Comparison, bytes: readonly { tools: number; listBytes: number }[]): Series {
  const line = bytes.flatMap(({ tools, listBytes }, index) => {
    const subject = LINES[1]?.points[index]?.subject;
    const measured = comparison.subjects.find(({ name }) => name === subject);
    return measured === undefined ? [] : [[tools, cpuUsOf(measured) / (listBytes / 1_024)] as const];
  });
  return {
    title: 'Processor time of tools/list for each KiB of the answer',
    x: { label: 'configured tools', log: true },
    y: { label: 'us / KiB' },
    lines: [{ label: LIST, points: line }],
  };
}
