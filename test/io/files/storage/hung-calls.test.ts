/** Promises of a storage while calls of its disk do not settle. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import { MemoryStorageServer } from '../../../../kit/storage/memory-server.ts';
import { callOnLease } from '../../../../src/io/files/storage/file-tasks.ts';
import { LocalStorage } from '../../../../src/io/files/storage/local.ts';
import type { FileStorage, StorageCounters } from '../../../../src/io/files/storage/port.ts';
import { RemoteStorage } from '../../../../src/io/files/storage/remote.ts';
import { crc32 } from '../../../../src/workers/crc32.ts';
import { inlineWorkers } from '../../../support/account.ts';
import { readStored, storeFile, temporaryFolder, writePart } from '../../../support/files/file-storage.ts';
import { holdCall, someTurns, type TickedCalls, tickedCalls } from '../../../support/files/held-calls.ts';
import { localStorage } from '../../../support/files/storages.ts';
import { promiseOf } from '../../../support/http.ts';
import { rejectsWith } from '../../../support/rejections.ts';

const KEY = { owner: '7', fileId: '1001' };
const FINISHED = { owner: '7', fileId: '1002' };
const BYTES = Buffer.from('bytes');

interface Started extends TickedCalls {
  readonly storage: FileStorage;
  names(): string[];
}

/** A part of `KEY` with `BYTES` in it, and a storage that has opened nothing yet. */
async function start(t: Test, kind: 'local' | 'remote' = 'local'): Promise<Started> {
  const ticked = tickedCalls();
  const root = temporaryFolder(t);
  const shared = { workers: inlineWorkers().workers, onFault: () => undefined };
  const servers = { 0: { Host: (await MemoryStorageServer.start(t)).url } };
  const make = (calls = tickedCalls().calls): FileStorage =>
    kind === 'local'
      ? new LocalStorage({ ...shared, root, calls })
      : new RemoteStorage({ ...shared, staging: root, servers, calls });
  const before = make();
  await storeFile(before, FINISHED, BYTES);
  await before.create(KEY);
  await writePart(before, KEY, BYTES);
  await before.close();
  const storage = closeAfter(t, make(ticked.calls));
  return { ...ticked, storage, names: () => readdirSync(join(root, KEY.owner)).sort() };
}

const CHUNKS = [{ sizeBytes: BYTES.length, crc32: crc32(BYTES) }];
const OPERATIONS: Record<string, (storage: FileStorage) => Promise<unknown>> = {
  create: (storage) => storage.create(KEY),
  lease: (storage) => storage.lease(KEY),
  publish: (storage) => storage.publish(KEY, BYTES.length),
  publishCopy: (storage) => storage.publishCopy(KEY, CHUNKS),
  remove: (storage) => storage.remove(KEY),
  removeFinished: (storage) => storage.removeFinished(FINISHED),
  reserve: (storage) => storage.reserve('a', 1),
  freeBytes: (storage) => storage.freeBytes(),
  sweep: (storage) => storage.sweep(new Set()),
};

for (const kind of ['local', 'remote'] as const) {
  // covers S177
  t.test(`${kind} storage: while eight calls stand still, all else is TaskTimedOut and undone`, async (t) => {
    const { storage, calls, tick, names } = await start(t, kind);
    const { promise: held, resolve: release } = promiseOf();
    const hung = Array.from({ length: 8 }, () => calls.run(() => held));
    tick(6);
    for (const operation of Object.values(OPERATIONS))
      await rejectsWith(t, operation(storage), 'TaskTimedOut');
    t.match(storage.counters(), { leases: 0, reservedBytes: 0, failed: 0, calls: { running: 8, stuck: 8 } });
    release();
    await Promise.all(hung);
    t.same(names(), kind === 'local' ? ['1001.part', '1002'] : ['1001.part']);
    t.same(await storage.publishCopy(KEY, CHUNKS), []);
    t.same(await readStored(storage, KEY), BYTES);
    t.equal(await storage.removeFinished(FINISHED), true);
    t.match(storage.counters(), { published: 1, calls: { running: 0, waiting: 0, stuck: 0 } });
  });
}

// covers S177
t.test(
  'local storage: while eight calls stand still, an open file is not read on the event loop',
  async (t) => {
    const { storage, calls, tick } = await start(t);
    t.same(await readStored(storage, FINISHED), BYTES);
    const { promise: held, resolve: release } = promiseOf();
    const hung = [calls.run(() => held)];
    tick(6);
    const beside = storage.openKept?.(FINISHED);
    t.equal(beside?.readNow, undefined, 'one hangs: it is read by a thread');
    const bytes = Buffer.alloc(BYTES.length);
    t.equal(await beside?.read(bytes, 0), BYTES.length);
    for (let count = 0; count < 7; count += 1) hung.push(calls.run(() => held));
    tick(6);
    t.equal(storage.openKept?.(FINISHED), undefined);
    await rejectsWith(t, storage.open(FINISHED), 'TaskTimedOut');
    await rejectsWith(t, beside?.read(bytes, 0) ?? Promise.resolve(), 'TaskTimedOut');
    beside?.close();
    release();
    await Promise.all(hung);
    const after = storage.openKept?.(FINISHED);
    t.type(after?.readNow, 'function');
    after?.close();
  },
);

t.test('local storage: an open that hangs is TaskTimedOut, and what it opens later is closed', async (t) => {
  const { storage, tick } = await start(t);
  const open = holdCall(t, 'open', '/1002');
  const first = rejectsWith(t, storage.open(FINISHED), 'TaskTimedOut');
  const second = rejectsWith(t, storage.open(FINISHED), 'TaskTimedOut');
  await open.begun;
  tick(61);
  await first;
  await second;
  t.same(await readStored(storage, FINISHED), BYTES, 'another call opens it');
  t.match(storage.counters(), { open: 1, calls: { running: 1, stuck: 1, timedOut: 1 } });
  open.release();
  while (storage.counters().calls.running > 0) await someTurns();
  t.match(storage.counters(), { open: 1, calls: { running: 0, stuck: 0 } });
});

t.test(
  'local storage: a part whose open hangs is TaskTimedOut until it settles, and used again',
  async (t) => {
    const { storage, tick, names } = await start(t);
    const open = holdCall(t, 'open', '/1001.part');
    const first = rejectsWith(t, storage.lease(KEY), 'TaskTimedOut');
    const second = rejectsWith(t, storage.lease(KEY), 'TaskTimedOut');
    await open.begun;
    const behind = rejectsWith(t, storage.remove(KEY), 'TaskTimedOut');
    tick(61);
    await Promise.all([first, second, behind]);
    await rejectsWith(t, storage.lease(KEY), 'TaskTimedOut');
    await rejectsWith(t, storage.publish(KEY, BYTES.length), 'TaskTimedOut');
    t.equal(storage.counters().leases, 0);
    open.release();
    while (storage.counters().calls.running > 0) await someTurns();
    t.same(names(), ['1001.part', '1002'], 'the removal that was answered does not run later');
    const lease = await storage.lease(KEY);
    t.same(readFileSync(lease.fd), BYTES);
    await lease.release();
    await storage.publish(KEY, BYTES.length);
    t.same(await readStored(storage, KEY), BYTES);
  },
);

t.test(
  'local storage: a call on a lease that hangs keeps descriptor and part until it settles',
  async (t) => {
    const { storage, calls, tick } = await start(t);
    const lease = await storage.lease(KEY);
    const { promise: held, resolve: release } = promiseOf();
    const call = rejectsWith(
      t,
      callOnLease(calls, lease, () => held),
      'TaskTimedOut',
    );
    tick(61);
    await call;
    await lease.release();
    t.equal(storage.counters().leases, 1);
    await rejectsWith(t, storage.publish(KEY, BYTES.length), 'TaskTimedOut');
    release();
    await someTurns();
    t.equal(storage.counters().leases, 0);
    await storage.publish(KEY, BYTES.length);
  },
);

t.test('local storage: a removal that hangs is TaskTimedOut, and a repeat of it succeeds', async (t) => {
  const { storage, tick, names } = await start(t);
  for (const [remove, end] of [
    [() => storage.remove(KEY), '/1001.part'],
    [() => storage.removeFinished(FINISHED), '/1002'],
  ] as const) {
    const unlink = holdCall(t, 'unlink', end);
    const first = rejectsWith(t, remove(), 'TaskTimedOut');
    await unlink.begun;
    tick(61);
    await first;
    unlink.release();
    while (storage.counters().calls.running > 0) await someTurns();
    await remove();
  }
  t.same(names(), []);
});

t.test('reservations: space that is known too late is not reserved', async (t) => {
  const ticked = tickedCalls();
  let answer: (freeBytes: number) => void = () => undefined;
  const { storage } = localStorage(t, {
    calls: ticked.calls,
    freeSpace: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  });
  const reserved = rejectsWith(t, storage.reserve('a', 1), 'TaskTimedOut');
  ticked.tick(61);
  await reserved;
  answer(2 ** 40);
  await someTurns();
  t.match(storage.counters(), { reservedBytes: 0, calls: { running: 0, timedOut: 1 } });
});

t.test(
  'remote storage: a part whose open hangs at publish is TaskTimedOut; a repeat sends it once',
  async (t) => {
    const { storage, tick, names } = await start(t, 'remote');
    const open = holdCall(t, 'open', '/1001.part');
    const publish = rejectsWith(t, storage.publish(KEY, BYTES.length), 'TaskTimedOut');
    await open.begun;
    tick(61);
    await publish;
    await rejectsWith(t, storage.publish(KEY, BYTES.length), 'TaskTimedOut');
    t.same(names(), ['1001.part'], 'the bytes stay');
    open.release();
    // The part is free once its removal here has settled too.
    const isUnderWay = ({ published, calls }: StorageCounters) => published === 0 || calls.running > 0;
    while (isUnderWay(storage.counters())) await someTurns();
    await someTurns();
    await storage.publish(KEY, BYTES.length);
    t.same(await readStored(storage, KEY), BYTES);
  },
);
