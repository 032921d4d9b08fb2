/** The log of finished requests: one JSON line each whatever was sent, nothing secret, and never in the way. */
import { closeSync, constants, mkdtempSync, openSync, read, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { outputOf } from '../../../kit/run-sync.ts';
import type { FinishedRequest } from '../../../src/io/http/exchange/finished.ts';
import { Reply } from '../../../src/io/http/table/route.ts';
import { type LineSink, openLineSink } from '../../../src/io/observability/log.ts';
import { TRAFFIC_LINES } from '../../../src/io/observability/log-lines.ts';
import { createRequestLog, requestLine } from '../../../src/io/observability/request-log.ts';
import { runs } from '../../support/depth.ts';
import { connectRaw, plainRoute, route, sendRaw, startHttp } from '../../support/http.ts';

const TIME = '2026-11-21T00:00:00.000Z';
/** Longest write that a pipe takes whole. */
const PIPE_BYTES = 4_096;

const RECORD: FinishedRequest = {
  method: 'GET',
  route: '/auth/v1/info',
  path: '/auth/v1/info',
  status: 200,
  error: undefined,
  durationMs: 0.123456,
  finishedMs: Date.parse(TIME),
  responseBytes: 42,
  clientAddress: '127.0.0.1',
  userAgent: 'curl/8',
  userId: undefined,
  requestId: 'r-1',
  clientRequestId: undefined,
  traceparent: undefined,
};

function collecting(): LineSink & { readonly lines: string[] } {
  const lines: string[] = [];
  return {
    lines,
    write: (line) => lines.push(line),
    counters: () => ({ written: lines.length, dropped: 0 }),
    close: async () => undefined,
  };
}

/** Two routes, one of them with a secret in its path, and the lines that their requests leave. */
function startLogged() {
  const sink = collecting();
  const fixture = startHttp({
    routes: [
      plainRoute('GET /plain/:id', () => Reply.json(200, { fine: true })),
      route('GET /files/:code', { secretPath: true }, () => Reply.empty()),
    ],
    pipeline: {
      observers: [{ observe: createRequestLog({ requests: 'all' }, sink) ?? (() => undefined) }],
    },
  });
  return { fixture, lines: () => sink.lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

t.test('request log: a duration is the number of its microseconds, whatever its size', (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.double({ min: -1, max: 1e9, noNaN: true }), fc.integer({ max: 1e6 })), (ms) => {
      const { durationMs } = JSON.parse(requestLine({ ...RECORD, durationMs: ms }));
      return durationMs === Math.round(ms * 1000) / 1000 || durationMs + Math.round(ms * 1000) === 0;
    }),
    runs(),
  );
  t.match(requestLine({ ...RECORD, durationMs: 12 }), '"durationMs":12,');
  t.match(requestLine({ ...RECORD, durationMs: 0.1004 }), '"durationMs":0.1,');
  t.end();
});

t.test('request log: a line holds every field, absent ones are left out', async (t) => {
  t.strictSame(JSON.parse(requestLine(RECORD)), {
    level: 'info',
    time: TIME,
    msg: 'request',
    method: 'GET',
    route: '/auth/v1/info',
    path: '/auth/v1/info',
    status: 200,
    durationMs: 0.123,
    responseBytes: 42,
    clientAddress: '127.0.0.1',
    userAgent: 'curl/8',
    requestId: 'r-1',
  });
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const failed = {
    ...RECORD,
    error: 'ModuleTimedOut',
    userId: '1842001',
    clientRequestId: 'of-the-caller',
    traceparent,
  } as const;
  t.match(JSON.parse(requestLine(failed)), {
    level: 'error',
    error: 'ModuleTimedOut',
    userId: '1842001',
    requestId: 'r-1',
    clientRequestId: 'of-the-caller',
    traceparent,
  });
  const { fields } = TRAFFIC_LINES.request;
  t.same(
    Object.keys(JSON.parse(requestLine(failed))).slice(3),
    fields.map((name) => name.replace('?', '')),
    'as the table of lines declares',
  );
  t.same(
    Object.keys(JSON.parse(requestLine(RECORD))).slice(3),
    fields.filter((name) => !name.endsWith('?')),
  );
});

t.test('request log: a line after any other has its own fields alone', async (t) => {
  const values: { readonly [Name in keyof FinishedRequest]: readonly FinishedRequest[Name][] } = {
    method: ['GET', 'POST'],
    route: ['/a', '/a/:id'],
    path: ['/a', '/a/1'],
    status: [200, 503, 0],
    error: [undefined, 'ModuleTimedOut'],
    durationMs: [0.5, 3],
    finishedMs: [Date.parse(TIME), Date.parse(TIME) + 1],
    responseBytes: [0, 42],
    clientAddress: ['127.0.0.1', '::1'],
    userAgent: ['', 'curl/8'],
    userId: [undefined, '1842001', '1842002'],
    requestId: ['r-1', 'r-2'],
    clientRequestId: [undefined, 'mine'],
    traceparent: [undefined, 'trace'],
  };
  const record = fc.record(
    Object.fromEntries(Object.entries(values).map(([name, given]) => [name, fc.constantFrom(...given)])),
  ) as unknown as fc.Arbitrary<FinishedRequest>;
  fc.assert(
    fc.property(fc.array(record, { minLength: 1 }), (requests) => {
      for (const { finishedMs, ...request } of requests) {
        const { level, time, msg, ...fields } = JSON.parse(requestLine({ ...request, finishedMs }));
        const wanted = JSON.parse(JSON.stringify(request));
        t.same([fields, time, msg], [wanted, new Date(finishedMs).toISOString(), 'request']);
        t.equal(level, request.status === 503 || request.error !== undefined ? 'error' : 'info');
      }
    }),
    runs(20),
  );
});

// covers S31
t.test('request log: CR, LF, ANSI, quotes and other alphabets stay inside one line of ASCII', async (t) => {
  const nasty = 'a"\\\r\n{"level":"fatal"}\u001b[31m\u007f\u009b\u2028é\ud800z';
  const line = requestLine({ ...RECORD, path: nasty, userAgent: nasty, method: nasty });
  t.match(line, /^[\x20-\x7e]+\n$/);
  t.match(JSON.parse(line), { path: nasty, userAgent: nasty, method: `${nasty.slice(0, 16)}...` });
});

// covers S31
t.test('request log: values of 1 MB are cut, and the line fits one write of a pipe', async (t) => {
  for (const character of ['x', '\u001b', '\u0800']) {
    const huge = character.repeat(1024 * 1024);
    const fields = {
      path: huge,
      userAgent: huge,
      method: huge,
      address: '9'.repeat(64),
      userId: '1'.repeat(19),
    };
    const ids = { requestId: 'r'.repeat(64), clientRequestId: 'c'.repeat(64) };
    const line = requestLine({ ...RECORD, ...fields, ...ids });
    t.ok(line.length <= PIPE_BYTES, `${line.length} bytes`);
    t.match(JSON.parse(line), { path: `${huge.slice(0, 256)}...` });
  }
});

t.test('request log: "errors" writes refused, failed and aborted requests, "off" writes none', async (t) => {
  const sink = collecting();
  const observe = createRequestLog({ requests: 'errors' }, sink);
  for (const status of [200, 204, 304, 400, 503, 0]) observe?.({ ...RECORD, status });
  observe?.({ ...RECORD, error: 'Unauthorized' });
  const kept = sink.lines.map((line) => JSON.parse(line) as { status: number; level: string });
  t.strictSame(
    kept.map(({ status }) => status),
    [400, 503, 0, 200],
  );
  t.strictSame(
    kept.map(({ level }) => level),
    ['info', 'error', 'info', 'info'],
  );
  t.equal(createRequestLog({ requests: 'off' }, sink), undefined);
});

t.test(
  'request log: of a sampled route a part of the successes leaves a line, and every failure',
  async (t) => {
    const sink = collecting();
    const draws = [0.09, 0.1, 0.5];
    const random = () => draws.shift() ?? 0.99;
    const sample = { [RECORD.route]: 0.1 };
    const observe = createRequestLog({ requests: 'all', sample, random }, sink);
    for (const status of [200, 201, 202, 503]) observe?.({ ...RECORD, status });
    observe?.({ ...RECORD, route: '/other' });
    const kept = sink.lines.map((line) => JSON.parse(line) as { status: number; route: string });
    t.match(kept, [{ status: 200 }, { status: 503 }, { route: '/other' }]);
    t.equal(kept.length, 3);
  },
);

// covers S33
t.test(
  'request log: requests over the wire leave one line each, without query, header or secret path',
  async (t) => {
    const { fixture, lines } = startLogged();
    t.teardown(fixture.close);
    // C1 as one byte of latin1: what the parser lets through.
    const agent = `evil\u009b2J${'A'.repeat(300)}`;
    await sendRaw(
      fixture.port,
      `GET /plain/1?code=canary-query HTTP/1.1\r\nHost: localhost\r\nCookie: sid=canary-sid\r\nAuthorization: Bearer canary-bearer\r\nUser-Agent: ${agent}\r\n\r\n`,
    );
    await sendRaw(fixture.port, 'GET /files/canary-code HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await sendRaw(fixture.port, 'GET /none?code=canary-query HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await sendRaw(fixture.port, 'GET /a/files/x/canary-code/ HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await sendRaw(fixture.port, `GET /plain/${'a'.repeat(2000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    t.match(lines(), [
      {
        method: 'GET',
        route: '/plain/:id',
        path: '/plain/1',
        status: 200,
        responseBytes: 13,
        userAgent: /^evil[^\x20-\x7e]2JA+\.\.\.$/,
      },
      { route: '/files/:code', path: '/files/:code', status: 200 },
      { route: '', path: '/none', status: 404, error: 'NotFound' },
      { route: '', path: '/a/files/x/...', status: 404 },
      { route: '/plain/:id', path: /^\/plain\/a{249}\.\.\.$/, status: 200 },
    ]);
    t.notMatch(JSON.stringify(lines()), /canary/);
  },
);

t.test('request log: a request that is cut off by the guard leaves a line', async (t) => {
  const { fixture, lines } = startLogged();
  t.teardown(fixture.close);
  const connection = connectRaw(fixture.port);
  connection.send(
    'GET /plain/1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody',
  );
  await connection.ended();
  t.match(lines(), [{ path: '/plain/1', status: 0 }]);
});

/** A pipe, a reader of it and the sink that writes to it. */
function piped(flags: number = constants.O_WRONLY) {
  const pipe = join(mkdtempSync(join(tmpdir(), 'gatehouse-log-')), 'pipe');
  outputOf('mkfifo', [pipe]);
  const reader = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  return { reader, sink: openLineSink(openSync(pipe, flags)) };
}

t.test('log sink: batches of all sizes keep their bytes while others are written', async (t) => {
  const file = join(mkdtempSync(join(tmpdir(), 'gatehouse-log-')), 'log');
  const sink = openLineSink(openSync(file, 'a'));
  const wanted: string[] = [];
  for (let index = 0; index < 300; index += 1) {
    const line = `{"n":${index},"filler":"${'abc'[index % 3]?.repeat((index * 37) % 4_000)}"}\n`;
    wanted.push(line);
    sink.write(line);
    // Writes end between batches.
    if (index % 40 === 0) await new Promise(setImmediate);
  }
  await sink.close();
  t.equal(readFileSync(file, 'utf8'), wanted.join(''));
  t.strictSame(sink.counters(), { written: 300, dropped: 0 });
});

// covers S32
t.test('log sink: lines that a slow reader gets are whole, the others are counted as dropped', async (t) => {
  const { reader, sink } = piped();
  const count = 4_000;
  for (let index = 0; index < count; index += 1) sink.write(`{"n":${index},"filler":"${'x'.repeat(990)}"}\n`);
  t.ok(sink.counters().dropped > 1_000);
  const numbers: number[] = [];
  let rest = '';
  const piece = Buffer.alloc(65_536);
  while (numbers.length < count - sink.counters().dropped) {
    const sizeBytes = await readSome(reader, piece);
    const texts = (rest + piece.toString('latin1', 0, sizeBytes)).split('\n');
    rest = texts.pop() ?? '';
    for (const text of texts) numbers.push((JSON.parse(text) as { n: number }).n);
  }
  await sink.close();
  closeSync(reader);
  t.equal(sink.counters().written, numbers.length);
  t.same(
    numbers,
    [...new Set(numbers)].sort((a, b) => a - b),
    'each once, in order',
  );
});

/** 0 where nothing has arrived. */
function readSome(descriptor: number, piece: Buffer): Promise<number> {
  return new Promise((resolve) =>
    read(descriptor, piece, 0, piece.length, null, (_, sizeBytes) => resolve(sizeBytes ?? 0)),
  );
}

t.test(
  'log sink: a close that gives up leaves a late reader what was taken, and no write of an unread pipe',
  async (t) => {
    // Its writes would be tried again until the runner ends this process.
    const unread = piped(constants.O_WRONLY | constants.O_NONBLOCK);
    const { reader, sink } = piped();
    // More than the pipe holds: a write is under way when the close gives up.
    for (let index = 0; index < 200; index += 1)
      for (const each of [unread, { sink }]) each.sink.write(`{"filler":"${'x'.repeat(1_000)}"}\n`);
    await Promise.all([unread.sink.close(), sink.close()]);
    const piece = Buffer.alloc(65_536);
    let lines = 0;
    while (lines < 200)
      lines += piece.toString('latin1', 0, await readSome(reader, piece)).split('\n').length - 1;
    closeSync(reader);
    t.strictSame(sink.counters(), { written: lines, dropped: 0 });
  },
);
