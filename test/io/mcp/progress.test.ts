/** Progress of tools/call: modules that stream, clients that ask for it, and every stream that is refused. */
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import {
  CALL_MAX,
  MESSAGE_MAX,
  ProgressStream,
  SECOND_MAX,
  TOKEN_MAX,
} from '../../../src/io/mcp/progress.ts';
import type { CallObservation } from '../../../src/io/observability/metrics.ts';
import { type BackendAnswer, type McpFixtureOptions, startMcp, TOKENS } from '../../support/mcp.ts';

const NAME = 'wallet_get_balance';
const LINES = 'application/x-ndjson';
const BOTH = 'application/json, text/event-stream';
const RESULT = '{"result":{"id":9223372036854775807}}';
const STREAM = `{"progress":1,"total":2,"message":"half"}\n{"progress":2}\r\n\n${RESULT}\n`;
const FAILED = { code: -32000 };

async function start(t: Test, backend: McpFixtureOptions['backend'], options: McpFixtureOptions = {}) {
  return closeAfter(t, await startMcp({ ...options, ...(backend === undefined ? {} : { backend }) }));
}

const streamed = (body: string | Buffer): BackendAnswer => ({ type: LINES, body });

interface Sent {
  /** JSON text; absent: no `_meta`. */
  readonly token?: string;
  readonly accept?: string;
  readonly stateless?: true;
  readonly name?: string;
}

function request({ token, accept, stateless, name = NAME }: Sent) {
  const stateMeta = stateless
    ? '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}'
    : '';
  const members = [stateMeta, token === undefined ? '' : `"progressToken":${token}`].filter(Boolean);
  const meta = members.length === 0 ? '' : `,"_meta":{${members.join()}}`;
  const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"${name}"${meta}}}`;
  const headers: Record<string, string> = {
    authorization: `Bearer ${TOKENS.McpVerified}`,
    ...(accept === undefined ? {} : { accept }),
    ...(stateless
      ? { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name }
      : {}),
  };
  return { body, headers };
}

type Fixture = Awaited<ReturnType<typeof start>>;

async function call(mcp: Fixture, sent: Sent) {
  const { body, headers } = request(sent);
  const answer = await mcp.post(body, headers);
  return { text: answer.text, type: answer.headers.get('content-type'), status: answer.status };
}

const messagesOf = (text: string) =>
  text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.replace(/^event: message\ndata: /, '')));

const notification = (progressToken: unknown, params: object) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, ...params },
});

t.test('tools/call with a token: progress of the module, then the response, in every revision', async (t) => {
  const mcp = await start(t, () => streamed(STREAM));
  for (const token of ['"a\\u0031"', '12345678901']) {
    const { text, type, status } = await call(mcp, { token, accept: BOTH });
    t.strictSame([status, type], [200, 'text/event-stream']);
    const value = JSON.parse(token);
    t.strictSame(messagesOf(text), [
      notification(value, { progress: 1, total: 2, message: 'half' }),
      notification(value, { progress: 2 }),
      { jsonrpc: '2.0', id: 7, result: { content: [{ type: 'text', text: RESULT }] } },
    ]);
  }
  const { text } = await call(mcp, { token: '1', accept: BOTH, stateless: true });
  t.strictSame(
    messagesOf(text).map(({ method, result }) => method ?? result.resultType),
    ['notifications/progress', 'notifications/progress', 'complete'],
  );
  t.ok(mcp.asked.every(({ headers }) => headers.accept === `application/json, ${LINES}`));
  t.ok(mcp.audit.every(({ fields }) => fields['outcome'] === 'ok'));
});

t.test('tools/call with a token: a module that does not stream is answered as JSON', async (t) => {
  const mcp = await start(t, () => ({ body: RESULT }));
  const plain = await call(mcp, { accept: BOTH });
  t.strictSame(await call(mcp, { token: '1', accept: BOTH }), plain);
  t.equal(plain.type, 'application/json');
});

t.test('tools/call without a token or without event streams: the stream is read to its result', async (t) => {
  const mcp = await start(t, () => streamed(STREAM));
  const cases: readonly Sent[] = [
    { accept: BOTH },
    ...['1.5', 'null', '{}', 'true', `"${'x'.repeat(TOKEN_MAX)}"`].map((token) => ({ token, accept: BOTH })),
    ...['*/*', 'application/json', 'text/event-stream;q=0'].map((accept) => ({ token: '1', accept })),
  ];
  for (const sent of cases) {
    const { text, type } = await call(mcp, sent);
    t.equal(type, 'application/json');
    t.strictSame(
      JSON.parse(text).result,
      { content: [{ type: 'text', text: RESULT }] },
      JSON.stringify(sent),
    );
  }
  t.ok(mcp.asked.every(({ headers }) => headers.accept === 'application/json'));
});

t.test('batch with a token: one array without progress', async (t) => {
  const mcp = await start(t, () => streamed(STREAM));
  const { body, headers } = request({ token: '1', accept: BOTH });
  t.match(JSON.parse((await mcp.post(`[${body}]`, headers)).text), [{ id: 7, result: {} }]);
  t.equal(mcp.asked[0]?.headers.accept, 'application/json');
});

t.test('stream that ends with an error: a result with isError', async (t) => {
  const error = '{"error":{"code":2001}}';
  const mcp = await start(t, () => streamed(`{"progress":1}\n${error}`));
  const { text } = await call(mcp, { token: '1', accept: BOTH });
  t.match(messagesOf(text).at(-1), { result: { isError: true, content: [{ text: error }] } });
});

t.test('lines with an error status: the whole body, as of any answer', async (t) => {
  const body = '{"progress":1}\n{"progress":2}\n';
  const mcp = await start(t, () => ({ status: 500, type: LINES, body }));
  const { text, type } = await call(mcp, { token: '1', accept: BOTH });
  t.equal(type, 'application/json');
  t.match(JSON.parse(text), { result: { isError: true, content: [{ text: body }] } });
});

t.test('broken stream: the error of a broken answer, with and without a token', async (t) => {
  const bodies = [
    '',
    '{"progress":1}\n',
    '{"progress":1}\nnonsense\n{"result":1}\n',
    '[1]\n{"result":1}\n',
    '{"progress":"1"}\n{"result":1}\n',
    '{"progress":1e999}\n{"result":1}\n',
    '{"progress":1,"total":"2"}\n{"result":1}\n',
    '{"progress":1,"message":2}\n{"result":1}\n',
    '{"note":1}\n{"result":1}\n',
    '{"result":1}\n{"progress":1}\n',
    '{"result":1}\n{"result":2}\n',
    '{"result":{"a":',
  ];
  for (const body of bodies) {
    // Of its own, because failures open the breaker.
    const mcp = await start(t, () => streamed(body));
    const { text } = await call(mcp, { token: '1', accept: BOTH });
    t.match(messagesOf(text).at(-1), { id: 7, error: FAILED }, body);
    t.match(JSON.parse((await call(mcp, {})).text), { id: 7, error: FAILED }, body);
    t.strictSame(
      mcp.audit.map(({ fields }) => fields['outcome']),
      ['failed', 'failed'],
    );
  }
});

t.test('stream cut in the middle: its progress, then the error', async (t) => {
  const mcp = await start(t, () => ({
    write(response) {
      response.writeHead(200, { 'content-type': LINES });
      response.write('{"progress":1}\n', () => response.destroy());
    },
  }));
  const { text } = await call(mcp, { token: '1', accept: BOTH });
  t.match(messagesOf(text), [{ params: { progress: 1 } }, { error: FAILED }]);
});

t.test('stream above the bound of answers: the error of an answer that is too large', async (t) => {
  const line = `{"progress":1,"message":"${'x'.repeat(64 * 1024)}"}\n`;
  const mcp = await start(t, () => streamed(line.repeat(65)));
  const { text } = await call(mcp, { token: '1', accept: BOTH });
  t.match(messagesOf(text).at(-1), { result: { isError: true, content: [{ text: /"code":1015/ }] } });
});

t.test('breaker: broken streams open it', async (t) => {
  const mcp = await start(t, () => streamed('nonsense\n'));
  for (let at = 0; at < 6; at += 1) await call(mcp, { token: '1', accept: BOTH });
  t.equal(mcp.asked.length, 5);
});

/** Reads the answer until its first notification. */
async function begun(t: Test, mcp: Fixture, signal?: AbortSignal) {
  const { body, headers } = request({ token: '1', accept: BOTH });
  const answer = await fetch(`${mcp.http.url}/mcp`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
    ...(signal === undefined ? {} : { signal }),
  });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) throw new Error('no body');
  t.match((await reader.read()).value, /"progress":1/);
  return reader;
}

const endless: BackendAnswer = {
  write(response) {
    response.writeHead(200, { 'content-type': LINES });
    response.write('{"progress":1}\n');
  },
};

t.test('client that leaves during a stream: the call of the module is given up', async (t) => {
  const mcp = await start(t, () => endless);
  const leaving = new AbortController();
  await begun(t, mcp, leaving.signal);
  leaving.abort();
  await mcp.asked[0]?.gone;
  t.match(mcp.audit, [{ fields: { outcome: 'cancelled' } }]);
});

t.test('notifications/cancelled during a stream: the stream ends with the error', async (t) => {
  const mcp = await start(t, () => endless);
  const reader = await begun(t, mcp);
  const { headers } = request({});
  await mcp.post('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}', headers);
  t.match((await reader.read()).value, /"id":7,"error":.*cancelled/);
  await mcp.asked[0]?.gone;
  t.equal((await reader.read()).done, true);
});

t.test('module that never ends its stream: the time-out of the tool', async (t) => {
  const configured: McpFixtureOptions['configured'] = (backend) => ({
    resources: {},
    tools: {
      slow_tool: {
        endpoint: `${backend}/x`,
        method: 'GET',
        description: 'A tool with a short time-out.',
        inputSchema: { type: 'object' },
        timeoutMs: 1_000,
      },
    },
  });
  const mcp = await start(t, () => endless, { configured });
  const { text } = await call(mcp, { token: '1', accept: BOTH, name: 'slow_tool' });
  t.match(messagesOf(text), [{ params: { progress: 1 } }, { error: FAILED }]);
});

t.test('reports of a call: sent and dropped ones are observed', async (t) => {
  const seen: CallObservation[] = [];
  const onCall = (observed: CallObservation) => void seen.push({ ...observed });
  const body = `{"progress":1}\n{"progress":1}\n{"progress":0}\n{"progress":2}\n${RESULT}`;
  const mcp = await start(t, () => streamed(body), { onCall });
  const { text } = await call(mcp, { token: '1', accept: BOTH });
  t.equal(messagesOf(text).length, 3);
  t.match(seen, [{ outcome: 'ok', progress: { sent: 2, dropped: 2 } }]);
});

/** A stream with a client that takes `room` events. */
function openStream(room = Number.POSITIVE_INFINITY) {
  const time = { ms: 0 };
  const sent: string[] = [];
  const stream = new ProgressStream('1', () => time.ms);
  stream.begin(undefined);
  stream.start({ send: (event) => sent.push(String(event)) < room, end() {}, cut() {} });
  return { stream, time, sent };
}

t.test('notifications: a bound in a second, another one in a call; the others are counted', async (t) => {
  const { stream, time, sent } = openStream();
  let progress = 0;
  const report = (times: number) => {
    for (let at = 0; at < times; at += 1) stream.report({ progress: ++progress });
  };
  report(SECOND_MAX + 3);
  t.strictSame(stream.counts, { sent: SECOND_MAX, dropped: 3 });
  for (let second = 1; second <= CALL_MAX / SECOND_MAX; second += 1) {
    time.ms += 1_000;
    report(SECOND_MAX);
  }
  t.strictSame(stream.counts, { sent: CALL_MAX, dropped: 3 + SECOND_MAX });
  t.equal(sent.length, CALL_MAX);
});

t.test('notifications: a client that does not read costs a bounded number of events', async (t) => {
  const { stream, time, sent } = openStream(1);
  for (let progress = 0; progress < 10 * SECOND_MAX; progress += 1) {
    time.ms += 1_000;
    stream.report({ progress });
  }
  t.equal(sent.length, 1);
  t.equal(stream.counts.sent, 1 + SECOND_MAX);
  t.equal(stream.counts.dropped, 9 * SECOND_MAX - 1);
});

t.test('notifications: a long message is cut', async (t) => {
  const { stream, sent } = openStream();
  stream.report({ progress: 1, message: 'é'.repeat(MESSAGE_MAX + 1) });
  t.equal(messagesOf(sent.join(''))[0].params.message, 'é'.repeat(MESSAGE_MAX));
});

const ALL = [{ progress: 1, total: 2, message: 'half' }, { progress: 2 }];
const AUTHORIZED = { requestInit: { headers: { Authorization: `Bearer ${TOKENS.McpVerified}` } } };

t.test('official client 1 with onprogress: receives the progress in order', async (t) => {
  const mcp = await start(t, () => streamed(STREAM));
  const client = closeAfter(t, new Client({ name: 'test', version: '1.0.0' }));
  await client.connect(new StreamableHTTPClientTransport(new URL(`${mcp.http.url}/mcp`), AUTHORIZED));
  const heard: object[] = [];
  const onprogress = (progress: object) => void heard.push(progress);
  const answer = await client.callTool({ name: NAME }, undefined, { onprogress });
  t.strictSame(answer.content, [{ type: 'text', text: RESULT }]);
  t.strictSame(heard, ALL);
});

for (const mode of ['legacy', { pin: '2026-07-28' }] as const) {
  t.test(`official client 2 (${JSON.stringify(mode)}) with onprogress: receives it in order`, async (t) => {
    const mcp = await start(t, () => streamed(STREAM));
    const client = new Client2({ name: 'test', version: '2.0.0' }, { versionNegotiation: { mode } });
    t.teardown(() => client.close());
    await client.connect(new Transport2(new URL(`${mcp.http.url}/mcp`), AUTHORIZED));
    const heard: object[] = [];
    const onprogress = (progress: object) => void heard.push(progress);
    const answer = await client.callTool({ name: NAME }, { onprogress });
    t.match(answer, { content: [{ type: 'text', text: RESULT }] });
    t.strictSame(heard, ALL);
  });
}
