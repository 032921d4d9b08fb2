/** Connections to receivers of webhooks: interim answers, kept connections that the receiver closed, bounds. */
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import t, { type Test } from 'tap';
import { listenFor } from '../../../kit/http.ts';
import type { WebhookRules } from '../../../src/domain/webhooks/target.ts';
import type { AttemptResult } from '../../../src/domain/webhooks/types.ts';
import { GuardedClient } from '../../../src/io/webhooks/guarded-client.ts';
import { createWebhookSender, type WebhookSender } from '../../../src/io/webhooks/sender.ts';
import { createResolver } from '../../../src/io/webhooks/ssrf-guard.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { unbounded } from '../../support/events/webhooks.ts';
import { startRawModule } from '../../support/raw-module.ts';

const LOOPBACK: WebhookRules = { production: false, allow: ['127.0.0.0/8'], ports: '' };
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const elapsed = () => performance.now();

function sender(t: Test, more: Partial<Parameters<typeof createWebhookSender>[0]> = {}): WebhookSender {
  const made = createWebhookSender({
    rules: () => LOOPBACK,
    resolve: createResolver(elapsed),
    clock: Date.now,
    elapsed,
    deadlineMs: 2_000,
    ...more,
  });
  t.teardown(() => made.close());
  return made;
}

function send(sender: WebhookSender, url: string): Promise<AttemptResult> {
  const apiKeys = { sent: 'ghk_secret', signing: ['ghk_secret'] };
  return sender.send({ url, webhookId: 'msg_1', body: '{}', apiKeys, resent: false, leased: unbounded() });
}

/** A receiver; `answer` decides by the number of the request on its connection, from 1. */
async function receiver(t: Test, answer: (socket: Socket, request: number, connection: number) => void) {
  const requests: number[] = [];
  return startRawModule(t, (_text, socket, connection) => {
    const request = (requests[connection] ?? 0) + 1;
    requests[connection] = request;
    answer(socket, request, connection);
  });
}

// covers P4 R90
t.test('receiver: interim answers before the final one are skipped, asked for or not', async (t) => {
  const interim = [
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n',
  ];
  for (const text of interim) {
    const target = await receiver(t, (socket) => {
      socket.write(text);
      setImmediate(() => socket.write(OK));
    });
    const sending = sender(t);
    for (let round = 0; round < 2; round += 1)
      t.match(await send(sending, target.url), { status: 200, failure: null, answer: 'ok' }, text);
    t.equal(target.sockets.length, 1, 'the connection is kept');
  }
});

t.test('receiver: interim answers without end are no answer', async (t) => {
  const target = await receiver(t, (socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)));
    };
    socket.on('drain', more);
    more();
  });
  t.match(await send(sender(t), target.url), { status: null, failure: 'broken', sent: true });
});

// covers P5 R90
t.test('kept connection: closed by the receiver, it costs one repetition on a new one', async (t) => {
  const target = await receiver(t, (socket, request) => {
    if (request === 1) socket.write(OK);
    else socket.destroy();
  });
  const sending = sender(t);
  for (let round = 1; round <= 3; round += 1) {
    t.match(await send(sending, target.url), { status: 200, failure: null }, `delivery ${round}`);
    t.equal(target.sockets.length, round);
  }
});

t.test('kept connection: the repetition never uses another kept one', async (t) => {
  const held: Socket[] = [];
  const kept = 8;
  const target = await receiver(t, (socket, request, connection) => {
    if (request > 1) socket.destroy();
    else if (connection >= kept) socket.write(OK);
    else if (held.push(socket) === kept) for (const each of held) each.write(OK);
  });
  const sending = sender(t);
  const first = await Promise.all(Array.from({ length: kept }, () => send(sending, target.url)));
  t.same(new Set(first.map(({ status }) => status)), new Set([200]));
  t.match(await send(sending, target.url), { status: 200, failure: null });
  t.equal(target.seen.length, kept + 2, 'one request was lost, one repeated');
});

t.test('kept connection: all closed at once, every delivery in flight is repeated', async (t) => {
  const first: Socket[] = [];
  const kept = 8;
  const target = await receiver(t, (socket, request, connection) => {
    if (connection >= kept) socket.write(OK);
    else if (request > 1) socket.destroy();
    else if (first.push(socket) === kept) for (const each of first) each.write(OK);
  });
  const sending = sender(t);
  for (let round = 0; round < 2; round += 1) {
    const results = await Promise.all(Array.from({ length: kept }, () => send(sending, target.url)));
    t.same(
      results.map(({ status }) => status),
      Array(kept).fill(200),
      `round ${round}`,
    );
  }
});

// covers R90
t.test('connection: a request without an answer on a new one is not repeated', async (t) => {
  const target = await receiver(t, (socket) => socket.destroy());
  t.match(await send(sender(t), target.url), { status: null, failure: 'broken', sent: true });
  t.equal(target.seen.length, 1);
});

t.test('kept connection: not repeated after the first byte of an answer, nor twice', async (t) => {
  const began = await receiver(t, (socket, request) => {
    if (request === 1) socket.write(OK);
    else socket.end('H');
  });
  const sending = sender(t);
  await send(sending, began.url);
  t.match(await send(sending, began.url), { status: null, failure: 'broken' });
  t.equal(began.seen.length, 2);
  const down = await receiver(t, (socket, request, connection) => {
    if (request === 1 && connection === 0) socket.write(OK);
    else socket.destroy();
  });
  await send(sending, down.url);
  t.match(await send(sending, down.url), { status: null, failure: 'broken', sent: true });
  t.equal(down.seen.length, 3);
});

t.test('kept connection: the repetition has a checked address and the same deadline', async (t) => {
  const target = await receiver(t, (socket, request) => {
    if (request === 1) socket.write(OK);
    else socket.destroy();
  });
  const addresses = [['127.0.0.1'], ['10.0.0.1']];
  const resolve = async () => addresses.shift() ?? [];
  const port = new URL(target.url).port;
  const rules = () => ({ ...LOOPBACK, ports: port });
  const sending = sender(t, { resolve, rules });
  const url = `http://hooks.example:${port}/`;
  t.equal((await send(sending, url)).status, 200);
  t.match(await send(sending, url), { status: null, failure: 'blocked_address' });
  const silent = await receiver(t, (socket, request, connection) => {
    if (connection === 0 && request === 1) socket.write(OK);
    else if (connection === 0) socket.destroy();
  });
  const hasty = sender(t, { deadlineMs: 300 });
  await send(hasty, silent.url);
  t.match(await send(hasty, silent.url), { status: null, failure: 'timed_out', sent: true });
});

t.test('connections: of many receivers, those used longest ago lose theirs', async (t) => {
  const client = new GuardedClient({
    rules: () => LOOPBACK,
    resolve: createResolver(elapsed),
    elapsed,
    connections: 2,
    originsMax: 2,
  });
  t.teardown(() => client.close());
  const targets = await Promise.all([1, 2, 3].map(() => receiver(t, (socket) => socket.write(OK))));
  const ask = async (at: number) => {
    const url = new URL(targets[at]?.url ?? '');
    const signal = AbortSignal.timeout(2_000);
    const answer = await client.request({ method: 'GET', url, headers: {}, answerMaxBytes: 10, signal });
    return answer.kind === 'answered' && answer.bytes.toString();
  };
  const connections = () => targets.map(({ sockets }) => sockets.length);
  for (const at of [0, 1, 0, 2, 0]) t.equal(await ask(at), 'ok');
  t.same(connections(), [1, 1, 1], 'the first one was used meanwhile');
  t.equal(await ask(1), 'ok');
  t.same(connections(), [1, 2, 1]);
});

t.test('https: the name of the receiver is in the handshake, not its address', async (t) => {
  const { certificate, key } = makeCertificate();
  const names: string[] = [];
  const server = createSecureServer({
    cert: certificate,
    key,
    SNICallback(name, done) {
      names.push(name);
      done(null);
    },
  });
  server.on('tlsClientError', () => undefined);
  const { port } = await listenFor(t, server);
  const rules = () => ({ production: true, allow: ['127.0.0.0/8'], ports: String(port) });
  const sending = sender(t, { rules, resolve: async () => ['127.0.0.1'] });
  const result = await send(sending, `https://hooks.example:${port}/`);
  t.match(result, { failure: 'unreachable', sent: false }, 'its certificate is not trusted');
  t.same(names, ['hooks.example']);
});
