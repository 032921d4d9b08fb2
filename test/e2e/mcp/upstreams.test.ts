/** Other MCP servers behind the real program, configured as docs/upstreams.md shows it. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'jsonc-parser';
import t, { type Test } from 'tap';
import { bearerOf, callTool, newKey, rpc, signUp, signUpAgent } from '../../../kit/agent.ts';
import { closeAfter } from '../../../kit/close-after.ts';
import { launch, launchFor, runToEnd } from '../../../kit/launch.ts';
import { runCommand } from '../../support/command.ts';
import { startUpstream } from '../../support/upstreams/server.ts';

t.setTimeout(120_000);

/** The server of the example below a heading of the page. */
function exampleOf(heading: string, name: string): Readonly<Record<string, unknown>> {
  const [, section = ''] = readFileSync('docs/upstreams.md', 'utf8').split(`## ${heading}\n`);
  const [, example = ''] = /```jsonc\n("McpServers"[\s\S]*?)```/.exec(section) ?? [];
  const { McpServers } = parse(`{${example}}`) as { McpServers: Record<string, Record<string, unknown>> };
  return McpServers[name] ?? {};
}

const tool = (name: string) => ({ name, description: name, inputSchema: { type: 'object' } });

const upstream = closeAfter(t, await startUpstream(['get_forecast', 'get_history', 'delete_all'].map(tool)));
const weather = { ...exampleOf('A server by its address', 'weather'), url: upstream.url };
const notes = exampleOf('A server by a command', 'notes');
/** In the command line of its server by a command: that of this run. */
const mark = `ignores-end-${process.pid}`;
const stdioServer = fileURLToPath(new URL('../../support/upstreams/stdio-server.js', import.meta.url));
const configuration = {
  McpServers: {
    weather,
    notes: { ...notes, command: ['node', stdioServer, 'ignores-end', mark], tools: { allow: ['en*'] } },
  },
  Settings: { McpApiRPSLimit: 100 },
};
const environment = { WEATHER_TOKEN: 'of-it', NOTES_TOKEN: 'of-the-notes', OTHER_SECRET: 'of-the-gateway' };
/** Serves both examples of the page; the last test kills it. */
const standing = await launch({ configuration, environment });

t.test(
  'upstream example: the tools of the page are listed, called, counted, and gone after a reload',
  async (t) => {
    const gateway = standing;
    await gateway.said(/"server":"weather".*"mcp server up"/);
    const person = await signUpAgent(gateway.url);
    const bearer = await bearerOf(gateway.url, person.key);
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
      JSON.stringify({ ...configuration, McpServers: { notes: configuration.McpServers.notes } }),
    );
    gateway.process.kill('SIGHUP');
    await gateway.said(/catalog reloaded/);
    t.same(await listed(), []);
  },
);

async function eventsOf(t: Test, url: string, cookie: string) {
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const { body } = await fetch(`${url}/auth/v1/events`, { headers: { Cookie: cookie }, signal: stop.signal });
  if (body === null) throw new Error('no stream');
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return async (wanted: RegExp): Promise<string> => {
    for (;;) {
      const found = wanted.exec(text);
      if (found !== null) return found[0];
      const { value, done } = await reader.read();
      if (done) throw new Error(`the stream ended: ${text}`);
      text += value;
    }
  };
}

// covers R120 S193
t.test(
  'upstream approval: the event reaches admins, the command shows both sides and approves what it showed',
  async (t) => {
    const described = (name: string, description: string) => ({ ...tool(name), description });
    const upstream = closeAfter(t, await startUpstream([described('a', 'Reads.'), tool('b')]));
    const admin = newKey();
    const gateway = await launchFor(t, {
      configuration: {
        Admin: { publicKeys: [admin.publicKey] },
        McpServers: { weather: { url: upstream.url } },
      },
    });
    const streamed = new Promise<void>((resolve) => {
      if (upstream.streams.size > 0) resolve();
      upstream.onStream = resolve;
    });
    await gateway.said(/mcp server up/);
    await streamed;
    const event = await eventsOf(t, gateway.url, (await signUp(gateway.url, admin)).cookie);
    const other = await eventsOf(t, gateway.url, (await signUp(gateway.url)).cookie);
    upstream.tools = [described('a', 'Reads, and sends mail.'), tool('b')];
    upstream.changed();
    t.match(await event(/data: .*McpServerChanged.*/), /"module":"gateway".*"server":"weather"/);
    await gateway.said(/mcp tools wait/);
    const run = (...args: string[]) => runCommand(['mcp-servers', ...args, '--data', gateway.dataPath]);
    const listed = await runToEnd(['mcp-servers', 'list', '--data', gateway.dataPath]);
    t.match(listed, {
      code: 0,
      stdout: /^weather: up; tools: 1 served, 1 hidden, 0 left out\n {2}changed a [\w-]{43}\n$/,
    });
    const both = await run('diff', 'weather', 'a');
    t.match(both.stdout, /\n- {3}"description": "Reads\."/);
    t.match(both.stdout, /\n\+ {3}"description": "Reads, and sends mail\."/);
    const approve =
      /gatehouse (mcp-servers approve weather a [\w-]{43})\n$/.exec(both.stdout)?.[1]?.split(' ') ?? [];
    t.match(await run('approve', 'weather', 'a', 'A'.repeat(43)), { code: 64, stderr: /may have changed/ });
    t.match(await run(...approve.slice(1)), { code: 0, stdout: /^weather: up; tools: 2 served, 0 hidden/ });
    t.match(await run('diff', 'weather'), { code: 0, stdout: 'no tool waits\n' });
    for (const [action, ...rest] of [
      ['approve', 'nowhere', 'a', 'x'],
      ['diff', 'nowhere'],
      ['diff', 'weather', 'a'],
      ['approve'],
      ['nothing'],
    ])
      t.equal((await run(action ?? '', ...rest)).code, 64, `${action} ${rest.join(' ')}`);
    t.same(
      readdirSync(gateway.dataPath).filter((name) => name.startsWith('mcp-servers')),
      [],
    );
    const own = other(/data: .*McpServerChanged.*/).then(
      () => 'heard',
      () => 'not heard',
    );
    await gateway.stop();
    t.equal(await own, 'not heard', 'another account');
  },
);

/** Processes with this text in their command line that are no zombies. */
function running(text: string): number {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(text);
    } catch {
      return false;
    }
  }).length;
}

// covers S200 S201
t.test(
  'upstream example by command: the tools of the page are called, and no kill leaves the process',
  async (t) => {
    t.match(notes, { command: ['node', /server\.js$/], tools: { allow: ['read_*', 'search'] } });
    const first = standing;
    await first.said(/"server":"notes".*"mcp server up"/);
    const person = await signUpAgent(first.url);
    const bearer = await bearerOf(first.url, person.key);
    const { text } = await callTool(first.url, bearer, 'notes_environment', {});
    t.match(text, /NOTES_TOKEN.*of-the-notes/);
    t.notMatch(text, /OTHER_SECRET/);
    t.equal(running(mark), 1);
    await first.kill();
    t.equal(running(mark), 1, 'it ignores the end of its input');
    const second = await launch({ configuration, environment, dataPath: first.dataPath });
    await second.said(/"server":"notes".*"mcp server up"/);
    t.equal(running(mark), 1, 'that of the first run is ended');
    await second.stop();
    t.equal(running(mark), 0);
  },
);
