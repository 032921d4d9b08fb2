/** The stdio server of the connector: what it sends for each line, and what it writes for each answer. */
import { PassThrough } from 'node:stream';
import t from 'tap';
import { LoginRefused } from '../../../packages/connect/src/login.ts';
import type { Fetch } from '../../../packages/connect/src/send.ts';
import { serveStdio } from '../../../packages/connect/src/stdio-server.ts';
import { failed, fakeSystem, json, ORIGIN } from './system.ts';

const MCP = `${ORIGIN}/mcp`;

/** Feeds the lines, ends the input, and returns the lines written. */
async function talk(lines: readonly string[], fetch: Fetch, plain = fakeSystem()) {
  const input = new PassThrough();
  const output = new PassThrough();
  const logged: string[] = [];
  for (const line of lines) input.write(`${line}\n`);
  input.end();
  const explain = async () => 'open the link';
  await serveStdio({ mcp: MCP, fetch, plain, input, output, log: (line) => logged.push(line), explain });
  output.end();
  const written = (await output.toArray()).join('').split('\n');
  t.equal(written.pop(), '', 'the last line is ended');
  return { written, logged };
}

const echo: Fetch = async (_url, init) => {
  const { id } = JSON.parse(String(init?.body)) as { id: unknown };
  return json({ jsonrpc: '2.0', id, result: {} });
};

t.test('stdio: a request goes out as it came, so that ids keep their digits', async (t) => {
  const bodies: unknown[] = [];
  const line = '{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}';
  const { written } = await talk(
    [line, '', line.replace('1234567', '"x').replace('890,', '",')],
    async (_url, init) => {
      bodies.push(init?.body);
      return new Response('{"jsonrpc":"2.0",\n"id":1,"result":{}}', {
        headers: { 'content-type': 'application/json' },
      });
    },
  );
  t.equal(bodies[0], line);
  t.equal(written[0], '{"jsonrpc":"2.0","id":1,"result":{}}', 'an answer is one line');
  t.equal(bodies.length, 2, 'an empty line is nothing');
});

t.test('stdio: lines that are no messages get a parse error, and the next one is served', async (t) => {
  const { written, logged } = await talk(['oops', '7', '{"id":2,"method":"ping"}'], echo);
  t.equal(written.filter((line) => line.includes('-32700')).length, 2);
  t.equal(logged.length, 2);
  t.ok(written.includes('{"jsonrpc":"2.0","id":2,"result":{}}'));
});

t.test('stdio: a line over 8 MiB is refused, and the next one is served', async (t) => {
  const long = `{"id":1,"method":"ping","params":{"x":"${'x'.repeat(8 * 1024 * 1024)}"}}`;
  const { written } = await talk([long, '{"id":2,"method":"ping"}'], echo);
  t.match(written.sort(), [/too long/, /"id":2/]);
});

t.test('stdio: notifications are answered by nothing, a batch by one array', async (t) => {
  const { written } = await talk(
    [
      '{"method":"notifications/initialized"}',
      '[{"id":1,"method":"ping"},{"method":"n"},{"id":2,"method":"ping"}]',
    ],
    echo,
  );
  t.strictSame(written, ['[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]']);
});

t.test('stdio: a cancelled request is aborted and never answered', async (t) => {
  let aborted = 0;
  const never: Fetch = (_url, init) =>
    new Promise((_resolve, reject) => {
      init?.signal?.addEventListener('abort', () => {
        aborted += 1;
        reject(init.signal?.reason);
      });
    });
  const cancel = '{"method":"notifications/cancelled","params":{"requestId":"1"}}';
  const { written } = await talk(
    ['{"id":"1","method":"tools/call"}', cancel.replace('"1"', '2'), cancel],
    never,
  );
  t.strictSame(written, []);
  t.equal(aborted, 1);
});

t.test('stdio: the 101st request in flight is refused and counted', async (t) => {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const lines = Array.from({ length: 101 }, (_, id) => JSON.stringify({ id, method: 'ping' }));
  const waiting: Fetch = async (url, init) => {
    if (String(init?.body).includes('"id":99,')) setImmediate(release);
    await released;
    return echo(url, init);
  };
  const { written, logged } = await talk(lines, waiting);
  t.equal(written.length, 101);
  t.match(
    written.filter((line) => line.includes('-32000')),
    [/"id":100,.*Overloaded/],
  );
  t.match(logged, [/^1 requests refused/]);
});

t.test('stdio: a login that is refused explains itself to a call; other requests need none', async (t) => {
  const refused: Fetch = () => Promise.reject(new LoginRefused(401, 1101, 'Session not found'));
  const plain = fakeSystem(() => json({ jsonrpc: '2.0', id: 1, result: { tools: [] } }));
  const { written } = await talk(
    ['{"id":1,"method":"tools/list"}', '{"id":2,"method":"tools/call"}'],
    refused,
    plain,
  );
  t.match(written.sort(), [
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
    /"id":2,"error":\{"code":-32001,"message":"open the link"/,
  ]);
  t.equal(plain.sent.length, 1);
});

t.test(
  'stdio: a lost answer, an answer of a proxy and a refusal of HTTP are errors of the request',
  async (t) => {
    const rows: [Fetch, RegExp][] = [
      [() => Promise.reject(failed('ECONNRESET')), /-32000,"message":"no answer .*ECONNRESET/],
      [async () => new Response('<html>', { status: 502 }), /HTTP 502 without JSON/],
      [
        async () => json({ error: { code: 1003, message: 'Overloaded' } }, { status: 503 }),
        /1003 Overloaded/,
      ],
    ];
    for (const [fetch, expected] of rows)
      t.match((await talk(['{"id":1,"method":"ping"}'], fetch)).written, [expected]);
  },
);

t.test('stdio: the data of an event stream become lines', async (t) => {
  const body = ': hello\n\ndata: {"id":1,\ndata: "result":{}}\n\nevent: x\ndata: {"id":2}\n\n';
  const { written } = await talk(
    ['{"id":1,"method":"subscriptions/listen"}'],
    async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
  );
  t.strictSame(written, ['{"id":1,"result":{}}', '{"id":2}']);
});

t.test('stdio: requests of the revision 2026-07-28 carry its headers', async (t) => {
  const seen: Headers[] = [];
  const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
  const calls = ['wallet', 'größe', ' x'].map((name, id) => ({
    id,
    method: 'tools/call',
    params: { name, _meta },
  }));
  await talk(
    calls.map((call) => JSON.stringify(call)),
    async (url, init) => {
      seen.push(new Headers(init?.headers));
      return echo(url, init);
    },
  );
  t.strictSame(
    seen.map((headers) =>
      ['mcp-protocol-version', 'mcp-method', 'mcp-name'].map((name) => headers.get(name)),
    ),
    ['wallet', '=?base64?Z3LDtsOfZQ==?=', '=?base64?IHg=?='].map((name) => [
      '2026-07-28',
      'tools/call',
      name,
    ]),
  );
});
