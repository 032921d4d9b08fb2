/** Streamed bodies in both directions over real sockets, and the disconnect of either side. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { sendHttp } from '../../../kit/http.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { type OutgoingBody, type OutgoingSource, StreamReply } from '../../../src/io/http/exchange/stream.ts';
import type { AnyRoute, RouteContext } from '../../../src/io/http/table/route.ts';
import { bodyOf } from '../../support/files/incoming-body.ts';
import { type HttpFixture, plainRoute, promiseOf, route, startHttp } from '../../support/http.ts';

const MEGABYTE = 1024 * 1024;
const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Reads a whole body; with `pausing`, pauses after each piece until the next event-loop tick. */
function digestOf(context: RouteContext, pausing: boolean): Promise<string> {
  const hash = createHash('sha256');
  return new Promise((resolve) => {
    context.incoming?.read({
      data(bytes) {
        hash.update(bytes);
        if (!pausing) return;
        context.incoming?.pause();
        setImmediate(() => context.incoming?.resume());
      },
      end: () => resolve(hash.digest('hex')),
      lost: () => resolve('lost'),
    });
  });
}

/** Sends given bytes in pieces, as fast as the socket takes them. */
class BytesSource implements OutgoingSource {
  readonly #bytes: Uint8Array;
  readonly #pieceBytes: number;
  readonly lost: () => void;
  #at = 0;
  #out: OutgoingBody | undefined;

  constructor(bytes: Uint8Array, pieceBytes: number, lost: () => void = () => undefined) {
    this.#bytes = bytes;
    this.#pieceBytes = pieceBytes;
    this.lost = lost;
  }

  start(out: OutgoingBody): void {
    this.#out = out;
    this.drained();
  }

  drained(): void {
    while (this.#at < this.#bytes.length) {
      const piece = this.#bytes.subarray(this.#at, this.#at + this.#pieceBytes);
      this.#at += piece.length;
      if (this.#out?.send(piece) === false) return;
    }
    this.#out?.end();
  }
}

const request = (port: number, method: string, path: string, body?: Uint8Array, isChunked = false) => {
  const headers = isChunked ? { 'transfer-encoding': 'chunked' } : {};
  return sendHttp(`http://127.0.0.1:${port}${path}`, { method, headers, body });
};

function start(t: Test, ...routes: AnyRoute[]): HttpFixture {
  return closeAfter(t, startHttp({ site: { checkHost: false }, routes }));
}

/** The head of an answer, whose body the test reads itself. */
const opened = (port: number, path: string, headers = {}) =>
  new Promise<http.IncomingMessage>((resolve) => {
    http.get({ port, host: '127.0.0.1', path, agent: false, headers }, resolve);
  });

t.test('a streamed request body, declared or chunked, read at once or late, arrives complete', async (t) => {
  const { port, bugs, pipeline } = start(
    t,
    route('POST /now', { body: 'stream' }, (c) => digestOf(c, false)),
    route('POST /pausing', { body: 'stream' }, (c) => digestOf(c, true)),
    route('POST /late', { body: 'stream' }, async (context) => {
      for (let ticks = 0; ticks < 20; ticks += 1) await new Promise(setImmediate);
      return digestOf(context, false);
    }),
    route('POST /none', { body: 'stream' }, ({ incoming }) => incoming === undefined),
  );
  const bytes = randomBytes(12 * MEGABYTE);
  for (const path of ['/now', '/pausing', '/late']) {
    for (const chunked of [false, true]) {
      const { text } = await request(port, 'POST', path, bytes, chunked);
      t.equal(JSON.parse(text).result, sha(bytes), `${path}, ${chunked ? 'chunked' : 'declared'}`);
    }
  }
  const { text } = await request(port, 'POST', '/none', new Uint8Array(0));
  t.equal(text, '{"result":true}', 'an empty body is none');
  t.same(bugs, []);
  t.match(pipeline.counters(), { requestsInFlight: 0, bodyBytesInFlight: 0 });
});

t.test('a connection whose body ended while it was paused reads its next request', async (t) => {
  const { port } = start(
    t,
    route('POST /late', { body: 'stream' }, async (context) => {
      for (let ticks = 0; ticks < 20; ticks += 1) await new Promise(setImmediate);
      return digestOf(context, false);
    }),
    route(
      'POST /pausing',
      { body: 'stream' },
      ({ incoming }) =>
        new Promise((resolve) =>
          incoming?.read({
            data: () => incoming.pause(),
            end: () => resolve('end'),
            lost: () => resolve('lost'),
          }),
        ),
    ),
  );
  for (const path of ['/late', '/pausing']) {
    const socket = net.connect(port, '127.0.0.1');
    let heard = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      heard += text;
    });
    for (const turn of [1, 2, 3]) {
      socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello`);
      while (heard.split('HTTP/1.1 200').length <= turn) await once(socket, 'data');
    }
    socket.destroy();
    t.pass(path);
  }
});

t.test('a client that leaves during its body is reported once, also while it is paused', async (t) => {
  for (const paused of [false, true]) {
    const began = promiseOf<void>();
    const over = promiseOf<string>();
    let losses = 0;
    const { port, finished } = start(
      t,
      route(
        'POST /up',
        { body: 'stream' },
        ({ incoming }) =>
          new Promise(() => {
            incoming?.read({
              data() {
                if (paused) incoming.pause();
                began.resolve();
              },
              end: () => over.resolve('end'),
              lost() {
                losses += 1;
                over.resolve('lost');
              },
            });
          }),
      ),
    );
    const socket = net.connect(port, '127.0.0.1');
    socket.write('POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nsome');
    await began.promise;
    socket.destroy();
    t.equal(await over.promise, 'lost', paused ? 'paused' : 'reading');
    t.equal(losses, 1);
    t.equal(finished[0]?.status, 0, 'the request is over without an answer');
  }
});

t.test('a silent client is closed after 30 intervals of a second, a paused one is not', (t) => {
  const { body, told, second, read, rearmed } = bodyOf(false);
  const silent = (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 1) second(0);
  };
  read();
  silent(29);
  t.same(told, []);
  t.equal(rearmed.pauses, 7, "the connection's own clock starts anew every 4 s");
  second(1);
  silent(28);
  t.same(told, [], 'a byte starts the count anew');
  const before = rearmed.pauses;
  for (let passed = 0; passed < 40; passed += 1) second(1);
  t.equal(rearmed.pauses - before, 10, 'under a trickle too');
  body.pause();
  silent(60);
  t.same(told, [], 'a paused client is not silent');
  body.resume();
  silent(30);
  t.ok(told.includes('closed'));
  body.discard();
  t.end();
});

t.test('an answer before the end of the body arrives, declared and chunked, read or unread', async (t) => {
  const { port, bugs, pipeline } = start(
    t,
    route('POST /refused', { body: 'stream' }, () => {
      throw new GatewayError('MaxFileSize');
    }),
    route(
      'POST /capped',
      { body: 'stream' },
      ({ incoming }) =>
        new Promise((_resolve, reject) => {
          let received = 0;
          incoming?.read({
            data(bytes) {
              received += bytes.length;
              if (received > MEGABYTE) reject(new GatewayError('MaxFileSize'));
            },
            end: () => undefined,
            lost: () => undefined,
          });
        }),
    ),
  );
  const bytes = new Uint8Array(4 * MEGABYTE);
  for (const path of ['/refused', '/capped']) {
    for (const chunked of [false, true]) {
      const statuses: number[] = [];
      for (let round = 0; round < 25; round += 1)
        statuses.push((await request(port, 'POST', path, bytes, chunked)).status);
      t.same(statuses, new Array(25).fill(413), `${path}, ${chunked ? 'chunked' : 'declared'}`);
    }
  }
  t.same(bugs, []);
  t.match(pipeline.counters(), { requestsInFlight: 0, bodyBytesInFlight: 0 });
});

t.test('a streamed answer of known length or chunked arrives complete, also at a slow reader', async (t) => {
  const bytes = randomBytes(9 * MEGABYTE + 17);
  const { port, bugs, finished } = start(
    t,
    plainRoute(
      'GET /known',
      () => new StreamReply(200, new BytesSource(bytes, 512 * 1024), { lengthBytes: bytes.length }),
    ),
    plainRoute(
      'GET /chunked',
      async () => new StreamReply(206, new BytesSource(bytes, 100_000), { contentType: 'text/x' }),
    ),
    plainRoute(
      'GET /empty',
      () => new StreamReply(200, new BytesSource(bytes.subarray(0, 0), 1), { lengthBytes: 0 }),
    ),
  );
  const known = await request(port, 'GET', '/known');
  t.equal(known.headers['content-length'], String(bytes.length));
  t.equal(sha(known.bytes), sha(bytes));
  const chunked = await request(port, 'GET', '/chunked');
  t.equal(chunked.status, 206);
  t.equal(chunked.headers['content-type'], 'text/x');
  t.equal(sha(chunked.bytes), sha(bytes));
  t.equal((await request(port, 'GET', '/empty')).bytes.length, 0);
  for (const path of ['/known', '/chunked']) {
    t.equal(sha(await readSlowly(port, path)), sha(bytes), `${path}, slowly`);
  }
  t.same(
    finished.map(({ responseBytes: sizeBytes }) => sizeBytes),
    [bytes.length, bytes.length, 0, bytes.length, bytes.length],
  );
  t.same(bugs, []);
});

/** Reads 256 KB at a time with event-loop ticks in between, so that the sender often meets a full socket. */
async function readSlowly(port: number, path: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const answer = await opened(port, path);
  let unread = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    pieces.push(piece);
    unread += piece.length;
    if (unread < 256 * 1024) continue;
    unread = 0;
    for (let ticks = 0; ticks < 30; ticks += 1) await new Promise(setImmediate);
  }
  return Buffer.concat(pieces);
}

t.test('a chunked answer that idles after a full socket sends all of its bytes', async (t) => {
  const bytes = new Uint8Array(8 * MEGABYTE);
  let sent = 0;
  let over: OutgoingBody | undefined;
  const source: OutgoingSource = {
    start(out) {
      over = out;
      // Stops sending at the first full socket.
      while (sent < bytes.length) {
        sent += 15_000;
        if (!out.send(bytes.subarray(0, 15_000))) return;
      }
    },
    drained: () => undefined,
    lost: () => undefined,
  };
  const { port } = start(
    t,
    plainRoute('GET /idle', () => new StreamReply(200, source, { longLived: true })),
  );
  const answer = await opened(port, '/idle');
  let received = 0;
  await new Promise<void>((resolve) => {
    answer.on('data', (piece: Buffer) => {
      received += piece.length;
      if (received === sent) resolve();
    });
  });
  t.equal(received, sent);
  over?.end();
});

t.test('a long-lived answer keeps no field of its request, and its record stays complete', async (t) => {
  let fieldsOf: (name: string) => string | undefined = () => undefined;
  let out: OutgoingBody | undefined;
  const source = {
    start: (body: OutgoingBody) => {
      out = body;
      out.send('here');
    },
    drained: () => undefined,
    lost: () => undefined,
  };
  const { port, finished } = start(
    t,
    plainRoute('GET /long', ({ header }) => {
      fieldsOf = header;
      t.equal(header('x-canary'), 'sings');
      return new StreamReply(200, source, { longLived: true });
    }),
  );
  const headers = { 'x-canary': 'sings', 'user-agent': 'a test', 'x-request-id': 'of-the-client' };
  const answer = await opened(port, '/long', headers);
  await new Promise((resolve) => answer.once('data', resolve));
  t.equal(fieldsOf('x-canary'), undefined);
  out?.end();
  await new Promise((resolve) => answer.resume().once('end', resolve));
  t.match(finished, [
    {
      path: '/long',
      userAgent: 'a test',
      requestId: /^test-/,
      clientRequestId: 'of-the-client',
      responseBytes: 4,
    },
  ]);
});

t.test('an answer that is shorter than announced closes the connection', async (t) => {
  const { port } = start(
    t,
    plainRoute(
      'GET /short',
      () => new StreamReply(200, new BytesSource(new Uint8Array(1_000), 1_000), { lengthBytes: 2_000 }),
    ),
  );
  await t.rejects(request(port, 'GET', '/short'));
});

t.test(
  'the source is notified once of a client that leaves during the answer, and at once for HEAD',
  async (t) => {
    const lost = promiseOf<void>();
    let losses = 0;
    const source = () =>
      new BytesSource(new Uint8Array(40 * MEGABYTE), 512 * 1024, () => {
        losses += 1;
        lost.resolve();
      });
    const { port, pipeline, bugs } = start(
      t,
      plainRoute('GET /big', () => new StreamReply(200, source(), { lengthBytes: 40 * MEGABYTE })),
      plainRoute('HEAD /big', () => new StreamReply(200, source(), { lengthBytes: 40 * MEGABYTE })),
    );
    const socket = net.connect(port, '127.0.0.1');
    socket.write('GET /big HTTP/1.1\r\nHost: x\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    t.equal(pipeline.counters().requestsInFlight, 1, 'a download counts until it is over');
    socket.destroy();
    await lost.promise;
    t.equal(losses, 1);
    t.equal(pipeline.counters().requestsInFlight, 0);
    const head = await request(port, 'HEAD', '/big');
    t.equal(head.headers['content-length'], String(40 * MEGABYTE));
    t.equal(losses, 2);
    t.same(bugs, []);
  },
);

t.test('a source or a sink that throws is reported as a bug, and the front keeps serving', async (t) => {
  const throwing = (): never => {
    throw new Error('planted');
  };
  const { port, bugs, pipeline } = start(
    t,
    plainRoute(
      'GET /source',
      () => new StreamReply(200, { start: throwing, drained: throwing, lost: () => undefined }),
    ),
    route('POST /sink', { body: 'stream' }, ({ incoming }) => {
      incoming?.read({ data: throwing, end: () => undefined, lost: () => undefined });
      return new Promise(() => undefined);
    }),
  );
  await t.rejects(request(port, 'GET', '/source'), 'the connection is cut');
  const refused = await request(port, 'POST', '/sink', new Uint8Array(10));
  t.equal(refused.status, 500);
  t.match(bugs, [/planted/, /planted/]);
  t.equal(pipeline.counters().requestsInFlight, 1, 'a handler that never ends still counts');
});

t.test('a body that is echoed while it arrives stays the same', async (t) => {
  const { port, bugs } = start(
    t,
    route('POST /echo', { body: 'stream' }, ({ incoming }) => {
      const waiting: Uint8Array[] = [];
      let out: OutgoingBody | undefined;
      let ended = false;
      let full = false;
      const pump = () => {
        while (!full) {
          const next = waiting.shift();
          if (next === undefined) break;
          full = out?.send(next) === false;
        }
        if (full) return;
        if (ended) out?.end();
        else incoming?.resume();
      };
      return new StreamReply(200, {
        start(opened) {
          out = opened;
          incoming?.read({
            data(bytes) {
              incoming.pause();
              waiting.push(Uint8Array.from(bytes));
              if (waiting.length === 1) setImmediate(pump);
            },
            end() {
              ended = true;
              setImmediate(pump);
            },
            lost: () => undefined,
          });
        },
        drained() {
          full = false;
          pump();
        },
        lost: () => undefined,
      });
    }),
  );
  const bytes = randomBytes(6 * MEGABYTE);
  const answer = await request(port, 'POST', '/echo', bytes);
  t.equal(sha(answer.bytes), sha(bytes));
  t.same(bugs, []);
});
