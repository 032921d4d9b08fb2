/** Faults of storage servers, and the choice among several. The contract: storage.test.ts. */
import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { listenFor } from '../../../../kit/http.ts';
import { MemoryStorageServer, type ServerFault } from '../../../../kit/storage/memory-server.ts';
import { readStored, storeFile, writePart } from '../../../support/files/file-storage.ts';
import { remoteStorage } from '../../../support/files/storages.ts';
import { startRawModule } from '../../../support/raw-module.ts';
import { rejectsWith } from '../../../support/rejections.ts';

const KEY = { owner: '7', fileId: '1001' };
const text = (value: string) => Buffer.from(value);

async function setUp(t: Test) {
  const server = await MemoryStorageServer.start(t);
  return { server, ...remoteStorage(t, { servers: { 0: { Host: server.url } }, stalledMs: 200 }) };
}

// covers R74
t.test(
  'remote storage: the first threshold below the file id decides, highest first, beyond 2^53 too',
  async (t) => {
    const thresholds = ['0', '900', '9007199254740993'];
    const servers = new Map<string, MemoryStorageServer>();
    for (const threshold of thresholds) servers.set(threshold, await MemoryStorageServer.start(t));
    const hosts = [...servers].map(([threshold, { url }]) => [threshold, { Host: url }]);
    const { storage } = remoteStorage(t, { servers: Object.fromEntries(hosts) });
    const holders: Record<string, string> = Object.fromEntries([
      ['1', '0'],
      ['900', '0'],
      ['901', '900'],
      ['9007199254740993', '900'],
      ['9007199254740994', '9007199254740993'],
      ['9223372036854775807', '9007199254740993'],
    ]);
    for (const fileId of Object.keys(holders)) await storeFile(storage, { owner: '7', fileId }, text(fileId));
    for (const [fileId, threshold] of Object.entries(holders)) {
      const found = [...servers].filter(([, { files }]) => files.has(`/7/${fileId}`)).map(([name]) => name);
      t.same(found, [threshold], fileId);
    }
  },
);

t.test('remote storage: an id below every threshold has no server', async (t) => {
  const { storage, faults } = remoteStorage(t, { servers: { 1000: { Host: 'http://127.0.0.1:1' } } });
  await rejectsWith(t, storage.open({ owner: '7', fileId: '1000' }), 'FileStorageFailed');
  t.match(faults, [/opening 7\/1000: no threshold of FileServers is lower/]);
});

// covers R75 S159
t.test('remote storage: every failure is 1312 for the caller and names the server in the log', async (t) => {
  const { server, storage, faults } = await setUp(t);
  await storeFile(storage, KEY, text('0123456789'));
  const file = await storage.open(KEY);
  const readings: Record<string, RegExp> = {
    error: /GET at .*: answered 500/,
    silent: /GET at .*: nothing moved for 200 ms/,
    cut: /GET at /,
    plain: /GET at .*: answered 200 with Content-Range/,
  };
  for (const [fault, reason] of Object.entries(readings)) {
    server.fault = fault as ServerFault;
    await rejectsWith(t, file?.read(Buffer.alloc(4), 2) ?? Promise.resolve(), 'FileStorageFailed');
    t.match(faults.at(-1), reason, fault);
    t.ok(faults.at(-1)?.includes(server.url), 'the server is named');
  }
  server.fault = 'error';
  await rejectsWith(t, storage.open(KEY), 'FileStorageFailed');
  await rejectsWith(t, storage.remove(KEY), 'FileStorageFailed');
  server.fault = 'none';
  const target = Buffer.alloc(4);
  t.equal(await file?.read(target, 2), 4, 'and then it works again');
  t.same(target, text('2345'));
  file?.close();
});

t.test('remote storage: a publish that fails keeps the part, so that it may be repeated', async (t) => {
  const { server, storage, staging, faults } = await setUp(t);
  await storage.create(KEY);
  await writePart(storage, KEY, Buffer.alloc(2_000_000, 'x'));
  const failures: [ServerFault, string, RegExp][] = [
    ['error', 'FileStorageFailed', /PUT at .*: answered 500/],
    ['silent', 'FileStorageFailed', /PUT at .*: nothing moved/],
    ['full', 'StorageFull', /PUT at .*: answered 507/],
    ['short', 'FileStorageFailed', /the server has 1999999 bytes of it/],
    ['refuse', 'FileStorageFailed', /PUT at /],
  ];
  for (const [fault, row, reason] of failures) {
    server.fault = fault;
    await rejectsWith(t, storage.publish(KEY, 2_000_000), row);
    t.match(faults.at(-1), reason, fault);
    t.ok(existsSync(join(staging, '7/1001.part')), fault);
  }
  t.equal(storage.counters().full, 1);
  server.fault = 'none';
  await storage.publish(KEY, 2_000_000);
  t.same(readdirSync(join(staging, '7')), [], 'the part is gone');
  t.ok((await readStored(storage, KEY))?.equals(Buffer.alloc(2_000_000, 'x')));
});

t.test('remote storage: a kept connection that the server has closed costs one repetition', async (t) => {
  const { server, storage, faults } = await setUp(t);
  await storeFile(storage, KEY, text('abc'));
  for (let round = 0; round < 5; round++) {
    server.dropConnections();
    t.same(await readStored(storage, KEY), text('abc'));
    server.dropConnections();
    await storeFile(storage, { owner: '7', fileId: `${2_000 + round}` }, text('abc'));
  }
  t.same(faults, []);
});

// covers P4
t.test('remote storage: interim answers of a server are skipped', async (t) => {
  const server = await startRawModule(t, (text, socket) => {
    if (!text.startsWith('HEAD')) return;
    socket.write('HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n');
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n');
  });
  const { storage, faults } = remoteStorage(t, { servers: { 0: { Host: server.url } } });
  t.equal((await storage.open(KEY))?.sizeBytes, 9);
  t.same(faults, []);
});

t.test(
  'remote storage: a server that does not exist, and one that accepts connections and is silent',
  async (t) => {
    const mute = createServer();
    const { port } = await listenFor(t, mute);
    for (const [host, reason] of [
      ['http://127.0.0.1:1', /HEAD at http:\/\/127.0.0.1:1: .*ECONNREFUSED/],
      [`http://127.0.0.1:${port}`, /nothing moved for 100 ms/],
    ] as const) {
      const { storage, faults } = remoteStorage(t, { servers: { 0: { Host: host } }, stalledMs: 100 });
      await rejectsWith(t, storage.open(KEY), 'FileStorageFailed');
      t.match(faults, [reason]);
    }
  },
);

t.test('remote storage: only the requested range is fetched; an empty read sends no request', async (t) => {
  const { server, storage } = await setUp(t);
  await storeFile(storage, KEY, text('0123456789'));
  const file = await storage.open(KEY);
  const before = server.requests.length;
  t.equal(await file?.read(Buffer.alloc(5), 10), 0);
  t.equal(await file?.read(Buffer.alloc(0), 3), 0);
  t.equal(server.requests.length, before);
  t.equal(await file?.read(Buffer.alloc(5), 8), 2);
  t.same(server.requests.slice(before), ['GET /7/1001']);
  t.equal(file?.readNow, undefined);
  file?.close();
  file?.close();
  t.equal(storage.counters().open, 0);
});
