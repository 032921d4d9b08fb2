/** The HTTP client to the backends, against real servers that are down, slow, cut, endless or unwilling. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { listenFor, listenOnLoopback } from '../../../kit/http.ts';
import { ANSWER_MAX_BYTES } from '../../../src/io/http-client/attempt.ts';
import {
  BREAKER_FAILURES_MAX,
  BREAKER_OPEN_MS,
  createBreakers,
} from '../../../src/io/http-client/breaker.ts';
import type { ModuleRequest, ModuleResult } from '../../../src/io/http-client/types.ts';
import {
  createModuleClient,
  type ModuleClient,
  type ModuleClientOptions,
} from '../../../src/io/modules/client.ts';
import { freshBounds } from '../../support/actors/bounds.ts';
import { holdTimeouts } from '../../support/held-timers.ts';
import { outside } from '../../support/outside.ts';
import { startRawModule } from '../../support/raw-module.ts';

interface Backend {
  url: string;
  /** `METHOD path` of everything that arrived, in order. */
  seen: string[];
}

/** A backend that speaks HTTP properly. */
async function startBackend(
  test: Test,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Backend> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    handle(request, response);
  });
  const { url } = await listenFor(test, server);
  return { url, seen };
}

/** An address where nothing listens. */
async function deadUrl(test: Test): Promise<string> {
  const server = createTcpServer();
  const { port } = await listenOnLoopback(server);
  await new Promise((resolve) => server.close(resolve));
  test.ok(port > 0);
  return `http://127.0.0.1:${port}`;
}

function startClient(test: Test, options: Partial<ModuleClientOptions> = {}): ModuleClient {
  const client = createModuleClient({ clock: () => 0, bounds: freshBounds(), ...options });
  test.teardown(() => client.close());
  return client;
}

function get(url: string, more: Partial<ModuleRequest> = {}): ModuleRequest {
  return { method: 'GET', url: new URL(url), headers: {}, timeoutMs: 5_000, endpoint: 'test', ...more };
}

function errorOf(result: ModuleResult): string {
  return result.ok ? `answered ${result.answer.status}` : result.error;
}

t.test('client: returns status, content type and exact bytes, error statuses too', async (t) => {
  const backend = await startBackend(t, (request, response) => {
    const status = Number(request.url?.slice(1));
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
    response.end('{"big":12345678901234567890, "é":1.10}');
  });
  const client = startClient(t);
  for (const status of [200, 201, 400, 404, 500, 503]) {
    const result = await client.call(get(`${backend.url}/${status}`));
    t.match(result, { ok: true, answer: { status, contentType: 'application/json; charset=utf-8' } });
    t.equal(result.ok && result.answer.body.toString(), '{"big":12345678901234567890, "é":1.10}');
  }
  t.match(client.counters(), { calls: 6, answered: 6, pending: 0, retried: 0, breakersOpen: [] });
});

t.test(
  'client: sends method, path, query, body and end-to-end headers, and no hop-by-hop ones',
  async (t) => {
    const { promise, resolve } = outside<{ request: IncomingMessage; body: string }>();
    const backend = await startBackend(t, (request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part) => parts.push(part));
      request.on('end', () => {
        resolve({ request, body: Buffer.concat(parts).toString() });
        response.end();
      });
    });
    const client = startClient(t);
    await client.call(
      get(`${backend.url}/a%20b?c=%26&d=1`, {
        method: 'POST',
        body: '{"a":1}',
        headers: {
          'content-type': 'application/json',
          'X-Crm': '7',
          Connection: 'x-crm, close',
          'Keep-Alive': 'timeout=1',
          'Transfer-Encoding': 'chunked',
          'Content-Length': '99',
          'Accept-Encoding': 'gzip',
          'Proxy-Authorization': 'x',
          TE: 'trailers',
          Upgrade: 'h2c',
          Expect: '100-continue',
          Host: 'elsewhere.example',
        },
      }),
    );
    const { request, body } = await promise;
    t.equal(request.url, '/a%20b?c=%26&d=1');
    t.equal(body, '{"a":1}');
    t.strictSame(request.headers, {
      host: new URL(backend.url).host,
      connection: 'keep-alive',
      'content-type': 'application/json',
      'x-crm': '7',
      'accept-encoding': 'identity',
      'content-length': '7',
    });
  },
);

t.test('client: keeps connections alive between calls', async (t) => {
  const ports = new Set<number | undefined>();
  const backend = await startBackend(t, (request, response) => {
    ports.add(request.socket.remotePort);
    response.end('ok');
  });
  const client = startClient(t);
  for (let call = 0; call < 20; call += 1) await client.call(get(backend.url));
  t.equal(client.counters().answered, 20);
  // Two, not one: a call made in the very turn of an answer finds its connection not yet free.
  t.ok(ports.size <= 2, `${ports.size} connections for 20 calls`);
});

t.test('client: a backend that is down is ModuleFailed; a GET was tried twice, a POST once', async (t) => {
  const url = await deadUrl(t);
  const client = startClient(t);
  t.match(await client.call(get(url)), { ok: false, error: 'ModuleFailed', reason: 'ECONNREFUSED' });
  t.equal(client.counters().retried, 1);
  t.equal(errorOf(await client.call(get(url, { method: 'POST', body: '{}' }))), 'ModuleFailed');
  t.equal(client.counters().retried, 1, 'no second attempt of the POST');
});

// covers R47
t.test(
  'client: a GET whose connection broke before the answer is repeated once and may succeed',
  async (t) => {
    let first = true;
    const backend = await startRawModule(t, (_request, socket) => {
      if (first) socket.destroy();
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      first = false;
    });
    const client = startClient(t);
    t.equal(errorOf(await client.call(get(backend.url))), 'answered 200');
    t.strictSame(backend.seen, ['GET /', 'GET /']);
  },
);

t.test(
  'client: a connection that always breaks is asked twice by GET, once by every other method',
  async (t) => {
    const backend = await startRawModule(t, (_request, socket) => socket.destroy());
    const client = startClient(t);
    t.equal(errorOf(await client.call(get(backend.url))), 'ModuleFailed');
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'HEAD'] as const) {
      t.equal(errorOf(await client.call(get(backend.url, { method, endpoint: method }))), 'ModuleFailed');
    }
    t.strictSame(backend.seen, ['GET /', 'GET /', 'POST /', 'PUT /', 'DELETE /', 'PATCH /', 'HEAD /']);
  },
);

// covers S156
t.test('client: an answer cut in half, or that is not HTTP, is ModuleFailed and not repeated', async (t) => {
  const answers = {
    'with a length': 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"result":',
    chunked: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n64\r\n{"result":',
    'not HTTP': '220 mail.example ESMTP\r\n',
  };
  for (const [name, text] of Object.entries(answers)) {
    const backend = await startRawModule(t, (_request, socket) => socket.end(text));
    t.equal(errorOf(await startClient(t).call(get(backend.url))), 'ModuleFailed', name);
    t.strictSame(backend.seen, ['GET /'], name);
  }
});

t.test('client: an interim answer is skipped', async (t) => {
  const backend = await startRawModule(t, (_request, socket) =>
    socket.write(
      'HTTP/1.1 103 Early Hints\r\ncontent-encoding: gzip\r\ncontent-type: text/html\r\n\r\n' +
        'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok',
    ),
  );
  const result = await startClient(t).call(get(backend.url));
  t.match(result, { ok: true, answer: { status: 200, contentType: 'text/plain' } });
});

t.test('client: a silent backend is ModuleTimedOut at the deadline, without a retry', async (t) => {
  const backend = await startRawModule(t, () => {});
  const result = await startClient(t).call(get(backend.url, { timeoutMs: 60 }));
  t.match(result, { ok: false, error: 'ModuleTimedOut' });
  t.ok(result.elapsedMs >= 55, `${result.elapsedMs} ms`);
  t.strictSame(backend.seen, ['GET /']);
});

// covers R47 S27
t.test('client: a dripping answer does not extend the deadline', async (t) => {
  // Without an end: the call ends at its deadline or never.
  const backend = await startBackend(t, (_request, response) => {
    const drip = setInterval(() => response.write('.'), 5);
    response.on('close', () => clearInterval(drip));
  });
  const result = await startClient(t).call(get(backend.url, { timeoutMs: 80 }));
  t.match(result, { ok: false, error: 'ModuleTimedOut' });
});

// covers S27
t.test('client: an endless answer is cut at the cap, and its connection is closed', async (t) => {
  const { promise: closed, resolve } = outside<void>();
  const block = Buffer.alloc(256 * 1024, 0x61);
  const backend = await startBackend(t, (_request, response) => {
    const pour = (): void => {
      while (response.write(block));
    };
    response.on('drain', pour);
    response.on('close', resolve);
    pour();
  });
  t.equal(errorOf(await startClient(t).call(get(backend.url))), 'ModuleAnswerTooLarge');
  await closed;
});

t.test('client: an answer of exactly the cap passes, one byte more is refused by its length', async (t) => {
  const backend = await startBackend(t, (request, response) => {
    response.end(Buffer.alloc(ANSWER_MAX_BYTES + (request.url === '/over' ? 1 : 0)));
  });
  const client = startClient(t);
  const exact = await client.call(get(`${backend.url}/exact`));
  t.equal(exact.ok && exact.answer.body.length, ANSWER_MAX_BYTES);
  t.equal(errorOf(await client.call(get(`${backend.url}/over`))), 'ModuleAnswerTooLarge');
});

// covers R47
t.test('client: a redirect is not followed and is ModuleFailed', async (t) => {
  const target = await startBackend(t, (_request, response) => response.end('secret'));
  const backend = await startBackend(t, (request, response) => {
    response.writeHead(Number(request.url?.slice(1)), { location: target.url }).end();
  });
  const client = startClient(t);
  for (const status of [301, 302, 303, 307, 308]) {
    t.equal(errorOf(await client.call(get(`${backend.url}/${status}`))), 'ModuleFailed');
  }
  t.strictSame(target.seen, []);
});

// covers S27
t.test('client: an unrequested content coding is ModuleFailed, never decoded', async (t) => {
  const backend = await startBackend(t, (_request, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(1024 * 1024)));
  });
  t.equal(errorOf(await startClient(t).call(get(backend.url))), 'ModuleFailed');
});

t.test('client: a content type that could break a header is dropped', async (t) => {
  const backend = await startRawModule(t, (_request, socket) =>
    socket.end(Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: a\xe9b\r\ncontent-length: 0\r\n\r\n', 'latin1')),
  );
  t.match(await startClient(t).call(get(backend.url)), { ok: true, answer: { contentType: '' } });
});

t.test(
  'client: the signal ends the call at once, closes the connection and spares the breaker',
  async (t) => {
    const { promise: arrived, resolve: arrive } = outside<void>();
    const { promise: closed, resolve: close } = outside<void>();
    const backend = await startRawModule(t, (_request, socket) => {
      socket.on('close', () => close());
      arrive();
    });
    const client = startClient(t);
    const controller = new AbortController();
    const call = client.call(get(backend.url, { signal: controller.signal }));
    await arrived;
    controller.abort();
    t.equal(errorOf(await call), 'Aborted');
    await closed;
    t.equal(errorOf(await client.call(get(backend.url, { signal: controller.signal }))), 'Aborted');
    t.equal(backend.seen.length, 1, 'an aborted signal starts no call');
    t.strictSame(client.counters().breakersOpen, []);
  },
);

t.test(
  'client: calls over the bound of an origin are refused at once and counted, others are served',
  async (t) => {
    const waiting: ServerResponse[] = [];
    const { promise: full, resolve } = outside<void>();
    const backend = await startBackend(t, (_request, response) => {
      waiting.push(response);
      if (waiting.length === 2) resolve();
      if (waiting.length > 2) response.end();
    });
    const other = await startBackend(t, (_request, response) => response.end());
    const client = startClient(t, { connectionsPerOrigin: 2, bounds: freshBounds({ moduleCalls: 3 }) });
    const calls = [1, 2, 3].map(() => client.call(get(backend.url)));
    await full;
    t.equal(errorOf(await client.call(get(backend.url))), 'Overloaded');
    t.equal(errorOf(await client.call(get(other.url))), 'answered 200');
    t.match(client.counters(), { pending: 3, failed: { Overloaded: 1 } });
    for (const response of waiting) response.end();
    t.strictSame((await Promise.all(calls)).map(errorOf), ['answered 200', 'answered 200', 'answered 200']);
    t.equal(client.counters().pending, 0);
  },
);

t.test('client: a call that waits for a connection times out and frees its slot', async (t) => {
  const backend = await startRawModule(t, () => {});
  const client = startClient(t, { connectionsPerOrigin: 1 });
  const timeouts = holdTimeouts(t, 50);
  const calls = [1, 2, 3].map(() => client.call(get(backend.url, { timeoutMs: 50 })));
  while (backend.seen.length === 0) await new Promise((resolve) => setImmediate(resolve));
  timeouts.pass(50);
  const results = await Promise.all(calls);
  t.strictSame(results.map(errorOf), ['ModuleTimedOut', 'ModuleTimedOut', 'ModuleTimedOut']);
  t.equal(backend.seen.length, 1, 'the waiting ones were never sent');
});

// covers R47
t.test(
  'client: five failures open the breaker of that endpoint alone; one probe after 10 s closes it',
  async (t) => {
    let healthy = false;
    let nowMs = 1_000;
    const backend = await startRawModule(t, (_request, socket) => {
      if (healthy) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      else socket.destroy();
    });
    const client = startClient(t, { clock: () => nowMs });
    const post = (endpoint: string): Promise<ModuleResult> =>
      client.call(get(backend.url, { method: 'POST', endpoint }));
    for (let failure = 0; failure < BREAKER_FAILURES_MAX; failure += 1) {
      t.equal(errorOf(await post('a')), 'ModuleFailed');
    }
    t.equal(errorOf(await post('a')), 'ModuleUnavailable');
    t.strictSame(client.counters().breakersOpen, ['a']);
    t.equal(backend.seen.length, 5, 'the sixth never left');
    t.equal(errorOf(await post('b')), 'ModuleFailed', 'another endpoint is still called');
    nowMs += BREAKER_OPEN_MS - 1;
    t.equal(errorOf(await post('a')), 'ModuleUnavailable');
    nowMs += 1;
    t.equal(errorOf(await post('a')), 'ModuleFailed', 'the probe');
    t.equal(errorOf(await post('a')), 'ModuleUnavailable', 'open again for 10 s');
    nowMs += BREAKER_OPEN_MS;
    healthy = true;
    t.strictSame(
      (await Promise.all([post('a'), post('a')])).map(errorOf),
      ['answered 200', 'ModuleUnavailable'],
      'one probe at a time',
    );
    t.equal(errorOf(await post('a')), 'answered 200');
    t.strictSame(client.counters().breakersOpen, []);
  },
);

t.test('client: error answers never open the breaker', async (t) => {
  const backend = await startBackend(t, (_request, response) => response.writeHead(500).end('{"error":{}}'));
  const client = startClient(t);
  for (let call = 0; call < 8; call += 1)
    t.equal(errorOf(await client.call(get(backend.url))), 'answered 500');
});

t.test(
  'client: a request that cannot be written is refused, does not throw and spares the breaker',
  async (t) => {
    const client = startClient(t);
    for (let call = 0; call < 6; call += 1) {
      const result = await client.call(get('http://127.0.0.1:1/', { headers: { 'x-a': 'b\r\nc: d' } }));
      t.match(result, { ok: false, error: 'ModuleFailed', reason: 'the request cannot be written' });
    }
    t.match(client.counters(), { retried: 0, pending: 0, breakersOpen: [] });
  },
);

t.test('client: closing ends calls under way and refuses new ones', async (t) => {
  const { promise: arrived, resolve } = outside<void>();
  const backend = await startRawModule(t, () => resolve());
  const client = startClient(t);
  const call = client.call(get(backend.url));
  await arrived;
  await client.close();
  t.equal(errorOf(await call), 'ModuleFailed');
  t.equal(errorOf(await client.call(get(backend.url))), 'ModuleUnavailable');
});

t.test('breakers: late results of calls from before the opening change nothing', async (t) => {
  let nowMs = 0;
  const breakers = createBreakers(() => nowMs);
  const early = Array.from({ length: 8 }, () => breakers.enter('e', '192.0.2.1', true));
  for (const permit of early.slice(0, 5)) if (permit !== undefined) breakers.settle(permit, 'failed');
  t.equal(breakers.enter('e', '192.0.2.1', true), undefined);
  nowMs = BREAKER_OPEN_MS - 1;
  const [late, lateToo, gone] = early.slice(5);
  t.ok(late !== undefined && lateToo !== undefined && gone !== undefined);
  if (late === undefined || lateToo === undefined || gone === undefined) return;
  breakers.settle(late, 'failed');
  breakers.settle(lateToo, 'worked');
  breakers.settle(gone, 'released');
  t.equal(breakers.enter('e', '192.0.2.1', true), undefined, 'still open');
  nowMs = BREAKER_OPEN_MS;
  const probe = breakers.enter('e', '192.0.2.1', true);
  t.equal(probe?.probe, true, 'and not for longer than 10 s');
  if (probe !== undefined) breakers.settle(probe, 'released');
  t.equal(
    breakers.enter('e', '192.0.2.1', true)?.probe,
    true,
    'a probe whose caller left makes room for the next',
  );
});

t.test('breakers: a success between failures starts the count again', async (t) => {
  const breakers = createBreakers(() => 0);
  for (const verdict of ['failed', 'failed', 'failed', 'failed', 'worked', 'failed', 'failed'] as const) {
    const permit = breakers.enter('e', '192.0.2.1', true);
    if (permit !== undefined) breakers.settle(permit, verdict);
  }
  t.ok(breakers.enter('e', '192.0.2.1', true));
  t.strictSame(breakers.open(), []);
});
