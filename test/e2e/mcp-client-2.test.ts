/**
 * The second official client in all of its negotiation modes: the plain handshake, the one that calls `server/discover`
 * first, and the one that speaks 2026-07-28 alone. Against /mcp with fake ports, then against the program.
 */
import t from 'tap';
import { expectOk, mcpLogin, signUpAgent } from '../../kit/agent.ts';
import { closeAfter } from '../../kit/close-after.ts';
import { HIGH_LIMITS, launchFor } from '../../kit/launch.ts';
import { promiseOf } from '../support/http.ts';
import { startMcp, TOKENS } from '../support/mcp.ts';
import { bearer, connectMode, MODES, OPEN_TOOLS, useEveryMode } from '../support/mcp-clients/client-modes.ts';

async function codeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

for (const mode of MODES) {
  t.test(`client 2, ${mode.name}: lists, calls, reads, pings, leaves`, async (t) => {
    const text = '{"result":{"available":"9007199254740993.10"}}';
    const mcp = closeAfter(t, await startMcp({ backend: () => ({ body: text }) }));
    const { client, transport, faults } = await connectMode(
      t,
      mcp.http.url,
      mode,
      bearer(TOKENS.McpVerified),
    );
    t.strictSame(client.getServerCapabilities(), mode.capabilities);
    t.match(client.getServerVersion(), { name: 'test', version: '0.0.1' });
    if (mode.name === 'legacy') t.same(await client.ping(), {});
    else t.strictSame((await client.listPrompts()).prompts, []);
    const { tools } = await client.listTools();
    t.strictSame(
      tools.map(({ name }) => name),
      OPEN_TOOLS,
    );
    const answer = await client.callTool({ name: 'wallet_get_balance', arguments: { currency: 'EUR' } });
    t.match(answer, { content: [{ type: 'text', text }] });
    const uri = 'gatehouse://wallet/balance';
    t.ok((await client.listResources()).resources.some((one) => one.uri === uri));
    t.match((await client.readResource({ uri })).contents, [{ uri, mimeType: 'application/json', text }]);
    t.strictSame((await client.listResourceTemplates()).resourceTemplates, []);
    await transport.terminateSession();
    t.strictSame(faults, []);
  });

  t.test(`client 2, ${mode.name}: refusals are JSON-RPC errors and failures are tool errors`, async (t) => {
    const mcp = await startMcp({ backend: () => ({ status: 400, body: '{"error":{"code":2001}}' }) });
    t.teardown(() => mcp.close());
    const { client } = await connectMode(t, mcp.http.url, mode, bearer(TOKENS.McpBasic));
    t.match(await client.callTool({ name: 'wallet_get_balance' }), { isError: true });
    t.match(await client.callTool({ name: 'wallet_get_tx_info', arguments: {} }), {
      isError: true,
      content: [{ text: /id is required/ }],
    });
    t.equal(await codeOf(client.callTool({ name: 'nope' })), -32602);
    t.equal(await codeOf(client.callTool({ name: 'wallet_create_withdraw' })), -32001);
    t.equal(await codeOf(client.readResource({ uri: 'test://nope' })), mode.unknownResource);
  });

  t.test(`client 2, ${mode.name}: a cancelled call is aborted at the backend`, async (t) => {
    const { promise: arrived, resolve: reached } = promiseOf();
    const mcp = await startMcp({
      backend() {
        reached();
        return 'never';
      },
    });
    t.teardown(() => mcp.close());
    const { client } = await connectMode(t, mcp.http.url, mode, bearer(TOKENS.McpVerified));
    const stop = new AbortController();
    const call = client.callTool({ name: 'wallet_get_balance' }, { signal: stop.signal });
    const failed = t.rejects(call);
    await arrived;
    stop.abort();
    await failed;
    await mcp.asked[0]?.gone;
  });

  t.test(
    `client 2, ${mode.name}: a closed session is an error of the call, and the client lives on`,
    async (t) => {
      const mcp = closeAfter(t, await startMcp());
      const headers = bearer(TOKENS.McpVerified);
      const { client } = await connectMode(t, mcp.http.url, mode, headers);
      headers.Authorization = 'Bearer closed';
      t.equal(await codeOf(client.callTool({ name: 'wallet_get_balance' })), -32001);
      headers.Authorization = `Bearer ${TOKENS.McpVerified}`;
      t.match(await client.callTool({ name: 'wallet_get_balance' }), { content: [{ type: 'text' }] });
    },
  );
}

// covers R37
t.test('client 2: all modes on the real program, with a real login and the sandbox', async (t) => {
  const gateway = await launchFor(t, { configuration: { Settings: HIGH_LIMITS }, args: ['--sandbox'] });
  const person = await signUpAgent(gateway.url);
  const login = expectOk('mcp_login', await mcpLogin(gateway.url, person.key, Date.now()));
  await useEveryMode(t, gateway.url, String(login.json['result']?.['sessionId']));
});
