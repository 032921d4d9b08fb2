/** The contract of every file storage, then the tests of each implementation. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import { MemoryStorageServer } from '../../../../kit/storage/memory-server.ts';
import type {
  BucketConfiguration,
  FileServerConfiguration,
} from '../../../../src/domain/config/file-servers.ts';
import { CHUNK_BYTES } from '../../../../src/domain/files/files.ts';
import type { FileSegment } from '../../../../src/domain/files/segments.ts';
import { HOUR_MS } from '../../../../src/domain/time.ts';
import { StorageFaults } from '../../../../src/io/files/storage/faults.ts';
import { FileCalls } from '../../../../src/io/files/storage/file-calls.ts';
import { FreeSpace } from '../../../../src/io/files/storage/free-space.ts';
import type { FileStorage } from '../../../../src/io/files/storage/port.ts';
import { crc32 } from '../../../../src/workers/crc32.ts';
import { readStored, storeFile, temporaryFolder, writePart } from '../../../support/files/file-storage.ts';
import { bucketAt, startS3 } from '../../../support/files/s3-oracle.ts';
import { localStorage, remoteStorage } from '../../../support/files/storages.ts';
import { startNginx } from '../../../support/programs/nginx.ts';
import { S3_SERVERS } from '../../../support/programs/s3-servers.ts';
import { lacking } from '../../../support/programs/tools.ts';
import { rejectsWith } from '../../../support/rejections.ts';

const KEY = { owner: '7', fileId: '1001' };
const text = (value: string) => Buffer.from(value);

interface Setting {
  readonly storage: FileStorage;
  /** A storage over the same bytes, as after a restart. */
  restart(): FileStorage;
}

const STORAGES: Record<string, (t: Test) => Promise<Setting>> = {
  async local(t) {
    const root = temporaryFolder(t);
    const make = () => localStorage(t, { root }).storage;
    return { storage: make(), restart: make };
  },
  async remote(t) {
    return remoteSetting(t, { Host: (await MemoryStorageServer.start(t)).url });
  },
  async 'remote nginx'(t) {
    return remoteSetting(t, { Host: `${await startNginx(t)}/below/` });
  },
  async S3(t) {
    return remoteSetting(t, { S3: bucketAt((await startS3(t)).url) });
  },
  ...Object.fromEntries(
    Object.entries(S3_SERVERS).map(([name, startServer]) => [
      `S3 ${name}`,
      async (t: Test) => foreignSetting(t, startServer),
    ]),
  ),
};
function remoteSetting(t: Test, server: FileServerConfiguration, more: { stalledMs?: number } = {}): Setting {
  const staging = temporaryFolder(t);
  const make = () => remoteStorage(t, { servers: { 0: server }, staging, ...more }).storage;
  return { storage: make(), restart: make };
}

async function foreignSetting(
  t: Test,
  startServer: (t: Test) => Promise<BucketConfiguration>,
): Promise<Setting> {
  const setting = remoteSetting(t, { S3: await startServer(t) });
  await setting.storage.probe?.();
  return setting;
}

/** Two segments of `0123456789`: the first has bytes behind its end, as a late stream leaves them. */
async function writeSegments(storage: FileStorage): Promise<readonly FileSegment[]> {
  for (const [segment, bytes, position] of [
    [1, '01234xxxx', 0],
    [2, '56789', 5],
  ] as const) {
    await storage.create({ ...KEY, segment });
    await writePart(storage, { ...KEY, segment }, text(bytes), position);
  }
  return [
    { number: 1, endBytes: 5, crc32: crc32(text('01234')), isOpen: true },
    { number: 2, endBytes: 10, crc32: crc32(text('0123456789')) },
  ];
}

/** Promises of every storage, by their names in the list of tests. */
const CONTRACT: Record<string, (t: Test, setting: Setting) => Promise<void>> = {
  // covers C2
  'segments are joined, and neither a late writer nor a repeat changes the file': async (t, setting) => {
    const { storage } = setting;
    const segments = await writeSegments(storage);
    const late = await storage.lease({ ...KEY, segment: 1 });
    t.equal(await storage.publishSegments(KEY, segments), true);
    writeSync(late.fd, text('late'), 0, 4, 0);
    await late.release();
    t.same(await readStored(storage, KEY), text('0123456789'));
    await storage.removeSegments(KEY, [1, 2]);
    await rejectsWith(t, storage.lease({ ...KEY, segment: 1 }), 'InvalidID');
    const next = setting.restart();
    t.equal(await next.publishSegments(KEY, segments), true, 'an earlier run has published it');
    t.same(await readStored(next, KEY), text('0123456789'));
  },
  'segments with other bytes than listed are not published': async (t, { storage }) => {
    const [first, last] = await writeSegments(storage);
    if (first === undefined || last === undefined) throw new Error('there are two');
    t.equal(await storage.publishSegments(KEY, [first, { ...last, crc32: 1 }]), false);
    t.equal(await storage.publishSegments(KEY, [first, { ...last, endBytes: 11 }]), false, 'too short');
    t.equal(await storage.open(KEY), undefined);
    await storage.removeSegments(KEY, [1, 2]);
    await rejectsWith(t, storage.publishSegments(KEY, [first, last]), 'FileStorageFailed');
  },
  'a segment that is whole becomes the file, without what lies behind its end': async (t, { storage }) => {
    await writeSegments(storage);
    t.equal(
      await storage.publishSegments(KEY, [{ number: 1, endBytes: 5, crc32: crc32(text('01234')) }]),
      true,
    );
    t.same(await readStored(storage, KEY), text('01234'));
  },
  // covers R74
  'a published file is read back, at any position': async (t, { storage }) => {
    await storage.create(KEY);
    t.equal(await storage.open(KEY), undefined, 'a part is no file');
    await writePart(storage, KEY, text('56789'), 5);
    await writePart(storage, KEY, text('01234'));
    await storage.publish(KEY, 10);
    t.same(await readStored(storage, KEY), text('0123456789'));
    const file = await storage.open(KEY);
    const target = Buffer.alloc(4);
    t.equal(await file?.read(target, 3), 4);
    t.same(target, text('3456'));
    t.equal(await file?.read(target, 8), 2, 'shorter at the end');
    t.same(target.subarray(0, 2), text('89'));
    t.equal(await file?.read(target, 10), 0);
    if (file?.readNow !== undefined) t.equal(file.readNow(target, 9), 1);
    file?.close();
    file?.close();
  },

  'a large file comes back as it was': async (t, { storage }) => {
    // Three parts of a bucket.
    const bytes = Buffer.alloc(17 * 1024 * 1024 + 17, 'abcdefghijk');
    await storeFile(storage, KEY, bytes);
    t.ok((await readStored(storage, KEY))?.equals(bytes));
  },

  'an empty file is a file': async (t, { storage }) => {
    await storage.create(KEY);
    await storage.publish(KEY, 0);
    t.same(await readStored(storage, KEY), Buffer.alloc(0));
  },

  'a part of another size is not published and can be corrected': async (t, { storage }) => {
    await storage.create(KEY);
    await writePart(storage, KEY, text('abc'));
    await rejectsWith(t, storage.publish(KEY, 4), 'FileStorageFailed');
    t.equal(await storage.open(KEY), undefined);
    await writePart(storage, KEY, text('d'), 3);
    await storage.publish(KEY, 4);
    t.same(await readStored(storage, KEY), text('abcd'));
  },

  // covers S151
  'a copy of a part is published whole, or not at all; a writer of the part does not reach it': async (
    t,
    { storage, restart },
  ) => {
    const bytes = Buffer.alloc(CHUNK_BYTES + 3, 'abcdefg');
    const chunks = [bytes.subarray(0, CHUNK_BYTES), bytes.subarray(CHUNK_BYTES)].map((chunk) => ({
      sizeBytes: chunk.length,
      crc32: crc32(chunk),
    }));
    await storage.create(KEY);
    await writePart(storage, KEY, bytes);
    await writePart(storage, KEY, text('table'), 2 * CHUNK_BYTES);
    await writePart(storage, KEY, text('x'), CHUNK_BYTES + 1);
    t.same(await storage.publishCopy(KEY, chunks), [1], 'the second chunk has other bytes');
    t.equal(await storage.open(KEY), undefined);
    await writePart(storage, KEY, bytes.subarray(CHUNK_BYTES), CHUNK_BYTES);
    t.same(
      await storage.publishCopy(KEY, [...chunks, { sizeBytes: CHUNK_BYTES, crc32: 1 }]),
      [2],
      'too short',
    );
    t.same(await storage.publishCopy(KEY, chunks), []);
    t.ok((await readStored(storage, KEY))?.equals(bytes));
    await rejectsWith(t, storage.lease(KEY), 'InvalidID');
    t.equal(storage.counters().reservedBytes, 0);
    const after = restart();
    t.same(await after.publishCopy(KEY, chunks), [], 'repeated after a restart');
    await after.remove(KEY);
    await rejectsWith(t, after.publishCopy(KEY, chunks), 'FileStorageFailed');
  },

  'what is behind the bytes of the file is cut off, up to the bound': async (t, { storage, restart }) => {
    await storage.create(KEY);
    await writePart(storage, KEY, text('abc'));
    await writePart(storage, KEY, text('table'), 4096);
    await rejectsWith(t, storage.publish(KEY, 3), 'FileStorageFailed');
    await rejectsWith(t, storage.publish(KEY, 3, 4100), 'FileStorageFailed');
    t.equal(await storage.open(KEY), undefined);
    await storage.publish(KEY, 3, 4101);
    t.same(await readStored(storage, KEY), text('abc'));
    const after = restart();
    await after.publish(KEY, 3, 4101);
    t.same(await readStored(after, KEY), text('abc'), 'repeated after a restart');
  },

  // covers R74
  'publish and remove may be repeated, also after a restart': async (t, { storage, restart }) => {
    await storeFile(storage, KEY, text('abc'));
    await storage.publish(KEY, 3);
    await rejectsWith(t, storage.publish(KEY, 4), 'FileStorageFailed');
    const after = restart();
    await after.publish(KEY, 3);
    t.same(await readStored(after, KEY), text('abc'));
    await after.remove(KEY);
    await after.remove(KEY);
    t.equal(await after.open(KEY), undefined);
    await rejectsWith(t, after.publish(KEY, 3), 'FileStorageFailed');
    await after.remove({ owner: '99', fileId: '5' });
  },

  'a part outlives a restart, create empties it': async (t, { storage, restart }) => {
    await storage.create(KEY);
    await writePart(storage, KEY, text('abc'));
    const after = restart();
    await writePart(after, KEY, text('d'), 3);
    await after.publish(KEY, 4);
    t.same(await readStored(after, KEY), text('abcd'));
    const again = { owner: '7', fileId: '1002' };
    await after.create(again);
    await writePart(after, again, text('old bytes'));
    await after.create(again);
    await writePart(after, again, text('new'));
    await after.publish(again, 3);
    t.same(await readStored(after, again), text('new'));
  },

  'publish and remove wait for the last lease; a late lease gets InvalidID': async (t, { storage }) => {
    await rejectsWith(t, storage.lease(KEY), 'InvalidID');
    await storage.create(KEY);
    const first = await storage.lease(KEY);
    const second = await storage.lease(KEY);
    t.equal(storage.counters().leases, 2);
    let published = false;
    const publishing = storage.publish(KEY, 2).then(() => {
      published = true;
    });
    await rejectsWith(t, storage.lease(KEY), 'InvalidID');
    writeSync(first.fd, text('a'), 0, 1, 0);
    await first.release();
    t.notOk(published);
    writeSync(second.fd, text('b'), 0, 1, 1);
    await second.release();
    await second.release();
    await publishing;
    t.same(await readStored(storage, KEY), text('ab'));
    await rejectsWith(t, storage.lease(KEY), 'InvalidID');
    t.equal(storage.counters().leases, 0);
  },

  'leases of one part share a descriptor, which outlives them until the part ends': async (
    t,
    { storage },
  ) => {
    await storage.create(KEY);
    const first = await storage.lease(KEY);
    const second = await storage.lease(KEY);
    t.equal(first.fd, second.fd);
    await first.release();
    await first.release();
    writeSync(second.fd, text('a'), 0, 1, 0);
    await second.release();
    const third = await storage.lease(KEY);
    t.equal(third.fd, first.fd, 'kept for the next chunk');
    await third.release();
    await storage.create(KEY);
    const again = await storage.lease(KEY);
    t.equal(statSync(`/proc/self/fd/${again.fd}`).size, 0, 'a new part, a new descriptor');
    await again.release();
    await storage.remove(KEY);
    await rejectsWith(t, storage.lease(KEY), 'InvalidID');
    await rejectsWith(t, storage.lease(KEY), 'InvalidID');
  },

  'a publish and a remove at once leave nothing': async (t, { storage }) => {
    await storage.create(KEY);
    await writePart(storage, KEY, text('abc'));
    await Promise.all([storage.publish(KEY, 3), storage.remove(KEY)]);
    t.equal(await storage.open(KEY), undefined);
  },

  'a reader may finish after its file was removed': async (t, { storage }) => {
    await storeFile(storage, KEY, text('abc'));
    const file = await storage.open(KEY);
    t.equal(storage.counters().open, 1);
    await storage.remove(KEY);
    t.equal(await storage.open(KEY), undefined);
    file?.close();
    t.equal(storage.counters().open, 0);
  },

  'removing a finished file leaves parts alone, waits for no lease, and may be repeated': async (
    t,
    { storage, restart },
  ) => {
    const uploading = { owner: '7', fileId: '1002' };
    await storage.create(uploading);
    const lease = await storage.lease(uploading);
    await storeFile(storage, KEY, text('gone'));
    const kept = await storage.open(KEY);
    t.equal(await storage.removeFinished(uploading), false);
    t.equal(await storage.removeFinished(KEY), true);
    t.equal(await storage.removeFinished(KEY), false);
    t.equal(await storage.removeFinished({ owner: '99', fileId: '5' }), false);
    t.equal(await storage.open(KEY), undefined, 'no kept descriptor gives it out');
    t.equal(storage.openKept?.(KEY), undefined);
    kept?.close();
    await lease.release();
    await writePart(storage, uploading, text('whole'));
    await storage.publish(uploading, 5);
    t.same(await readStored(storage, uploading), text('whole'));
    t.match(storage.counters(), { published: 2, removed: 1, failed: 0 });
    t.equal(await restart().removeFinished(uploading), true);
  },

  'a sweep removes unwanted parts, but no files and no parts of this run': async (
    t,
    { storage, restart },
  ) => {
    const key = (fileId: string) => ({ owner: fileId.slice(0, 1), fileId });
    for (const fileId of ['11', '12', '21']) await storage.create(key(fileId));
    await storeFile(storage, key('13'), text('file'));
    const after = restart();
    await after.create(key('14'));
    t.equal(await after.sweep(new Set(['12'])), 2);
    await rejectsWith(t, after.lease(key('11')), 'InvalidID');
    await rejectsWith(t, after.lease(key('21')), 'InvalidID');
    for (const fileId of ['12', '14']) await (await after.lease(key(fileId))).release();
    t.same(await readStored(after, key('13')), text('file'));
    t.equal(await after.sweep(new Set(['12'])), 0);
  },

  'a sweep of a shared folder leaves parts of other owners, and what was written lately': async (
    t,
    { storage, restart },
  ) => {
    const parts = ['11', '12', '21'].map((fileId) => ({ owner: fileId.slice(0, 1), fileId }));
    for (const key of parts) await storage.create(key);
    const after = restart();
    const includes = (owner: string) => owner === '1';
    const none = new Set<string>();
    t.equal(await after.sweep(none, { includes, keepSinceMs: 0 }), 0, 'all were written since');
    t.equal(await after.sweep(new Set(['12']), { includes, keepSinceMs: Date.now() + HOUR_MS }), 1);
    const [one = KEY, ...others] = parts;
    await rejectsWith(t, after.lease(one), 'InvalidID');
    for (const key of others) await (await after.lease(key)).release();
  },

  'counts what it did': async (t, { storage }) => {
    await storeFile(storage, KEY, text('a'));
    await storage.remove(KEY);
    await storage.remove(KEY);
    t.match(storage.counters(), { published: 1, removed: 1, failed: 0, full: 0, leases: 0, open: 0 });
  },
};

/** The publication is refused, and the part is kept: what the server did not keep is not lost. */
async function isNotPublished(t: Test, { storage }: Setting, bytes: Buffer): Promise<void> {
  await rejectsWith(t, storeFile(storage, KEY, bytes), 'FileStorageFailed');
  const lease = await storage.lease(KEY);
  t.equal(statSync(`/proc/self/fd/${lease.fd}`).size, bytes.length);
  await lease.release();
}

/** Promises that a server of other makers does not keep, with the reason, and what holds instead. */
const EXCEPTIONS: readonly {
  readonly server: string;
  readonly promise: string;
  readonly reason: string;
  readonly bytes: Buffer;
  /**
   * Time without progress for a server that sends nothing; a request that takes longer for another reason fails the
   * publication as well.
   */
  readonly stalledMs?: number;
}[] = [
  {
    server: 's3rver',
    promise: 'an empty file is a file',
    reason: 'it answers a range of an empty object with 206 and a length of 1, and sends nothing',
    bytes: Buffer.alloc(0),
    stalledMs: 200,
  },
  {
    server: 'fauxqs',
    promise: 'a large file comes back as it was',
    reason: 'it reads no parts from a completion that has their checksums, and makes an empty object',
    bytes: Buffer.alloc(17 * 1024 * 1024 + 17, 'abcdefghijk'),
  },
];

for (const { server, promise, reason, bytes, stalledMs } of EXCEPTIONS)
  t.test(`S3 ${server} storage: does not keep: ${promise}: ${reason}`, async (t) => {
    const startServer = S3_SERVERS[server];
    if (startServer === undefined || CONTRACT[promise] === undefined)
      throw new Error('an exception of nothing');
    const more = stalledMs === undefined ? {} : { stalledMs };
    const setting = remoteSetting(t, { S3: await startServer(t) }, more);
    await isNotPublished(t, setting, bytes);
  });

const isException = (name: string, kept: string) =>
  EXCEPTIONS.some(({ server, promise }) => `S3 ${server}` === name && promise === kept);

for (const [name, start] of Object.entries(STORAGES)) {
  for (const [promise, check] of Object.entries(CONTRACT).filter(([kept]) => !isException(name, kept)))
    t.test(`${name} storage: ${promise}`, { skip: name === 'remote nginx' && lacking('nginx') }, async (t) =>
      check(t, await start(t)),
    );
}

// covers R74
t.test('local storage: bytes are stored at owner and file id, readable by the gateway only', async (t) => {
  const { storage, root } = localStorage(t, { onFault: (message) => t.fail(message) });
  await storage.create(KEY);
  t.same(readdirSync(join(root, '7')), ['1001.part']);
  await writePart(storage, KEY, text('abc'));
  await storage.publish(KEY, 3);
  t.same(readdirSync(join(root, '7')), ['1001']);
  t.equal(readFileSync(join(root, '7/1001'), 'utf8'), 'abc');
  t.equal(statSync(join(root, '7/1001')).mode & 0o777, 0o600);
  t.equal(statSync(join(root, '7')).mode & 0o777, 0o700);
  const { storage: shared } = localStorage(t, { root, onFault: t.fail, readers: 'group' });
  await storeFile(shared, { owner: '8', fileId: '1001' }, Buffer.from('bytes'));
  t.equal(statSync(join(root, '8/1001')).mode & 0o777, 0o640, 'a proxy in front sends files');
  t.equal(statSync(join(root, '8')).mode & 0o777, 0o750);
});

t.test(
  'local storage: a path is built from ids only; anything else is a bug and touches nothing',
  async (t) => {
    const root = temporaryFolder(t);
    const { storage } = localStorage(t, { root: join(root, 'inner') });
    mkdirSync(join(root, 'inner'));
    for (const wrong of ['..', '../x', '', '.', '01', '-1', '1/2', '9223372036854775808', '1\0']) {
      await rejectsWith(t, storage.create({ owner: wrong, fileId: '1' }), 'FileStorageFailed');
      await rejectsWith(t, storage.create({ owner: '1', fileId: wrong }), 'FileStorageFailed');
      await rejectsWith(t, storage.open({ owner: '1', fileId: wrong }), 'FileStorageFailed');
      await rejectsWith(t, storage.remove({ owner: wrong, fileId: '1' }), 'FileStorageFailed');
    }
    t.same(readdirSync(root), ['inner']);
  },
);

t.test('storages: a refusal for lack of space is logged once a minute, and each is counted', async (t) => {
  let nowMs = 0;
  const told: string[] = [];
  const full = { onFull: (message: string) => told.push(message), elapsed: () => nowMs };
  const scarce = { onFault: (message: string) => t.fail(message), freeSpace: async () => 70_000_000, full };
  for (const storage of [
    localStorage(t, scarce).storage,
    remoteStorage(t, { servers: { 0: { Host: 'http://127.0.0.1:9' } }, ...scarce }).storage,
  ]) {
    told.length = 0;
    await storage.reserve('small', 1_000_000);
    t.same(told, []);
    for (const afterMs of [0, 1, 59_998, 1]) {
      nowMs += afterMs;
      await rejectsWith(t, storage.reserve('large', 3_000_000), 'StorageFull');
    }
    t.equal(told.length, 2);
    t.match(told[1], /^looking for free space in .*: an upload was refused, 4 since the start$/);
    t.equal(storage.counters().full, 4);
  }
});

// covers S8
t.test('local storage: symbolic links are followed nowhere', async (t) => {
  const outside = temporaryFolder(t);
  writeFileSync(join(outside, '1001'), 'secret');
  writeFileSync(join(outside, 'victim'), 'precious');
  const { storage, root, faults } = localStorage(t);
  symlinkSync(outside, join(root, '7'));
  const attempts = [
    () => storage.open(KEY),
    () => storage.create(KEY),
    () => storage.lease(KEY),
    () => storage.publish(KEY, 6),
    () => storage.remove(KEY),
    () => storage.removeFinished(KEY),
  ];
  for (const attempt of attempts) await rejectsWith(t, attempt(), 'FileStorageFailed');
  mkdirSync(join(root, '8'));
  symlinkSync(join(outside, '1001'), join(root, '8/1001'));
  symlinkSync(join(outside, 'victim'), join(root, '8/1002.part'));
  await rejectsWith(t, storage.open({ owner: '8', fileId: '1001' }), 'FileStorageFailed');
  const part = { owner: '8', fileId: '1002' };
  for (const attempt of [
    () => storage.create(part),
    () => storage.lease(part),
    () => storage.publish(part, 8),
  ])
    await rejectsWith(t, attempt(), 'FileStorageFailed');
  t.match(faults, [/ELOOP|ENOTDIR/], 'the failure is logged');
  await storage.remove(part);
  await storage.remove({ owner: '8', fileId: '1001' });
  t.equal(
    readFileSync(join(outside, 'victim'), 'utf8'),
    'precious',
    'removing takes the link, not its target',
  );
  t.equal(readFileSync(join(outside, '1001'), 'utf8'), 'secret');
  symlinkSync(outside, join(root, '9'));
  writeFileSync(join(outside, '55.part'), 'a part elsewhere');
  t.equal(await storage.sweep(new Set()), 0);
  t.ok(existsSync(join(outside, '55.part')));
});

t.test('local storage: an entry that is no file is not served', async (t) => {
  const { storage, root } = localStorage(t);
  mkdirSync(join(root, '7/1001'), { recursive: true });
  await rejectsWith(t, storage.open(KEY), 'FileStorageFailed');
});

t.test('local storage: few descriptors are kept, the oldest is closed first, used ones stay', async (t) => {
  const { storage } = localStorage(t, { onFault: (message) => t.fail(message), keptMax: 2 });
  const keys = ['1', '2', '3', '4'].map((fileId) => ({ owner: '7', fileId }));
  for (const key of keys) await storeFile(storage, key, text(key.fileId));
  const held = await storage.open({ owner: '7', fileId: '1' });
  for (const key of keys) t.same(await readStored(storage, key), text(key.fileId));
  const target = Buffer.alloc(1);
  t.equal(held?.readNow?.(target, 0), 1);
  t.same(target, text('1'));
  held?.close();
  t.equal(storage.counters().open, 2);
  const both = await Promise.all([
    storage.open({ owner: '7', fileId: '2' }),
    storage.open({ owner: '7', fileId: '2' }),
  ]);
  t.ok(storage.counters().open <= 3, 'two at once share one');
  for (const file of both) file?.close();
  await storage.close();
  t.equal(storage.counters().open, 0);
});

// covers R75
t.test('local storage: a failing disk is 1312 for the caller and a sentence in the log', async (t) => {
  const { storage, faults } = localStorage(t, { root: join(temporaryFolder(t), 'gone') });
  await rejectsWith(t, storage.create(KEY), 'FileStorageFailed');
  t.match(faults, [/making a part of 7\/1001 in .*gone: ENOENT/]);
  t.equal(storage.counters().failed, 1);
});

// covers R75 S159
t.test('reservations: they add up, a holder replaces its own, no space is StorageFull', async (t) => {
  const MiB = 1024 * 1024;
  let free = 64 * MiB + 100;
  const { storage } = localStorage(t, { freeSpace: async () => free });
  await Promise.all([storage.reserve('a', 60), rejectsWith(t, storage.reserve('b', 60), 'StorageFull')]);
  t.equal(await storage.freeBytes(), 40);
  await storage.reserve('a', 100);
  await rejectsWith(t, storage.reserve('b', 1), 'StorageFull');
  t.equal(storage.counters().reservedBytes, 100);
  storage.release('a');
  storage.release('a');
  await storage.reserve('b', 100);
  free = 10;
  t.equal(await storage.freeBytes(), 0);
  t.match(storage.counters(), { reservedBytes: 100, full: 2 });
});

t.test(
  'reservations: one answer of the disk serves 100 ms, less what was released since, and refuses none',
  async (t) => {
    const MiB = 1024 * 1024;
    let [nowMs, asked] = [0, 0];
    const probe = async () => {
      asked += 1;
      return 64 * MiB + 100;
    };
    const calls = closeAfter(t, new FileCalls());
    const space = new FreeSpace('folder', calls, new StorageFaults(() => undefined), probe, () => nowMs);
    await space.reserve('a', 40);
    nowMs = 99;
    await space.reserve('b', 40);
    t.equal(asked, 1, 'two reservations within the time');
    space.release('a');
    await space.reserve('c', 20);
    t.equal(asked, 1, 'what is left besides the released bytes');
    await space.reserve('d', 40);
    t.equal(asked, 2, 'the released bytes are free by a new answer alone');
    await rejectsWith(t, space.reserve('e', 1), 'StorageFull');
    t.equal(asked, 3, 'no refusal by an old answer');
    nowMs = 199;
    space.release('d');
    await space.reserve('f', 1);
    t.equal(asked, 4, 'an answer that is 100 ms old');
  },
);
