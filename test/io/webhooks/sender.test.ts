/** The sender of webhooks against receivers of every kind, and its signatures against the reference library. */
import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { gzipSync } from 'node:zlib';
import { Webhook } from 'standardwebhooks';
import t, { type Test } from 'tap';
import { listenFor, listenOnLoopback } from '../../../kit/http.ts';
import type { WebhookRules } from '../../../src/domain/webhooks/target.ts';
import type { AttemptResult } from '../../../src/domain/webhooks/types.ts';
import {
  createWebhookSender,
  type OutgoingDelivery,
  type WebhookSender,
} from '../../../src/io/webhooks/sender.ts';
import { createResolver, type Resolve } from '../../../src/io/webhooks/ssrf-guard.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { unbounded } from '../../support/events/webhooks.ts';

const LOOPBACK: WebhookRules = { production: false, allow: ['127.0.0.0/8', '::1/128'], ports: '' };
const BODY =
  '{"module":"wallet","tick":"9007199254740993","type":"TxInWallet","data":{"amount":1.50,"tag":"é"}}';

interface Received {
  readonly headers: IncomingMessage['headers'];
  readonly method: string;
  readonly url: string;
  readonly body: string;
}

interface Receiver {
  readonly url: string;
  readonly port: number;
  readonly received: Received[];
  connections: number;
}

async function receiver(
  t: Test,
  answer: (response: ServerResponse, received: Received) => void = (response) => response.end('ok'),
): Promise<Receiver> {
  const server: HttpServer = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const entry = { headers: request.headers, method: request.method ?? '', url: request.url ?? '', body };
      found.received.push(entry);
      answer(response, entry);
    });
  });
  server.on('connection', (socket) => {
    found.connections += 1;
    socket.on('error', () => socket.destroy());
  });
  const { port } = await listenFor(t, server);
  const found: Receiver = { url: `http://127.0.0.1:${port}/hook?a=1`, port, received: [], connections: 0 };
  return found;
}

/** A TCP server that sends a given answer, or none. */
async function silent(t: Test, onConnect: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    onConnect(socket);
  });
  const { port } = await listenFor(t, server);
  return port;
}

interface Setup {
  readonly rules?: WebhookRules;
  readonly resolve?: Resolve;
  readonly deadlineMs?: number;
}

function sender(t: Test, { rules = LOOPBACK, resolve, deadlineMs = 2_000 }: Setup = {}): WebhookSender {
  const made = createWebhookSender({
    rules: () => rules,
    resolve: resolve ?? createResolver(() => performance.now()),
    clock: Date.now,
    elapsed: () => performance.now(),
    deadlineMs,
  });
  t.teardown(() => made.close());
  return made;
}

function delivery(url: string, rest: Partial<OutgoingDelivery> = {}): OutgoingDelivery {
  return {
    url,
    webhookId: 'msg_1',
    body: BODY,
    apiKeys: { sent: 'ghk_secret', signing: ['ghk_secret'] },
    resent: false,
    leased: unbounded(),
    ...rest,
  };
}

const outcome = ({ status, failure, sent }: AttemptResult) => ({ status, failure, sent });

// covers R85
t.test('delivery: one POST with the bytes of the events, the API key and the three headers', async (t) => {
  const target = await receiver(t);
  const result = await sender(t).send(delivery(target.url));
  t.match(result, { status: 200, failure: null, sent: true, answer: 'ok', retryAfterMs: null });
  t.equal(target.received.length, 1);
  const [got] = target.received;
  t.match(got, { method: 'POST', url: '/hook?a=1', body: BODY });
  t.match(got?.headers, {
    'content-type': 'application/json',
    'x-api-key': 'ghk_secret',
    'webhook-id': 'msg_1',
    'webhook-timestamp': /^[0-9]{10}$/,
    'webhook-signature': /^v1,[A-Za-z0-9+/]{43}=$/,
    'content-length': String(Buffer.byteLength(BODY)),
  });
  t.notOk(got?.headers['webhook-resend']);
  t.equal(got?.headers['accept-encoding'], 'identity', 'no content coding is requested');
  const { 'webhook-timestamp': timestamp, 'webhook-signature': signature } = got?.headers ?? {};
  t.strictSame(result.signed, { timestamp: Number(timestamp), signature }, 'the result has what was sent');
});

// covers R85
t.test('signature: the reference library verifies it, with both keys during a rotation', async (t) => {
  const target = await receiver(t);
  const send = sender(t);
  const signing = ['ghk_new-key_0123456789', 'ghk_old-key_9876543210'] as const;
  await send.send(delivery(target.url, { apiKeys: { sent: signing[1], signing }, resent: true }));
  const [got] = target.received;
  const headers = Object.fromEntries(
    Object.entries(got?.headers ?? {}).map(([name, value]) => [name, String(value)]),
  );
  t.equal(headers['webhook-signature']?.split(' ').length, 2);
  for (const apiKey of signing) {
    t.same(new Webhook(apiKey, { format: 'raw' }).verify(got?.body ?? '', headers), JSON.parse(BODY));
    const portable = `whsec_${Buffer.from(apiKey).toString('base64')}`;
    const verified = new Webhook(portable).verify(got?.body ?? '', headers);
    t.same(verified, JSON.parse(BODY), 'as every library takes it');
  }
  t.equal(headers['x-api-key'], signing[1], 'the former one is the one that is sent');
  t.equal(headers['webhook-resend'], 'true');
  t.throws(() => new Webhook('ghk_another', { format: 'raw' }).verify(got?.body ?? '', headers));
  t.throws(() => new Webhook('ghk_new-key_0123456789', { format: 'raw' }).verify(`${got?.body} `, headers));
});

// covers S25
t.test(
  'statuses: the status of the receiver is reported unchanged, a redirect is not followed',
  async (t) => {
    const second = await receiver(t);
    const target = await receiver(t, (response, { headers }) => {
      const status = Number(headers['webhook-id']);
      response.writeHead(status, { location: second.url, 'retry-after': '17' }).end(`answer ${status}`);
    });
    const send = sender(t);
    const statuses = [201, 204, 301, 302, 307, 308, 400, 401, 404, 410, 429, 500, 503];
    const results: unknown[] = [];
    for (const status of statuses) {
      const result = await send.send(delivery(target.url, { webhookId: String(status) }));
      const { failure, sent, retryAfterMs } = result;
      const answer = status === 204 ? 'none' : result.answer;
      results.push([result.status, failure, sent, retryAfterMs, answer]);
    }
    t.same(
      results,
      statuses.map((status) => [status, null, true, 17_000, status === 204 ? 'none' : `answer ${status}`]),
    );
    t.equal(second.received.length, 0);
  },
);

// covers R90
t.test(
  'receiver: refuses, hangs, drips, cuts off or answers no HTTP: a class each, within the deadline',
  async (t) => {
    const timers: NodeJS.Timeout[] = [];
    t.teardown(() => timers.forEach(clearInterval));
    const drip = (first: string) => (socket: Socket) => {
      socket.write(first);
      timers.push(setInterval(() => socket.write('x'), 20));
    };
    const cut = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal';
    const rows: [string, (socket: Socket) => void, string][] = [
      ['closes at once', (socket) => socket.destroy(), 'broken'],
      ['says nothing', () => {}, 'timed_out'],
      ['speaks SSH', (socket) => socket.end('SSH-2.0-OpenSSH\r\n'), 'broken'],
      ['half an answer is none', (socket) => socket.end(cut), 'broken'],
      ['a body that drips', drip('HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n'), 'timed_out'],
      ['a header that drips', drip('HTTP/1.1 200 OK\r\nX-Drip: '), 'timed_out'],
    ];
    const send = sender(t, { deadlineMs: 300 });
    for (const [name, onConnect, failure] of rows) {
      const result = await send.send(delivery(`http://127.0.0.1:${await silent(t, onConnect)}/`));
      t.same(outcome(result), { status: null, failure, sent: true }, name);
    }
  },
);

t.test('receiver: refused connection: the request was not sent', async (t) => {
  const server = createTcpServer();
  const { port } = await listenOnLoopback(server);
  await new Promise((resolve) => server.close(resolve));
  const result = await sender(t).send(delivery(`http://127.0.0.1:${port}/`));
  t.same(outcome(result), { status: null, failure: 'unreachable', sent: false });
});

t.test('receiver: 2xx with an endless body: 16 KB are read, the connection is cut, it counts', async (t) => {
  let writtenBytes = 0;
  let closed = () => {};
  const end = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const target = await receiver(t, (response) => {
    const chunk = 'y'.repeat(4_096);
    const more = () => {
      while (!response.destroyed && response.write(chunk)) writtenBytes += chunk.length;
    };
    response.on('drain', more);
    response.on('close', closed);
    more();
  });
  const result = await sender(t).send(delivery(target.url));
  t.match(result, { status: 200, failure: null, answer: 'y'.repeat(1_024) });
  await end;
  t.ok(writtenBytes < 64 * 1024 * 1024, 'what the kernel took, and no more');
});

t.test('receiver: a compressed bomb is neither unpacked nor kept', async (t) => {
  const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024));
  const target = await receiver(t, (response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
  );
  t.match(await sender(t).send(delivery(target.url)), { status: 200, failure: null, answer: '' });
});

// covers S25
t.test(
  'guard: a name that resolves to a forbidden address is not connected to, whatever else it has',
  async (t) => {
    const target = await receiver(t);
    const strict: WebhookRules = { production: false, allow: [], ports: String(target.port) };
    const url = `http://hooks.example:${target.port}/`;
    const four = ['127.0.0.1', '10.0.0.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'];
    const six = ['::1', '::ffff:127.0.0.1', '64:ff9b::7f00:1', 'fd00::1'];
    for (const addresses of [['93.184.216.34', '127.0.0.1'], ...[...four, ...six].map((each) => [each])]) {
      const result = await sender(t, { rules: strict, resolve: async () => addresses }).send(delivery(url));
      t.same(outcome(result), { status: null, failure: 'blocked_address', sent: false }, addresses.join());
      t.notMatch(JSON.stringify(result), addresses[0] ?? '-', 'the address is not shown');
    }
    t.equal(target.connections, 0);
  },
);

// covers S25
t.test(
  'guard: literals, localhost and ports are judged without a look-up, also in an address that was stored',
  async (t) => {
    const target = await receiver(t);
    let lookups = 0;
    const resolve: Resolve = async () => {
      lookups += 1;
      return ['127.0.0.1'];
    };
    const strict = sender(t, { rules: { production: false, allow: [], ports: '' }, resolve });
    const numbers = ['127.0.0.1', '2130706433', '0x7f.1', '0177.0.0.1', '169.254.169.254'];
    for (const host of [...numbers, '[::ffff:127.0.0.1]', 'localhost.', '[::1]']) {
      const { failure } = await strict.send(delivery(`http://${host}:${target.port}/`));
      t.equal(failure, 'blocked_address', host);
    }
    t.equal((await strict.send(delivery('http://hooks.example:25/'))).failure, 'blocked_address', 'port');
    const production = sender(t, { rules: { production: true, allow: [], ports: '' }, resolve });
    t.equal((await production.send(delivery('http://hooks.example/'))).failure, 'blocked_address', 'scheme');
    t.equal(lookups, 0);
    t.equal(target.connections, 0);
  },
);

// covers S25
t.test(
  'guard: an address that changes between check and connect gains nothing: it is looked up once',
  async (t) => {
    const good = await receiver(t);
    let lookups = 0;
    const resolve: Resolve = async () => {
      lookups += 1;
      return lookups === 1 ? ['127.0.0.1'] : ['10.0.0.1'];
    };
    const rules: WebhookRules = { ...LOOPBACK, ports: String(good.port) };
    const send = sender(t, { rules, resolve });
    const url = `http://rebind.example:${good.port}/`;
    const { status } = await send.send(delivery(url));
    t.equal(status, 200, 'the judged address is the one that is connected to');
    t.equal(lookups, 1);
    t.equal(good.received[0]?.headers.host, `rebind.example:${good.port}`);
    await send.close();
    const again = sender(t, { rules, resolve });
    t.equal((await again.send(delivery(url))).failure, 'blocked_address', 'every new connection is judged');
  },
);

t.test(
  'guard: an exempt range is connected to through a name; a name without addresses is unresolved',
  async (t) => {
    const target = await receiver(t);
    const rules: WebhookRules = { ...LOOPBACK, ports: String(target.port) };
    const url = `http://hooks.example:${target.port}/`;
    t.equal((await sender(t, { rules, resolve: async () => ['127.0.0.1'] }).send(delivery(url))).status, 200);
    const { status } = await sender(t).send(delivery(`http://localhost:${target.port}/`));
    t.equal(status, 200, 'without name servers');
    for (const resolve of [async () => [], () => Promise.reject(new Error('SERVFAIL'))] satisfies Resolve[]) {
      const result = await sender(t, { rules, resolve }).send(delivery(url));
      t.same(outcome(result), { status: null, failure: 'unresolved', sent: false });
    }
  },
);

t.test('https: nothing is sent to a receiver with an untrusted certificate', async (t) => {
  const { certificate, key } = makeCertificate();
  let requests = 0;
  const server = createSecureServer({ cert: certificate, key }, (_request, response) => {
    requests += 1;
    response.end();
  });
  server.on('tlsClientError', () => undefined);
  const { port } = await listenFor(t, server);
  const rules: WebhookRules = { production: true, allow: ['127.0.0.0/8'], ports: String(port) };
  const send = sender(t, { rules, resolve: async () => ['127.0.0.1'] });
  const result = await send.send(delivery(`https://hooks.example:${port}/`));
  t.same(outcome(result), { status: null, failure: 'unreachable', sent: false });
  t.equal(requests, 0);
});

// covers S25
t.test('proxy: environment variables have no effect', async (t) => {
  const proxy = await receiver(t);
  const target = await receiver(t);
  const before = process.env['HTTP_PROXY'];
  process.env['HTTP_PROXY'] = `http://127.0.0.1:${proxy.port}`;
  t.teardown(() => {
    if (before === undefined) delete process.env['HTTP_PROXY'];
    else process.env['HTTP_PROXY'] = before;
  });
  t.equal((await sender(t).send(delivery(target.url))).status, 200);
  t.equal(proxy.connections, 0);
});

t.test('lease: an attempt ends with it, whatever the receiver would say', async (t) => {
  const over = new AbortController();
  const mute = await receiver(t, () => over.abort());
  const leased = { signal: over.signal, mayBegin: () => true };
  const result = await sender(t).send(delivery(mute.url, { leased }));
  t.match(result, { status: null, failure: 'timed_out' });
  t.ok(result.elapsedMs < 2_000, 'before the deadline');
});

t.test('lease: a node that finds it over when the connection is there sends nothing', async (t) => {
  const other = await receiver(t);
  let asked = 0;
  const mayBegin = () => {
    asked += 1;
    return asked === 1;
  };
  const leased = { signal: new AbortController().signal, mayBegin };
  const send = sender(t);
  t.match(await send.send(delivery(other.url, { leased })), { status: 200 });
  t.match(await send.send(delivery(other.url, { leased })), { status: null }, 'a kept connection');
  t.match(await sender(t).send(delivery(other.url, { leased })), { status: null }, 'a new connection');
  t.same([other.received.length, asked], [1, 3]);
});
