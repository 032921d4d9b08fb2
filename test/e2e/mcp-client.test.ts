/**
 * The official client against the program: a user signs up and enables the key, an agent logs in by signature and
 * uses every tool of the catalog on the sandbox, moves money, loses its session, and gets a custom tool by reload.
 */
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import {
  basicBearerOf,
  bearerOf,
  newKey,
  type Person,
  request,
  signUp,
  signUpAgent,
} from '../../kit/agent.ts';
import { listenFor } from '../../kit/http.ts';
import { HIGH_LIMITS, launchFor, type RunningGateway } from '../../kit/launch.ts';
import { BUILT_IN } from '../../src/io/mcp/tools/built-in.ts';
import { connectClient, toolResult, useEveryTool } from '../support/mcp-clients/every-tool.ts';

t.setTimeout(120_000);

const gateway = await launchFor(t, { configuration: { Settings: HIGH_LIMITS }, args: ['--sandbox'] });

// covers R28 R77
t.test('official client: every gateway and wallet tool on the real program, as McpVerified', async (t) => {
  const enrol = async () => {
    const person = await signUpAgent(gateway.url);
    return { person, bearer: await bearerOf(gateway.url, person.key) };
  };
  await useEveryTool(t, gateway.url, { user: await enrol(), receiver: await enrol() });
});

// covers R1 R76
t.test('official client: McpBasic reads the curated tools and moves no money', async (t) => {
  const client = await connectClient(
    t,
    gateway.url,
    await basicBearerOf(gateway.url, (await signUpAgent(gateway.url)).key),
  );
  const { tools } = await client.listTools();
  t.ok(tools.every(({ annotations }) => annotations?.readOnlyHint === true));
  t.ok(tools.some(({ name }) => name === 'wallet_get_balance'));
  t.ok((await toolResult(t, client, 'wallet_get_balance')).balances.length > 0);
  for (const name of ['wallet_internal_transfer', 'wallet_create_withdraw', 'close_sessions', 'sessions'])
    await t.rejects(client.callTool({ name }), { code: -32001 }, name);
});

async function reloadsOf(gateway: RunningGateway, admin: Person): Promise<string[]> {
  const headers = { Cookie: admin.cookie };
  const answer = await request(`${gateway.url}/ProxyAdmin/api/audit?after=0&limit=1000`, { headers });
  const rows = answer.json['result'] as unknown as { event: string; fields: { outcome: string } }[];
  return rows.filter(({ event }) => event === 'admin.reload').map(({ fields }) => fields.outcome);
}

// covers R24
t.test(
  'custom tools: loaded from the configuration, swapped by SIGHUP and by an admin, kept if the new file has faults',
  async (t) => {
    const asked: string[] = [];
    const adminKey = newKey();
    const backend = http.createServer((incoming, response) => {
      asked.push(`${incoming.method} ${incoming.url} ${incoming.headers['x-scopes']}`);
      response.end('{"n":9007199254740993}');
    });
    const { url: address } = await listenFor(t, backend);
    const row = {
      endpoint: `${address}/x`,
      method: 'GET',
      description: 'A tool',
      inputSchema: { type: 'object' },
    };
    const configuration = {
      Settings: HIGH_LIMITS,
      Admin: { publicKeys: [adminKey.publicKey] },
      McpTools: { first: row },
      McpResources: {
        'test://static-text': { endpoint: `${address}/text`, name: 'Text', mimeType: 'text/plain' },
      },
    };
    const gateway = await launchFor(t, { configuration, args: ['--sandbox'] });
    const client = await connectClient(
      t,
      gateway.url,
      await bearerOf(gateway.url, (await signUpAgent(gateway.url)).key),
    );
    const answer = await client.callTool({ name: 'first', arguments: { a: '1' } });
    t.match(answer.content, [{ text: '{"n":9007199254740993}' }]);
    const { contents } = await client.readResource({ uri: 'test://static-text' });
    t.match(contents, [{ uri: 'test://static-text', mimeType: 'text/plain' }]);
    t.strictSame(asked, ['GET /x?a=1 McpVerified', 'GET /text McpVerified']);

    const file = join(gateway.dataPath, '..', 'gatehouse.json');
    const reloaded = async (change: object, logged: RegExp) => {
      const before = gateway.output().stderr.length;
      writeFileSync(file, JSON.stringify({ ...configuration, ...change }));
      const said = new Promise<void>((resolve) => {
        gateway.process.stderr?.on(
          'data',
          () => logged.test(gateway.output().stderr.slice(before)) && resolve(),
        );
      });
      gateway.process.kill('SIGHUP');
      await said;
      return (await client.listTools()).tools
        .map(({ name }) => name)
        .filter((name) => BUILT_IN.tools[name] === undefined);
    };
    t.strictSame(
      await reloaded({ McpTools: { second: { ...row, method: 'TRACE' } } }, /McpTools\.second\.method/),
      ['first'],
    );
    t.strictSame(await reloaded({ McpTools: { second: row } }, /reload/), ['second']);

    const admin = await signUp(gateway.url, adminKey);
    const byAdmin = async (change: object) => {
      writeFileSync(file, JSON.stringify({ ...configuration, ...change }));
      return request(`${gateway.url}/ProxyAdmin/api/reload`, {
        headers: { Cookie: admin.cookie },
        body: {},
      });
    };
    const broken = await byAdmin({ McpTools: { third: { ...row, method: 'TRACE' }, 'bad name': row } });
    t.equal(broken.status, 409);
    t.match(broken.json, {
      error: { code: 1017, faults: [{ path: 'McpTools.third.method' }, { path: 'McpTools.bad name' }] },
    });
    t.ok((await client.listTools()).tools.some(({ name }) => name === 'second'));
    const mended = await byAdmin({ McpTools: { third: row, fourth: row } });
    t.match(mended, { status: 200, json: { result: { tools: Object.keys(BUILT_IN.tools).length + 2 } } });
    const names = (await client.listTools()).tools.map(({ name }) => name);
    t.ok(names.includes('third') && names.includes('fourth') && !names.includes('second'));
    t.strictSame(await reloadsOf(gateway, admin), ['refused', 'ok']);
  },
);
