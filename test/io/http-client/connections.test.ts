/** The connections to the modules: when one is used again and when never, what is written on it, bodies as they come. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { listenFor, listenOnLoopback } from '../../../kit/http.ts';
import type { AnswerHead, RelayFlow } from '../../../src/io/http-client/relay.ts';
import { requestHead } from '../../../src/io/http-client/request-head.ts';
import type { ModuleRequest, ModuleResult } from '../../../src/io/http-client/types.ts';
import { createModuleClient, type ModuleClientOptions } from '../../../src/io/modules/client.ts';
import { seededNumbers } from '../../support/actors/actors.ts';
import { freshBounds } from '../../support/actors/bounds.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { count, depth, runs } from '../../support/depth.ts';
import { FakeBody } from '../../support/files/incoming-body.ts';
import { promiseOf } from '../../support/http.ts';
import { startRawModule } from '../../support/raw-module.ts';

/** The address of a compiled file, quoted, for a script of another process. */
const moduleUrl = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).href);

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

function clientOf(t: Test, options: Partial<ModuleClientOptions> = {}) {
  return closeAfter(t, createModuleClient({ clock: () => 0, bounds: freshBounds(), ...options }));
}

function request(url: string, more: Partial<ModuleRequest> = {}): ModuleRequest {
  return { method: 'GET', url: new URL(url), headers: {}, timeoutMs: 5_000, endpoint: 'test', ...more };
}

function textOf(result: ModuleResult): string {
  return result.ok ? result.answer.body.toString() : result.error;
}

const pick = <T>(random: (limit: number) => number, values: readonly T[]): T =>
  values[random(values.length)] as T;

const closing = (socket: Socket | undefined) =>
  new Promise<void>((resolve) => {
    if (socket === undefined || socket.destroyed) resolve();
    else socket.once('close', () => resolve());
  });

/** A relayed call whose listener records its callbacks. */
function relayed(
  client: ReturnType<typeof createModuleClient>,
  url: string,
  body: FakeBody | undefined,
  onHead: (head: AnswerHead, flow: () => RelayFlow | undefined) => void = () => undefined,
) {
  const told: string[] = [];
  let flow: RelayFlow | undefined;
  const over = new Promise<readonly string[]>((resolve) => {
    flow = client.relay(
      {
        method: body === undefined ? 'GET' : 'PUT',
        url: new URL(url),
        headers: {},
        timeoutMs: 5_000,
        endpoint: 'relay',
        body,
      },
      {
        head(head) {
          told.push(`head ${head.status}`);
          onHead(head, () => flow);
        },
        data: (bytes) => told.push(bytes.toString()),
        ended: () => resolve([...told, 'ended']),
        failed: (error) => resolve([...told, error]),
      },
    );
  });
  return { over, flow: () => flow };
}

// covers R47
t.test('connections: one with bytes after the answer is never used again', async (t) => {
  const module = await startRawModule(t, (_text, socket, connection) =>
    socket.write(connection === 0 ? `${OK}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother` : OK),
  );
  const client = clientOf(t);
  for (let call = 0; call < 3; call += 1) t.equal(textOf(await client.call(request(module.url))), 'ok');
  await closing(module.sockets[0]);
  t.equal(module.sockets.length, 2);
});

// covers R47
t.test('connections: one that receives unrequested bytes is closed', async (t) => {
  const module = await startRawModule(t, (_text, socket) => socket.write(OK));
  const client = clientOf(t);
  await client.call(request(module.url));
  module.sockets[0]?.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n');
  await closing(module.sockets[0]);
  t.equal(textOf(await client.call(request(module.url, { method: 'POST', body: '{}' }))), 'ok');
  t.equal(module.sockets.length, 2);
});

t.test('connections: one that the module closed while it was idle takes no POST', async (t) => {
  const module = await startRawModule(t, (_text, socket) => socket.write(OK));
  const client = clientOf(t);
  await client.call(request(module.url));
  module.sockets[0]?.end();
  await closing(module.sockets[0]);
  t.equal(textOf(await client.call(request(module.url, { method: 'POST', body: '{}' }))), 'ok');
  t.match(client.counters(), { retried: 0, answered: 2 });
});

t.test('connections: the module decides whether and for how long one is kept', async (t) => {
  const cases: [fields: string, idleMs: number, connections: number][] = [
    ['', 3_999, 1],
    ['', 4_000, 2],
    ['Keep-Alive: timeout=30\r\n', 27_999, 1],
    ['Keep-Alive: timeout=30\r\n', 28_000, 2],
    ['Keep-Alive: timeout=2\r\n', 0, 2],
    ['Connection: close\r\n', 0, 2],
  ];
  for (const [fields, idleMs, connections] of cases) {
    let nowMs = 0;
    const module = await startRawModule(t, (_text, socket) =>
      socket.write(`HTTP/1.1 200 OK\r\n${fields}Content-Length: 0\r\n\r\n`),
    );
    const client = clientOf(t, { monotonicMs: () => nowMs });
    await client.call(request(module.url));
    nowMs += idleMs;
    await client.call(request(module.url));
    t.equal(module.sockets.length, connections, `${fields} after ${idleMs} ms`);
  }
});

t.test('connections: closed after HEAD, as its header announces', async (t) => {
  const heads: string[] = [];
  const module = await startRawModule(t, (text, socket) => {
    heads.push(text);
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n');
  });
  const client = clientOf(t);
  const result = await client.call(request(module.url, { method: 'HEAD' }));
  t.match(result, { ok: true, answer: { status: 200 } });
  t.match(heads[0], /\r\nconnection: close\r\n/);
  await closing(module.sockets[0]);
});

t.test('connections: no more than the bound; the others wait in the order of their arrival', async (t) => {
  let isOpen = false;
  const held: Socket[] = [];
  const module = await startRawModule(t, (_text, socket) => {
    if (isOpen) socket.write(OK);
    else held.push(socket);
    if (held.length === 2 && !isOpen) {
      isOpen = true;
      for (const each of held) each.write(OK);
    }
  });
  const client = clientOf(t, { connectionsPerOrigin: 2 });
  const calls = Array.from({ length: 12 }, (_, at) => client.call(request(`${module.url}/${at}`)));
  t.equal(client.counters().pending, 12);
  t.strictSame(new Set((await Promise.all(calls)).map(textOf)), new Set(['ok']));
  t.equal(module.sockets.length, 2);
  t.equal(client.counters().pending, 0);
  const order = module.seen.map((line) => Number(line.slice('GET /'.length)));
  t.strictSame(order.slice(2), [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
});

t.test('connections: of a module that is down, all waiting calls fail at once', async (t) => {
  const server = createServer();
  const { port } = await listenOnLoopback(server);
  await new Promise((resolve) => server.close(resolve));
  const client = clientOf(t, { connectionsPerOrigin: 2 });
  const post = (at: number) =>
    client.call(request(`http://127.0.0.1:${port}/`, { method: 'POST', endpoint: String(at) }));
  const results = await Promise.all(Array.from({ length: 50 }, (_, at) => post(at)));
  t.strictSame(new Set(results.map(textOf)), new Set(['ModuleFailed']));
  t.equal(client.counters().pending, 0);
});

t.test('connections: a GET whose answer began is not sent again, however little came', async (t) => {
  const module = await startRawModule(t, (_text, socket) => socket.end('H'));
  t.equal(textOf(await clientOf(t).call(request(module.url))), 'ModuleFailed');
  t.equal(module.seen.length, 1);
});

t.test('connections: the body of a POST arrives byte for byte, in any script', async (t) => {
  const body = JSON.stringify({ text: 'aé€😀'.repeat(100_000) });
  const expected = Buffer.from(body);
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      received.push(bytes);
      const all = Buffer.concat(received);
      if (all.length - all.indexOf('\r\n\r\n') - 4 >= expected.length) socket.write(OK);
    });
  });
  const { url } = await listenFor(t, server);
  t.equal(textOf(await clientOf(t).call(request(url, { method: 'POST', body }))), 'ok');
  const all = Buffer.concat(received);
  const end = all.indexOf('\r\n\r\n') + 4;
  t.match(all.subarray(0, end).toString(), new RegExp(`\r\ncontent-length: ${expected.length}\r\n`));
  t.ok(all.subarray(end).equals(expected));
});

t.test('relay: an answer before the end of the request ends the connection and the body', async (t) => {
  const module = await startRawModule(t, (_text, socket) => socket.write(OK));
  const body = new FakeBody();
  const { over } = relayed(clientOf(t), module.url, body);
  t.strictSame(await over, ['head 200', 'ok', 'ended']);
  t.equal(body.discarded, true);
  await closing(module.sockets[0]);
});

t.test('relay: a client that aborts its body aborts the request to the module', async (t) => {
  const { promise: arrived, resolve: begun } = promiseOf();
  const texts: string[] = [];
  const module = await startRawModule(t, (text) => {
    texts.push(text);
    if (texts.join('').includes('hello')) begun();
  });
  const body = new FakeBody();
  const client = clientOf(t);
  const { over } = relayed(client, module.url, body);
  while (body.sink === undefined) await new Promise((resolve) => setImmediate(resolve));
  body.send(Buffer.from('hello'));
  await arrived;
  body.lose();
  t.strictSame(await over, ['Aborted']);
  await closing(module.sockets[0]);
  t.match(texts.join(''), /\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n$/);
  t.strictSame(client.counters().breakersOpen, []);
});

t.test('relay: a body longer or shorter than declared is refused', async (t) => {
  for (const pieces of [['hello', '!'], ['hell']]) {
    const module = await startRawModule(t, () => undefined);
    const body = new FakeBody(5);
    const { over } = relayed(clientOf(t), module.url, body);
    while (body.sink === undefined) await new Promise((resolve) => setImmediate(resolve));
    for (const piece of pieces) body.send(Buffer.from(piece));
    body.end();
    t.strictSame(await over, ['Aborted']);
    await closing(module.sockets[0]);
  }
});

t.test('relay: a paused answer that completes leaves a usable connection', async (t) => {
  const module = await startRawModule(t, (_text, socket) => socket.write(OK));
  const client = clientOf(t);
  for (let call = 0; call < 3; call += 1) {
    const { over } = relayed(client, module.url, undefined, (_head, flow) => flow()?.pause());
    t.strictSame(await over, ['head 200', 'ok', 'ended']);
  }
  t.equal(module.sockets.length, 1);
});

t.test('relay: paused in the tick of its resume, it stays paused', async (t) => {
  const module = await startRawModule(t, (_text, socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    socket.write(Buffer.alloc(32 * 1024 * 1024));
  });
  const client = clientOf(t);
  let taken = 0;
  const listener = {
    head: () => undefined,
    data(bytes: Buffer) {
      taken += bytes.length;
      flow.pause();
      flow.resume();
      flow.pause();
    },
    ended: () => undefined,
    failed: () => undefined,
  };
  const url = new URL(module.url);
  const flow = client.relay(
    { method: 'GET', url, headers: {}, timeoutMs: 60_000, endpoint: 'relay', body: undefined },
    listener,
  );
  while (taken === 0) await new Promise((resolve) => setImmediate(resolve));
  for (let turn = 0; turn < 2_000; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  t.ok(taken <= 4 * 64 * 1024, `${taken} bytes were taken`);
});

t.test('relay: refused before it was sent, it reports so and holds nothing', async (t) => {
  const client = clientOf(t, { bounds: freshBounds({ relayedCalls: 0, relayedWaiting: 0 }) });
  t.strictSame(await relayed(client, 'http://127.0.0.1:1/', undefined).over, ['Overloaded']);
  t.match(client.counters(), { pending: 0, failed: { Overloaded: 1 } });
});

/** Answers with the path it was asked for, in one of the ways in which modules answer, well or badly. */
function misbehave(text: string, socket: Socket, random: (limit: number) => number): void {
  const id = text.slice(text.indexOf(' ') + 1, text.indexOf(' HTTP/'));
  const chunked = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${id.length.toString(16)}\r\n${id}\r\n0\r\n\r\n`;
  const sized = `HTTP/1.1 200 OK\r\nContent-Length: ${id.length}\r\n\r\n${id}`;
  const answer = pick(random, [sized, chunked, sized.replace('200 OK', '500 Oh')]);
  const pieces = [answer.slice(0, random(answer.length)), ''];
  pieces[1] = answer.slice(pieces[0]?.length ?? 0);
  switch (random(10)) {
    case 0:
      socket.write(`${answer}${sized}`);
      return;
    case 1:
      socket.end(answer.slice(0, random(answer.length)));
      return;
    case 2:
      socket.destroy();
      return;
    case 3:
      socket.end(answer.replace('\r\n', '\r\nConnection: close\r\n'));
      return;
    case 4:
      socket.write(answer.replace(/HTTP/, 'HTP'));
      return;
    case 5:
      socket.write(answer, () => socket.destroy());
      return;
    default:
      socket.write(pieces[0] ?? '');
      setImmediate(() => socket.write(pieces[1] ?? ''));
  }
}

t.test('connections: whatever a module does, no call gets the answer of another', async (t) => {
  const next = seededNumbers(depth.seed);
  const random = (limit: number) => Math.floor(next() * limit);
  const module = await startRawModule(t, (text, socket) => misbehave(text, socket, random));
  const client = clientOf(t, { connectionsPerOrigin: 8 });
  const outcomes = new Map<string, number>();
  const calls = count(4_000);
  let left = calls;
  const caller = async () => {
    while (left > 0) {
      left -= 1;
      const id = `/${left}`;
      const stops: (() => void)[] = [];
      const call = client.call(
        request(`${module.url}${id}`, {
          method: pick(random, ['GET', 'POST']),
          endpoint: id,
          onBegin: (stop) => stops.push(stop),
        }),
      );
      if (random(10) === 0) setImmediate(() => stops[0]?.());
      const result = await call;
      if (result.ok && textOf(result) !== id) throw new Error(`${textOf(result)} for ${id}`);
      const outcome = result.ok ? 'ok' : result.error;
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 32 }, caller));
  for (const outcome of ['ok', 'ModuleFailed', 'Aborted'])
    t.ok((outcomes.get(outcome) ?? 0) > count(50), `${outcome}: ${outcomes.get(outcome)}`);
  t.strictSame([...outcomes.keys()].sort(), ['Aborted', 'ModuleFailed', 'ok']);
  t.match(client.counters(), { pending: 0, calls });
});

t.test('request head: for all headers, it has the expected lines or is not written', async (t) => {
  const text = fc.string({ unit: 'binary-ascii', maxLength: 12 });
  const url = { origin: 'http://a', pathname: '/a', search: '?b=c' };
  let taken = 0;
  fc.assert(
    fc.property(fc.dictionary(text, text, { noNullPrototype: true }), (headers) => {
      const head = requestHead({ method: 'GET', url, headers }, 'a:1', undefined);
      if (head === undefined) return true;
      taken += 1;
      const lines = head.split('\r\n');
      const written = Object.entries(headers).filter(([name, value]) => lines.includes(`${name}: ${value}`));
      return lines.length === written.length + 6 && !/[\r\n\0]/.test(head.replaceAll('\r\n', ''));
    }),
    runs(20_000),
  );
  t.ok(taken > count(1_000), `${taken} were written`);
});

// covers S15
t.test('request head: nothing that could end a line or a request is written', async (t) => {
  const url = { origin: 'http://a', pathname: '/a', search: '' };
  const head = (more: object) => requestHead({ method: 'POST', url, headers: {}, ...more }, 'a', 3);
  for (const value of ['a\r\nb: c', 'a\nb', 'a\rb', 'a\0', 'ä', '\x7f'])
    t.equal(head({ headers: { 'x-a': value } }), undefined, JSON.stringify(value));
  for (const name of ['a b', 'a:', 'a\r\nb', '', 'ä'])
    t.equal(head({ headers: { [name]: 'c' } }), undefined, JSON.stringify(name));
  for (const pathname of ['', 'a', '/a b', '/a\r\n', '/ä', '/\0'])
    t.equal(head({ url: { ...url, pathname } }), undefined, JSON.stringify(pathname));
  t.equal(
    head({ headers: { Host: 'b', 'Content-Length': '9', TE: 'x', 'X-A': 'b' } }),
    'POST /a HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\nX-A: b\r\naccept-encoding: identity\r\ncontent-length: 3\r\n\r\n',
  );
});

t.test('TLS: a module with an untrusted certificate gets no request; a trusted one does', async (t) => {
  const { certificate, key } = makeCertificate();
  const seen: string[] = [];
  const server = createHttpsServer({ cert: certificate, key }, (request, response) => {
    seen.push(`${request.method} ${request.url} ${request.httpVersion}`);
    response.end('x'.repeat(300_000));
  });
  const { port } = await listenOnLoopback(server);
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-tls-'));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const url = `https://localhost:${port}/a`;
  t.match(await clientOf(t).call(request(url)), { ok: false, error: 'ModuleFailed' });
  t.strictSame(seen, []);
  writeFileSync(join(folder, 'ca.pem'), certificate);
  // Trust is the process's own and read at its start.
  const script = `
    import { createModuleClient } from ${moduleUrl('io/modules/client.js')};
    import { LiveSettings } from ${moduleUrl('domain/settings/settings.js')};
    import { SharedBounds } from ${moduleUrl('domain/limits/shared-bounds.js')};
    const bounds = new SharedBounds(new LiveSettings());
    const client = createModuleClient({ clock: () => 0, bounds });
    const url = new URL(${JSON.stringify(url)});
    const sizes = [];
    for (let call = 0; call < 3; call += 1) {
      const result = await client.call({ method: 'GET', url, headers: {}, timeoutMs: 5000, endpoint: 'a' });
      sizes.push(result.ok ? result.answer.body.length : result.reason);
    }
    process.stdout.write(JSON.stringify(sizes));
    await client.close();`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env: { PATH: process.env['PATH'], NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') },
  });
  t.strictSame(JSON.parse(stdout), [300_000, 300_000, 300_000]);
  t.strictSame(seen, Array(3).fill('GET /a 1.1'));
});
