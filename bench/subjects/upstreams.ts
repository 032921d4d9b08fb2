/** Tools of other MCP servers behind the gateway, the same tools as rows of the configuration, and when a list has them. */
import { expectOk, rpc } from '../../kit/agent.ts';
import { SECOND_MS } from '../../src/domain/time.ts';
import { startServer } from '../measure/children.ts';
import type { Bench } from '../scenario.ts';

/** The most that the gateway serves of one server is 512. */
const TOOLS_A_SERVER = 500;
const LIST_EVERY_MS = 50;
const LIST_WITHIN_MS = 100 * SECOND_MS;

/** The nth tool, as a server of the bench lists it. */
export function toolOf(number: number) {
  return {
    name: `tool_${number}`,
    title: `Tool ${number}`,
    description: `Reports the balances of account ${number}, with what is locked in open orders.`,
    inputSchema: {
      type: 'object',
      properties: { currency: { type: 'string', description: 'Code of the currency; all without it.' } },
    },
  };
}

/** Servers with so many tools in all, and the names that the gateway gives to these. */
export async function startUpstreams(bench: Bench, count: number) {
  const servers: Record<string, { readonly url: string; readonly prefix: string }> = {};
  const names: string[] = [];
  for (let from = 0; from < count; from += TOOLS_A_SERVER) {
    const here = Math.min(TOOLS_A_SERVER, count - from);
    const server = await startServer('wallet', [String(from), String(here)]);
    bench.onTeardown(() => server.stop());
    const prefix = `up${from}_`;
    servers[`up${from}`] = { url: `${server.url}/mcp`, prefix };
    for (let number = from; number < from + here; number += 1) names.push(prefix + toolOf(number).name);
  }
  return { servers, names };
}

/** Rows of `McpTools` with the definitions of those tools, for one endpoint. */
export function rowsOf(names: readonly string[], endpoint: string): object {
  return Object.fromEntries(
    names.map((name, number) => [name, { ...toolOf(number), name: undefined, method: 'GET', endpoint }]),
  );
}

export async function listOf(url: string, bearer: string): Promise<string> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  return expectOk('tools/list', await rpc(url, bearer, message)).text;
}

/** The list with all these tools. The gateway does not wait for other servers when it starts. */
export async function listWith(
  url: string,
  bearer: string,
  names: readonly string[],
  withinMs = LIST_WITHIN_MS,
): Promise<string> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const text = await listOf(url, bearer);
    const missing = names.filter((name) => !text.includes(`"name":"${name}"`));
    if (missing.length === 0) return text;
    if (performance.now() > endMs) throw new Error(`tools/list: ${missing.length} tools are not listed`);
    await new Promise((resolve) => setTimeout(resolve, LIST_EVERY_MS));
  }
}
