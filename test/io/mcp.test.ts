import t from 'tap';
import { startMcp, TOKENS } from '../support/mcp.ts';

const call = (name: string, values: object = {}) => ({ name, arguments: values });

t.test('initialize: always 2024-11-05, an opaque session id, no login needed', async (t) => {
  const mcp = await startMcp();
  t.teardown(() => mcp.close());
  for (const asked of ['2024-11-05', '2025-06-18', '1900-01-01', 5]) {
    const body = { jsonrpc: '2.0', id: 'a', method: 'initialize', params: { protocolVersion: asked } };
    const { status, headers, text } = await mcp.post(JSON.stringify(body), {
      authorization: 'Bearer nobody',
    });
    t.equal(status, 200);
    t.match(headers.get('mcp-session-id') ?? '', /^[A-Za-z0-9_-]{20,}$/);
    t.strictSame(JSON.parse(text), {
      jsonrpc: '2.0',
      id: 'a',
      result: {
        protocolVersion: '2024-11-05',
        capabilities: { tools: {}, resources: {} },
        serverInfo: { name: 'test', version: '0.0.1' },
      },
    });
  }
});

t.test('tools/call: the smallest way to the backend and back', async (t) => {
  const mcp = await startMcp({ backend: () => ({ body: '{"result":{"a":1.50}}' }) });
  t.teardown(() => mcp.close());
  const answer = await mcp.rpc(
    'tools/call',
    call('wallet_get_balance', { currency: 'EUR' }),
    TOKENS.McpVerified,
  );
  t.strictSame(answer, {
    jsonrpc: '2.0',
    id: 1,
    result: { content: [{ type: 'text', text: '{"result":{"a":1.50}}' }] },
  });
  t.equal(mcp.asked[0]?.url, '/wallet/v1/balance/get?currency=EUR');
  t.strictSame(mcp.http.bugs, []);
});
