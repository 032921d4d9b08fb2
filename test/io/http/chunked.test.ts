/**
 * Requests hidden in a chunked body (docs/decisions/0090). uWebSockets.js reads `1;a` as 442 bytes and drops two bytes of a
 * trailer, so it finds another end of the body than a proxy. What follows is never handled.
 */
import tls from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { object, text } from '../../../src/domain/schema.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { type OutgoingBody, StreamReply } from '../../../src/io/http/exchange/stream.ts';
import { omitServerHeader } from '../../../src/io/http/listen/server.ts';
import { type AnyRoute, defineRoute, Reply, type RouteContext } from '../../../src/io/http/table/route.ts';
import { certificateFiles } from '../../support/certificate.ts';
import {
  connectRaw,
  type HttpFixture,
  heldBodies,
  plainRoute,
  requestText,
  route,
  START_MS,
  sendRaw,
  startHttp,
} from '../../support/http.ts';
import { startMcp, TOKENS } from '../../support/mcp.ts';

const plain = { group: 'test', limits: [], errors: [], summary: 'test', auth: 'none' } as const;
/** For a proxy one body of 1,035 bytes; for uWebSockets.js a body of 442 and a further request. */
const TRICK = `1;a\r\nA\r\n400\r\n${'x'.repeat(434)}\r\n0\r\n\r\n`;
const HIDDEN = requestText('GET', '/hidden', { 'X-Request-Id': 'hidden' });
const CHUNKED = { 'Transfer-Encoding': 'chunked' };
const BIG = Buffer.alloc(2 * 1024 * 1024, 97);

const head = (method: string, path: string, headers: Record<string, string> = {}) =>
  requestText(method, path, { ...headers, ...CHUNKED });
const answersIn = (received: string) => received.match(/HTTP\/1\.1 /g)?.length ?? 0;

function digest(context: RouteContext): Promise<number> {
  return new Promise((resolve) => {
    let bytes = 0;
    context.incoming?.read({
      data(piece) {
        bytes += piece.length;
      },
      end: () => resolve(bytes),
      lost: () => resolve(-1),
    });
  });
}

function streamed(bytes: Uint8Array, lengthBytes?: number): StreamReply {
  let at = 0;
  let to: OutgoingBody | undefined;
  const more = () => {
    while (at < bytes.length) {
      const piece = bytes.subarray(at, at + 64 * 1024);
      at += piece.length;
      if (to?.send(piece) === false) return;
    }
    to?.end();
  };
  const source = {
    start(out: OutgoingBody) {
      to = out;
      more();
    },
    drained: more,
    lost: () => undefined,
  };
  return new StreamReply(200, source, lengthBytes === undefined ? {} : { lengthBytes });
}

/** Every kind of body and answer. */
const WAYS: readonly (Pick<AnyRoute, 'method' | 'path' | 'body' | 'handle'> & {
  readonly auth?: 'session';
})[] = [
  { method: 'POST', path: '/raw', body: 'raw', handle: ({ rawBody }) => rawBody.length },
  {
    method: 'POST',
    path: '/later',
    body: 'raw',
    handle: async () => new Promise(setImmediate).then(() => 1),
  },
  { method: 'POST', path: '/json', body: object({ name: text() }), handle: ({ body }) => body },
  { method: 'POST', path: '/ignored', handle: () => 'no body is read' },
  { method: 'GET', path: '/ignored', handle: () => 'no body is read' },
  { method: 'POST', path: '/stream', body: 'stream', handle: digest },
  { method: 'POST', path: '/unread', body: 'stream', handle: () => 'the body is not read' },
  {
    method: 'POST',
    path: '/refused',
    body: 'stream',
    handle() {
      throw new GatewayError('MaxFileSize');
    },
  },
  { method: 'POST', path: '/session', body: 'raw', auth: 'session', handle: () => 1 },
  { method: 'POST', path: '/nothing', body: 'raw', handle: () => new Reply(204, null) },
  { method: 'POST', path: '/same', body: 'raw', handle: () => new Reply(304, null) },
  { method: 'POST', path: '/empty', body: 'raw', handle: () => Reply.empty() },
  { method: 'POST', path: '/empty-early', body: 'stream', handle: () => Reply.empty() },
  { method: 'POST', path: '/big', body: 'raw', handle: () => new Reply(200, BIG, 'text/plain') },
  { method: 'POST', path: '/big-early', body: 'stream', handle: () => new Reply(200, BIG, 'text/plain') },
  { method: 'POST', path: '/sized', body: 'raw', handle: () => streamed(BIG, BIG.length) },
  { method: 'POST', path: '/sized-one', body: 'raw', handle: () => streamed(BIG.subarray(0, 1), 1) },
  { method: 'POST', path: '/unsized', body: 'raw', handle: () => streamed(BIG) },
  { method: 'POST', path: '/unsized-early', body: 'stream', handle: () => streamed(BIG) },
  { method: 'POST', path: '/sized-empty', body: 'raw', handle: () => streamed(new Uint8Array(0), 0) },
  { method: 'POST', path: '/unsized-empty', body: 'raw', handle: () => streamed(new Uint8Array(0)) },
  { method: 'GET', path: '/headed', body: 'raw', handle: () => new Reply(200, BIG, 'text/plain') },
];

/** The request, and whether its answer is whole when the connection has ended. */
const REQUESTS: Readonly<
  Record<string, [method: string, path: string, status: number, headers?: Record<string, string>]>
> = {
  ...Object.fromEntries(
    WAYS.filter(
      ({ path }) => !['/json', '/refused', '/session', '/headed', '/nothing', '/same'].includes(path),
    ).map(({ method, path }) => [`${method} ${path}`, [method, path, 200]]),
  ),
  'a body that does not parse': ['POST', '/json', 400, { 'Content-Type': 'application/json' }],
  'a type that is not taken': ['POST', '/json', 415],
  'a handler that throws': ['POST', '/refused', 413],
  'no session': ['POST', '/session', 401],
  '204': ['POST', '/nothing', 204],
  '304': ['POST', '/same', 304],
  HEAD: ['HEAD', '/headed', 200],
  'no route': ['POST', '/nowhere', 404],
  'no such method': ['DELETE', '/raw', 405],
  preflight: [
    'OPTIONS',
    '/raw',
    204,
    { Origin: 'https://pages.example', 'Access-Control-Request-Method': 'POST' },
  ],
  'a foreign host': ['POST', '/raw', 403, { Host: 'evil.example' }],
  'a broken path': ['POST', '/item/%zz', 400],
  'a long address': ['POST', `/${'a'.repeat(3_000)}?${'b'.repeat(5_100)}`, 431],
};

interface Started extends HttpFixture {
  hidden: number;
}

function start(t: Test, changes: Partial<Parameters<typeof startHttp>[0]> = {}): Started {
  const seen = { hidden: 0 };
  const fixture = startHttp({
    site: { origins: new Set(['https://pages.example']) },
    routes: [
      ...WAYS.map((way) => defineRoute({ ...plain, ...way } as AnyRoute)),
      plainRoute('GET /hidden', () => ++seen.hidden),
      route('POST /item/:name', { body: 'raw' }, () => 1),
    ],
    ...changes,
  });
  t.teardown(() => fixture.close());
  return Object.assign(seen, fixture);
}

/** Returns the traces of the hidden request: a run of its handler, reports. */
function tracesOf(fixture: Started, name: string): string[] {
  const reports = fixture.finished.splice(0);
  return [
    ...(fixture.hidden === 0 ? [] : [`${name}: the hidden request is run`]),
    ...reports
      .filter(({ path, requestId }) => path === '/hidden' || requestId === 'hidden')
      .map(({ path }) => `${name}: a report of ${path}`),
  ];
}

/** More than one answer, or a trace of the hidden request. */
function faultsOf(fixture: Started, name: string, received: string): string[] {
  const answers = answersIn(received);
  return [...(answers > 1 ? [`${name}: ${answers} answers`] : []), ...tracesOf(fixture, name)];
}

// covers S42
t.test(
  'chunked: a request hidden behind the body, in one segment, is not handled on any kind of route',
  async (t) => {
    const fixture = start(t);
    const faults: string[] = [];
    for (const [name, [method, path, , headers]] of Object.entries(REQUESTS)) {
      const connection = connectRaw(fixture.port);
      connection.send(head(method, path, headers) + TRICK + HIDDEN);
      faults.push(...faultsOf(fixture, name, await connection.ended()));
    }
    t.same(faults, []);
    t.equal((await sendRaw(fixture.port, HIDDEN)).body, '{"result":1}', 'the route is there');
    t.same(fixture.bugs, []);
  },
);

// covers S42
t.test(
  'chunked: the answer arrives complete, and a request hidden in a second segment closes the connection',
  async (t) => {
    const fixture = start(t);
    const faults: unknown[] = [];
    for (const [name, [method, path, status, headers]] of Object.entries(REQUESTS)) {
      const connection = connectRaw(fixture.port);
      connection.send(head(method, path, headers) + TRICK);
      // An answer without a length shows its head here; its chunks may follow the hidden request.
      const answer = await connection.answer(method === 'HEAD');
      connection.send(HIDDEN);
      const seen = [answer.status, answer.headers['connection'], answersIn(await connection.ended())];
      if (!isDeepStrictEqual(seen, [status, 'close', 0])) faults.push([name, ...seen]);
      faults.push(...tracesOf(fixture, name));
    }
    t.same(faults, []);
    t.same(fixture.bugs, []);
    t.match(fixture.pipeline.counters(), { bodyBytesInFlight: 0, requestsInFlight: 0 });
  },
);

// covers S43
t.test('chunked: no request is handled after a complete answer without a length', async (t) => {
  const fixture = start(t);
  const connection = connectRaw(fixture.port);
  connection.send(head('POST', '/unsized') + TRICK);
  while (fixture.finished.length === 0) await new Promise(setImmediate);
  connection.send(HIDDEN);
  const received = await connection.ended();
  t.match(received.slice(-40), /a\r\n0\r\nX-Answer: whole\r\n\r\n$/);
  t.equal(answersIn(received), 1);
  t.same(tracesOf(fixture, 'without a length'), []);
});

// covers S44
t.test('chunked: a request that is cut anywhere in its body is answered at most once', async (t) => {
  const fixture = start(t);
  const all = head('POST', '/raw') + TRICK + HIDDEN;
  const places = [
    10,
    60,
    all.indexOf('1;a') + 1,
    all.indexOf('\r\n0\r\n'),
    all.indexOf('\r\n0\r\n') + 3,
    all.indexOf('GET /hidden'),
    all.indexOf('GET /hidden') + 9,
  ];
  for (const place of places) {
    const connection = connectRaw(fixture.port);
    connection.send(all.slice(0, place));
    for (let ticks = 0; ticks < 20; ticks += 1) await new Promise(setImmediate);
    connection.send(all.slice(place));
    t.same(faultsOf(fixture, `cut at ${place}`, await connection.ended()), []);
  }
});

// covers S42
t.test('chunked: the same over TLS, in one segment and in two', async (t) => {
  const { certificate, tls: files } = certificateFiles(t);
  const fixture = start(t, { tls: files });
  for (const path of ['/raw', '/json', '/stream', '/sized', '/nowhere']) {
    for (const parts of [[head('POST', path) + TRICK + HIDDEN], [head('POST', path) + TRICK, HIDDEN]]) {
      const socket = tls.connect({
        port: fixture.port,
        host: '127.0.0.1',
        ca: certificate,
        servername: 'localhost',
      });
      let received = '';
      socket.on('data', (bytes) => {
        received += bytes.toString('latin1');
      });
      const closed = new Promise((resolve) => socket.on('close', resolve).on('error', resolve));
      const [first = '', second] = parts;
      socket.write(first);
      if (second !== undefined) {
        while (received === '') await new Promise(setImmediate);
        socket.write(second);
      }
      await closed;
      t.same(faultsOf(fixture, path, received), []);
      if (second !== undefined) t.equal(answersIn(received), 1, `${path}: the answer is there`);
    }
  }
});

// covers S43
t.test('chunked: no hidden request is handled after refusals by limits, overload or a stop', async (t) => {
  const limited = start(t, { settings: { IpRPSLimit: 1, ApiRPSLimit: 1 } });
  const full = start(t, { pipeline: { bounds: new SharedBounds(new LiveSettings(), { requests: 0 }) } });
  const large = start(t, {
    pipeline: { bounds: new SharedBounds(new LiveSettings(), { bodyBytes: 100 }) },
  });
  const stopping = start(t);
  await stopping.pipeline.drain(1);
  const cases: [string, Started, number][] = [
    ['limited', limited, 429],
    ['full', full, 429],
    ['too many bytes', large, 429],
    ['stopping', stopping, 503],
  ];
  for (let used = 0; used < 30; used += 1) await limited.ask('POST', '/raw', {}, 'a');
  for (const [name, fixture, status] of cases) {
    fixture.finished.length = 0;
    const one = connectRaw(fixture.port);
    one.send(head('POST', '/raw') + TRICK + HIDDEN);
    t.same(faultsOf(fixture, name, await one.ended()), []);
    const two = connectRaw(fixture.port);
    t.equal((await two.ask(head('POST', '/raw') + TRICK)).status, status, name);
    two.send(HIDDEN);
    t.equal(await two.ended(), '', `${name}: nothing behind it is answered`);
    t.same(tracesOf(fixture, name), []);
  }
});

// covers S43
t.test('chunked: a hidden request is not charged', async (t) => {
  const fixture = start(t, { settings: { IpRPSLimit: 100, ApiRPSLimit: 0 } });
  const left = async () => (await fixture.ask('GET', '/ignored')).headers['x-ratelimit'] ?? '';
  const before = Number(/r=(\d+)/.exec(await left())?.[1]);
  const connection = connectRaw(fixture.port);
  connection.send(head('POST', '/raw') + TRICK + HIDDEN);
  await connection.ended();
  t.equal(
    Number(/r=(\d+)/.exec(await left())?.[1]),
    before - 2,
    'the visible request and the question alone',
  );
});

// covers S42
t.test(
  'chunked: POST /mcp with a hidden call: one answer at most, nothing in log, counters or audit',
  async (t) => {
    const fixture = closeAfter(t, await startMcp());
    const call = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'wallet_get_balance' },
    });
    const own = { Authorization: `Bearer ${TOKENS.McpVerified}`, 'Content-Type': 'application/json' };
    const hidden = {
      GET: requestText('GET', '/mcp', { 'X-Request-Id': 'hidden' }),
      'a call': requestText('POST', '/mcp', { ...own, 'X-Request-Id': 'hidden' }, call),
    };
    for (const [name, request] of Object.entries(hidden)) {
      const attack = head('POST', '/mcp', { 'Content-Type': 'application/json' }) + TRICK;
      const one = connectRaw(fixture.http.port);
      one.send(attack + request);
      t.ok(answersIn(await one.ended()) <= 1, `${name}, one segment: one answer at most`);
      const two = connectRaw(fixture.http.port);
      t.equal((await two.ask(attack)).status, 400, 'the body is no JSON');
      two.send(request);
      t.equal(await two.ended(), '', `${name}, two segments: nothing more`);
    }
    t.same(
      fixture.http.finished.filter(({ requestId }) => requestId === 'hidden'),
      [],
      'no log line, no counter',
    );
    t.same([fixture.audit, fixture.charged, fixture.asked], [[], [], []], 'no record, no charge, no call');
    await fixture.post(call, { Authorization: own.Authorization });
    t.equal(fixture.audit.length, 1, 'the call would have been recorded');
  },
);

// covers S44 S45
t.test(
  'chunked: extension, trailer, empty line before a request, bare CR: answered or refused, then the end',
  async (t) => {
    const fixture = start(t);
    const post = (body: string) => head('POST', '/raw') + body;
    const cases: Readonly<Record<string, string>> = {
      'an extension': post('3;a=b\r\nabc\r\n0\r\n\r\n'),
      'an extension with a quoted line end': post('3;a="\r\n"\r\nabc\r\n0\r\n\r\n'),
      'an extension of the last chunk': post('3\r\nabc\r\n0;a\r\n\r\n'),
      'a trailer': post('3\r\nabc\r\n0\r\nX: y\r\n\r\n'),
      'a trailer that hides a request': post('3\r\nabc\r\n0\r\nXX'),
      'an empty line before the next request': post('3\r\nabc\r\n0\r\n\r\n\r\n'),
      'an empty line before the request': `\r\n${post('3\r\nabc\r\n0\r\n\r\n')}`,
      'a bare CR in a size': post('3\rabc\r\n0\r\n\r\n'),
      'a bare LF in a size': post('3\nabc\r\n0\r\n\r\n'),
      'a bare CR behind the body': post('3\r\nabc\r\n0\r\n\r'),
      'a size with a sign': post('+3\r\nabc\r\n0\r\n\r\n'),
    };
    const faults: string[] = [];
    for (const [name, bytes] of Object.entries(cases)) {
      for (const together of [true, false]) {
        const connection = connectRaw(fixture.port);
        connection.send(together ? bytes + HIDDEN : bytes);
        if (!together) for (let ticks = 0; ticks < 50; ticks += 1) await new Promise(setImmediate);
        if (!together) connection.send(HIDDEN);
        // An extension is read as a larger size, whose body never arrives.
        connection.half();
        const received = await connection.ended();
        if (!/^(?:$|HTTP\/1\.1 (?:200|400|505) )/.test(received)) faults.push(`${name}: ${received}`);
        faults.push(...faultsOf(fixture, name, received));
      }
    }
    t.same(faults, []);
  },
);

t.test('chunked: a correct client receives its answer at once, and its connection closes', async (t) => {
  const fixture = start(t);
  for (const path of ['/raw', '/ignored', '/stream', '/refused', '/big', '/unsized']) {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array([97, 98]));
        controller.close();
      },
    });
    const options: RequestInit & { duplex: 'half' } = { method: 'POST', body, duplex: 'half' };
    const answer = await fetch(`${fixture.url}${path}`, options);
    t.equal(answer.headers.get('connection'), 'close', path);
    const bytes = await answer.arrayBuffer();
    t.equal(bytes.byteLength, path === '/big' || path === '/unsized' ? BIG.length : bytes.byteLength, path);
  }
  const connection = connectRaw(fixture.port);
  connection.send(`${head('POST', '/raw')}2\r\nab\r\n0\r\n\r\n`);
  t.match(await connection.ended(), /Connection: close.*\{"result":2\}$/s, 'a small answer closes by itself');
});

// covers S49
t.test('answers do not name their parser, and a library without this option is left unchanged', async (t) => {
  const fixture = start(t);
  const { headers } = await fixture.ask('GET', '/hidden');
  t.notOk('uwebsockets' in headers);
  t.ok('date' in headers);
  const asked: unknown[] = [];
  omitServerHeader({ _cfg: (word: unknown) => asked.push(word) });
  t.same(asked, ['silent']);
  t.doesNotThrow(() => omitServerHeader({}));
});

// covers S46
t.test(
  'minimum rate: less than 1 KiB/s over 10 s is 408, 2 KiB/s is served; intervals count, not elapsed time',
  async (t) => {
    const { openBodies, second } = heldBodies();
    const fixture = start(t, { pipeline: { openBodies } });
    const declared = (path: string) => requestText('POST', path, { 'Content-Length': '40000' });
    const arrived = async (sizeBytes: number) => {
      while (fixture.pipeline.counters().bodyBytesInFlight < sizeBytes) await new Promise(setImmediate);
    };
    for (const [name, request, frame] of [
      ['declared', declared('/raw'), (bytes: string) => bytes],
      ['chunked', head('POST', '/raw'), (bytes: string) => `${bytes.length.toString(16)}\r\n${bytes}\r\n`],
    ] as const) {
      const slow = connectRaw(fixture.port);
      slow.send(request, frame('x'.repeat(10 * 1024 - 1)));
      await arrived(10 * 1024 - 1);
      for (let turn = 0; turn < 10; turn += 1) second();
      t.equal(fixture.finished.length, 0, `${name}: ten seconds are not over`);
      second();
      const answer = await slow.answer();
      t.equal(answer.status, 408, name);
      t.equal(answer.body, '{"error":{"code":1019,"message":"Request body too slow"}}', name);
      t.equal(answer.headers['connection'], 'close', name);
      t.match(fixture.finished, [{ status: 408, error: 'BodyTooSlow' }], name);
      slow.close();
      fixture.finished.length = 0;
      const steady = connectRaw(fixture.port);
      steady.send(request);
      for (let turn = 0; turn < 18; turn += 1) {
        steady.send(frame('x'.repeat(2 * 1024)));
        await arrived((turn + 1) * 2 * 1024);
        second();
      }
      t.equal(
        (await steady.ask(name === 'declared' ? 'x'.repeat(40_000 - 36 * 1024) : '0\r\n\r\n')).status,
        200,
        `${name}: 2 KiB/s`,
      );
      steady.close();
      fixture.finished.length = 0;
    }
    t.match(fixture.pipeline.counters(), { bodyBytesInFlight: 0, requestsInFlight: 0 });
    t.equal(START_MS, fixture.time.nowMs, 'no clock has moved');
  },
);
