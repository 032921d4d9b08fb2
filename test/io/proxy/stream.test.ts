/** Bodies through the reverse proxy: whole and unchanged at any length, at the pace of the slower side, cut when cut. */
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { listenOnLoopback, sendHttp } from '../../../kit/http.ts';
import { createModuleClient } from '../../../src/io/modules/client.ts';
import { freshBounds } from '../../support/actors/bounds.ts';
import { holdTimeouts } from '../../support/held-timers.ts';
import { connectRaw, promiseOf, requestText, sendRaw } from '../../support/http.ts';
import { BEARER, type ProxyFixtureOptions, startProxy } from '../../support/module.ts';

const TOKEN = { authorization: `Bearer ${BEARER}` };
const RAW_TOKEN = { Authorization: `Bearer ${BEARER}` };
const MIB = 1024 * 1024;
/**
 * Socket buffers of four ends on loopback, of which a system may give 36 MiB to a connection, and what the proxy holds: more than
 * this in between is no back-pressure.
 */
const BETWEEN_BYTES_MAX = 96 * MIB;

async function proxyOf(t: Test, serve: http.RequestListener, options: ProxyFixtureOptions = {}) {
  return closeAfter(t, await startProxy({ ...options, serve }));
}

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** Resolves once the numbers stop growing for a while of the event loop. */
async function settled(read: () => number): Promise<number> {
  let last = -1;
  for (let quiet = 0; quiet < 2_000; ) {
    await setImmediate();
    quiet = read() === last ? quiet + 1 : 0;
    last = read();
  }
  return last;
}

/** Writes without end, as fast as it is taken; the bytes that were. */
function pour(
  sink: NodeJS.WritableStream & { writableNeedDrain: boolean; destroyed: boolean },
): () => number {
  const piece = Buffer.alloc(64 * 1024, 7);
  let poured = 0;
  const more = () => {
    while (!sink.destroyed) {
      poured += piece.length;
      if (!sink.write(piece)) return;
    }
  };
  sink.on('drain', more).on('error', () => undefined);
  more();
  // Bytes that still wait in the writer itself were taken by no reader.
  return () => poured - (sink as unknown as { writableLength: number }).writableLength;
}

// covers R1
t.test('streams: long answers arrive whole, with a length and chunked', async (t) => {
  const bytes = randomBytes(40 * MIB);
  const proxy = await proxyOf(t, ({ url }, response) => {
    response.setHeader('content-type', 'application/octet-stream');
    if (url?.endsWith('sized') === true) response.setHeader('content-length', bytes.length);
    Readable.from([bytes]).pipe(response);
  });
  for (const kind of ['sized', 'chunked']) {
    const answer = await proxy.send(`/core/v1/file/${kind}`, { headers: TOKEN });
    t.equal(answer.headers.get('content-length'), kind === 'sized' ? String(bytes.length) : null);
    t.equal(answer.headers.get('content-type'), 'application/octet-stream');
    t.equal(digest(new Uint8Array(await answer.arrayBuffer())), digest(bytes), kind);
  }
  t.strictSame(
    proxy.audit.map(({ fields }) => fields['outcome']),
    ['ok', 'ok'],
  );
});

// covers R1
t.test('streams: long requests arrive whole, with a length and chunked', async (t) => {
  const bytes = randomBytes(40 * MIB);
  const arrived: { digest: string; length: string | undefined }[] = [];
  const proxy = await proxyOf(t, (request, response) => {
    const hash = createHash('sha256');
    request.on('data', (chunk: Buffer) => hash.update(chunk));
    request.on('end', () => {
      arrived.push({ digest: hash.digest('hex'), length: request.headers['content-length'] });
      response.end('{}');
    });
  });
  const target = `${proxy.http.url}/core/v1/file/put`;
  for (const framing of [{ 'content-length': String(bytes.length) }, { 'transfer-encoding': 'chunked' }]) {
    const headers = { ...TOKEN, ...framing };
    t.equal((await sendHttp(target, { method: 'PUT', headers, body: bytes })).status, 200);
  }
  t.strictSame(arrived, [
    { digest: digest(bytes), length: String(bytes.length) },
    { digest: digest(bytes), length: undefined },
  ]);
});

// covers R1
t.test('streams: a client that does not read holds the module back', async (t) => {
  let poured = () => 0;
  const proxy = await proxyOf(t, (_request, response) => {
    poured = pour(response.writeHead(200));
  });
  const socket = net.connect(proxy.http.port, '127.0.0.1').pause();
  t.teardown(() => socket.destroy());
  socket.write(requestText('GET', '/core/v1/file/endless', RAW_TOKEN));
  while (poured() === 0) await setImmediate();
  const taken = await settled(poured);
  t.ok(taken < BETWEEN_BYTES_MAX, `${taken} bytes were taken from the module`);
  socket.on('data', () => undefined).resume();
  while (poured() < taken + 64 * MIB) await setImmediate();
  t.pass('it continues when the client reads');
});

// covers R1
t.test('streams: a module that does not read holds the client back', async (t) => {
  let take: (() => void) | undefined;
  let received = 0;
  const proxy = await proxyOf(t, (request) => {
    request.pause();
    take = () => {
      request.on('data', (chunk: Buffer) => {
        received += chunk.length;
      });
      request.resume();
    };
  });
  const socket = net.connect(proxy.http.port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  const total = 1024 * MIB;
  socket.write(requestText('PUT', '/core/v1/file/put', { ...RAW_TOKEN, 'Content-Length': String(total) }));
  const poured = pour(socket);
  while (take === undefined) await setImmediate();
  const taken = await settled(poured);
  t.ok(taken < BETWEEN_BYTES_MAX, `${taken} bytes were taken from the client`);
  take();
  while (received < taken + 64 * MIB) await setImmediate();
  t.pass('it continues when the module reads');
});

// covers R1
t.test('streams: an answer that breaks off cuts the connection, sized or chunked', async (t) => {
  const proxy = await proxyOf(t, ({ url }, response) => {
    if (url?.endsWith('sized') === true) response.setHeader('content-length', 10 * MIB);
    response.writeHead(200);
    response.write(Buffer.alloc(MIB, 1), () => response.destroy());
  });
  for (const kind of ['sized', 'chunked']) {
    const answer = await proxy.send(`/core/v1/file/${kind}`, { headers: TOKEN });
    t.equal(answer.status, 200);
    await t.rejects(answer.arrayBuffer(), kind);
  }
  while (proxy.http.finished.length < 2) await setImmediate();
  t.match(proxy.http.finished, [
    { status: 200, error: 'ModuleFailed' },
    { status: 200, error: 'ModuleFailed' },
  ]);
  t.ok(proxy.audit.every(({ fields }) => fields['outcome'] === 'failed'));
});

t.test('streams: a client that leaves in mid-answer ends the call at the module', async (t) => {
  const { promise: gone, resolve: closed } = promiseOf();
  const { promise: begun, resolve: begin } = promiseOf();
  const proxy = await proxyOf(t, (_request, response) => {
    response.writeHead(200).on('close', closed).once('drain', begin);
    pour(response);
  });
  const connection = connectRaw(proxy.http.port);
  connection.send(requestText('GET', '/core/v1/file/endless', RAW_TOKEN));
  await begun;
  connection.close();
  await gone;
  while (proxy.audit.length === 0) await setImmediate();
  t.match(proxy.audit, [{ fields: { outcome: 'cancelled' } }]);
});

// covers R1
t.test('streams: a client that leaves in mid-request leaves the module a cut request', async (t) => {
  const seen: string[] = [];
  const { promise: arrived, resolve: begun } = promiseOf();
  const { promise: ended, resolve: end } = promiseOf();
  const proxy = await proxyOf(t, (request) => {
    request.once('data', () => begun());
    request.on('data', () => undefined);
    request.on('end', () => seen.push('end'));
    request.on('error', () => seen.push('error'));
    request.on('close', end);
  });
  const connection = connectRaw(proxy.http.port);
  connection.send(
    `PUT /core/v1/file/put HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${BEARER}\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n${'x'.repeat(0x10000)}\r\n`,
  );
  await arrived;
  connection.close();
  await ended;
  t.strictSame(seen, ['error']);
});

t.test('streams: pieces arrive as the module sends them', async (t) => {
  let finish: () => void = () => undefined;
  const proxy = await proxyOf(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    finish = () => response.end('data: 2\n\n');
  });
  const answer = await proxy.send('/core/v1/events/all', { headers: TOKEN });
  const reader = answer.body?.getReader();
  const text = async () => Buffer.from((await reader?.read())?.value ?? []).toString();
  t.equal(await text(), 'data: 1\n\n', 'the first one while the module is not done');
  finish();
  t.equal(await text(), 'data: 2\n\n');
});

t.test('streams: HEAD, 204, 304, an empty body and trailers', async (t) => {
  const proxy = await proxyOf(t, ({ method, url }, response) => {
    const kind = url?.split('/').at(-1);
    if (kind === 'none') response.writeHead(204).end();
    else if (kind === 'same') response.writeHead(304, { etag: '"1"' }).end();
    else if (kind === 'empty') response.writeHead(200, { 'content-length': 0 }).end();
    else if (kind === 'trailers') {
      response.writeHead(200, { trailer: 'x-sum' });
      response.write('a'.repeat(100_000));
      response.addTrailers({ 'x-sum': '1' });
      response.end();
    } else
      response
        .writeHead(200, { 'content-length': MIB })
        .end(method === 'HEAD' ? undefined : Buffer.alloc(MIB));
  });
  const send = (kind: string, method = 'GET') =>
    proxy.send(`/core/v1/file/${kind}`, { method, headers: TOKEN });
  const head = await send('long', 'HEAD');
  t.match([head.status, head.headers.get('content-length'), await head.text()], [200, String(MIB), '']);
  t.match([(await send('none')).status, (await send('same')).status], [204, 304]);
  t.equal((await send('same')).headers.get('etag'), '"1"');
  t.equal((await send('empty')).headers.get('content-length'), '0');
  const trailed = await send('trailers');
  t.equal(trailed.headers.get('trailer'), null);
  t.equal(await trailed.text(), 'a'.repeat(100_000));
});

t.test('streams: Expect: 100-continue, and a chunked request', async (t) => {
  const proxy = await proxyOf(t, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => response.end(`${Buffer.concat(chunks)} ${request.headers.expect}`));
  });
  const continued = await new Promise<string>((resolve, reject) => {
    const headers = { ...TOKEN, expect: '100-continue', 'content-length': '5' };
    const outgoing = http.request(`${proxy.http.url}/core/v1/a/b`, { method: 'POST', headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      answer.on('end', () => resolve(text));
    });
    // Node sends the body at the latest when the other side says 100.
    outgoing.on('continue', () => outgoing.end('hello')).on('error', reject);
    outgoing.flushHeaders();
  });
  t.equal(continued, 'hello undefined');
  const chunked = await sendRaw(
    proxy.http.port,
    `POST /core/v1/a/b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${BEARER}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  );
  t.equal(chunked.body, 'hello undefined');
});

t.test('streams: an answer before the end of the request reaches the client', async (t) => {
  const proxy = await proxyOf(t, (_request, response) => {
    response
      .writeHead(413, { 'content-type': 'application/json' })
      .end('{"error":{"code":7,"message":"Too much"}}');
  });
  const connection = connectRaw(proxy.http.port);
  const answer = await connection.ask(
    `PUT /core/v1/file/put HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${BEARER}\r\nContent-Length: ${100 * MIB}\r\n\r\n`,
    Buffer.alloc(64 * 1024),
  );
  t.match(answer, { status: 413, body: '{"error":{"code":7,"message":"Too much"}}' });
  // It leaves before the rest of its body is over; nothing may touch its response from then on.
  connection.close();
});

// covers R1
t.test(
  'streams: a module silent in mid-answer is cut off at the time-out; one that drips is not',
  async (t) => {
    const timers = holdTimeouts(t, 200);
    let module: http.ServerResponse | undefined;
    const proxy = await proxyOf(
      t,
      (_request, response) => {
        module = response.writeHead(200);
        module.write('begun');
      },
      { proxyTimeoutMs: 200 },
    );
    const silent = await proxy.send('/core/v1/file/silent', { headers: TOKEN });
    timers.pass(200);
    await t.rejects(silent.text());
    const dripping = await proxy.send('/core/v1/file/dripping', { headers: TOKEN });
    let text = '';
    for await (const piece of dripping.body ?? []) {
      text += Buffer.from(piece).toString();
      if (text.length === 13) break;
      timers.pass(150);
      if (text.length < 12) module?.write('.');
      else module?.end('.');
    }
    t.equal(text, 'begun........', 'longer in all than the time-out');
    while (proxy.audit.length < 2) await setImmediate();
    t.strictSame(
      proxy.audit.map(({ fields }) => fields['outcome']),
      ['failed', 'ok'],
    );
  },
);

// covers R1
t.test(
  'streams: clients that do not read are cut off, and their silence is not the failure of the module',
  async (t) => {
    const timers = holdTimeouts(t, 150);
    const poured: (() => number)[] = [];
    const serve: http.RequestListener = (_request, response) =>
      void poured.push(pour(response.writeHead(200)));
    const proxy = await proxyOf(t, serve, { proxyTimeoutMs: 150 });
    const path = '/core/v1/file/endless';
    for (let reader = 0; reader < 6; reader += 1) {
      const socket = net.connect(proxy.http.port, '127.0.0.1').pause();
      socket.on('error', () => undefined);
      t.teardown(() => socket.destroy());
      socket.write(requestText('GET', path, RAW_TOKEN));
    }
    while (poured.length < 6) await setImmediate();
    await settled(() => poured.reduce((sum, bytes) => sum + bytes(), 0));
    timers.pass(150);
    while (proxy.audit.length < 6) await setImmediate();
    t.strictSame(new Set(proxy.audit.map(({ fields }) => fields['outcome'])), new Set(['cancelled']));
    const next = await proxy.send(path, { headers: TOKEN });
    t.equal(next.status, 200, 'no breaker opened');
    await next.body?.cancel();
  },
);

t.test(
  'streams: a client that pauses in mid-request for longer than the time-out is waited for',
  async (t) => {
    const timers = holdTimeouts(t, 60);
    let asked = 0;
    const proxy = await proxyOf(
      t,
      (request, response) => {
        asked += 1;
        if (request.method === 'PUT') request.resume().on('end', () => response.end('fine'));
      },
      { proxyTimeoutMs: 60 },
    );
    const arrived = async (requests: number) => {
      while (asked < requests) await setImmediate();
    };
    const connection = closeAfter(t, connectRaw(proxy.http.port));
    // So much of a body is sent on before the rest is here.
    const first = 'x'.repeat(64 * 1024);
    const length = String(first.length + 5);
    const head = requestText('PUT', '/core/v1/file/put', { ...RAW_TOKEN, 'Content-Length': length });
    connection.send(`${head}${first}`);
    await arrived(1);
    // Calls that began later reach the time-out, one after the other.
    for (const [index, kind] of ['a', 'b', 'c'].entries()) {
      const answer = proxy.send(`/core/v1/silent/${kind}`, { headers: TOKEN });
      await arrived(index + 2);
      timers.pass(60);
      t.equal((await answer).status, 504);
    }
    t.match(await connection.ask('later'), { status: 200, body: 'fine' });
  },
);

t.test('streams: a long answer that is not read delays no tool call', async (t) => {
  const backend = http.createServer(({ url }, response) => {
    if (url === '/call') response.end('{}');
    else pour(response.writeHead(200));
  });
  const { port } = await listenOnLoopback(backend);
  const client = createModuleClient({ clock: Date.now, bounds: freshBounds(), connectionsPerOrigin: 1 });
  t.teardown(async () => {
    await client.close();
    backend.closeAllConnections();
    backend.close();
  });
  const base = { method: 'GET', headers: {}, timeoutMs: 5_000 } as const;
  const at = (pathname: string) => ({ origin: `http://127.0.0.1:${port}`, pathname, search: '' });
  await new Promise<void>((resolve) => {
    const flow = client.relay(
      { ...base, url: at('/endless'), endpoint: 'a', body: undefined },
      {
        head: () => setTimeout(() => flow.pause(), 0).unref(),
        data: () => resolve(),
        ended: () => undefined,
        failed: () => undefined,
      },
    );
  });
  const result = await client.call({ ...base, url: at('/call'), endpoint: 'b' });
  t.equal(result.ok, true);
});
