/** WebSockets to a module, with a client of the package `ws`: handshake, messages, ends, bounds and records. */
import type { IncomingMessage } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { WebSocket, WebSocketServer } from 'ws';
import { closeAfter } from '../../../kit/close-after.ts';
import { connectRaw, requestText } from '../../support/http.ts';
import { BASIC_BEARER, BEARER, type ProxyFixtureOptions, SID, startProxy } from '../../support/module.ts';
import {
  BINARY,
  CLOSE,
  CONTINUATION,
  closeFrame,
  type Frame,
  frame,
  framesOf,
  HANDSHAKE,
  PING,
  PONG,
  TEXT,
} from './frames.ts';

const TOKEN = { authorization: `Bearer ${BEARER}` };
const COOKIE = { cookie: `sid=${SID}` };
const PATH = '/core/v1/echo?a=%20b';
const HEAD = requestText('GET', PATH, { Authorization: `Bearer ${BEARER}`, ...HANDSHAKE });
/** `readyState`. */
const OPEN = 1;
const CLOSED = 3;
/** Id of the session of the bearer. */
const AGENT_SESSION = '1842001011';

interface ModuleSide {
  readonly request: IncomingMessage;
  readonly socket: WebSocket;
  readonly messages: (string | Buffer)[];
  readonly closed: Promise<readonly [code: number, reason: string]>;
}

/** A module that accepts every upgrade and answers each message by itself. */
async function proxyOf(
  t: Test,
  options: ProxyFixtureOptions & { readonly protocol?: (offered: Set<string>) => string | false } = {},
) {
  const proxy = await startProxy(options);
  const server = new WebSocketServer({
    noServer: true,
    ...(options.protocol === undefined ? {} : { handleProtocols: options.protocol }),
  });
  const arrived: ModuleSide[] = [];
  const waiting: ((side: ModuleSide) => void)[] = [];
  proxy.backend.on('upgrade', (request, socket, head) =>
    server.handleUpgrade(request, socket, head, (accepted) => {
      const messages: (string | Buffer)[] = [];
      accepted.on('message', (bytes, isBinary) => {
        messages.push(isBinary ? bytes : bytes.toString());
        accepted.send(bytes, { binary: isBinary });
      });
      const side = { request, socket: accepted, messages, closed: endOf(accepted) };
      arrived.push(side);
      waiting.shift()?.(side);
    }),
  );
  t.teardown(async () => {
    for (const { socket } of arrived) socket.terminate();
    await proxy.close();
  });
  const nextModule = () => new Promise<ModuleSide>((resolve) => waiting.push(resolve));
  return { ...proxy, arrived, nextModule };
}

type Proxy = Awaited<ReturnType<typeof proxyOf>>;

function connect(
  { http }: Pick<Proxy, 'http'>,
  headers: Record<string, string> = TOKEN,
  protocols: string[] = [],
  path = PATH,
): WebSocket {
  return new WebSocket(`ws://127.0.0.1:${http.port}${path}`, protocols, {
    headers,
    perMessageDeflate: false,
  });
}

function endOf(socket: WebSocket): Promise<readonly [code: number, reason: string]> {
  return new Promise((resolve) => socket.on('close', (code, reason) => resolve([code, reason.toString()])));
}

const opened = (socket: WebSocket) =>
  new Promise<void>((resolve, reject) => socket.on('open', resolve).on('error', reject));

/** A client and the side of its module, both open. */
async function pair(proxy: Proxy) {
  const arrival = proxy.nextModule();
  const client = connect(proxy);
  const end = endOf(client);
  await opened(client);
  return { client, end, module: await arrival };
}

const nextMessage = (socket: WebSocket) =>
  new Promise<string | Buffer>((resolve) =>
    socket.once('message', (bytes: Buffer, isBinary: boolean) =>
      resolve(isBinary ? bytes : bytes.toString()),
    ),
  );

/** The answer to a handshake that does not switch. */
async function refusalOf(socket: WebSocket): Promise<{ status: number; code: unknown; headers: object }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    socket.on('unexpected-response', (_request, answer) => resolve(answer)).on('error', reject);
  });
  const parts: Buffer[] = [];
  for await (const part of response as AsyncIterable<Buffer>) parts.push(part);
  const text = Buffer.concat(parts).toString();
  const body = text.startsWith('{') ? (JSON.parse(text) as { error?: { code: number } }) : {};
  return { status: response.statusCode ?? 0, code: body.error?.code, headers: response.headers };
}

t.test('WebSocket: texts and bytes pass in both directions as they are', async (t) => {
  const proxy = await proxyOf(t);
  const client = connect(proxy);
  await opened(client);
  const messages = [
    '',
    'grüße',
    Buffer.from([0, 255, 128]),
    Buffer.alloc(1024 * 1024, 7),
    'x'.repeat(70_000),
  ];
  for (const message of messages) {
    const answer = nextMessage(client);
    client.send(message);
    const received = await answer;
    t.ok(isDeepStrictEqual(received, message), `${typeof message} of ${message.length}`);
  }
  t.ok(isDeepStrictEqual(proxy.arrived[0]?.messages, messages));
  client.close();
});

t.test('WebSocket: the handshake reaches the module with the identity of the caller', async (t) => {
  const proxy = await proxyOf(t);
  const client = connect(proxy, { ...TOKEN, 'X-Crm': '1', 'X-Own': 'kept' });
  await opened(client);
  const { request } = proxy.arrived[0] as ModuleSide;
  t.equal(request.url, '/base/core/v1/echo?a=%20b');
  t.match(request.headers, {
    'x-crm': '1842001',
    'x-scopes': 'McpVerified',
    'x-own': 'kept',
    'x-forwarded-for': '127.0.0.1',
    'sec-websocket-version': '13',
    via: '1.1 gatehouse',
  });
  t.notOk('authorization' in request.headers);
  t.notOk('sec-websocket-extensions' in request.headers, 'no compression is offered');
  client.close();
});

t.test('WebSocket: the module chooses the subprotocol, or none', async (t) => {
  for (const [choice, expected] of [
    ['b', 'b'],
    [false, ''],
  ] as const) {
    const proxy = await proxyOf(t, { protocol: () => choice });
    const client = connect(proxy, TOKEN, ['a', 'b']);
    const answer = new Promise<IncomingMessage>((resolve) => client.on('upgrade', resolve));
    client.on('error', () => undefined);
    t.equal((await answer).headers['sec-websocket-protocol'] ?? '', expected);
    t.equal(proxy.arrived[0]?.request.headers['sec-websocket-protocol'], 'a,b');
    client.terminate();
  }
});

t.test('WebSocket: the code and reason of either side reach the other', async (t) => {
  for (const [code, reason] of [
    [1000, 'done'],
    [1001, ''],
    [4999, 'ümlaut'],
    [1005, ''],
  ] as const) {
    const proxy = await proxyOf(t);
    for (const from of ['client', 'module'] as const) {
      const { client, module, end } = await pair(proxy);
      const closing = from === 'client' ? client : module.socket;
      if (code === 1005) closing.close();
      else closing.close(code, reason);
      t.same(await (from === 'client' ? module.closed : end), [code, reason], `${code} of the ${from}`);
    }
  }
});

t.test('WebSocket: a code that the library does not know reaches the module without a code', async (t) => {
  const proxy = await proxyOf(t);
  const { client, module } = await pair(proxy);
  client.close(3000, 'own');
  t.same(await module.closed, [1005, '']);
});

t.test('WebSocket: a connection that breaks is cut on the other side', async (t) => {
  const proxy = await proxyOf(t);
  for (const broken of ['client', 'module'] as const) {
    const { client, module, end } = await pair(proxy);
    if (broken === 'client') client.terminate();
    else module.socket.terminate();
    if (broken === 'client') t.same(await module.closed, [1006, '']);
    else t.same(await end, [1014, ''], 'bad gateway');
  }
});

t.test("WebSocket: the module's other answer reaches the client", async (t) => {
  const proxy = closeAfter(t, await startProxy());
  proxy.backend.on('upgrade', (_request, socket) => {
    const body = '{"error":{"code":2202,"message":"no"}}';
    socket.end(
      `HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nX-Why: rules\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  });
  const { status, code, headers } = await refusalOf(connect(proxy));
  t.same([status, code], [403, 2202]);
  t.match(headers, { 'x-why': 'rules', 'cache-control': 'no-store' });
  t.equal(proxy.bounds.of('webSockets').counters().held, 0);
});

t.test('WebSocket: a faulty handshake is refused before the module is called', async (t) => {
  const proxy = await proxyOf(t);
  const cases: [string, Record<string, string | undefined>, string][] = [
    ['version 8', { 'Sec-WebSocket-Version': '8' }, '426 1034'],
    ['no version', { 'Sec-WebSocket-Version': undefined }, '426 1034'],
    ['no Upgrade', { Upgrade: undefined }, '400 1001'],
    ['another Upgrade', { Upgrade: 'h2c' }, '400 1001'],
    ['no Connection', { Connection: undefined }, '400 1001'],
    ['a short key', { 'Sec-WebSocket-Key': 'abc' }, '400 1001'],
    ['a key that is not base64', { 'Sec-WebSocket-Key': '?'.repeat(24) }, '400 1001'],
    ['a subprotocol twice', { 'Sec-WebSocket-Protocol': 'a, a' }, '400 1001'],
    ['a subprotocol that is no token', { 'Sec-WebSocket-Protocol': 'a b' }, '400 1001'],
    ['no session', { Authorization: undefined }, '401 1101'],
    ['another method', { ':method': 'POST' }, '400 1001'],
    ['an encoded separator', { ':path': '/core/v1/a%2fb' }, '400 1001'],
    ['a path out of reach', { Authorization: `Bearer ${BASIC_BEARER}` }, '403 1103'],
  ];
  for (const [name, changes, expected] of cases) {
    const { ':method': method = 'GET', ':path': path = PATH, ...rest } = changes;
    const fields = { Authorization: `Bearer ${BEARER}`, ...HANDSHAKE, ...rest };
    const sent = Object.entries(fields).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, value]],
    );
    const answer = await proxy.http.ask(method, path, Object.fromEntries(sent));
    t.equal(`${answer.status} ${/"code":(-?[0-9]+)/.exec(answer.body)?.[1]}`, expected, name);
    if (answer.status === 426)
      t.match(answer.headers, { upgrade: 'websocket', 'sec-websocket-version': '13' });
  }
  t.equal(proxy.arrived.length, 0);
  t.equal(proxy.asked.length, 0);
});

// covers S17
t.test('WebSocket: where the cookie counts, only a page of an own origin may open one', async (t) => {
  const proxy = await proxyOf(t, { rules: { public: ['/core/v1/open'] } });
  const own = `http://localhost:${proxy.http.port}`;
  const foreign = 'https://evil.example';
  const status = (headers: Record<string, string>, path = PATH) => {
    const client = connect(proxy, headers, [], path);
    const switched = opened(client).then(() => {
      client.terminate();
      return 101;
    });
    return Promise.race([switched, refusalOf(client).then((answer) => answer.status)]);
  };
  t.equal(await status({ ...COOKIE, origin: own }), 101, 'an own origin');
  t.equal(await status(COOKIE), 101, 'a program sends none');
  t.equal(await status({ ...COOKIE, origin: foreign }), 403, 'a foreign origin');
  t.equal(await status({ ...COOKIE, origin: 'null' }), 403, 'a sandboxed frame');
  t.equal(await status({ ...COOKIE, origin: own, 'sec-fetch-site': 'cross-site' }), 403, 'a foreign page');
  t.equal(await status({ ...COOKIE, origin: foreign }, '/core/v1/open/x'), 403, 'also on a public path');
  t.equal(await status({ ...TOKEN, origin: foreign }), 101, 'no page can make a browser send a bearer');
  t.equal(await status({ ...TOKEN, ...COOKIE, origin: foreign }), 101, 'the bearer counts, not the cookie');
  t.equal(await status({ origin: foreign }, '/core/v1/open/x'), 101, 'a public path without a cookie');
  t.notOk('x-crm' in (proxy.arrived.at(-1)?.request.headers ?? {}));
});

/** Frames of a client, what reaches the module, and how both sides end: the client by a code, or cut. */
interface FrameCase {
  readonly name: string;
  readonly frames: readonly Buffer[];
  readonly messages?: readonly (string | Buffer)[];
  /** 1000 unless given: the close frame that follows. */
  readonly module?: number;
  /** Code of the close frame; null: the connection ends without one. */
  readonly client?: number | null;
}

const part = (opcode: number, payload: string | Uint8Array, fin: boolean) => frame({ opcode, payload, fin });
const text = (payload: string | Uint8Array, more: Partial<Frame> = {}) =>
  frame({ opcode: TEXT, payload, ...more });
const binary = (payload: Uint8Array) => frame({ opcode: BINARY, payload });
const euro = Buffer.from('€');
const MIB = 1024 * 1024;

const passes = (name: string, messages: readonly (string | Buffer)[], ...frames: Buffer[]): FrameCase => ({
  name,
  frames,
  messages,
});
/** Both sides get the code. */
const closes = (name: string, code: number, ...frames: Buffer[]): FrameCase => ({
  name,
  frames,
  module: code,
  client: code,
});
const cut = (name: string, ...frames: Buffer[]): FrameCase => ({ name, frames, module: 1006, client: null });

const FRAMES: readonly FrameCase[] = [
  passes('an empty text', [''], frame({ opcode: TEXT })),
  passes('an empty binary', [Buffer.alloc(0)], frame({ opcode: BINARY })),
  ...[125, 126, 127, 128, 65_535, 65_536].map((length) =>
    passes(`a text of ${length} bytes`, ['a'.repeat(length)], text('a'.repeat(length))),
  ),
  passes(
    'lengths in more bits than needed',
    ['a', 'b'],
    text('a', { lengthBits: 16 }),
    text('b', { lengthBits: 64 }),
  ),
  passes(
    'a message in three fragments',
    ['ab'],
    part(TEXT, 'a', false),
    part(CONTINUATION, '', false),
    part(CONTINUATION, 'b', true),
  ),
  passes(
    'control frames between fragments',
    [Buffer.from('ab')],
    part(BINARY, 'a', false),
    frame({ opcode: PING, payload: 'p' }),
    frame({ opcode: PONG }),
    part(CONTINUATION, 'b', true),
  ),
  passes(
    'a character in two fragments',
    ['€'],
    part(TEXT, euro.subarray(0, 1), false),
    part(CONTINUATION, euro.subarray(1), true),
  ),
  passes('a ping of 125 bytes', [], frame({ opcode: PING, payload: 'p'.repeat(125) })),
  passes('a pong that nothing asked for', [], frame({ opcode: PONG, payload: 'p' })),
  passes('bytes that are not UTF-8 in a binary', [Buffer.from([0xff])], binary(Buffer.from([0xff]))),
  { name: 'a close frame with code 1000', frames: [closeFrame(1000, 'x')], client: 1000 },
  closes('a close frame without a code', 1005, closeFrame()),
  closes('a close frame with code 4000', 4000, closeFrame(4000)),
  closes('frames after a close frame', 1001, closeFrame(1001), text('late')),
  ...[999, 1004, 1005, 1006, 1015, 5000].map((code) =>
    closes(`a close frame with code ${code}`, 1005, closeFrame(code)),
  ),
  closes('a close frame whose reason is not UTF-8', 1005, closeFrame(1000, Buffer.from([0xff]))),
  closes('a close frame of one byte', 1005, frame({ opcode: CLOSE, payload: 'a' })),
  cut('a text that is not UTF-8', text(Buffer.from([0x61, 0xff]))),
  cut('a text that ends in a character', text(euro.subarray(0, 2))),
  cut('a surrogate', text(Buffer.from([0xed, 0xa0, 0x80]))),
  cut(
    'fragments that are not UTF-8 together',
    part(TEXT, euro.subarray(0, 1), false),
    part(CONTINUATION, 'x', true),
  ),
  cut('a continuation without a beginning', part(CONTINUATION, 'a', true)),
  cut('a new message within another', part(TEXT, 'a', false), part(TEXT, 'b', true)),
  ...[1, 2, 4, 7].map((rsv) => cut(`reserved bits ${rsv}`, text('a', { rsv }))),
  ...[3, 7, 11, 15].map((opcode) => cut(`reserved opcode ${opcode}`, frame({ opcode, payload: 'a' }))),
  cut('a ping in fragments', part(PING, 'a', false)),
  cut('a ping of 126 bytes', frame({ opcode: PING, payload: 'p'.repeat(126) })),
  closes('one byte above 1 MiB', 1009, binary(Buffer.alloc(MIB + 1))),
  closes(
    'above 1 MiB in fragments',
    1009,
    part(BINARY, Buffer.alloc(MIB), false),
    part(CONTINUATION, 'a', true),
  ),
  cut('above 2 MiB', frame({ opcode: BINARY, declaredBytes: 3 * MIB })),
  cut('a length of 2^63', Buffer.from([0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4])),
];

// covers S19
t.test('WebSocket: frames of a client, byte for byte', async (t) => {
  const proxy = await proxyOf(t);
  for (const { name, frames, messages = [], module = 1000, client = 1000 } of FRAMES) {
    const arrival = proxy.nextModule();
    const connection = connectRaw(proxy.http.port);
    t.equal((await connection.ask(HEAD)).status, 101, name);
    const side = await arrival;
    for (const each of frames) connection.send(each);
    connection.send(closeFrame(1000));
    t.equal((await side.closed)[0], module, `${name}: code at the module`);
    t.ok(isDeepStrictEqual(side.messages, messages), `${name}: messages at the module`);
    const last = framesOf(await connection.ended()).filter(({ opcode }) => opcode === CLOSE);
    const code = last.map(({ payload }) => (payload.length === 0 ? 1005 : payload.readUInt16BE(0)));
    t.same(code, client === null ? [] : [client], `${name}: close frames to the client`);
    connection.close();
  }
  t.equal(proxy.bounds.of('webSockets').counters().held, 0);
  t.same(proxy.http.bugs, []);
});

t.test('WebSocket: what a client sends before the answer ends its connection and runs nothing', async (t) => {
  const proxy = await proxyOf(t);
  for (const early of [text('a'), requestText('GET', '/core/v1/next', TOKEN)]) {
    const connection = connectRaw(proxy.http.port);
    connection.send(Buffer.concat([Buffer.from(HEAD), Buffer.from(early)]));
    t.notMatch(await connection.ended(), / 101 /);
    connection.close();
  }
  await proxy.sockets.drain();
  t.equal(proxy.asked.length, 0);
  t.same(
    proxy.arrived.flatMap(({ messages }) => messages),
    [],
  );
  t.equal(proxy.sockets.counters().open, 0);
});

t.test('WebSocket: each socket has a record of its attempt and one of its end, and one call', async (t) => {
  const calls: object[] = [];
  const proxy = await proxyOf(t, { onCall: (call) => calls.push(call) });
  const { client, module } = await pair(proxy);
  const outcomes = () => proxy.audit.map(({ event, fields }) => [event, fields['name'], fields['outcome']]);
  const record = (outcome: string) => ['rest.call', 'WEBSOCKET /core/v1/echo', outcome];
  t.same(outcomes(), [record('attempt')], 'without the query');
  t.match(calls, [{ name: 'core', outcome: 'ok' }]);
  t.match(proxy.http.finished, [{ status: 101, route: '/:module/:version/:path', userId: '1842001' }]);
  client.close();
  await module.closed;
  await proxy.sockets.drain();
  t.same(outcomes(), [record('attempt'), record('ok')]);
  t.equal(calls.length, 1);
});

t.test('WebSocket: a module that is down is 502, then its breaker opens', async (t) => {
  const proxy = closeAfter(t, await startProxy({ moduleUrl: 'http://127.0.0.1:1' }));
  const codes: unknown[] = [];
  for (let call = 0; call < 6; call += 1) codes.push((await refusalOf(connect(proxy))).code);
  t.same(codes, [1008, 1008, 1008, 1008, 1008, 1010]);
  t.match(proxy.audit.at(-1), { fields: { outcome: 'failed' } });
  t.equal(proxy.sockets.counters().open, 0);
});

t.test('WebSocket: a module that does not answer is 504', async (t) => {
  const proxy = closeAfter(t, await startProxy({ proxyTimeoutMs: 50 }));
  proxy.backend.on('upgrade', (_request, socket) => socket.on('end', () => socket.destroy()).resume());
  t.same((await refusalOf(connect(proxy))).code, 1009);
});

t.test('WebSocket: answers that are none of a module count as failed', async (t) => {
  const proxy = closeAfter(t, await startProxy());
  const answers = [
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: no\r\n\r\n',
    'HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 400 Bad Request\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx',
    'no HTTP\r\n\r\n',
    '',
  ];
  let answer = '';
  proxy.backend.on('upgrade', (_request, socket) => socket.end(answer));
  for (answer of answers)
    t.equal(
      (await refusalOf(connect(proxy, TOKEN, [], `/core/v1/x${answers.indexOf(answer)}`))).code,
      1008,
      answer.slice(0, 12),
    );
  t.equal(proxy.sockets.counters().open, 0);
});

// covers S18
t.test('WebSocket: sockets of a session have a share, and the rest is refused with 429', async (t) => {
  const proxy = await proxyOf(t, { settings: { WebSocketsPerSession: 2 } });
  const clients = [connect(proxy), connect(proxy)];
  await Promise.all(clients.map(opened));
  const { status, code, headers } = await refusalOf(connect(proxy));
  t.same([status, code], [429, 1002]);
  t.match(headers, { 'retry-after': '1' });
  const other = connect(proxy, COOKIE);
  await opened(other);
  t.match(proxy.audit.filter(({ fields }) => fields['outcome'] === 'limited').length, 1);
  const arrived = proxy.arrived[0] as ModuleSide;
  clients[0]?.close();
  await arrived.closed;
  await opened(connect(proxy));
});

t.test('WebSocket: all sockets have a maximum, beyond which handshakes are 503', async (t) => {
  const none = { ConnectionsPerNetworkPercent: 0 };
  const proxy = await proxyOf(t, {
    settings: { WebSocketsMax: 1, ...none },
    rules: { public: ['/core/v1/open'] },
  });
  await opened(connect(proxy));
  const other = connectRaw(proxy.http.port, '127.0.0.2');
  const { status, body } = await other.ask(requestText('GET', '/core/v1/open/x', HANDSHAKE));
  t.same([status, JSON.parse(body).error.code], [503, 1003]);
  other.close();
});

t.test('WebSocket: the end of a session ends its sockets with 1008', async (t) => {
  const proxy = await proxyOf(t);
  const { module, end } = await pair(proxy);
  const other = connect(proxy, COOKIE);
  await opened(other);
  proxy.sockets.sessionEnded(AGENT_SESSION);
  t.same(await end, [1008, '']);
  t.same(await module.closed, [1008, '']);
  t.equal(other.readyState, OPEN);
});

t.test('WebSocket: a session that ended during the handshake opens none', async (t) => {
  const proxy = await proxyOf(t);
  proxy.endedSessions.add(AGENT_SESSION);
  const arrival = proxy.nextModule();
  const end = endOf(connect(proxy));
  t.same(await end, [1008, '']);
  t.same(await (await arrival).closed, [1008, '']);
  t.equal(proxy.http.server.open, 0, 'its connection is counted once');
});

t.test(
  'WebSocket: without its lease a node passes no message on, and ends the socket with 1013',
  async (t) => {
    const proxy = await proxyOf(t);
    for (const from of ['client', 'module'] as const) {
      const { client, module, end } = await pair(proxy);
      const received: unknown[] = [];
      client.on('message', (bytes: Buffer) => received.push(bytes));
      proxy.node.admits = false;
      (from === 'client' ? client : module.socket).send('on an old state');
      t.same(await end, [1013, ''], `of the ${from}`);
      t.same(await module.closed, [1013, '']);
      t.same([...module.messages, ...received], []);
      proxy.node.admits = true;
    }
    t.equal(await proxy.sockets.drain(), 0, 'both are over');
    t.match(proxy.sockets.counters(), { open: 0, ended: { unavailable: 2 } });
  },
);

t.test('WebSocket: a drain ends all sockets with 1012, and refuses new ones', async (t) => {
  const proxy = await proxyOf(t);
  const clients = Array.from({ length: 5 }, () => connect(proxy));
  await Promise.all(clients.map(opened));
  const ends = clients.map(endOf);
  t.equal(await proxy.sockets.drain(), 0);
  for (const end of ends) t.same(await end, [1012, '']);
  for (const { closed } of proxy.arrived) t.same(await closed, [1012, '']);
  t.same((await refusalOf(connect(proxy))).code, 1014);
  t.match(proxy.sockets.counters(), { open: 0, openedTotal: 5, ended: { drain: 5 } });
});

t.test('WebSocket: a drain waits for a handshake under way, and ends its socket', async (t) => {
  const proxy = closeAfter(t, await startProxy());
  const server = new WebSocketServer({ noServer: true });
  const asked = new Promise<() => void>((resolve) =>
    proxy.backend.on('upgrade', (request, socket, head) =>
      resolve(() => server.handleUpgrade(request, socket, head, () => undefined)),
    ),
  );
  const end = endOf(connect(proxy));
  const accept = await asked;
  const drained = proxy.sockets.drain();
  accept();
  t.same(await end, [1012, '']);
  t.equal(await drained, 0);
});

// covers S18
t.test('WebSocket: a module that takes nothing ends the socket with 1013', async (t) => {
  const proxy = await proxyOf(t);
  const { client, module, end } = await pair(proxy);
  module.socket.pause();
  const piece = Buffer.alloc(256 * 1024);
  // The kernels of both sides take some megabytes.
  for (let sent = 0; sent < 64; sent += 1) client.send(piece);
  t.same(await end, [1013, '']);
  module.socket.resume();
  t.same(await module.closed, [1006, ''], 'cut: a close frame would wait behind the messages');
  t.match(proxy.sockets.counters().ended, { slow: 1 });
});

// covers S18
t.test('WebSocket: a client that reads nothing pauses its module, and loses nothing', async (t) => {
  const proxy = await proxyOf(t);
  const { client, module } = await pair(proxy);
  const { socket } = module;
  client.pause();
  const count = 100;
  const sizeBytes = 256 * 1024;
  for (let index = 0; index < count; index += 1) socket.send(Buffer.alloc(sizeBytes, index));
  const stalled = () => socket.bufferedAmount > 8 * 1024 * 1024;
  // The gateway and the kernels hold far less than the module sent.
  t.ok(stalled());
  const received: number[] = [];
  const all = new Promise<void>((resolve) =>
    client.on('message', (bytes: Buffer) => {
      if (bytes.length === sizeBytes && bytes.every((byte) => byte === bytes[0]))
        received.push(bytes[0] ?? -1);
      if (received.length === count) resolve();
    }),
  );
  await new Promise((resolve) => setImmediate(resolve));
  const before = proxy.sockets.counters().bytes.to_client;
  t.ok(before < count * sizeBytes, `the gateway took ${before} bytes`);
  client.resume();
  await all;
  t.same(
    received,
    Array.from({ length: count }, (_, index) => index),
    'in order',
  );
});

t.test('WebSocket: faulty frames of a module end the socket with 1014', async (t) => {
  const proxy = await proxyOf(t);
  const faulty: Record<string, (socket: WebSocket) => void> = {
    'a masked frame': (socket) => Reflect.get(socket, '_socket').write(text('a')),
    'a reserved opcode': (socket) =>
      Reflect.get(socket, '_socket').write(frame({ opcode: 3, isMasked: false })),
    'a message above 1 MiB': (socket) => socket.send(Buffer.alloc(MIB + 1)),
  };
  for (const [name, send] of Object.entries(faulty)) {
    const { module, end } = await pair(proxy);
    send(module.socket);
    t.same(await end, [1014, ''], name);
  }
});

// covers S18
t.test('WebSocket: a silent side is pinged, then closed; an answer to a ping keeps a side', async (t) => {
  const timers: (() => void)[] = [];
  const schedule = {
    immediate: (run: () => void) => run(),
    timer: (_delayMs: number, run: () => void) => {
      timers.push(run);
      return () => undefined;
    },
  };
  const proxy = await proxyOf(t, { schedule, settings: { WebSocketIdleSeconds: 60 } });
  const pass = (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      proxy.http.time.nowMs += 1000;
      timers.shift()?.();
    }
  };
  const arrival = proxy.nextModule();
  const silent = connectRaw(proxy.http.port);
  await silent.ask(HEAD);
  const live = connect(proxy);
  await opened(live);
  const modulePinged = new Promise(
    (resolve) => void arrival.then(({ socket }) => socket.once('ping', resolve)),
  );
  const pinged = new Promise((resolve) => live.once('ping', resolve));
  pass(45);
  await Promise.all([pinged, modulePinged]);
  t.equal(proxy.sockets.counters().open, 2);
  t.equal(live.readyState, OPEN);
  pass(200);
  const ended = framesOf(await silent.ended());
  t.ok(ended.some(({ opcode }) => opcode === PING));
  t.equal(ended.at(-1)?.opcode, CLOSE);
  t.equal(ended.at(-1)?.payload.readUInt16BE(0), 1001);
  silent.close();
});

// covers S18
t.test('WebSocket: connections and shares are back at 0 after every kind of end', async (t) => {
  const proxy = await proxyOf(t, { settings: { WebSocketsPerSession: 1000 } });
  const held = (name: 'webSockets' | 'requests') => proxy.bounds.of(name).counters().held;
  for (let round = 0; round < 3; round += 1) {
    const clients = Array.from({ length: 40 }, () => connect(proxy));
    await Promise.all(clients.map(opened));
    t.equal(held('webSockets'), 40);
    t.equal(held('requests'), 0, 'a socket is no request in flight');
    t.equal(proxy.http.server.open, 40);
    const modules = proxy.arrived.slice(-40);
    for (const [index, client] of clients.entries()) {
      client.on('error', () => undefined);
      if (index % 4 === 0) client.close();
      else if (index % 4 === 1) client.terminate();
      else if (index % 4 === 2) modules[index]?.socket.close(4000);
      else modules[index]?.socket.terminate();
    }
    await Promise.all(modules.map(({ closed }) => closed));
    await Promise.all(clients.map((client) => client.readyState === CLOSED || endOf(client)));
    await fetch(`http://127.0.0.1:${proxy.http.port}/none`, { headers: { connection: 'close' } });
    t.equal(proxy.http.server.open, 0);
    t.equal(held('webSockets'), 0);
  }
});
