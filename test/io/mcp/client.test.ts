/** The official client against /mcp: what it needs beyond the letter of the specification shows here. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';
import t, { type Test } from 'tap';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';
import { type McpFixture, type McpFixtureOptions, startMcp, TOKENS } from '../../support/mcp.ts';

async function connect(t: Test, options: McpFixtureOptions, token?: string) {
  const mcp: McpFixture = await startMcp(options);
  const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL(`${mcp.http.url}/mcp`), {
    requestInit: { headers },
  });
  const client = new Client({ name: 'test', version: '1.0.0' });
  const faults: Error[] = [];
  client.onerror = (error) => faults.push(error);
  t.teardown(async () => {
    await client.close();
    await mcp.close();
  });
  await client.connect(transport);
  return { mcp, client, transport, faults };
}

t.test('official client: connects, pings, lists, calls a tool, reads a resource, leaves', async (t) => {
  const backend = () => ({ body: '{"result":{"available":"1000.00"}}' });
  const { client, transport, faults } = await connect(t, { backend }, TOKENS.McpVerified);
  t.strictSame(client.getServerVersion(), { name: 'test', version: '0.0.1' });
  t.strictSame(client.getServerCapabilities(), { tools: {}, resources: {} });
  t.ok(transport.sessionId);
  t.strictSame(await client.ping(), {});
  const { tools } = await client.listTools();
  t.strictSame(
    tools.map(({ name }) => name),
    Object.keys(BUILT_IN.tools).filter((name) => BUILT_IN.tools[name]?.capabilityModule === undefined),
  );
  t.equal(tools.find(({ name }) => name === 'wallet_create_withdraw')?.annotations?.destructiveHint, true);
  const balance = await client.callTool({ name: 'wallet_get_balance', arguments: { currency: 'EUR' } });
  t.strictSame(balance.content, [{ type: 'text', text: '{"result":{"available":"1000.00"}}' }]);
  const { resources } = await client.listResources();
  t.ok(resources.some(({ uri }) => uri === 'gatehouse://wallet/balance'));
  const read = await client.readResource({ uri: 'gatehouse://wallet/balance' });
  t.strictSame(read.contents, [
    {
      uri: 'gatehouse://wallet/balance',
      mimeType: 'application/json',
      text: '{"result":{"available":"1000.00"}}',
    },
  ]);
  t.strictSame((await client.listResourceTemplates()).resourceTemplates, []);
  await transport.terminateSession();
  t.strictSame(faults, []);
});

t.test('official client: failures reach it as what they are', async (t) => {
  const backend = () => ({ status: 400, body: '{"error":{"code":2001,"message":"Insufficient funds"}}' });
  const { client, faults } = await connect(t, { backend }, TOKENS.McpBasic);
  const failed = await client.callTool({ name: 'wallet_get_balance' });
  t.equal(failed.isError, true);
  const wrong = await client.callTool({ name: 'wallet_get_tx_info', arguments: {} });
  t.match(wrong, { isError: true, content: [{ text: /id is required/ }] });
  const codeOf = async (call: Promise<unknown>) => {
    try {
      return await call;
    } catch (error) {
      return error instanceof McpError ? error.code : error;
    }
  };
  t.equal(await codeOf(client.callTool({ name: 'nope' })), -32602);
  t.equal(await codeOf(client.callTool({ name: 'wallet_create_withdraw' })), -32001);
  t.equal(await codeOf(client.readResource({ uri: 'test://nope' })), -32002);
  t.equal(await codeOf(client.listPrompts()), -32601);
  t.strictSame(faults, []);
});

t.test('official client without a login: connects and sees the whole catalog, calls nothing', async (t) => {
  const { client } = await connect(t, {});
  t.equal((await client.listTools()).tools.length, Object.keys(BUILT_IN.tools).length);
  await t.rejects(client.callTool({ name: 'wallet_get_balance' }), { code: -32001 });
});

// covers R48
t.test('official client: a cancelled call is given up at the backend', async (t) => {
  let arrived: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const backend = () => {
    arrived();
    return 'never' as const;
  };
  const { client, mcp } = await connect(t, { backend }, TOKENS.McpVerified);
  const cancelling = new AbortController();
  const call = client.callTool({ name: 'wallet_get_balance' }, undefined, { signal: cancelling.signal });
  await reached;
  cancelling.abort('enough');
  await t.rejects(call);
  await mcp.asked[0]?.gone;
  t.equal(mcp.asked.length, 1);
});
