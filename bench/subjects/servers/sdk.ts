/**
 * The peer of mcp-call: the official SDK's server on its own Express application, one transport a session, JSON
 * answers, the same call to the same backend through undici. No authentication, no limits, no audit.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { Pool } from 'undici';
import { tellParent } from './listen.ts';

const CONNECTIONS = 128;
const [backend = ''] = process.argv.slice(2);
const pool = new Pool(backend, { connections: CONNECTIONS, pipelining: 1 });
const sessions = new Map<string, StreamableHTTPServerTransport>();

function createServer(): McpServer {
  const server = new McpServer({ name: 'wallet', version: '1.0.0' });
  server.registerTool('wallet_get_balance', { description: 'Balance of the wallet.' }, async () => {
    const { body } = await pool.request({ method: 'GET', path: '/wallet/v1/balance/get' });
    return { content: [{ type: 'text', text: await body.text() }] };
  });
  return server;
}

async function transportOf(sessionId: string | undefined): Promise<StreamableHTTPServerTransport> {
  const known = sessionId === undefined ? undefined : sessions.get(sessionId);
  if (known !== undefined) return known;
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    enableJsonResponse: true,
    onsessioninitialized: (id) => void sessions.set(id, transport),
  });
  await createServer().connect(transport as Parameters<McpServer['connect']>[0]);
  return transport;
}

const app = createMcpExpressApp();
app.post('/mcp', async (request: IncomingMessage & { body?: unknown }, response: ServerResponse) => {
  const sessionId = request.headers['mcp-session-id'];
  const transport = await transportOf(typeof sessionId === 'string' ? sessionId : undefined);
  await transport.handleRequest(request, response, request.body);
});
const server = app.listen(0, '127.0.0.1', () => {
  tellParent(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
