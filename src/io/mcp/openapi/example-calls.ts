/** Examples of calls of /mcp for its OpenAPI description. */
import type { RouteExample } from '../../http/openapi/route-docs.ts';
import { PROTOCOL_VERSION } from '../dispatcher.ts';
import { eventOf, frame } from '../sse.ts';

/** An answer as an event stream: one progress notification, then the response. */
export const STREAM_EXAMPLE = [
  frame('"method":"notifications/progress","params":{"progressToken":"p1","progress":1,"total":2}'),
  eventOf('{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\\"result\\":{}}"}]}}'),
].join('');

/** Returns the examples of POST /mcp, by name. */
export function exampleCalls(): Record<string, RouteExample> {
  const ask = (method: string, params: object | undefined, given: object): RouteExample => ({
    body: { jsonrpc: '2.0', id: 1, method, ...(params === undefined ? {} : { params }) },
    result: { jsonrpc: '2.0', id: 1, result: given },
  });
  const clientInfo = { name: 'agent', version: '1.0' };
  const serverInfo = { name: 'demo', version: '0.1.0' };
  const known = { name: 'Gateway information', mimeType: 'application/json' };
  const uri = 'gatehouse://gateway/info';
  const listed = { name: 'wallet_get_balance', description: 'Returns the balance.', inputSchema: {} };
  const protocolVersion = PROTOCOL_VERSION;
  const capabilities = { tools: {}, resources: {} };
  const instructions = 'How to log in, and what the groups of tools are.';
  return {
    initialize: ask(
      'initialize',
      { protocolVersion, capabilities: {}, clientInfo },
      { protocolVersion, capabilities, serverInfo, instructions },
    ),
    initialized: { body: { jsonrpc: '2.0', method: 'notifications/initialized' }, result: undefined },
    'tools-list': ask('tools/list', undefined, { tools: [listed] }),
    'tools-call': ask(
      'tools/call',
      { name: 'wallet_get_balance', arguments: { currency: 'DEMO' } },
      { content: [{ type: 'text', text: '{"result":{"balances":[]}}' }] },
    ),
    'resources-list': ask('resources/list', undefined, { resources: [{ uri, ...known }] }),
    'resources-read': ask(
      'resources/read',
      { uri },
      { contents: [{ uri, text: '{"result":{}}', mimeType: 'application/json' }] },
    ),
    ping: ask('ping', undefined, {}),
    batch: {
      body: [
        { jsonrpc: '2.0', id: 1, method: 'ping' },
        { jsonrpc: '2.0', id: 2, method: 'tools/list' },
      ],
      result: [
        { jsonrpc: '2.0', id: 1, result: {} },
        { jsonrpc: '2.0', id: 2, result: { tools: [listed] } },
      ],
    },
  };
}
