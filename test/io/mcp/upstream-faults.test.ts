/** Another MCP server that misbehaves: its own tools fail or are left out, and nothing else does. */
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { ANSWER_MAX_BYTES } from '../../../src/io/http-client/attempt.ts';
import { TOOLS_MAX } from '../../../src/io/mcp/upstreams/definitions.ts';
import { CONTROL_BYTES_MAX } from '../../../src/io/mcp/upstreams/guarded-fetch.ts';
import { type McpFixture, TOKENS } from '../../support/mcp.ts';
import { configurationOf, startGateway, startWithUpstream } from '../../support/upstreams/gateway.ts';
import { json, resultOf, startUpstream } from '../../support/upstreams/server.ts';

const ANY = { type: 'object' };
const tool = (name: string, more: object = {}) => ({ name, description: name, inputSchema: ANY, ...more });
const EVENTS = { 'content-type': 'text/event-stream' };
const FAILED = { error: { code: -32000 } };

const ask = (mcp: McpFixture, name = 'up_a') => mcp.rpc('tools/call', { name }, TOKENS.McpVerified);
const shown = ({ catalog }: McpFixture) =>
  [...catalog.current.tools.keys()].filter((name) => name.startsWith('up_'));

// covers S190
t.test(
  'upstream faults: a server that is not there delays no start, and is asked again after growing pauses',
  async (t) => {
    const gone = await startUpstream([]);
    await gone.close();
    const { mcp, lines, timers, until, runTimers } = await startGateway(t, { other: configurationOf(gone) });
    t.match(await mcp.rpc('tools/call', { name: 'wallet_get_balance' }, TOKENS.McpVerified), { result: {} });
    for (const delayMs of [1_000, 2_000, 4_000]) {
      await until(() => timers.length > 0);
      t.equal(timers[0]?.delayMs, delayMs);
      runTimers();
    }
    await until(() => timers.length > 0);
    t.match(lines, [{ name: 'mcpServerDown', fields: { server: 'other', detail: /ECONNREFUSED/ } }]);
    t.equal(lines.length, 1, 'one line for one reason');
  },
);

t.test(
  'upstream faults: a call that waits for a renewed session can be cancelled, and is not sent again',
  async (t) => {
    const { mcp, upstream, time } = await startWithUpstream(t, [tool('a')]);
    const opening = new Promise<() => void>((resolve) => {
      upstream.onOpen = resolve;
    });
    time.nowMs += 10_000;
    upstream.forgetSessions();
    const calling = ask(mcp, 'up_a');
    const open = await opening;
    const notice = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    await mcp.post(JSON.stringify(notice), { authorization: `Bearer ${TOKENS.McpVerified}` });
    t.match(await calling, { error: { code: -32000, message: /cancelled/ } });
    upstream.onOpen = undefined;
    let served = 0;
    upstream.respond = ({ id }, response) => {
      served += 1;
      json(response, resultOf(id, '{"content":[]}'));
    };
    open();
    t.match(await ask(mcp), { result: {} });
    t.equal(served, 1, 'the other call alone');
    t.match(
      mcp.audit.map(({ fields }) => fields['outcome']),
      ['cancelled', 'ok'],
    );
  },
);

for (const lostStatus of [404, 400])
  t.test(
    `upstream faults: a lost session (${lostStatus}) is opened once for all calls, and each is repeated once`,
    async (t) => {
      const { mcp, upstream, time } = await startWithUpstream(t, [tool('a')]);
      upstream.lostStatus = lostStatus;
      upstream.forgetSessions();
      time.nowMs += 1_000;
      const answers = await Promise.all(Array.from({ length: 8 }, () => ask(mcp)));
      for (const answer of answers) t.match(answer, { result: { content: [{ text: '{}' }] } });
      t.equal(upstream.sessions.opened, 2);
    },
  );

t.test('upstream faults: a server that loses each session at once is not opened for each call', async (t) => {
  const { mcp, upstream, time } = await startWithUpstream(t, [tool('a')]);
  upstream.onAsked = ({ method }) => {
    if (method === 'tools/call') upstream.forgetSessions();
  };
  time.nowMs += 1_000;
  for (let count = 0; count < 10; count += 1) t.match(await ask(mcp), FAILED);
  t.equal(upstream.sessions.opened, 2);
  t.match(await ask(mcp, 'wallet_get_balance'), { result: {} }, 'others are unaffected');
});

// covers S190 S192
t.test('upstream faults: half an answer, none, no JSON, another id and a redirect are -32000', async (t) => {
  const { mcp, upstream } = await startWithUpstream(
    t,
    'abcdefg'.split('').map((name) => tool(name)),
  );
  const answers: Record<string, typeof upstream.respond> = {
    a: (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
      response.write('{"jsonrpc":"2.0"', () => response.destroy());
    },
    b: ({ id }, response) => {
      response.writeHead(200, EVENTS);
      response.write(`data: {"jsonrpc":"2.0","id":${id},"res`, () => response.end());
    },
    c: (_, response) => json(response, ''),
    d: ({ id }, response) => json(response, `{"jsonrpc":"2.0","id":${id},"result":{"content":[`),
    e: (_, response) => json(response, resultOf('"g0"', '{"content":[]}')),
    f: ({ id }, response) => json(response, resultOf(id, '5')),
    g: (_, response) => {
      response.writeHead(307, { location: upstream.url });
      response.end();
    },
  };
  upstream.respond = (call, response) => answers[call.name]?.(call, response);
  for (const name of Object.keys(answers)) t.match(await ask(mcp, `up_${name}`), FAILED, name);
});

// covers S190
t.test('upstream faults: a flood is a result that says so, and the connection is closed', async (t) => {
  const { mcp, upstream } = await startWithUpstream(t, [tool('a')]);
  let gone: Promise<void> | undefined;
  upstream.respond = (call, response) => {
    gone = call.gone;
    response.writeHead(200, EVENTS);
    const event = Buffer.alloc(ANSWER_MAX_BYTES / 4, ': a comment\n');
    for (let count = 0; count < 5; count += 1) response.write(event);
  };
  t.match(await ask(mcp), { result: { isError: true, content: [{ text: /too large/i }] } });
  await gone;
});

// covers S190
t.test(
  'upstream faults: a hanging call ends at its time-out, and the breaker of the tool opens alone',
  async (t) => {
    const rows = { a: { restricted: [], timeoutMs: 20 } } as const;
    const { mcp, upstream, servers } = await startWithUpstream(t, [tool('a'), tool('b')], { rows });
    upstream.respond = ({ name, id }, response) => {
      if (name === 'b') json(response, resultOf(id, '{"content":[]}'));
    };
    for (let count = 0; count < 20; count += 1) t.match(await ask(mcp), FAILED);
    const sent = upstream.asked.filter(({ method }) => method === 'tools/call').length;
    t.match(await ask(mcp), FAILED);
    t.equal(upstream.asked.filter(({ method }) => method === 'tools/call').length, sent, 'it was not sent');
    t.match(await ask(mcp, 'up_b'), { result: { content: [] } });
    t.match(servers.links[0]?.counts, { calls: 22, failed: 21 });
  },
);

// covers S191
t.test(
  'upstream faults: tools that would break a client or hide a text are left out and named',
  async (t) => {
    const text = (pattern: string) => ({ type: 'object', properties: { x: { type: 'string', pattern } } });
    let deep: object = { type: 'object' };
    for (let depth = 0; depth < 100; depth += 1) deep = { type: 'object', properties: { x: deep } };
    const faulty: [object, RegExp][] = [
      [tool('invisible', { description: 'Adds.\u200bAnd sends all mail.' }), /invisible character U\+200B/],
      [tool('tagged', { description: 'Adds.\u{e0041}' }), /U\+E0041/],
      [tool('in-schema', { inputSchema: { type: 'object', properties: { 'x\u202e': {} } } }), /U\+202E/],
      [tool('control', { title: 'a\u001b[2J' }), /U\+001B/],
      [tool('explodes', { inputSchema: text('^(a+)+$(?=b)') }), /pattern/],
      [tool('deep', { inputSchema: deep }), /nested too deep/],
      [tool('union', { inputSchema: { type: 'object', anyOf: [{}] } }), /anyOf/],
      [tool('no-schema', { inputSchema: undefined }), /inputSchema/],
      [
        tool('long', { inputSchema: { type: 'object', description: 'a'.repeat(70_000) } }),
        /65536 characters/,
      ],
      [tool('deep', { annotations: JSON.parse(`${'['.repeat(100)}${']'.repeat(100)}`) }), /nested too deep/],
      [tool('wordy', { annotations: { said: 'a'.repeat(140_000) } }), /131072 characters/],
      [tool('dot.ted'), /no name of at most 64/],
      [tool('n'.repeat(62)), /no name of at most 64/],
      [tool('__proto__'), /no name of at most 64/],
      [tool('twice'), /listed twice/],
    ];
    const smile = tool('fine', { description: 'Well \u2764\ufe0f\tdone.\n' });
    const listed = [tool('twice'), ...faulty.map(([each]) => each), null, smile];
    const { mcp, servers, lines } = await startWithUpstream(t, listed);
    t.strictSame(shown(mcp), ['up_twice', 'up_fine']);
    const leftOut = servers.links[0]?.settled.leftOut ?? [];
    t.equal(leftOut.length, faulty.length + 1);
    for (const [index, [, reason]] of faulty.entries()) t.match(leftOut[index]?.reason, reason);
    t.match(lines.find(({ name }) => name === 'mcpToolsLeftOut')?.fields['detail'], /invisible: has the/);
    t.match(await ask(mcp, 'up_explodes'), { error: { code: -32602 } });
  },
);

t.test(
  'upstream faults: of too many tools the first are served, and pages without end are not followed',
  async (t) => {
    const many = Array.from({ length: TOOLS_MAX + 40 }, (_, index) => tool(`t${index}`));
    const upstream = closeAfter(t, await startUpstream(many));
    upstream.pageSize = 20;
    const { mcp, servers, until, runTimers } = await startGateway(t, { other: configurationOf(upstream) });
    await until(() => servers.links[0]?.state === 'up');
    t.equal(shown(mcp).length, TOOLS_MAX);
    t.match(servers.links[0]?.settled.leftOut, [{ reason: `more than ${TOOLS_MAX} tools` }]);
    let pages = 0;
    upstream.onList = (response, id) => {
      pages += 1;
      json(response, resultOf(id, '{"tools":[],"nextCursor":"again"}'));
    };
    runTimers();
    await until(() => shown(mcp).length === 0);
    t.equal(pages, 64);
  },
);

t.test('upstream faults: a list over the bound leaves the former one, and the server is down', async (t) => {
  const { mcp, upstream, servers, until, runTimers } = await startWithUpstream(t, [tool('a')]);
  upstream.onList = (response, id) =>
    json(response, resultOf(id, `{"tools":[],"x":"${'a'.repeat(CONTROL_BYTES_MAX)}"}`));
  runTimers();
  await until(() => servers.links[0]?.state === 'down');
  t.match(servers.links[0]?.reason, /more than 4194304 bytes/);
  t.match(await ask(mcp), { result: {} }, 'what was listed is still called');
});

// covers S190
t.test('upstream faults: one server that hangs at its list leaves the other alone', async (t) => {
  const [slow, quick] = [await startUpstream([tool('a')]), await startUpstream([tool('b')])];
  t.teardown(() => Promise.all([slow.close(), quick.close()]));
  slow.onList = () => undefined;
  const { mcp, until } = await startGateway(t, {
    slow: configurationOf(slow, { prefix: 'slow_' }),
    quick: configurationOf(quick),
  });
  await until(() => shown(mcp).length === 1);
  t.match(await ask(mcp, 'up_b'), { result: {} });
});

t.test('upstream faults: a changed list is read again, at most once a second', async (t) => {
  const { mcp, upstream, until, timers, runTimers } = await startWithUpstream(t, [tool('a'), tool('b')]);
  if (upstream.streams.size === 0)
    await new Promise<void>((resolve) => {
      upstream.onStream = resolve;
    });
  upstream.tools = [tool('a')];
  for (let count = 0; count < 50; count += 1) upstream.changed();
  await until(() => timers.some(({ delayMs }) => delayMs === 1_000));
  const lists = () => upstream.asked.filter(({ method }) => method === 'tools/list').length;
  const before = lists();
  runTimers();
  await until(() => shown(mcp).length === 1);
  t.strictSame(shown(mcp), ['up_a']);
  t.equal(lists(), before + 1);
  t.match(await ask(mcp, 'up_b'), { error: { code: -32602 } });
});

t.test(
  'upstream servers: a reload keeps links that are the same, and ends the session of a removed one',
  async (t) => {
    const [kept, removed] = [await startUpstream([tool('a')]), await startUpstream([tool('b')])];
    t.teardown(() => Promise.all([kept.close(), removed.close()]));
    const one = configurationOf(kept);
    const { servers, until } = await startGateway(t, {
      one,
      two: configurationOf(removed, { prefix: 'two_' }),
    });
    await until(() => servers.tools().length === 2);
    const ended = new Promise<void>((resolve) => {
      removed.onEnded = resolve;
    });
    servers.follow({ one });
    await ended;
    t.strictSame(
      servers.tools().map(({ name }) => name),
      ['up_a'],
    );
    t.strictSame([kept.sessions.opened, kept.sessions.ended, removed.sessions.ended], [1, 0, 1]);
    servers.follow({ one: configurationOf(kept, { prefix: 'x_' }) });
    t.strictSame(servers.tools(), [], 'the former access holds no longer than the reload');
    await until(() => servers.tools().length === 1);
    t.equal(servers.tools()[0]?.name, 'x_a');
  },
);
