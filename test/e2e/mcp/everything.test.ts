/**
 * The official server "everything" behind the real program, by its address and by a command, used by both official clients:
 * tools with every kind of content, resources, templates, prompts, progress and cancellation.
 */
import { readFileSync } from 'node:fs';
import { Client as ClientOne } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import t, { type Test } from 'tap';
import { bearerOf, signUpAgent } from '../../../kit/agent.ts';
import { closeAfter } from '../../../kit/close-after.ts';
import { launchFor, NO_LIMITS } from '../../../kit/launch.ts';
import { bearer, connectMode, MODES } from '../../support/mcp-clients/client-modes.ts';
import { EVERYTHING_COMMAND, startEverything } from '../../support/upstreams/everything.ts';

t.setTimeout(240_000);

const server = await startEverything();
t.teardown(() => server.stop());
const gateway = await launchFor(t, {
  configuration: {
    McpServers: { all: { url: server.url }, own: { command: EVERYTHING_COMMAND } },
    Settings: NO_LIMITS,
  },
});
await gateway.said(/mcp server up[\s\S]*mcp server up/);
const SERVERS = ['all', 'own'] as const;
type ServerName = (typeof SERVERS)[number];
const person = await signUpAgent(gateway.url);
const token = await bearerOf(gateway.url, person.key);

/** Methods that the clients of both versions share. */
interface AnyClient {
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(
    params: { name: string; arguments?: Record<string, unknown> },
    ...more: never[]
  ): Promise<Record<string, unknown>>;
  listResources(): Promise<{ resources: { uri: string }[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>;
  readResource(params: { uri: string }): Promise<{ contents: object[] }>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  getPrompt(params: { name: string; arguments?: Record<string, string> }): Promise<{ messages: object[] }>;
}

async function useEverything(t: Test, client: AnyClient, server: ServerName): Promise<void> {
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name).filter((name) => name.startsWith(`${server}_`));
  for (const name of [
    'echo',
    'get-sum',
    'get-tiny-image',
    'get-structured-content',
    'get-resource-reference',
  ])
    t.ok(names.includes(`${server}_${name}`), name);
  const call = (name: string, values: Record<string, unknown>) =>
    client.callTool({ name: `${server}_${name}`, arguments: values });
  t.match(await call('echo', { message: 'Grüße' }), { content: [{ type: 'text', text: 'Echo: Grüße' }] });
  t.match(await call('get-sum', { a: 2, b: 3 }), { content: [{ type: 'text', text: /5/ }] });
  const { content } = await call('get-tiny-image', {});
  t.match(content, [{ type: 'text' }, { type: 'image', mimeType: 'image/png' }, { type: 'text' }]);
  const structured = await call('get-structured-content', { location: 'New York' });
  t.match(structured['structuredContent'], { temperature: Number });
  const reference = await call('get-resource-reference', { resourceType: 'Text', resourceId: 1 });
  t.match(JSON.stringify(reference), /"type":"resource","resource":\{"uri":"demo:/);
  t.match(await call('get-annotated-message', { messageType: 'error' }), {
    content: [{ annotations: { priority: 1, audience: ['user', 'assistant'] } }],
  });
  t.match(await call('get-sum', { a: 'two' }), { isError: true }, 'the argument check');

  const { resources } = await client.listResources();
  const uri = resources.map((each) => each.uri).find((each) => each.startsWith(`up+${server}:`));
  t.match((await client.readResource({ uri: uri ?? '' })).contents, [{ text: String }]);
  const { resourceTemplates } = await client.listResourceTemplates();
  t.ok(
    resourceTemplates.some(({ uriTemplate }) =>
      uriTemplate.startsWith(`up+${server}:demo://resource/dynamic/text/`),
    ),
  );
  const dynamic = await client.readResource({ uri: `up+${server}:demo://resource/dynamic/text/3` });
  t.match(dynamic.contents, [{ uri: 'demo://resource/dynamic/text/3' }]);
  const bytes = await client.readResource({ uri: `up+${server}:demo://resource/dynamic/blob/3` });
  t.match(bytes.contents, [{ uri: 'demo://resource/dynamic/blob/3', blob: /^[A-Za-z0-9+/]+=*$/ }]);
  const { prompts } = await client.listPrompts();
  t.ok(prompts.some(({ name }) => name === `${server}_simple-prompt`));
  const got = await client.getPrompt({ name: `${server}_args-prompt`, arguments: { city: 'Riga' } });
  t.match(got.messages, [{ role: 'user', content: { type: 'text', text: /weather in Riga/ } }]);
}

const long = (server: ServerName) => ({
  name: `${server}_trigger-long-running-operation`,
  arguments: { duration: 0.4, steps: 4 },
});
const endless = (server: ServerName) => ({
  ...long(server),
  arguments: { duration: 3_600, steps: 3_600_000 },
});

async function progressOf(
  call: (onprogress: (report: { progress: number }) => void) => Promise<unknown>,
): Promise<number[]> {
  const reports: number[] = [];
  await call(({ progress }) => reports.push(progress));
  return reports;
}

for (const server of SERVERS)
  t.test(`everything server ${server}, client 1: contents, lists, progress, cancellation`, async (t) => {
    const client = closeAfter(t, new ClientOne({ name: 'test', version: '1.0.0' }));
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
        requestInit: { headers: bearer(token) },
      }),
    );
    await useEverything(t, client as unknown as AnyClient, server);
    const reports = await progressOf((onprogress) =>
      client.callTool(long(server), undefined, { onprogress }),
    );
    t.same(reports, [1, 2, 3, 4]);
    const stop = new AbortController();
    const stopped = client.callTool(endless(server), undefined, {
      signal: stop.signal,
      onprogress: () => stop.abort(),
    });
    await t.rejects(stopped);
  });

for (const mode of MODES)
  t.test(`everything server, client 2, ${mode.name}: the same by address and by command`, async (t) => {
    const { client } = await connectMode(t, gateway.url, mode, bearer(token));
    for (const server of SERVERS) {
      await useEverything(t, client as unknown as AnyClient, server);
      const reports = await progressOf((onprogress) => client.callTool(long(server), { onprogress }));
      t.same(reports, [1, 2, 3, 4]);
      const stop = new AbortController();
      const stopped = client.callTool(endless(server), {
        signal: stop.signal,
        onprogress: () => stop.abort(),
      });
      await t.rejects(stopped);
    }
  });

t.test('everything server: a process that is killed is one restart in the metrics', async (t) => {
  const restarts = async () => {
    const metrics = await (await fetch(`${gateway.internal}/metrics`)).text();
    return [...metrics.matchAll(/^gatehouse_mcp_server_restarts_total\{server="(\w+)"\} (\d+)$/gm)].map(
      ([, name, count]) => [name, count],
    );
  };
  t.same(await restarts(), [['own', '0']], 'a server by address has no process');
  const { pid } = gateway.process;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  const own = children.filter((child) =>
    readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('everything'),
  );
  t.equal(own.length, 1);
  process.kill(Number(own[0]), 'SIGKILL');
  await gateway.said(/mcp server down[\s\S]*mcp server up/);
  t.same(await restarts(), [['own', '1']]);
});
