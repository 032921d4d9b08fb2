/** Servers by command: a process for all callers, its messages byte for byte, and what is left when it misbehaves. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import type { McpServerConfiguration } from '../../../src/domain/config/mcp-servers.ts';
import { endMarked, MARK_VARIABLE } from '../../../src/io/mcp/upstreams/stdio/leftovers.ts';
import { depth } from '../../support/depth.ts';
import { TOKENS } from '../../support/mcp.ts';
import { configurationOf, OPEN, startGateway } from '../../support/upstreams/gateway.ts';

t.setTimeout(900_000);

const FILE = fileURLToPath(new URL('../../support/upstreams/stdio-server.js', import.meta.url));
const RESTARTS = depth.count(300);
const FAILED = { error: { code: -32000 } };
const bearer = { authorization: `Bearer ${TOKENS.McpVerified}` };

function byCommand(command: readonly string[], given: Partial<McpServerConfiguration> = {}) {
  const environment = { PATH: process.env['PATH'] ?? '' };
  return { ...configurationOf({ url: '' } as never, given), url: undefined, command, environment };
}

/** Processes of this test that are not zombies, with the command line of each. */
function running(): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const isOurs = readFileSync(`/proc/${pid}/environ`, 'latin1').includes(
        `${MARK_VARIABLE}=test-${process.pid}/`,
      );
      return isOurs ? [readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')] : [];
    } catch {
      return [];
    }
  });
}

async function start(t: Test, mode = '', given: Partial<McpServerConfiguration> = {}) {
  const gateway = await startGateway(t, { other: byCommand([process.execPath, FILE, mode], given) });
  const { mcp, servers, lines, until } = gateway;
  const link = () => {
    const [first] = servers.links;
    if (first === undefined) throw new Error('no server');
    return first;
  };
  return {
    ...gateway,
    link,
    ask: (name: string, args: object = {}) =>
      mcp.rpc('tools/call', { name: `up_${name}`, arguments: args }, TOKENS.McpVerified),
    isUp: () => until(() => link().state === 'up'),
    isDown: () => until(() => link().state === 'down'),
    said: (name: string) => lines.filter((line) => line.name === name).map(({ fields }) => fields['detail']),
  };
}

async function startUp(...given: Parameters<typeof start>) {
  const started = await start(...given);
  await started.isUp();
  return started;
}

// covers R119
t.test(
  'stdio server: arguments and results pass unchanged, digits and unknown members included',
  async (t) => {
    const { mcp } = await startUp(t);
    const given = '{"n":9007199254740991,"x":1.0,"s":"\\u00e9"}';
    const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up_echo","arguments":${given}}}`;
    const answer = (await mcp.post(body, bearer)).text;
    t.ok(answer.includes(`"given":${given},"digits":1.50`), answer);
  },
);

// covers S201
t.test(
  'stdio server: one process serves all callers, and is started with the variables that were named',
  async (t) => {
    const { servers, ask } = await startUp(t);
    const [first, second] = await Promise.all([ask('environment'), ask('environment')]);
    const variables = JSON.parse(first.result?.content?.[0]?.text ?? '{}') as Record<string, string>;
    t.same(Object.keys(variables).sort(), [MARK_VARIABLE, 'PATH']);
    t.same(second.result, first.result);
    t.equal(running().length, 1);
    await servers.close();
    t.same(running(), []);
  },
);

t.test('stdio server: progress reaches its caller, and a cancelled call is cancelled there', async (t) => {
  const { mcp, ask } = await startUp(t);
  const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up_progress","arguments":{},"_meta":{"progressToken":"p"}}}`;
  const { text } = await mcp.post(body, {
    ...bearer,
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-06-18',
  });
  t.match(text, /"progressToken":"p","progress":1[\s\S]*"progress":2[\s\S]*done/);
  t.match(
    await ask('asks'),
    { result: { content: [{ text: /"id":"g1".*-32601/ }] } },
    'its requests are refused',
  );
});

t.test('stdio server: a process that dies fails its calls alone, and is started again', async (t) => {
  const { ask, isUp, isDown, link, runTimers, lines } = await startUp(t);
  const hanging = ask('hang');
  t.match(await ask('die'), FAILED);
  t.match(await hanging, FAILED);
  await isDown();
  t.equal(link().reason, 'exited with 3: something broke');
  t.match(lines, [{}, { name: 'mcpServerSaid' }, { name: 'mcpServerDown' }]);
  t.match(await ask('echo'), FAILED, 'at once, while there is none');
  t.equal(link().counts.starts, 1);
  runTimers();
  await isUp();
  t.equal(link().counts.starts, 2);
  t.match(await ask('junk'), { result: {} });
});

for (const [mode, reason] of [
  ['dies-at-once', 'exited with 4'],
  ['dies-listed', 'exited with 5'],
] as const)
  t.test(`stdio server: one that ${mode.replace('-', ' ')} is started with growing pauses`, async (t) => {
    const { link, timers, until } = await start(t, mode);
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000]) {
      await until(() => timers.some(({ delayMs }) => delayMs === pauseMs));
      t.equal(link().reason, reason);
      for (const { run } of timers.splice(0)) run();
    }
  });

t.test(
  'stdio server: an answer of more than 4 MiB fails its call alone, wherever its id stands',
  async (t) => {
    const { ask, link } = await startUp(t);
    for (const name of ['long', 'longer'])
      t.match(await ask(name), {
        result: { isError: true, content: [{ text: /ModuleAnswerTooLarge|ask for less/ }] },
      });
    t.match(await ask('junk'), { result: {} });
    t.equal(link().state, 'up');
  },
);

// covers S200
t.test('stdio server: a line without end ends the process', async (t) => {
  const { ask, isDown, link } = await startUp(t);
  t.match(await ask('endless'), FAILED);
  await isDown();
  t.equal(link().reason, 'wrote a line of more than 64 MiB');
  t.same(running(), []);
});

// covers S200
t.test('stdio server: a flood of messages is read at its bound', async (t) => {
  const { ask, timers, until } = await startUp(t);
  const flooded = ask('flood');
  for (let pauses = 0; pauses < 2; pauses += 1) {
    await until(() => timers.some(({ delayMs }) => delayMs === 1_000));
    const at = timers.findIndex(({ delayMs }) => delayMs === 1_000);
    timers.splice(at, 1)[0]?.run();
  }
  t.match(await flooded, { result: { content: [{ text: 'after the flood' }] } });
});

t.test('stdio server: what is no message is logged, and standard error in bounds', async (t) => {
  const { ask, said, time, until } = await startUp(t);
  t.match(await ask('junk'), { result: { content: [{ text: 'after junk' }] } });
  t.same(said('mcpServerSaid'), ['ready to serve', '[1]']);
  t.match(await ask('talks'), { result: {} });
  await until(() => said('mcpServerSaid').length === 60);
  time.nowMs += 60_000;
  t.match(await ask('junk'), { result: {} });
  t.same(said('mcpServerSaid').slice(58, 62), [
    'line 56',
    'line 57',
    '142 more lines are not shown',
    'ready to serve',
  ]);
});

// covers S200
t.test('stdio server: its children end with it, those that left its process group included', async (t) => {
  const { ask, isUp, isDown, runTimers, servers } = await startUp(t);
  t.match(await ask('children'), { result: {} });
  t.equal(running().length, 3);
  t.match(await ask('die'), FAILED);
  await isDown();
  t.same(running(), [], 'it died');
  runTimers();
  await isUp();
  t.match(await ask('children'), { result: {} });
  await servers.close();
  t.same(running(), [], 'it was closed');
});

t.test('stdio server: one that ignores the end of its input is asked to end, then ended', async (t) => {
  const { said, timers, until, servers } = await startUp(t, 'ignores-end');
  const closed = servers.close();
  for (let steps = 0; steps < 2; steps += 1) {
    await until(() => timers.some(({ delayMs }) => delayMs === 1_000));
    timers.splice(0).forEach(({ run }) => {
      run();
    });
    if (steps === 0) await until(() => said('mcpServerSaid').includes('asked to end'));
  }
  await closed;
  t.same(running(), []);
});

t.test('stdio server: a stop waits for a process that is being replaced', async (t) => {
  const { link, time, timers, until, servers } = await startUp(t, 'ignores-end');
  const { session } = link();
  if (session === undefined) throw new Error('no session');
  time.nowMs += 1_000;
  const replaced = link().renewed(session);
  let isClosed = false;
  const closed = servers.close().then(() => {
    isClosed = true;
  });
  for (let steps = 0; steps < 2; steps += 1) {
    await until(() => timers.some(({ delayMs }) => delayMs === 1_000));
    await new Promise(setImmediate);
    t.notOk(isClosed);
    timers.splice(0).forEach(({ run }) => {
      run();
    });
  }
  await Promise.all([closed, replaced]);
  t.same(running(), []);
});

t.test('stdio server: calls of one that reads no more are refused once 8 MiB wait', async (t) => {
  const { ask, servers, runTimers } = await startUp(t, '', {
    rows: { echo: { ...OPEN, timeoutMs: 300 } },
  });
  t.match(await ask('deaf'), { result: {} });
  const large = { text: 'x'.repeat(60_000) };
  const answers = await Promise.all(Array.from({ length: 170 }, () => ask('echo', large)));
  t.ok(answers.every(({ error }) => error?.code === -32000));
  const reasons = new Set(answers.map(({ error }) => error?.message));
  t.equal(reasons.size, 2, [...reasons].join());
  const closed = servers.close();
  runTimers();
  runTimers();
  await closed;
});

t.test('stdio server: a program that does not exist is a server that is down', async (t) => {
  const { servers, until } = await startGateway(t, { other: byCommand(['/no/such/program']) });
  await until(() => servers.links[0]?.state === 'down');
  t.equal(servers.links[0]?.reason, 'spawn /no/such/program ENOENT');
});

t.test(
  'stdio server: another command replaces the process once it has ended, the same one does not',
  async (t) => {
    const { servers, link, until } = await startUp(t);
    const before = link();
    servers.follow({ other: byCommand([process.execPath, FILE, '']) });
    t.equal(link(), before);
    servers.follow({ other: byCommand([process.execPath, FILE, 'other']) });
    await until(() => link() !== before && link().state === 'up');
    t.match(running(), [/stdio-server\.js other $/]);
    servers.follow({});
    await endMarked(`test-${process.pid}/`);
  },
);

t.test('stdio server: a left process whose program is being loaded is read again, and ended', async (t) => {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  const mark = Buffer.from(`${MARK_VARIABLE}=test/left\0`);
  let reads = 0;
  await endMarked('test/left', async (pid) => {
    if (pid !== child.pid) return undefined;
    reads += 1;
    return reads < 3 ? Buffer.alloc(0) : mark;
  });
  t.same(await exited, [null, 'SIGKILL']);
});

/** Answers the handshake and the list, starts one child in its group and one outside, then ends. */
const SHORT_LIFE = `
sleep 1000 & setsid sleep 1000 &
while read -r line; do
  id=\${line##*'"id":'}; id=\${id%%[,\\}]*}
  case $line in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"short","version":"1"}}}';;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[]}}'; exit 7;;
  esac
done`;

t.test(`stdio server: ${RESTARTS} restarts leave no process`, async (t) => {
  const gateway = await startGateway(t, { other: byCommand(['/bin/sh', '-c', SHORT_LIFE]) });
  const { servers, timers, until } = gateway;
  let ends = 0;
  for (; ends < RESTARTS; ends += 1) {
    await until(() => servers.links[0]?.state === 'down' && timers.length > 0);
    const [link] = servers.links;
    if (link?.reason !== 'exited with 7') throw new Error(link?.reason);
    link.state = 'connecting';
    for (const { run } of timers.splice(0)) run();
  }
  await until(() => servers.links[0]?.state === 'down');
  t.equal(servers.links[0]?.counts.starts, ends + 1);
  await servers.close();
  t.same(running(), []);
});
