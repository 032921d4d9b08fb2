/** Uploads through fake bodies into real parts: the part has the bytes of the body, and is not touched afterwards. */
import { createHash, randomBytes } from 'node:crypto';
import { openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import CRC32 from 'crc-32';
import fc from 'fast-check';
import t from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import type { WorkerPort } from '../../../../src/actors/runtime/ports.ts';
import { packChunkEntry } from '../../../../src/domain/files/chunk-entry.ts';
import { chunkEntry } from '../../../../src/domain/files/chunk-table.ts';
import { LiveSettings } from '../../../../src/domain/settings/settings.ts';
import type { PartLease } from '../../../../src/io/files/storage/port.ts';
import { Throttle } from '../../../../src/io/files/throttle.ts';
import type { ReceiveOptions } from '../../../../src/io/files/upload/body-writer.ts';
import { SHARED_BUFFER_BYTES, SharedBuffers } from '../../../../src/io/files/upload/buffers.ts';
import { BodyReceiver } from '../../../../src/io/files/upload/receiver.ts';
import { createWorkerPool } from '../../../../src/workers/pool.ts';
import { inlineWorkers } from '../../../support/account.ts';
import { runs } from '../../../support/depth.ts';
import { contentOf, GatedWorkers, newLease, settle } from '../../../support/files/gated-workers.ts';
import { FakeBody } from '../../../support/files/incoming-body.ts';
import { rejectsWith } from '../../../support/rejections.ts';

const MiB = 1024 * 1024;
const crcOf = (bytes: Uint8Array) => CRC32.buf(bytes) >>> 0;
function optionsOf(body: FakeBody, lease: PartLease, more: Partial<ReceiveOptions> = {}): ReceiveOptions {
  return { body, lease, positionBytes: 0, maxBytes: 100 * MiB, tooLong: 'MaxFileSize', ...more };
}

t.test('receiver: a body is in the part with its checksums, through real threads', async (t) => {
  const pool = closeAfter(t, createWorkerPool({ threads: 2, queueMax: 100 }));
  const receiver = new BodyReceiver(pool, { folder: tmpdir() });
  const lease = await newLease(t);
  const bytes = randomBytes(5 * MiB + 12_345);
  const body = new FakeBody(bytes.length);
  const receiving = receiver.receive(optionsOf(body, lease, { positionBytes: 1_000, sha256: true }));
  for (let at = 0; at < bytes.length; at += 65_000) {
    while (body.paused) await settle();
    body.send(bytes.subarray(at, at + 65_000));
  }
  body.end();
  const received = await receiving;
  t.match(received, { ended: 'complete', sizeBytes: bytes.length, crc32: crcOf(bytes) });
  t.same(received.sha256, createHash('sha256').update(bytes).digest());
  t.ok(contentOf(lease, bytes.length, 1_000).equals(bytes));
  t.match(receiver.counters(), { active: 0, receivedBytes: bytes.length, sharedBuffers: { lent: 0 } });
});

t.test(
  'receiver: any pieces, any order of the tasks, any shortage of buffers: the bytes and their CRC-32',
  async (t) => {
    const lease = await newLease(t);
    await t.resolves(
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.integer({ min: 0, max: 900_000 }), { maxLength: 14 }),
          fc.integer({ min: 0, max: 6 }),
          fc.infiniteStream(fc.nat()),
          fc.boolean(),
          async (sizes, sharedBuffers, choices, complete) => {
            const workers = new GatedWorkers();
            const receiver = new BodyReceiver(workers, {
              folder: tmpdir(),
              sharedBuffers: new SharedBuffers(sharedBuffers),
            });
            const body = new FakeBody();
            const receiving = receiver.receive(optionsOf(body, lease));
            const bytes = randomBytes(sizes.reduce((sum, size) => sum + size, 0));
            let at = 0;
            for (const size of sizes) {
              // A client sends on after it was paused, too.
              body.send(bytes.subarray(at, at + size));
              at += size;
              const choice = choices.next().value;
              if (choice % 3 === 0 && workers.waiting.length > 0)
                await workers.release(choice % workers.waiting.length);
            }
            if (complete) body.end();
            else body.lose();
            await workers.releaseAll();
            const received = await receiving;
            const whole = contentOf(lease, bytes.length).subarray(0, bytes.length);
            return (
              received.ended === (complete ? 'complete' : 'lost') &&
              received.sizeBytes === bytes.length &&
              received.crc32 === crcOf(bytes) &&
              whole.equals(bytes) &&
              receiver.counters().sharedBuffers.lent === 0
            );
          },
        ),
        runs(60),
      ),
    );
  },
);

// covers S7
t.test(
  'receiver: four tasks under way pause the client, later bytes fill eight more buffers, then are written at once',
  async (t) => {
    const workers = new GatedWorkers();
    const receiver = new BodyReceiver(workers, { folder: tmpdir() });
    const lease = await newLease(t);
    const body = new FakeBody();
    const receiving = receiver.receive(optionsOf(body, lease));
    const bytes = randomBytes(15 * SHARED_BUFFER_BYTES);
    for (let sharedBuffer = 0; sharedBuffer < 3; sharedBuffer++)
      body.send(bytes.subarray(sharedBuffer * SHARED_BUFFER_BYTES, (sharedBuffer + 1) * SHARED_BUFFER_BYTES));
    t.notOk(body.paused);
    body.send(bytes.subarray(3 * SHARED_BUFFER_BYTES, 4 * SHARED_BUFFER_BYTES));
    t.ok(body.paused);
    body.send(bytes.subarray(4 * SHARED_BUFFER_BYTES));
    t.equal(receiver.counters().sharedBuffers.lent, 12, 'three more buffers’ worth took no memory');
    t.equal(receiver.counters().overflowBytes, 3 * SHARED_BUFFER_BYTES);
    while (workers.waiting.length >= 4) {
      t.ok(body.paused);
      await workers.release();
    }
    t.notOk(body.paused, 'three are left: go on');
    body.end();
    await workers.releaseAll();
    t.match(await receiving, { ended: 'complete', sizeBytes: bytes.length, crc32: crcOf(bytes) });
    t.ok(contentOf(lease, bytes.length).equals(bytes));
  },
);

t.test('receiver: it settles only after the last task, in every kind of end', async (t) => {
  const endings: Record<string, (body: FakeBody, abort: AbortController) => void> = {
    complete: (body) => body.end(),
    lost: (body) => body.lose(),
    stopped: (_body, abort) => abort.abort(),
    refused: (body) => body.send(new Uint8Array(200 * 1024)),
  };
  for (const [name, end] of Object.entries(endings)) {
    const workers = new GatedWorkers();
    const receiver = new BodyReceiver(workers, { folder: tmpdir() });
    const lease = await newLease(t);
    const body = new FakeBody();
    const abort = new AbortController();
    let settled = false;
    const options = optionsOf(body, lease, {
      maxBytes: 2 * SHARED_BUFFER_BYTES + 100_000,
      signal: abort.signal,
    });
    const receiving = receiver.receive(options).finally(() => {
      settled = true;
    });
    receiving.catch(() => undefined);
    body.send(randomBytes(2 * SHARED_BUFFER_BYTES + 100));
    end(body, abort);
    await settle();
    t.notOk(settled, name);
    while (workers.waiting.length > 1) await workers.release();
    t.notOk(settled, `${name}: one is left`);
    await workers.release();
    if (name === 'refused') await rejectsWith(t, receiving, 'MaxFileSize');
    else t.match(await receiving, { ended: name, sizeBytes: 2 * SHARED_BUFFER_BYTES + 100 });
    t.equal(body.discarded, name === 'refused' || name === 'stopped', `${name}: the rest is thrown away`);
    t.match(receiver.counters(), { active: 0, sharedBuffers: { lent: 0 } });
  }
});

t.test('receiver: the cap applies to declared and to sent bytes; no refused body is read', async (t) => {
  const lease = await newLease(t);
  const receiver = new BodyReceiver(inlineWorkers().workers, { folder: tmpdir() });
  const declared = new FakeBody(11);
  await rejectsWith(t, receiver.receive(optionsOf(declared, lease, { maxBytes: 10 })), 'MaxFileSize');
  t.ok(declared.discarded);
  t.equal(declared.sink, undefined);
  const chunked = new FakeBody();
  const receiving = receiver.receive(optionsOf(chunked, lease, { maxBytes: 10, tooLong: 'WrongPart' }));
  chunked.send(new Uint8Array(10));
  t.notOk(chunked.discarded);
  chunked.send(new Uint8Array(1));
  await rejectsWith(t, receiving, 'WrongPart');
  const exact = new FakeBody(10);
  const fits = receiver.receive(optionsOf(exact, lease, { maxBytes: 10 }));
  exact.send(new Uint8Array(10));
  exact.end();
  t.match(await fits, { ended: 'complete', sizeBytes: 10 });
});

t.test('receiver: an empty body, and one that was lost before its first byte', async (t) => {
  const lease = await newLease(t);
  const receiver = new BodyReceiver(inlineWorkers().workers, { folder: tmpdir() });
  const empty = new FakeBody(0);
  const receiving = receiver.receive(optionsOf(empty, lease, { sha256: true }));
  empty.end();
  const { sha256, ...rest } = await receiving;
  t.same(rest, { ended: 'complete', sizeBytes: 0, crc32: 0 });
  t.equal(sha256?.toString('hex').slice(0, 8), 'e3b0c442');
  const lost = new FakeBody(5);
  const losing = receiver.receive(optionsOf(lost, lease));
  lost.lose();
  t.match(await losing, { ended: 'lost', sizeBytes: 0, crc32: 0 });
  t.equal(receiver.counters().lost, 1);
  const late = new FakeBody();
  const stopped = await receiver.receive(optionsOf(late, lease, { signal: AbortSignal.abort() }));
  t.match(stopped, { ended: 'stopped', sizeBytes: 0 });
});

t.test(
  'receiver: a chunk with another checksum than the expected one leaves the part as it was',
  async (t) => {
    const lease = await newLease(t);
    const receiver = new BodyReceiver(inlineWorkers().workers, { folder: tmpdir() });
    const send = async (bytes: Uint8Array, expectedCrc32: number) => {
      const body = new FakeBody(bytes.length);
      const receiving = receiver.receive(optionsOf(body, lease, { expectedCrc32 }));
      body.send(bytes.subarray(0, 100));
      body.send(bytes.subarray(100));
      body.end();
      return receiving;
    };
    const good = randomBytes(256 * 1024);
    t.match(await send(good, crcOf(good)), { crc32: crcOf(good) });
    const evil = randomBytes(256 * 1024);
    t.match(await send(evil, crcOf(good)), { ended: 'complete', crc32: crcOf(evil) });
    t.ok(contentOf(lease, good.length).equals(good));
  },
);

t.test(
  'receiver: the entry of a chunk is written with a whole chunk alone, in a buffer or in pieces',
  async (t) => {
    const chunk = randomBytes(256 * 1024);
    const crc32 = crcOf(chunk);
    const entry = chunkEntry(0, chunk.length);
    const cases: [buffers: number, sent: Uint8Array, ends: 'end' | 'lose', isThere: boolean][] = [
      [4, chunk, 'end', true],
      [0, chunk, 'end', true],
      [0, chunk, 'lose', false],
      [4, chunk, 'lose', false],
      [4, chunk.subarray(1), 'end', false],
      [0, chunk.subarray(1), 'end', false],
      [0, randomBytes(chunk.length), 'end', false],
      [4, randomBytes(chunk.length), 'end', false],
    ];
    for (const [count, sent, ends, isThere] of cases) {
      const lease = await newLease(t);
      const sharedBuffers = new SharedBuffers(count);
      const receiver = new BodyReceiver(inlineWorkers().workers, { folder: tmpdir(), sharedBuffers });
      const body = new FakeBody();
      // A short body has its own checksum: the length alone tells that it is no chunk.
      const expectedCrc32 = sent.length < chunk.length ? crcOf(sent) : crc32;
      const options = { expectedCrc32, entry, maxBytes: chunk.length };
      const receiving = receiver.receive(optionsOf(body, lease, options));
      body.send(sent.subarray(0, 1000));
      body.send(sent.subarray(1000));
      body[ends]();
      await receiving;
      const found = Buffer.from(contentOf(lease, 7, entry.position));
      const expected = isThere ? Buffer.from(packChunkEntry(entry, crc32)) : Buffer.alloc(0);
      t.same(found, expected, `${count} buffers, ${sent.length} bytes, ${ends}`);
    }
  },
);

t.test(
  'receiver: without room for its entry a chunk is StorageFull, in a task and on the main thread',
  async (t) => {
    const chunk = randomBytes(256 * 1024);
    const entry = { chunkNumber: 0, position: Number.MAX_SAFE_INTEGER };
    for (const count of [0, 4]) {
      const options = { expectedCrc32: crcOf(chunk), entry, maxBytes: chunk.length };
      const sharedBuffers = new SharedBuffers(count);
      const receiver = new BodyReceiver(inlineWorkers().workers, { folder: tmpdir(), sharedBuffers });
      const body = new FakeBody();
      // In the checkout: /tmp may be a tmpfs, whose files take a byte at any position.
      const lease = await newLease(t, t.testdir());
      const receiving = receiver.receive(optionsOf(body, lease, options));
      body.send(chunk);
      body.end();
      await rejectsWith(t, receiving, 'StorageFull');
    }
  },
);

// covers S177
t.test('receiver: without a free buffer a body is refused while the disk does not answer', async (t) => {
  const lease = await newLease(t);
  let isStill = false;
  const receiver = new BodyReceiver(inlineWorkers().workers, {
    folder: tmpdir(),
    sharedBuffers: new SharedBuffers(0),
    standsStill: () => isStill,
  });
  const body = new FakeBody();
  const receiving = receiver.receive(optionsOf(body, lease));
  const bytes = randomBytes(1_000);
  body.send(bytes);
  isStill = true;
  body.send(randomBytes(1_000));
  await rejectsWith(t, receiving, 'TaskTimedOut');
  t.ok(contentOf(lease, bytes.length).equals(bytes), 'nothing is written on the event loop meanwhile');
});

// covers R75 S159
t.test(
  'receiver: a full disk is StorageFull, in a task and on the main thread; a full queue is Overloaded',
  async (t) => {
    const full = { ...(await newLease(t)), fd: openSync('/dev/full', 'r+') };
    for (const sharedBuffers of [4, 0]) {
      const receiver = new BodyReceiver(inlineWorkers().workers, {
        folder: tmpdir(),
        sharedBuffers: new SharedBuffers(sharedBuffers),
      });
      const body = new FakeBody();
      const receiving = receiver.receive(optionsOf(body, full));
      body.send(randomBytes(SHARED_BUFFER_BYTES));
      body.end();
      await rejectsWith(t, receiving, 'StorageFull');
      t.equal(receiver.counters().sharedBuffers.lent, 0);
    }
    const overloaded: WorkerPort = { run: async () => ({ ok: false, error: 'Overloaded' }) };
    const body = new FakeBody();
    const receiving = new BodyReceiver(overloaded, { folder: tmpdir() }).receive(
      optionsOf(body, await newLease(t)),
    );
    body.send(randomBytes(SHARED_BUFFER_BYTES));
    await rejectsWith(t, receiving, 'Overloaded');
    t.ok(body.discarded);
  },
);

t.test('receiver: the limiter delays the client, and the answer until all is paid', async (t) => {
  const lease = await newLease(t);
  const receiver = new BodyReceiver(inlineWorkers().workers, { folder: tmpdir() });
  let nowMs = 0;
  let turn: (() => void) | undefined;
  const throttle = new Throttle({
    settings: new LiveSettings({ FileUploadBytesPerSecond: 1_000_000 }),
    elapsed: () => nowMs,
    timer: (_delayMs, run) => {
      turn = run;
      return () => undefined;
    },
  });
  const pass = async (durationMs: number) => {
    for (const end = nowMs + durationMs; nowMs < end; ) {
      nowMs += 100;
      turn?.();
      await settle();
    }
  };
  const throttled = throttle.open('upload', { userId: '1', address: '' });
  const body = new FakeBody();
  let settled = false;
  const receiving = receiver.receive(optionsOf(body, lease, { throttled })).then((received) => {
    settled = true;
    return received;
  });
  body.send(randomBytes(500_000));
  t.ok(body.paused);
  await pass(300);
  t.ok(body.paused);
  await pass(200);
  t.notOk(body.paused, 'paid');
  body.send(randomBytes(500_000));
  body.end();
  await pass(300);
  t.notOk(settled, 'the body is there, its time has not come');
  await pass(300);
  t.match(await receiving, { ended: 'complete', sizeBytes: 1_000_000 });
  throttled.leave();
});

t.test('shared buffers: only as many as were lent at once, and none above the bound', async (t) => {
  const sharedBuffers = new SharedBuffers(3);
  for (let round = 0; round < 100; round++) {
    const taken = [sharedBuffers.take(), sharedBuffers.take()];
    for (const sharedBuffer of taken) {
      if (sharedBuffer?.filledBytes !== 0) t.fail(`round ${round}: a buffer is not empty`);
      sharedBuffer?.fill(new Uint8Array(10));
      if (sharedBuffer !== undefined) sharedBuffers.giveBack(sharedBuffer);
    }
  }
  t.same(sharedBuffers.counters(), { lent: 0, made: 2, missed: 0 });
  const all = [sharedBuffers.take(), sharedBuffers.take(), sharedBuffers.take(), sharedBuffers.take()];
  t.equal(all[3], undefined);
  t.equal(new Set(all).size, 4);
  t.same(sharedBuffers.counters(), { lent: 3, made: 3, missed: 1 });
});

t.test('shared buffers: users share them, each with one to fill and at least one at work', async (t) => {
  const sharedBuffers = new SharedBuffers(10);
  const shares = Array.from({ length: 12 }, () => {
    sharedBuffers.join();
    return sharedBuffers.share(4);
  });
  t.same(shares, [4, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
  for (let user = 0; user < 10; user++) sharedBuffers.leave();
  t.equal(sharedBuffers.share(4), 4, 'two are left');
});

t.test('receiver: many uploads at once pause their clients earlier, and all continue', async (t) => {
  const workers = new GatedWorkers();
  const receiver = new BodyReceiver(workers, { folder: tmpdir(), sharedBuffers: new SharedBuffers(8) });
  const uploads = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const lease = await newLease(t);
      const body = new FakeBody();
      return { body, receiving: receiver.receive(optionsOf(body, lease)) };
    }),
  );
  const bytes = randomBytes(SHARED_BUFFER_BYTES);
  for (const { body } of uploads) body.send(bytes);
  t.ok(
    uploads.every(({ body }) => body.paused),
    'one task each',
  );
  await workers.releaseAll();
  t.notOk(uploads.some(({ body }) => body.paused));
  for (const { body } of uploads) body.end();
  for (const { receiving } of uploads)
    t.match(await receiving, { ended: 'complete', sizeBytes: SHARED_BUFFER_BYTES, crc32: crcOf(bytes) });
  t.match(receiver.counters(), { overflowBytes: 0, sharedBuffers: { lent: 0, missed: 0 } });
});
