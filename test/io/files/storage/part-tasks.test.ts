/** Handling of the results of worker tasks that make and publish parts. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import type { WorkerPort } from '../../../../src/actors/runtime/ports.ts';
import { CHUNK_BYTES } from '../../../../src/domain/files/files.ts';
import { runOnLease } from '../../../../src/io/files/storage/file-tasks.ts';
import { LocalStorage } from '../../../../src/io/files/storage/local.ts';
import { textPreview } from '../../../../src/io/files/upload/text-preview.ts';
import { crc32 } from '../../../../src/workers/crc32.ts';
import type { TaskName } from '../../../../src/workers/tasks.ts';
import { inlineWorkers } from '../../../support/account.ts';
import { readStored, temporaryFolder, writePart } from '../../../support/files/file-storage.ts';
import { SlowWorkers } from '../../../support/files/slow-workers.ts';
import { localStorage } from '../../../support/files/storages.ts';
import { rejectsWith } from '../../../support/rejections.ts';

const KEY = { owner: '7', fileId: '1001' };
const BYTES = Buffer.from('bytes');

type TaskAnswer = Awaited<ReturnType<WorkerPort['run']>>;

/** A storage whose worker tasks have planted answers, while there are any. */
function startStorage(t: Test) {
  const real = inlineWorkers().workers;
  const planted = new Map<TaskName, unknown>();
  const faults: string[] = [];
  const workers: WorkerPort = {
    run: (name, input) =>
      planted.has(name) ? Promise.resolve(planted.get(name) as never) : real.run(name, input),
  };
  const root = temporaryFolder(t);
  const storage = new LocalStorage({ root, workers, onFault: (message) => faults.push(message) });
  t.teardown(() => storage.close());
  const plant = (name: TaskName, answer: TaskAnswer | { ok: true; value: unknown }) =>
    planted.set(name, answer);
  return { root, storage, faults, plant, heal: () => planted.clear() };
}

const FAULTS = [
  ['ENOSPC', 'StorageFull'],
  ['EDQUOT', 'StorageFull'],
  ['EIO', 'FileStorageFailed'],
  ['ESTALE', 'FileStorageFailed'],
] as const;

t.test(
  'part tasks: a full disk is StorageFull, another system error FileStorageFailed; both are logged',
  async (t) => {
    for (const [code, row] of FAULTS) {
      const { root, storage, faults, plant, heal } = startStorage(t);
      const fault = { ok: true, value: { code, message: `${code}: planted` } } as const;
      plant('makePart', fault);
      await rejectsWith(t, storage.create(KEY), row);
      heal();
      await storage.create(KEY);
      await writePart(storage, KEY, BYTES);
      plant('publishPart', fault);
      await rejectsWith(t, storage.publish(KEY, BYTES.length), row);
      t.match(faults, [/^making a part of 7\/1001 in .*: planted$/, /^publishing 7\/1001 in .*: planted$/]);
      t.match(storage.counters(), row === 'StorageFull' ? { full: 2, failed: 0 } : { full: 0, failed: 2 });
      heal();
      plant('copyRange', fault);
      await rejectsWith(t, storage.publishCopy(KEY, [{ sizeBytes: BYTES.length, crc32: 1 }]), row);
      t.same(readdirSync(join(root, KEY.owner)), ['1001.part'], 'no copy is left');
      t.equal(storage.counters().reservedBytes, 0);
      heal();
      await storage.publish(KEY, BYTES.length);
      t.same(await readStored(storage, KEY), BYTES, 'a later publish succeeds');
    }
  },
);

t.test('part tasks: a node without room for a copy finds the file that another node has made', async (t) => {
  const root = temporaryFolder(t);
  const former = localStorage(t, { root, isShared: true }).storage;
  const { storage: owner } = localStorage(t, { root, isShared: true, freeSpace: async () => 0 });
  const chunks = [{ sizeBytes: BYTES.length, crc32: crc32(BYTES) }];
  const [first, second] = [
    { number: 1, endBytes: 2, crc32: crc32(BYTES.subarray(0, 2)), isOpen: true as const },
    { number: 2, endBytes: BYTES.length, crc32: crc32(BYTES) },
  ];
  const joined = { owner: '7', fileId: '1002' };
  for (const key of [KEY, { ...joined, segment: 1 }, { ...joined, segment: 2 }]) await former.create(key);
  await writePart(former, KEY, BYTES);
  await writePart(former, { ...joined, segment: 1 }, BYTES.subarray(0, 2));
  await writePart(former, { ...joined, segment: 2 }, BYTES.subarray(2), 2);
  await rejectsWith(t, owner.publishCopy(KEY, chunks), 'StorageFull');
  await rejectsWith(t, owner.publishSegments(joined, [first, second]), 'StorageFull');
  t.same(await former.publishCopy(KEY, chunks), []);
  t.equal(await former.publishSegments(joined, [first, second]), true);
  t.same(await owner.publishCopy(KEY, chunks), []);
  t.equal(await owner.publishSegments(joined, [first, second]), true);
  for (const key of [KEY, joined]) t.same(await readStored(owner, key), BYTES);
});

/** A storage whose tasks of these names settle when the test says so. */
function startSlow(t: Test, ...slow: readonly TaskName[]) {
  const workers = new SlowWorkers(...slow);
  const root = temporaryFolder(t);
  const storage = closeAfter(t, new LocalStorage({ root, workers, onFault: (message) => t.fail(message) }));
  return { storage, workers, names: () => readdirSync(join(root, KEY.owner)) };
}

t.test(
  'part tasks: a publish that is late is TaskTimedOut, and nothing else uses the part until it settles',
  async (t) => {
    const { storage, workers, names } = startSlow(t, 'publishPart');
    await storage.create(KEY);
    await writePart(storage, KEY, BYTES);
    const first = rejectsWith(t, storage.publish(KEY, BYTES.length), 'TaskTimedOut');
    const behind = rejectsWith(t, storage.remove(KEY), 'TaskTimedOut');
    const publish = await workers.next();
    publish.late();
    await first;
    await behind;
    for (const call of [storage.publish(KEY, BYTES.length), storage.create(KEY), storage.lease(KEY)])
      await rejectsWith(t, call, 'TaskTimedOut');
    t.same(names(), ['1001.part'], 'the bytes stay');
    await publish.settle();
    t.same(await readStored(storage, KEY), BYTES, 'the removal that was answered does not run later');
    await storage.remove(KEY);
    t.same(names(), [], 'a repeat of it runs');
  },
);

t.test('part tasks: a make that is late is TaskTimedOut; a repeat makes the part', async (t) => {
  const { storage, workers, names } = startSlow(t, 'makePart');
  const first = rejectsWith(t, storage.create(KEY), 'TaskTimedOut');
  const make = await workers.next();
  make.late();
  await first;
  await rejectsWith(t, storage.create(KEY), 'TaskTimedOut');
  await make.settle();
  const repeat = storage.create(KEY);
  await (await workers.next()).settle();
  await repeat;
  await writePart(storage, KEY, BYTES);
  t.same(names(), ['1001.part']);
  t.equal(storage.counters().leases, 0);
});

t.test('part tasks: a copy of which two chunks are late leaves a part that is used again', async (t) => {
  const { storage, workers } = startSlow(t, 'copyRange', 'publishPart');
  const chunks = [Buffer.alloc(CHUNK_BYTES, 1), BYTES].map((bytes) => ({
    sizeBytes: bytes.length,
    crc32: crc32(bytes),
  }));
  await storage.create(KEY);
  await writePart(storage, KEY, Buffer.alloc(CHUNK_BYTES, 1));
  await writePart(storage, KEY, BYTES, CHUNK_BYTES);
  const first = rejectsWith(t, storage.publishCopy(KEY, chunks), 'TaskTimedOut');
  for (const _ of chunks) {
    const copy = await workers.next();
    copy.late();
    await rejectsWith(t, storage.remove(KEY), 'TaskTimedOut');
    await copy.settle();
  }
  await first;
  await (await workers.next()).settle();
  t.equal((await readStored(storage, KEY))?.length, CHUNK_BYTES + BYTES.length);
  await storage.remove(KEY);
});

t.test('part tasks: a write that is late keeps descriptor and part until it settles', async (t) => {
  const { storage, workers } = startSlow(t, 'writeBuffer');
  await storage.create(KEY);
  const lease = await storage.lease(KEY);
  const sharedBuffer = new SharedArrayBuffer(BYTES.length);
  new Uint8Array(sharedBuffer).set(BYTES);
  const input = { sharedBuffer, length: BYTES.length, fd: lease.fd, position: 0 };
  const answer = runOnLease(workers, lease, 'writeBuffer', input);
  const publish = rejectsWith(t, storage.publish(KEY, BYTES.length), 'TaskTimedOut');
  const write = await workers.next();
  write.late();
  t.match(await answer, { ok: false, error: 'TaskTimedOut' });
  await publish;
  await lease.release();
  t.equal(storage.counters().leases, 1, 'the descriptor is in use');
  await rejectsWith(t, storage.lease(KEY), 'TaskTimedOut');
  await write.settle();
  t.equal(storage.counters().leases, 0);
  await storage.publish(KEY, BYTES.length);
  t.same(await readStored(storage, KEY), BYTES);
});

t.test(
  'part tasks: a full queue, a dead thread and a closing pool have errors of their own; nothing is lost',
  async (t) => {
    for (const error of ['Overloaded', 'InternalError', 'Stopping'] as const) {
      const { storage, plant, heal } = startStorage(t);
      plant('makePart', { ok: false, error });
      await rejectsWith(t, storage.create(KEY), error);
      heal();
      await storage.create(KEY);
      await writePart(storage, KEY, BYTES);
      plant('publishPart', { ok: false, error });
      await rejectsWith(t, storage.publish(KEY, BYTES.length), error);
      heal();
      await storage.publish(KEY, BYTES.length);
      t.same(await readStored(storage, KEY), BYTES);
      t.match(storage.counters(), { published: 1, leases: 0 });
    }
  },
);

t.test('part tasks: a start removes copies that a kill left, and no file with such an end', async (t) => {
  const { root, storage } = startStorage(t);
  await storage.create(KEY);
  for (const name of ['1001.5.copy', '1001.copying']) writeFileSync(join(root, KEY.owner, name), 'bytes');
  t.equal(await storage.sweep(new Set(['1001'])), 0);
  t.same(readdirSync(join(root, KEY.owner)).sort(), ['1001.copying', '1001.part']);
});

t.test('part tasks: a removal while its part is made leaves nothing', async (t) => {
  const { root, storage } = startStorage(t);
  await Promise.all([storage.create(KEY), storage.remove(KEY)]);
  t.same(readdirSync(join(root, '7')), []);
  await rejectsWith(t, storage.lease(KEY), 'InvalidID');
});

t.test('part tasks: the preview of a publish is used once; later ones are read from the file', async (t) => {
  const { storage } = startStorage(t);
  await storage.create(KEY);
  await writePart(storage, KEY, BYTES);
  await storage.publish(KEY, BYTES.length);
  t.equal(await textPreview(storage, KEY), 'bytes');
  t.equal(storage.counters().open, 0, 'the file was not opened');
  t.equal(storage.takePreview(KEY), undefined);
  t.equal(await textPreview(storage, KEY), 'bytes');
  t.equal(storage.counters().open, 1);
});

t.test(
  'part tasks: of more than 32 previews that are not taken, the oldest are read from their files',
  async (t) => {
    const { storage } = startStorage(t);
    const keys = Array.from({ length: 33 }, (_, index) => ({ owner: '7', fileId: String(index + 1) }));
    for (const key of keys) {
      await storage.create(key);
      await storage.publish(key, 0);
    }
    t.same(
      keys.map((key) => storage.takePreview(key) !== undefined),
      keys.map((_, index) => index > 0),
    );
  },
);
