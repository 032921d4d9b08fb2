/**
 * MCP clients of other projects with the bearer of a key: `node hosts.js NAME URL BEARER`. Lines of standard input: `list`,
 * `call TOOL JSON`, `read URI`, `cancel`, `bearer BEARER`. Lines of standard output: `open REVISION`, then `result JSON` or
 * `failed MESSAGE` for each line but `cancel`, which ends the call under way, and `bearer`, which the next requests carry.
 */
import { createInterface } from 'node:readline';

const [, , name, url, firstBearer] = process.argv;
let bearer = firstBearer;
/** The call under way. */
let underWay;
/** The revision that the last request named. */
let revision = 'unknown';

const say = (word, value) => process.stdout.write(`${word} ${value}\n`);
const authorized = (address, init) => {
  const headers = new Headers(init?.headers);
  headers.set('Authorization', `Bearer ${bearer}`);
  revision = headers.get('MCP-Protocol-Version') ?? revision;
  return fetch(address, { ...init, headers });
};

const clients = {
  /** The official client, in its newest revision alone. */
  async client() {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const versionNegotiation = { mode: { pin: '2026-07-28' } };
    const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation });
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: authorized }));
    return {
      list: async () => (await client.listTools()).tools.map((tool) => tool.name),
      call: (tool, given, signal) => client.callTool({ name: tool, arguments: given }, { signal }),
      read: (uri) => client.readResource({ uri }),
      close: () => client.close(),
    };
  },

  async 'ai-sdk'() {
    const { createMCPClient } = await import('@ai-sdk/mcp');
    const client = await createMCPClient({ transport: { type: 'http', url, fetch: authorized } });
    return {
      list: async () => Object.keys(await client.tools()),
      async call(tool, given, abortSignal) {
        const tools = await client.tools();
        return tools[tool].execute(given, { toolCallId: '1', messages: [], abortSignal });
      },
      read: (uri) => client.readResource({ uri }),
      close: () => client.close(),
    };
  },

  async langchain() {
    const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
    const headers = { Authorization: `Bearer ${bearer}` };
    const mcpServers = { gatehouse: { transport: 'http', url, headers, automaticSSEFallback: false } };
    const beforeToolCall = () => ({ headers: { Authorization: `Bearer ${bearer}` } });
    const client = new MultiServerMCPClient({ mcpServers, beforeToolCall });
    const tools = await client.getTools();
    return {
      list: async () => tools.map((tool) => tool.name),
      async call(tool, given, signal) {
        const content = await tools.find((each) => each.name === tool).invoke(given, { signal });
        return { content };
      },
      read: async (uri) => client.readResource('gatehouse', uri),
      close: () => client.close(),
    };
  },

  async 'openai-agents'() {
    const { MCPServerStreamableHttp, getAllMcpTools } = await import('@openai/agents');
    const server = new MCPServerStreamableHttp({ url, name: 'gatehouse', fetch: authorized });
    await server.connect();
    return {
      list: async () => (await getAllMcpTools({ mcpServers: [server] })).map((tool) => tool.name),
      call: (tool, given, signal) => server.callToolResult(tool, given, null, { signal }),
      read: (uri) => server.readResource(uri),
      close: () => server.close(),
    };
  },
};

async function answer(host, line) {
  const [word, first, ...rest] = line.split(' ');
  try {
    if (word === 'list') say('result', JSON.stringify(await host.list()));
    else if (word === 'read') say('result', JSON.stringify(await host.read(first)));
    else {
      underWay = new AbortController();
      say('result', JSON.stringify(await host.call(first, JSON.parse(rest.join(' ')), underWay.signal)));
    }
  } catch (error) {
    say('failed', String(error.message).replaceAll('\n', ' '));
  }
}

const host = await clients[name]();
say('open', revision);
const running = new Set();
for await (const line of createInterface(process.stdin)) {
  if (line === 'cancel') underWay.abort();
  else if (line.startsWith('bearer ')) bearer = line.slice(7);
  else {
    const work = answer(host, line).finally(() => running.delete(work));
    running.add(work);
  }
}
await Promise.all(running);
await host.close();
