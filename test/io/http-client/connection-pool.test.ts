/** Requests that need a new connection, and those that are dropped while theirs is being opened. */
import type { LookupAddress } from 'node:dns';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { ConnectionPool } from '../../../src/io/http-client/connection-pool.ts';
import { type OutboundResult, sendRequest } from '../../../src/io/http-client/outbound-request.ts';
import { startRawModule } from '../../support/raw-module.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const IGNORED = { head: () => true, data: () => true };

function poolOf(t: Test, ...options: ConstructorParameters<typeof ConnectionPool>): ConnectionPool {
  return closeAfter(t, new ConnectionPool(...options));
}

function ask(
  pool: ConnectionPool,
  { needsNew = false, signal = AbortSignal.timeout(5_000) } = {},
): Promise<OutboundResult> {
  const url = { origin: '', pathname: '/', search: '' };
  const line = { method: 'GET', url, headers: {} } as const;
  return sendRequest({ pool, line, body: undefined, needsNew, reader: IGNORED, signal });
}

t.test('pool: a request that needs a new connection takes the place of an idle one', async (t) => {
  const target = await startRawModule(t, (_text, socket) => socket.write(OK));
  const pool = poolOf(t, target.url, 1, () => 0);
  for (const needsNew of [false, true, true, false])
    t.match(await ask(pool, { needsNew }), { kind: 'answered' });
  t.equal(target.sockets.length, 3);
  t.equal(pool.pending, 0);
});

t.test(
  'pool: with all connections busy, it waits for the place of one, not for the connection',
  async (t) => {
    const waiting: (() => void)[] = [];
    const target = await startRawModule(t, (_text, socket, connection) => {
      if (connection === 0) waiting.push(() => socket.write(OK));
      else socket.write(OK);
    });
    const pool = poolOf(t, target.url, 1, () => 0);
    const first = ask(pool);
    while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const second = ask(pool, { needsNew: true });
    const third = ask(pool);
    t.equal(pool.pending, 3);
    waiting[0]?.();
    // The third request uses the kept connection before the second one replaces it.
    while (waiting.length === 1) await new Promise((resolve) => setImmediate(resolve));
    waiting[1]?.();
    t.match(await Promise.all([first, second, third]), Array(3).fill({ kind: 'answered' }));
    t.equal(target.sockets.length, 2);
    t.equal(pool.pending, 0);
  },
);

t.test('pool: the failed connection of a dropped request fails no other request', async (t) => {
  const lookups: ((error: Error | null, addresses: LookupAddress[]) => void)[] = [];
  const target = await startRawModule(t, (_text, socket) => socket.write(OK));
  const { port } = new URL(target.url);
  const pool = poolOf(
    t,
    `http://receiver.example:${port}`,
    8,
    () => 0,
    (_name, _options, done) => lookups.push(done as (typeof lookups)[number]),
  );
  const abort = new AbortController();
  const dropped = ask(pool, { signal: abort.signal });
  const other = ask(pool);
  abort.abort();
  t.match(await dropped, { kind: 'aborted' });
  lookups[0]?.(new Error('no such name'), []);
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(pool.pending, 1, 'the other one still has a connection of its own');
  lookups[1]?.(null, [{ address: '127.0.0.1', family: 4 }]);
  t.match(await other, { kind: 'answered' });
});

t.test('pool: a failed connection fails the request that waits for it', async (t) => {
  const pool = poolOf(
    t,
    'http://receiver.example',
    8,
    () => 0,
    (_name, _options, done) => done(Object.assign(new Error('no'), { code: 'unresolved' }), ''),
  );
  for (const needsNew of [false, true])
    t.match(await ask(pool, { needsNew }), { kind: 'broken', reason: 'unresolved', isSent: false });
});

t.test('pool: closed, it fails those that wait and those that come', async (t) => {
  const target = await startRawModule(t, () => undefined);
  const pool = new ConnectionPool(target.url, 1, () => 0);
  const waiting = [ask(pool), ask(pool), ask(pool, { needsNew: true })];
  pool.close();
  const results = await Promise.all([...waiting, ask(pool)]);
  t.match(results, Array(4).fill({ kind: 'broken', reason: 'client closed', isSent: false }));
});
