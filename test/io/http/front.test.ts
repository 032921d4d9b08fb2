/** Attacks on the HTTP front, sent byte by byte over raw sockets (docs/SECURITY.md). */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { sendHttp } from '../../../kit/http.ts';
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { object, text } from '../../../src/domain/schema.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { checkHeader } from '../../../src/io/http/exchange/reply.ts';
import { findFreePort } from '../../../src/io/http/listen/free-port.ts';
import { createServer } from '../../../src/io/http/listen/server.ts';
import { type AnyRoute, Reply, type RouteContext } from '../../../src/io/http/table/route.ts';
import { BODY_BYTES_MAX } from '../../../src/io/http/table/router.ts';
import { seededNumbers } from '../../support/actors/actors.ts';
import { certificateFiles } from '../../support/certificate.ts';
import { count, depth } from '../../support/depth.ts';
import {
  connectRaw,
  type HttpFixture,
  plainRoute,
  requestText,
  route,
  sendRaw,
  startHttp,
} from '../../support/http.ts';
import { until } from '../../support/until.ts';

t.setTimeout(120_000);

const HOST = 'Host: localhost\r\n';
const JSON_TYPE = { 'Content-Type': 'application/json' };

interface Held {
  release: (() => void)[];
  aborted: number;
  smuggled: number;
}

function start(t: Test, changes: Partial<Parameters<typeof startHttp>[0]> = {}): HttpFixture & Held {
  const held: Held = { release: [], aborted: 0, smuggled: 0 };
  const routes: AnyRoute[] = [
    route('GET /hello', { auth: 'optional' }, () => 'hello'),
    plainRoute('GET /smuggled', () => ++held.smuggled),
    plainRoute('GET /held', ({ onAbort }) => {
      onAbort(() => {
        held.aborted += 1;
      });
      return new Promise<string>((resolve) => held.release.push(() => resolve('done')));
    }),
    route('POST /echo', { auth: 'optional', body: object({ name: text() }) }, ({ body }) => body),
    route(
      'POST /raw',
      { body: 'raw' },
      async ({ rawBody }) => new Reply(200, String(rawBody.length), 'text/plain'),
    ),
  ];
  const fixture = closeAfter(t, startHttp({ routes, ...changes }));
  return Object.assign(held, fixture);
}

/** The bytes received before the peer closed. */
async function outcome(port: number, ...parts: (string | Uint8Array)[]): Promise<string> {
  const connection = connectRaw(port);
  connection.send(...parts);
  const text = await connection.ended();
  connection.close();
  return text;
}

/**
 * The timeouts of uWebSockets.js, 10 to 12 s, cannot be set. So the slow clients start first and run beside the other
 * tests; the last test reads their results.
 */
const slowFront = start(t);
const steadyClient = (async () => {
  const connection = connectRaw(slowFront.port);
  const seconds = 13;
  connection.send(requestText('POST', '/raw', { 'Content-Length': String(2_048 * seconds) }));
  const drip = setInterval(() => connection.send('x'.repeat(2_048)), 1_000);
  return connection.answer().finally(() => {
    clearInterval(drip);
    connection.close();
  });
})();
const slowClients = Promise.all(
  ['', 'head', 'bare CR in the head', 'body'].map((stop) => {
    const head = `GET /hello HTTP/1.1\r\n${HOST}X: ${stop === 'head' ? '' : 'a\rb'}`;
    const connection = connectRaw(slowFront.port);
    if (stop !== '') {
      connection.send(stop === 'body' ? requestText('POST', '/raw', { 'Content-Length': '1000' }) : head);
    }
    const drip = setInterval(() => connection.send(stop === '' ? '' : 'a'), 1_000);
    return connection.ended().finally(() => clearInterval(drip));
  }),
);

// covers S1
t.test(
  'front: a request that two parsers could read differently is closed or 400, and no later request runs',
  async (t) => {
    const fixture = start(t);
    const next = `GET /smuggled HTTP/1.1\r\n${HOST}\r\n`;
    const post = (fields: string, body: string) => `POST /raw HTTP/1.1\r\n${HOST}${fields}\r\n${body}${next}`;
    const cases: Record<string, string> = {
      'two Content-Length': post('Content-Length: 3\r\nContent-Length: 5\r\n', 'abc'),
      'the same Content-Length twice': post('Content-Length: 3\r\nContent-Length: 3\r\n', 'abc'),
      'a list of lengths': post('Content-Length: 3, 3\r\n', 'abc'),
      'a signed length': post('Content-Length: +3\r\n', 'abc'),
      'a negative length': post('Content-Length: -3\r\n', 'abc'),
      'a hexadecimal length': post('Content-Length: 0x3\r\n', 'abc'),
      'a length beyond 64 bits': post('Content-Length: 99999999999999999999\r\n', 'abc'),
      'length with chunked': post('Content-Length: 3\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
      'chunked with length': post('Transfer-Encoding: chunked\r\nContent-Length: 3\r\n', '0\r\n\r\n'),
      'a coding that only looks chunked': post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n'),
      'two codings': post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'),
      'two fields of codings': post(
        'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n',
        '0\r\n\r\n',
      ),
      identity: post('Transfer-Encoding: identity\r\n', '0\r\n\r\n'),
      'chunk size beyond 64 bits': post(
        'Transfer-Encoding: chunked\r\n',
        'FFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n',
      ),
      'negative chunk size': post('Transfer-Encoding: chunked\r\n', '-3\r\nabc\r\n0\r\n\r\n'),
      'NUL in a field': `GET /hello HTTP/1.1\r\n${HOST}X: a\0b\r\n\r\n${next}`,
      'NUL in the path': `GET /he\0llo HTTP/1.1\r\n${HOST}\r\n${next}`,
      'obs-fold': `GET /hello HTTP/1.1\r\n${HOST}X: a\r\n b\r\n\r\n${next}`,
      'space before the colon': `POST /raw HTTP/1.1\r\n${HOST}Content-Length : 3\r\n\r\nabc${next}`,
      'line feeds alone': `GET /hello HTTP/1.1\nHost: localhost\n\n${next}`,
      'two hosts': `GET /hello HTTP/1.1\r\n${HOST}${HOST}\r\n${next}`,
      'no host': `GET /hello HTTP/1.1\r\n\r\n${next}`,
      'an absolute form': `GET http://localhost/hello HTTP/1.1\r\n${HOST}\r\n${next}`,
      'HTTP/1.0': `GET /hello HTTP/1.0\r\n${HOST}\r\n${next}`,
    };
    const differing: unknown[] = [];
    for (const [name, bytes] of Object.entries(cases)) {
      const received = await outcome(fixture.port, bytes);
      if (!/^(?:$|HTTP\/1\.1 (?:400|505) )/.test(received) || received.includes('HTTP/1.1 200'))
        differing.push([name, received]);
    }
    t.same(differing, []);
    t.equal(fixture.smuggled, 0);
    t.equal((await sendRaw(fixture.port, next)).body, '{"result":1}', 'the route is there');
    t.same(fixture.bugs, []);
  },
);

// covers S3
t.test('front: more than 100 fields, a header over 16 KiB and an 8 KB URL are 431 and closed', async (t) => {
  const { child, port } = await startChild(t);
  const fields = Array.from({ length: 101 }, (_, index) => `X-${index}: a\r\n`).join('');
  for (const [name, bytes] of Object.entries({
    fields: `GET /hello HTTP/1.1\r\n${HOST}${fields}\r\n`,
    header: `GET /hello HTTP/1.1\r\n${HOST}X: ${'a'.repeat(16_500)}\r\n\r\n`,
    path: `GET /${'a'.repeat(8_192)} HTTP/1.1\r\n${HOST}\r\n`,
    query: `GET /hello?${'a'.repeat(8_192)} HTTP/1.1\r\n${HOST}\r\n`,
    'path of a POST': `POST /${'a'.repeat(8_192)} HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n`,
  })) {
    t.match(await outcome(port, bytes), /^HTTP\/1\.1 431 /, name);
  }
  const long = requestText('GET', `/hello?${'a'.repeat(7_900)}`, { X: 'b'.repeat(7_000) });
  t.equal((await sendRaw(port, long)).status, 200, 'just below');
  t.match(await report(child), { bugs: [], rejections: [] });
});

// covers R32 S5
t.test(
  'front: a body over the cap is 413 at once, and the answer arrives even if the client keeps sending',
  async (t) => {
    const fixture = start(t);
    const { port } = fixture;
    const declared = (path: string, sizeBytes: number) =>
      requestText('POST', path, { ...JSON_TYPE, 'Content-Length': String(sizeBytes) });
    for (const path of ['/echo', '/raw']) {
      const early = await sendRaw(port, declared(path, BODY_BYTES_MAX + 1));
      t.equal(early.status, 413, 'before a byte of the body');
      t.equal(early.headers['connection'], 'close');
      t.equal(early.body, '{"error":{"code":1006,"message":"Body too large"}}');
      const flood = Buffer.alloc(8 * 1024 * 1024, 97);
      t.equal((await sendRaw(port, declared(path, flood.length), flood)).status, 413);
      const chunk = Buffer.concat([Buffer.from('4000\r\n'), Buffer.alloc(0x4000, 97), Buffer.from('\r\n')]);
      const head = requestText('POST', path, { ...JSON_TYPE, 'Transfer-Encoding': 'chunked' });
      const chunks = Array.from({ length: 256 }, () => chunk);
      t.equal((await sendRaw(port, head, ...chunks, '0\r\n\r\n')).status, 413, 'chunked');
      t.equal((await sendRaw(port, head, ...chunks.slice(0, 5))).status, 413, 'chunked and never ended');
    }
    const exact = requestText('POST', '/raw', {}, 'x'.repeat(BODY_BYTES_MAX));
    t.equal((await sendRaw(port, exact)).body, String(BODY_BYTES_MAX));
    const lying = connectRaw(port);
    lying.send(requestText('POST', '/raw', { 'Content-Length': '10' }), 'abc');
    lying.half();
    t.equal(await lying.ended(), '', 'an incomplete body runs nothing');
    t.match(fixture.pipeline.counters(), { bodyBytesInFlight: 0, requestsInFlight: 0 });
  },
);

// covers S50
t.test('front: requests and bodies in flight are bounded, refused with 503 and counted', async (t) => {
  const bounds = new SharedBounds(new LiveSettings(), { requests: 4, bodyBytes: 2_000 });
  const fixture = start(t, { pipeline: { bounds } });
  const { port, pipeline, release } = fixture;
  const ask = async (address: string, ...parts: string[]) => {
    const connection = connectRaw(port, address);
    const answer = await connection.ask(...parts);
    connection.close();
    return answer;
  };
  const holders = ['127.0.0.1', '127.0.0.1', '127.0.0.2'].map((address) => connectRaw(port, address));
  for (const holder of holders) holder.send(requestText('GET', '/held'));
  await until(() => release.length === 3);
  const share = await ask('127.0.0.1', requestText('GET', '/hello'));
  t.equal(share.status, 429, 'one network has its half');
  t.equal(share.headers['retry-after'], '1');
  t.equal((await ask('127.0.0.2', requestText('GET', '/hello'))).status, 200, 'another one is served');
  const last = connectRaw(port, '127.0.0.2');
  last.send(requestText('GET', '/held'));
  await until(() => release.length === 4);
  const refused = await ask('127.0.0.3', requestText('GET', '/hello'));
  t.equal(refused.status, 503);
  t.equal(refused.headers['retry-after'], '1');
  t.equal(refused.body, '{"error":{"code":1003,"message":"Overloaded"}}');
  for (const free of release) free();
  for (const holder of [...holders, last]) t.equal((await holder.answer()).status, 200);
  t.equal((await ask('127.0.0.1', requestText('POST', '/raw', {}, 'x'.repeat(1_001)))).status, 429);
  t.equal((await ask('127.0.0.1', requestText('POST', '/raw', {}, 'x'.repeat(1_000)))).status, 200);
  t.match(pipeline.counters(), {
    requestsInFlight: 0,
    bodyBytesInFlight: 0,
    overloadedRequestsTotal: 2,
    overloadedBodiesTotal: 1,
  });
  for (const holder of [...holders, last]) holder.close();
});

t.test('front: a client that half-closes after its request receives its answer', async (t) => {
  const { port, pipeline } = start(t);
  const cases = {
    'a handler that answers at once': requestText('GET', '/hello'),
    'one that answers by a kept promise': requestText('POST', '/raw', {}, 'abc'),
    'a body that is checked': requestText('POST', '/echo', JSON_TYPE, '{"name":"a"}'),
  };
  for (const [name, request] of Object.entries(cases)) {
    const connection = connectRaw(port);
    // The client's end has arrived when the request is read.
    connection.send(request);
    connection.half();
    t.match(await connection.ended(), /^HTTP\/1\.1 200 /, name);
    connection.close();
  }
  t.equal(pipeline.counters().requestsInFlight, 0);
});

t.test(
  'front: pipelined requests are answered in order; a request before a pending answer closes the connection',
  async (t) => {
    const { port, release, finished, pipeline } = start(t);
    const connection = connectRaw(port);
    const order = ['/hello', '/smuggled', '/nothing', '/smuggled'];
    const statuses: number[] = [];
    const bodies: string[] = [];
    for (const path of order) {
      const answer = await connection.ask(requestText('GET', path));
      statuses.push(answer.status);
      bodies.push(answer.body);
    }
    t.same(statuses, [200, 200, 404, 200]);
    t.same(
      bodies.filter((body) => !body.includes('error')),
      ['{"result":"hello"}', '{"result":1}', '{"result":2}'],
    );
    connection.close();
    const eager = connectRaw(port);
    eager.send(requestText('GET', '/hello') + requestText('GET', '/smuggled'));
    t.equal(await eager.ended(), '', 'uWS closes: documented, clients do not pipeline');
    const slow = connectRaw(port);
    slow.send(requestText('GET', '/held') + requestText('GET', '/hello'));
    t.equal(await slow.ended(), '', 'the same behind a handler that waits');
    await until(() => finished.some(({ route, status }) => route === '/held' && status === 0));
    await until(() => pipeline.counters().requestsInFlight === 0);
    t.equal(release.length, 0, 'without a client the handler does not run');
  },
);

t.test(
  'front: a client that leaves aborts its request; a handler that still runs counts as in flight',
  async (t) => {
    const fixture = start(t);
    const { port, pipeline, release, finished } = fixture;
    const half = connectRaw(port);
    half.send(requestText('GET', '/hello'));
    half.half();
    t.equal((await half.answer()).status, 200, 'half-closed: an answer in the same tick arrives');
    for (const leave of ['close', 'half'] as const) {
      const connection = connectRaw(port);
      connection.send(requestText('GET', '/held'));
      await until(() => release.length === 1);
      connection[leave]();
      await until(() => finished.some(({ status }) => status === 0));
      t.equal(pipeline.counters().requestsInFlight, 1, 'its handler still runs');
      release.pop()?.();
      await until(() => pipeline.counters().requestsInFlight === 0);
      finished.length = 0;
    }
    t.equal(fixture.aborted, 2);
    t.same(fixture.bugs, []);
  },
);

t.test('front: a drain finishes running requests, refuses new ones, and ends in bounded time', async (t) => {
  const { ask, port, pipeline, server, release } = start(t);
  const running = connectRaw(port);
  const idle = connectRaw(port);
  await idle.ask(requestText('GET', '/hello'));
  running.send(requestText('GET', '/held'));
  await until(() => release.length === 1);
  server.stopListening();
  t.equal(await pipeline.drain(1), 1, 'the deadline passes: one was left');
  const drained = pipeline.drain(60_000);
  const refused = await idle.ask(requestText('GET', '/hello'));
  t.equal(refused.status, 503);
  t.equal(refused.headers['connection'], 'close');
  t.match(refused.body, '"code":1014');
  await t.rejects(ask('GET', '/hello'), 'no new connections');
  release[0]?.();
  t.equal((await running.answer()).body, '{"result":"done"}');
  t.equal(await drained, 0);
  await server.close();
  t.equal(server.counters().open, 0);
  await running.ended();
});

t.test('front: a listener that sends its clients away serves them, and closes each connection', async (t) => {
  const { port, pipeline } = start(t);
  const kept = connectRaw(port);
  t.equal(
    (await kept.ask(requestText('GET', '/hello'))).headers['connection'],
    undefined,
    'kept open before',
  );
  pipeline.closeConnections();
  for (const connection of [kept, connectRaw(port)]) {
    const { status, headers } = await connection.ask(requestText('GET', '/hello'));
    t.match({ status, connection: headers['connection'] }, { status: 200, connection: 'close' });
    await connection.ended();
  }
});

// covers S4
t.test('front: connections over the cap are closed at once, those within it continue', async (t) => {
  const { port, server, settings } = start(t);
  settings.set('ConnectionsMax', 10);
  settings.set('ConnectionsPerNetworkPercent', 0);
  const within = Array.from({ length: 10 }, () => connectRaw(port));
  await until(() => server.counters().open === 10);
  t.equal(await outcome(port, requestText('GET', '/hello')), '');
  t.match(server.counters(), { open: 10, refusedTotal: 1 });
  for (const [index, connection] of within.entries()) {
    const answer = await connection.ask(requestText('GET', '/hello'));
    t.equal(answer.status, 200);
    t.equal(
      answer.headers['connection'],
      index < 5 ? 'close' : undefined,
      'above half: closed with the answer',
    );
    if (index < 5) await connection.ended();
  }
  await until(() => server.counters().open === 5);
  settings.set('ConnectionsMax', 5);
  t.equal(await outcome(port, requestText('GET', '/hello')), '', 'the setting counts at once');
  for (const connection of within) connection.close();
  await until(() => server.counters().open === 0);
});

t.test(
  'front: a port that is in use is refused, one with closed connections in TIME_WAIT is opened',
  async (t) => {
    const { port, close } = start(t);
    await t.rejects(findFreePort('127.0.0.1', port), {
      name: 'ListenError',
      message: /port is taken/,
      port,
    });
    await t.rejects(findFreePort('192.0.2.1', 0), { name: 'ListenError', message: /not an address/ });
    await close();
    // The side that closes first keeps the connection in TIME_WAIT; a restart must not wait for it.
    const first = createServer({
      host: '127.0.0.1',
      port: await findFreePort('127.0.0.1', 0),
      connectionsMax: () => 9,
    });
    first.serve((response) => response.end('', true));
    await fetch(`http://127.0.0.1:${first.port}/`);
    await first.close();
    t.equal(await findFreePort('127.0.0.1', first.port), first.port);
    const again = createServer({ host: '127.0.0.1', port: first.port, connectionsMax: () => 9 });
    again.serve((response) => response.end('', true));
    t.equal(again.port, first.port);
    await again.close();
  },
);

t.test('front: TLS requests take the same pipeline, and plain HTTP on that port is no request', async (t) => {
  const { certificate, tls } = certificateFiles(t);
  const fixture = start(t, { tls });
  const answer = await sendHttp(`https://127.0.0.1:${fixture.port}/hello`, { ca: certificate });
  t.match(answer, { status: 200, text: '{"result":"hello"}' });
  t.notMatch(await outcome(fixture.port, requestText('GET', '/hello')), 'HTTP/1.1 200');
  t.equal(fixture.finished.length, 1);
});

// covers S15
t.test('front: an answered request lets go of its abort listeners', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const answered: RouteContext[] = [];
  const listeners: WeakRef<() => void>[] = [];
  const route = plainRoute('GET /listening', async (context) => {
    const listener = () => undefined;
    context.onAbort(listener);
    answered.push(context);
    listeners.push(new WeakRef(listener));
    return 'done';
  });
  const { port } = start(t, { routes: [route] });
  await outcome(port, `GET /listening HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
  // A reference that was read stays alive until the turn is over.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  t.same([answered.length, listeners.map((listener) => listener.deref())], [1, [undefined]]);
});

t.test('front: the writer refuses everything that could end a header line', async (t) => {
  for (const code of [0, 10, 13, 27, 127, 0xe4, 0x2028]) {
    const value = `a${String.fromCharCode(code)}b`;
    t.throws(
      () => checkHeader('X-Thing', value),
      new TypeError('invalid value for header X-Thing'),
      String(code),
    );
    t.throws(() => checkHeader(value, 'a'), TypeError, String(code));
  }
  for (const name of ['', 'a b', 'a:', 'a(b']) t.throws(() => checkHeader(name, 'a'), TypeError, name);
  t.doesNotThrow(() => checkHeader('X-Thing', 'tab\tand ~ visible'));
});

// covers S41
t.test('front: random bytes and mutated requests cause no crash, no 5xx and no bug', async (t) => {
  const { child, port } = await startChild(t);
  const random = generator(depth.seed);
  const seen = new Map<number, number>();
  const throwAt = async (bytes: Uint8Array) => {
    const connection = connectRaw(port);
    connection.send(bytes);
    connection.half();
    for (const [, status] of (await connection.ended()).matchAll(/HTTP\/1\.1 ([0-9]{3}) /g)) {
      seen.set(Number(status), (seen.get(Number(status)) ?? 0) + 1);
    }
    connection.close();
  };
  for (let round = 0; round < count(20); round += 1) {
    await throwAt(Uint8Array.from({ length: 64 * 1024 }, () => random(256)));
  }
  for (let round = 0; round < count(60); round += 1) {
    await Promise.all(Array.from({ length: 50 }, () => throwAt(mutate(random))));
  }
  t.ok(Math.min(seen.get(200) ?? 0, seen.get(400) ?? 0) > count(100), 'both sides of the checks were met');
  // 505 is uWebSockets.js's answer to a first line that is not HTTP/1.1.
  t.same(
    [...seen.keys()].filter((status) => status >= 500 && status !== 505),
    [],
  );
  t.equal((await sendRaw(port, requestText('GET', '/hello'))).body, '{"result":"hello"}');
  t.match(await report(child), {
    bugs: [],
    rejections: [],
    inFlight: { requestsInFlight: 0, bodyBytesInFlight: 0 },
  });
});

// covers S4 S46
t.test('front: silent connects, slow heads and slow bodies are closed while others are served', async (t) => {
  t.equal((await slowFront.ask('GET', '/hello')).status, 200);
  const [silent, slowHead, bareCr, slowBody] = await slowClients;
  t.same([silent, slowHead, bareCr], ['', '', '']);
  t.equal((await steadyClient).status, 200, 'a body of 2 KiB/s over 13 s is served');
  t.match(slowBody, /^HTTP\/1\.1 408 .*Connection: close.*"code":1019/s);
  // A paused connection does not notice its client's end before it is closed.
  await until(() => slowFront.server.counters().open === 0);
});

async function startChild(t: Test): Promise<{ child: ChildProcess; port: number }> {
  const path = fileURLToPath(new URL('../../fixtures/front.js', import.meta.url));
  const child = fork(path, { env: { UWS_HTTP_MAX_HEADERS_SIZE: '16384' }, execArgv: [] });
  t.teardown(() => child.kill());
  const { port } = await message<{ port: number }>(child);
  return { child, port };
}

function message<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once('message', (value) => resolve(value as T));
    child.once('exit', (code) => reject(new Error(`the front ended with ${code}`)));
  });
}

function report(child: ChildProcess): Promise<unknown> {
  const answer = message<unknown>(child);
  child.send('report');
  return answer;
}

/** Numbers below `limit` that repeat with the seed, so that a failure can be repeated. */
function generator(seed: number): (limit: number) => number {
  const next = seededNumbers(seed);
  return (limit) => Math.floor(next() * limit);
}

const VALID = [
  requestText('GET', '/hello', { Cookie: 'sid=abc', 'X-Request-Id': 'r-1' }),
  requestText('GET', '/item/a%20b', { Origin: 'http://localhost' }),
  requestText('GET', '/typed?name=a+b%21&x=1', { Authorization: 'Bearer abc' }),
  requestText('POST', '/echo', JSON_TYPE, '{"name":"x","more":[1,{"a":null}]}'),
  requestText('POST', '/raw', {}, 'some bytes'),
  `${requestText('POST', '/raw', { 'Transfer-Encoding': 'chunked' })}4\r\nabcd\r\n0\r\n\r\n`,
];

/** A valid request with some bytes changed, removed, doubled or inserted. */
function mutate(random: (limit: number) => number): Uint8Array {
  let bytes = Buffer.from(VALID[random(VALID.length)] ?? '');
  for (let left = random(4); left > 0; left -= 1) {
    const at = random(bytes.length);
    const before = bytes.subarray(0, at);
    const change = random(4);
    if (change === 0) bytes = Buffer.concat([before, Buffer.from([random(256)]), bytes.subarray(at + 1)]);
    else if (change === 1) bytes = Buffer.concat([before, bytes.subarray(at + 1 + random(8))]);
    else if (change === 2) bytes = Buffer.concat([before, Buffer.from([random(256)]), bytes.subarray(at)]);
    else bytes = Buffer.concat([before, bytes.subarray(Math.max(0, at - random(16)))]);
  }
  return bytes;
}
