/** Another MCP server behind the real program, configured as docs/upstreams.md shows it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'jsonc-parser';
import t from 'tap';
import { callTool, expectOk, mcpLogin, rpc, signUp, updateKey } from '../../../kit/agent.ts';
import { launch } from '../../../kit/launch.ts';
import { startUpstream } from '../../support/upstreams/server.ts';

t.setTimeout(120_000);

const [, example = ''] =
  /```jsonc\n("McpServers"[\s\S]*?)```/.exec(readFileSync('docs/upstreams.md', 'utf8')) ?? [];
const { McpServers } = parse(`{${example}}`) as { McpServers: { weather: { url: string } } };
const tool = (name: string) => ({ name, description: name, inputSchema: { type: 'object' } });

t.test(
  'upstream example: the tools of the page are listed, called, counted, and gone after a reload',
  async (t) => {
    const upstream = await startUpstream(['get_forecast', 'get_history', 'delete_all'].map(tool));
    t.teardown(() => upstream.close());
    const weather = { ...McpServers.weather, url: upstream.url };
    const configuration = { McpServers: { weather }, Settings: { McpApiRPSLimit: 100 } };
    const gateway = await launch({
      configuration,
      args: ['--sandbox'],
      environment: { WEATHER_TOKEN: 'of-it' },
    });
    t.teardown(() => gateway.stop());
    await gateway.said(/mcp server up/);
    const person = await signUp(gateway.url);
    expectOk('update_key', await updateKey(gateway.url, person, { mcpAccess: true }));
    const login = expectOk('mcp_login', await mcpLogin(gateway.url, person.key, Date.now()));
    const bearer = String(login.json['result']?.['sessionId']);
    const listed = async () => {
      const { text } = await rpc(gateway.url, bearer, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
      return [...text.matchAll(/"name":"(weather_\w+)"/g)].map(([, name]) => name);
    };
    t.same(await listed(), ['weather_get_forecast', 'weather_get_history']);
    const called = await callTool(gateway.url, bearer, 'weather_get_forecast', { city: 'Riga' });
    t.match(called.json, { result: { content: [{ text: '{"city":"Riga"}' }] } });
    t.equal(upstream.asked.at(-1)?.headers.authorization, 'of-it');
    const metrics = await (await fetch(`${gateway.internal}/metrics`)).text();
    t.match(metrics, /gatehouse_mcp_server_up\{server="weather"\} 1/);
    t.match(metrics, /gatehouse_mcp_server_calls_total\{server="weather",outcome="answered"\} 1/);
    t.match(metrics, /gatehouse_calls_total\{event="mcp.tool",name="weather_get_forecast",outcome="ok"\} 1/);
    writeFileSync(
      join(gateway.dataPath, '..', 'gatehouse.json'),
      JSON.stringify({ ...configuration, McpServers: {} }),
    );
    gateway.process.kill('SIGHUP');
    await gateway.said(/catalog reloaded/);
    t.same(await listed(), []);
  },
);
