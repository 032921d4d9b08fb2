/** Tools of another MCP server: listed and called as rows of the catalog, byte for byte. */
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import t from 'tap';
import { TOKENS } from '../../support/mcp.ts';
import { OPEN, startWithUpstream } from '../../support/upstreams/gateway.ts';
import { json, resultOf } from '../../support/upstreams/server.ts';

const ANY = { type: 'object' };
const ECHO = {
  name: 'echo',
  title: 'Echo',
  description: 'Says the same.',
  inputSchema: {
    type: 'object',
    properties: { n: { type: 'integer' }, limit: { type: 'integer', default: null } },
  },
  annotations: { readOnlyHint: true, unknown: 1 },
  _meta: { any: 1 },
};
const PLAIN = { name: 'plain', inputSchema: ANY };
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const call = (values: string, more = '', name = 'up_echo') =>
  `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"${name}","arguments":${values}${more}}}`;

// covers R119
t.test('upstream tools: listed behind their prefix, with what the catalog shows of a row', async (t) => {
  const { mcp } = await startWithUpstream(t, [ECHO, PLAIN]);
  const listed = async (token?: string) => {
    const { result } = await mcp.rpc('tools/list', {}, token);
    return result?.tools?.filter(({ name }) => name.startsWith('up_'));
  };
  const echo = {
    name: 'up_echo',
    title: 'Echo',
    description: 'Says the same.',
    inputSchema: { type: 'object', properties: { n: { type: 'integer' }, limit: { type: 'integer' } } },
    annotations: { readOnlyHint: true },
  };
  const plain = { name: 'up_plain', description: 'plain of other', inputSchema: ANY, annotations: {} };
  t.strictSame(await listed(TOKENS.McpVerified), [echo, plain]);
  t.strictSame(await listed(), [echo, plain], 'without a session the whole catalog is listed');
  t.strictSame(await listed(TOKENS.McpBasic), [], 'a public key alone opens none');
  t.strictSame(await listed(TOKENS.McpApp), [], 'nor does an application');
});

t.test('upstream tools: a name that every object has opens nothing', async (t) => {
  const { mcp } = await startWithUpstream(t, [{ ...PLAIN, name: 'constructor' }, PLAIN]);
  const call = { name: 'up_constructor' };
  t.match(await mcp.rpc('tools/call', call, TOKENS.McpBasic), { error: { code: -32001 } });
  t.match(await mcp.rpc('tools/call', call, TOKENS.McpVerified), { result: {} });
});

t.test('upstream tools: a row opens a tool, others stay as they are; a limit counts a user', async (t) => {
  const rows = {
    echo: { ...OPEN, appScope: true },
    plain: { restricted: ['McpBasic'], rateLimit: { rps: 1 } },
  } as const;
  const settings = { RateLimitWindowSeconds: 1 };
  const { mcp, upstream } = await startWithUpstream(t, [ECHO, PLAIN], { rows }, { settings });
  const ask = (name: string, token: string) => mcp.rpc('tools/call', { name }, token);
  t.match(await ask('up_echo', TOKENS.McpBasic), { result: { content: [{ text: '{}' }] } });
  t.match(await ask('up_echo', TOKENS.McpApp), { result: { content: [{ text: '{}' }] } });
  t.match(await ask('up_plain', TOKENS.McpBasic), { error: { code: -32001 } });
  t.match(await ask('up_plain', TOKENS.McpVerified), { result: {} });
  t.match(await ask('up_plain', TOKENS.McpVerified), { error: { code: 1002 } });
  t.equal(upstream.asked.filter(({ method }) => method === 'tools/call').length, 3);
  t.strictSame(
    mcp.audit.map(({ fields }) => `${fields['name']} ${fields['outcome']}`),
    ['up_echo ok', 'up_echo ok', 'up_plain denied', 'up_plain ok', 'up_plain limited'],
  );
});

// covers R119 S192
t.test(
  'upstream tools: arguments arrive as they were sent, and the result as the server wrote it',
  async (t) => {
    const { mcp, upstream } = await startWithUpstream(t, [ECHO], {
      headers: { Authorization: 'Bearer of-the-gateway', 'X-Own': 'a' },
    });
    const result =
      '{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}],"structuredContent":{"n":9223372036854775807,"d":1.10},"later":[ 1 ]}';
    upstream.respond = ({ id }, response) => json(response, resultOf(id, result));
    const sent = '{ "n": 5,  "other":"\\u00e9" }';
    const meta = ',"_meta":{"mine":{"a":1.50},"traceparent":"00-1","io.modelcontextprotocol/x":1}';
    const answer = await mcp.post(call(sent, meta), bearer(TOKENS.McpVerified));
    t.equal(answer.text, `{"jsonrpc":"2.0","id":7,"result":${result}}`);
    const asked = upstream.asked.at(-1);
    t.equal(asked?.values, sent);
    t.match(asked?.body, /"name":"echo".*"_meta":\{"mine":\{"a":1\.50\}\}/);
    t.match(asked?.headers, {
      authorization: 'Bearer of-the-gateway',
      'x-own': 'a',
      'mcp-session-id': 's1',
      'mcp-protocol-version': '2025-11-25',
    });
    const named = Object.keys(asked?.headers ?? {}).filter((name) => /^x-(?!own)|forwarded/.test(name));
    t.strictSame(named, [], 'who calls stays here');
  },
);

t.test(
  'upstream tools: a client of 2026-07-28 gets its members in front, and those of the server',
  async (t) => {
    const { mcp, upstream } = await startWithUpstream(t, [ECHO]);
    upstream.respond = ({ id }, response) =>
      json(response, resultOf(id, '{"content":[],"_meta":{"theirs":1.0},"resultType":"odd"}'));
    const meta =
      ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';
    const answer = await mcp.post(call('{}', meta), {
      ...bearer(TOKENS.McpVerified),
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'up_echo',
    });
    t.match(answer.text, /^\{"jsonrpc":"2\.0","id":7,"result":\{"resultType":"complete","_meta":\{"io\.m/);
    t.match(answer.text, /"theirs":1\.0\},"content":\[\]\}\}$/);
    t.equal((JSON.parse(answer.text) as { result: { resultType: string } }).result.resultType, 'complete');
  },
);

// covers R119
t.test(
  'upstream tools: faulty arguments and errors of the server are results that a model can read',
  async (t) => {
    const { mcp, upstream } = await startWithUpstream(t, [ECHO]);
    const wrong = await mcp.rpc('tools/call', { name: 'up_echo', arguments: { n: 'x' } }, TOKENS.McpVerified);
    t.match(wrong, { result: { isError: true, content: [{ text: /n must be integer/ }] } });
    t.equal(
      upstream.asked.some(({ method }) => method === 'tools/call'),
      false,
      'it was not sent',
    );
    upstream.respond = ({ id }, response) =>
      json(response, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32602,"message":"no such city"}}`, 400);
    const refused = await mcp.rpc('tools/call', { name: 'up_echo' }, TOKENS.McpVerified);
    t.strictSame(refused.result, {
      content: [{ type: 'text', text: '{"error":{"code":-32602,"message":"no such city"}}' }],
      isError: true,
    });
    upstream.respond = ({ id }, response) => json(response, resultOf(id, '{"content":[],"isError":true}'));
    t.strictSame((await mcp.rpc('tools/call', { name: 'up_echo' }, TOKENS.McpVerified)).result, {
      content: [],
      isError: true,
    });
    t.strictSame(
      mcp.audit.map(({ fields }) => fields['outcome']),
      ['invalid', 'error', 'error'],
    );
  },
);

t.test('upstream tools: progress and requests of the server in a stream, then the result', async (t) => {
  const { mcp, upstream } = await startWithUpstream(t, [ECHO]);
  let refusal = '';
  upstream.respond = ({ id }, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const params = `{"progressToken":${id},"progress":1,"total":2,"message":"half"}`;
    response.write(
      `: hello\r\nevent: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":${params}}\r\n\r\n`,
    );
    response.write('data: {"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{}}\n\n');
    upstream.onAsked = ({ body }) => {
      if (!body.includes('"id":5,')) return;
      refusal = body;
      // The stream stays open behind the response.
      response.write(`data: {"jsonrpc":"2.0",\ndata: "id":${id},"result":{"content":[]}}\n\n`);
    };
  };
  const answer = await mcp.post(call('{}', ',"_meta":{"progressToken":"p"}'), {
    ...bearer(TOKENS.McpVerified),
    accept: 'application/json, text/event-stream',
  });
  const events = answer.text
    .split('\n\n')
    .filter(Boolean)
    .map((event) => JSON.parse(event.slice(event.indexOf('{'))) as object);
  t.match(events, [
    {
      method: 'notifications/progress',
      params: { progressToken: 'p', progress: 1, total: 2, message: 'half' },
    },
    { id: 7, result: { content: [] } },
  ]);
  t.match(refusal, /"error":\{"code":-32601/);
});

t.test('upstream tools: a cancelled call is cancelled at the server', async (t) => {
  const { mcp, upstream } = await startWithUpstream(t, [ECHO]);
  const transport = new Transport2(new URL(`${mcp.http.url}/mcp`), {
    requestInit: { headers: bearer(TOKENS.McpVerified) },
  });
  const client = new Client2({ name: 'test', version: '1' });
  await client.connect(transport);
  t.teardown(() => client.close());
  const cancelled = new Promise<string>((resolve) => {
    upstream.onAsked = ({ method, body }) => {
      if (method === 'notifications/cancelled') resolve(body);
    };
  });
  const arrived = new Promise<{ gone: Promise<void>; id: string }>((resolve) => {
    upstream.respond = (request) => resolve(request);
  });
  const cancelling = new AbortController();
  const calling = client.callTool({ name: 'up_echo' }, { signal: cancelling.signal });
  const { gone, id } = await arrived;
  cancelling.abort('enough');
  await t.rejects(calling);
  await gone;
  t.match(await cancelled, `"requestId":${id}`);
});

t.test('upstream tools: subsets of an address hold for them', async (t) => {
  const { mcp } = await startWithUpstream(t, [ECHO, PLAIN], { allow: ['e*'] });
  const { result } = await mcp.rpc('tools/list', {}, TOKENS.McpVerified);
  const names = result?.tools?.map(({ name }) => name).filter((name) => name.startsWith('up_'));
  t.strictSame(names, ['up_echo'], '`allow` names those that are served');
  t.match(await mcp.rpc('tools/call', { name: 'up_plain' }, TOKENS.McpVerified), { error: { code: -32602 } });
  const asked = await fetch(`${mcp.http.url}/mcp?tools=wallet`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...bearer(TOKENS.McpVerified) },
    body: call('{}'),
  });
  t.match(await asked.json(), { error: { code: -32001 } });
});
