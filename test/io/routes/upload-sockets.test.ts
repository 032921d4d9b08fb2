/** v2 uploads that go wrong at the socket, the disk or the module: what is kept, what is removed, what the client receives. */
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import net from 'node:net';
import t from 'tap';
import { draft } from '../../../src/actors/files/v2/draft.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { HOUR_MS } from '../../../src/domain/time.ts';
import type { FileStorage } from '../../../src/io/files/storage/port.ts';
import {
  type DraftFixture,
  type DraftFixtureOptions,
  OWNER_ID,
  startDrafts,
} from '../../support/files/drafts.ts';
import { connectRaw, type RawConnection, requestText } from '../../support/http.ts';
import { until } from '../../support/until.ts';

const COOKIE = { Cookie: 'sid=person' };
const MEGABYTE = 1024 * 1024;

function path(fileId: string): string {
  return `/auth/v2/file/stream_upload/${fileId}`;
}

/** The head of an upload, its body to follow. */
function head(fileId: string, headers: Readonly<Record<string, string>>): string {
  return requestText('POST', path(fileId), { ...COOKIE, ...headers });
}

/** A stream that has sent so much and holds still; resolves when the gateway has taken it. */
async function halfWay(
  fixture: DraftFixture,
  fileId: string,
  headers: Readonly<Record<string, string>>,
  sent = 'x'.repeat(1000),
): Promise<net.Socket> {
  const before = fixture.receiver.counters().receivedBytes;
  const socket = net.connect(fixture.http.port, '127.0.0.1');
  socket.on('error', () => socket.destroy());
  await once(socket, 'connect');
  socket.write(head(fileId, headers) + sent);
  await until(() => fixture.receiver.counters().receivedBytes >= before + 1000);
  return socket;
}

/** The same over a connection whose answer is read. */
async function begun(
  fixture: DraftFixture,
  fileId: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawConnection> {
  const before = fixture.receiver.counters().receivedBytes;
  const connection = connectRaw(fixture.http.port);
  connection.send(`${head(fileId, { 'Content-Length': '5000', ...headers })}${'x'.repeat(1000)}`);
  await until(() => fixture.receiver.counters().receivedBytes >= before + 1000);
  return connection;
}

/** Status and code of an error. */
async function refusalOf(answer: Response): Promise<[number, number]> {
  return [answer.status, ((await answer.json()) as { error: { code: number } }).error.code];
}

async function isRunning({ uploads }: DraftFixture): Promise<boolean> {
  return uploads.counters().streams > 0;
}

function isGone({ chat, names }: DraftFixture, fileId: string): boolean {
  return chat.byFile(fileId)?.state === 'cancelled' && !names().some((name) => name.startsWith(fileId));
}

// covers P10
t.test(
  'v2 stream: with Expect, an upload to an unknown draft is refused before its body is asked for',
  async (t) => {
    const fixture = await startDrafts(t);
    const fileId = await fixture.create();
    const headers = { Expect: '100-Continue', 'Content-Length': '5' };
    for (const [id, cookie, status] of [
      ['4711', COOKIE, 404],
      [fileId, {}, 401],
    ] as const) {
      const refused = connectRaw(fixture.http.port);
      t.equal((await refused.ask(requestText('POST', path(id), { ...cookie, ...headers }))).status, status);
      refused.close();
    }
    const accepted = connectRaw(fixture.http.port);
    t.equal((await accepted.ask(head(fileId, headers))).status, 100);
    t.equal((await accepted.ask('hello')).status, 200);
    accepted.close();
    t.equal(fixture.chat.byFile(fileId)?.state, 'complete');
  },
);

const LEAVES: Readonly<Record<string, (socket: net.Socket) => void>> = {
  FIN: (socket) => socket.end(),
  RST: (socket) => socket.resetAndDestroy(),
};

for (const [how, leave] of Object.entries(LEAVES)) {
  // covers R70 S6 S9
  t.test(`v2 stream: a client's ${how} in mid-body removes message and bytes`, async (t) => {
    const fixture = await startDrafts(t);
    for (const headers of [{ 'Content-Length': '1001' }, { 'Transfer-Encoding': 'chunked' }]) {
      const fileId = await fixture.create();
      const chunked = 'Transfer-Encoding' in headers;
      const sent = chunked ? `3e8\r\n${'x'.repeat(1000)}\r\n` : 'x'.repeat(1000);
      const socket = await halfWay(fixture, fileId, headers, sent);
      leave(socket);
      await until(() => isGone(fixture, fileId));
      socket.destroy();
      t.pass(chunked ? 'chunked' : 'declared');
    }
    t.match(fixture.storage.counters(), { leases: 0, reservedBytes: 0 });
    t.same(fixture.http.bugs, []);
  });

  // covers R70 S9
  t.test(
    `v2 stream: a client's ${how} in mid-piece keeps what arrived, and the upload continues there`,
    async (t) => {
      const fixture = await startDrafts(t);
      const ways: Record<string, string>[] = [
        { Range: 'bytes=0-1999' },
        { 'Upload-Complete': '?1', 'Upload-Draft-Interop-Version': '8' },
      ];
      for (const way of ways) {
        const fileId = await fixture.create({ fileSize: '2000' });
        const socket = await halfWay(fixture, fileId, { ...way, 'Content-Length': '2000' });
        leave(socket);
        await until(async () => !(await isRunning(fixture)));
        const answer = await fixture.stream(fileId, { method: 'HEAD' });
        t.equal(answer.headers.get('Upload-Offset'), '1000');
        const rest: Record<string, string> =
          'Range' in way ? { Range: 'bytes=1000-1999' } : { ...way, 'Upload-Offset': '1000' };
        const last = await fixture.stream(fileId, { body: 'y'.repeat(1000), headers: rest });
        t.equal(last.status, 200);
        t.equal(String(fixture.file(fileId)), 'x'.repeat(1000) + 'y'.repeat(1000));
        socket.destroy();
      }
    },
  );
}

t.test('v2 stream: a body longer than its Content-Length ends where it said', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create();
  const connection = connectRaw(fixture.http.port);
  connection.send(`${head(fileId, { 'Content-Length': '10' })}0123456789 and more\r\n\r\n`);
  await connection.ended();
  await until(async () => !(await isRunning(fixture)));
  await fixture.actors.settle();
  const bytes = fixture.file(fileId);
  const state = fixture.chat.byFile(fileId)?.state;
  t.ok(bytes === undefined || String(bytes) === '0123456789', 'nothing of what follows is in the file');
  t.equal(state === 'complete', bytes !== undefined, 'message and file agree');
  connection.close();
});

// covers R70 S9
t.test('v2 stream: a second request takes over from the first, which gets 409', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create();
  const first = await begun(fixture, fileId);
  const second = await fixture.stream(fileId, { body: 'the second' });
  t.equal(second.status, 200);
  const refused = await first.answer();
  t.equal(refused.status, 409);
  t.equal(JSON.parse(refused.body).error.code, 1315);
  t.equal(String(fixture.file(fileId)), 'the second');
  first.close();
  t.match(fixture.storage.counters(), { leases: 0, reservedBytes: 0 });
});

t.test('v2 stream: of many requests for one draft exactly one completes it', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create();
  const bodies = Array.from({ length: 12 }, (_, at) => `${at}`.padStart(2, '0').repeat(100_000));
  const answers = await Promise.all(bodies.map((body) => fixture.stream(fileId, { body })));
  const statuses = answers.map(({ status }) => status);
  t.equal(statuses.filter((status) => status === 200).length, 1, statuses.join(' '));
  t.ok(statuses.every((status) => [200, 404, 409].includes(status)));
  t.equal(String(fixture.file(fileId)), bodies[statuses.indexOf(200)]);
  t.equal(fixture.chat.byFile(fileId)?.state, 'complete');
  t.same(fixture.http.bugs, []);
});

t.test('v2 stream: HEAD ends a piece that runs, so that its figure holds, and no whole upload', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create();
  const first = await begun(fixture, fileId, { 'Upload-Complete': '?1' });
  const told = await fixture.stream(fileId, { method: 'HEAD' });
  t.equal(told.headers.get('Upload-Offset'), '1000');
  t.equal((await first.answer()).status, 409);
  const headers = { 'Upload-Complete': '?1', 'Upload-Offset': '1000' };
  t.equal((await fixture.stream(fileId, { body: 'y', headers })).status, 200);
  t.equal(fixture.file(fileId)?.length, 1001);
  first.close();
  const whole = await fixture.create();
  const socket = await halfWay(fixture, whole, { 'Content-Length': '1001' });
  t.equal(
    (await fixture.stream(whole, { method: 'HEAD' })).headers.get('Upload-Offset'),
    '0',
    'nothing of it is kept',
  );
  socket.write('x');
  await until(() => fixture.chat.byFile(whole)?.state === 'complete');
  socket.destroy();
});

const kept = async ({ actors }: DraftFixture, fileId: string): Promise<number> => {
  const slot = actors.system.lookup('draft', fileId) ?? '';
  const asked = { type: 'draft' as const, ownerId: OWNER_ID, fileId };
  const view = await actors.system.query(draft, slot, asked);
  return 'phase' in view ? view.receivedBytes : view.sizeBytes;
};

t.test('v2 stream: the progress of a resumable body is saved every 4 MiB while it runs', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create({ fileSize: String(20 * MEGABYTE) });
  const headers = { 'Content-Length': String(20 * MEGABYTE), Range: 'bytes=0-' };
  const socket = await halfWay(fixture, fileId, headers, 'x'.repeat(5 * MEGABYTE));
  await until(async () => (await kept(fixture, fileId)) >= 4 * MEGABYTE);
  t.ok(await isRunning(fixture), 'the stream continues');
  t.ok((await kept(fixture, fileId)) <= 5 * MEGABYTE);
  socket.destroy();
  await until(async () => !(await isRunning(fixture)));
  const whole = Buffer.alloc(20 * MEGABYTE, 'x');
  const at = await kept(fixture, fileId);
  const rest = { body: whole.subarray(at), headers: { Range: `bytes=${at}-` } };
  t.equal((await fixture.stream(fileId, rest)).status, 200);
  t.ok(fixture.file(fileId)?.equals(whole));
});

t.test('v2 stream: a resumable body whose progress cannot be saved ends with the error', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create({ fileSize: String(20 * MEGABYTE) });
  const raw = connectRaw(fixture.http.port);
  raw.send(head(fileId, { 'Content-Length': String(20 * MEGABYTE), Range: 'bytes=0-' }));
  raw.send('x'.repeat(5 * MEGABYTE));
  await until(async () => (await kept(fixture, fileId)) >= 4 * MEGABYTE);
  const before = await kept(fixture, fileId);
  fixture.actors.journal.setFull(true);
  const answer = await raw.ask('x'.repeat(15 * MEGABYTE));
  t.equal(answer.status, 503);
  t.match(answer.body, /"code":1013/);
  fixture.actors.journal.setFull(false);
  const told = await fixture.stream(fileId, { method: 'HEAD' });
  t.equal(Number(told.headers.get('Upload-Offset')), before, 'what was saved stays');
  raw.close();
  t.same(fixture.http.bugs, []);
});

t.test('v2 stream: the progress of a slow resumable body is saved after 2 s, of others never', async (t) => {
  const fixture = await startDrafts(t);
  const piece = await fixture.create({ fileSize: '5000' });
  const whole = await fixture.create({ fileSize: '5000' });
  const running = [
    await halfWay(fixture, piece, { 'Content-Length': '5000', Range: 'bytes=0-' }),
    await halfWay(fixture, whole, { 'Content-Length': '5000' }),
  ];
  t.equal(await kept(fixture, piece), 0);
  await fixture.actors.advance(2_000);
  await until(async () => (await kept(fixture, piece)) === 1000);
  await fixture.actors.advance(2_000);
  t.equal(await kept(fixture, whole), 0, 'its end is the end of the draft');
  for (const socket of running) socket.destroy();
  await until(async () => !(await isRunning(fixture)));
});

t.test('v2 stream: a draft that expires or is given up under a stream leaves nothing', async (t) => {
  const fixture = await startDrafts(t);
  for (const how of [{}, { Range: 'bytes=0-' }] as Record<string, string>[]) {
    const expiring = await fixture.create();
    const stream = await begun(fixture, expiring, how);
    await fixture.actors.advance(HOUR_MS);
    t.match(await stream.answer(), { status: 404 });
    await until(() => isGone(fixture, expiring));
    stream.close();
  }
  const given = await fixture.create();
  const first = await begun(fixture, given);
  t.equal((await fixture.stream(given, { method: 'DELETE' })).status, 204);
  t.equal((await first.answer()).status, 409);
  await until(() => isGone(fixture, given));
  first.close();
  t.match(fixture.storage.counters(), { leases: 0, reservedBytes: 0 });
});

/** Writes through a lease meet a full disk. */
function fullDisk(inner: FileStorage, state: { full: boolean }): FileStorage {
  return new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name !== 'lease') return value.bind(target);
      return async (key: { owner: string; fileId: string }) => {
        const lease = await inner.lease(key);
        if (!state.full) return lease;
        const device = await open('/dev/full', 'r+');
        return {
          ...lease,
          fd: device.fd,
          failure: lease.failure.bind(lease),
          async release() {
            await device.close();
            await lease.release();
          },
        };
      };
    },
  });
}

t.test(
  'v2 stream: a disk that is full in mid-body is 503; a whole upload is removed, a piece can be tried again',
  async (t) => {
    const state = { full: true };
    const options: DraftFixtureOptions = { storage: (inner) => fullDisk(inner, state) };
    const fixture = await startDrafts(t, options);
    const body = Buffer.alloc(2 * MEGABYTE, 1);
    const whole = await fixture.create();
    const answer = await fixture.stream(whole, { body });
    t.ok(answer.headers.has('Retry-After'));
    t.same(await refusalOf(answer), [503, 1013]);
    await until(() => isGone(fixture, whole));
    const piece = await fixture.create({ fileSize: String(body.length) });
    t.equal((await fixture.stream(piece, { body, headers: { Range: 'bytes=0-' } })).status, 503);
    state.full = false;
    t.equal((await fixture.stream(piece, { body, headers: { Range: 'bytes=0-' } })).status, 200);
    t.ok(fixture.file(piece)?.equals(body));
  },
);

t.test('v2 stream: no room is 503 before a byte is taken, and the draft stays for later', async (t) => {
  const fixture = await startDrafts(t, { freeBytes: 70 * MEGABYTE });
  const fileId = await fixture.create();
  const answer = await fixture.stream(fileId, { body: Buffer.alloc(10 * MEGABYTE) });
  t.equal(answer.status, 503);
  t.equal(fixture.chat.byFile(fileId)?.state, 'pending');
  t.equal((await fixture.stream(fileId, { body: Buffer.alloc(MEGABYTE) })).status, 200, 'a smaller one fits');
});

t.test('v2 stream: completion with the module down is 1310, on a failing storage 1312', async (t) => {
  let broken = false;
  const fixture = await startDrafts(t, {
    storage: (inner) =>
      new Proxy(inner, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== 'function') return value;
          if (name !== 'publish' || !broken) return value.bind(target);
          return () => Promise.reject(new GatewayError('FileStorageFailed'));
        },
      }),
  });
  const down = await fixture.create();
  fixture.chat.mode = 'down';
  t.same(await refusalOf(await fixture.stream(down, { body: 'bytes' })), [502, 1310]);
  await until(() => fixture.names().length === 0);
  fixture.chat.mode = 'ok';
  await until(async () => {
    await fixture.actors.advance(60_000);
    return fixture.chat.byFile(down)?.state === 'cancelled';
  });
  broken = true;
  const unpublished = await fixture.create();
  t.same(await refusalOf(await fixture.stream(unpublished, { body: 'bytes' })), [503, 1312]);
  broken = false;
  await until(() => isGone(fixture, unpublished));
});
