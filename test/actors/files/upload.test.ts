/**
 * v1 uploads, actors only: the order of refusals, the life cycle, what the upload slots and the uploader's actor each own, and
 * what a crash at every step leaves.
 */

import t, { type Test } from 'tap';
import { upload } from '../../../src/actors/files/v1/upload.ts';
import { UPLOAD_SLOTS_ID, uploadSlots } from '../../../src/actors/files/v1/upload-slots.ts';
import { networksOf } from '../../../src/domain/limits/networks.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { MINUTE_MS, SECOND_MS } from '../../../src/domain/time.ts';
import {
  createUploadActors,
  SampleFile,
  type UploadActors,
  type UploadCall,
} from '../../support/files/upload-world.ts';
import { rejectsWith } from '../../support/rejections.ts';

const ADA = '1001';
const BOB = '1002';
/** A chunk is in the journal so long after its answer. */
const JOURNALED_MS = 50;

/** An upload of so many chunks that Ada has opened. */
async function opened(
  chunks: number,
  lastBytes?: number,
  options?: Parameters<typeof createUploadActors>[0],
) {
  const uploads = createUploadActors(options);
  const file = new SampleFile(1, chunks, lastBytes);
  await uploads.init(ADA, file);
  return { uploads, file };
}

async function uploaded(uploads: UploadActors, userId: string, file: SampleFile) {
  let last: unknown;
  for (const at of file.chunks.keys()) last = await uploads.part(userId, file, at);
  return last as { chunkNumber: number; fileId: string };
}

/** Nothing is left over, no slot is taken, nothing waits. */
async function isClean(t: Test, uploads: UploadActors, published = 0) {
  await uploads.actors.settle();
  t.same(
    {
      faults: uploads.world.faults(),
      slots: await uploads.slots(),
      checksumsInUse: uploads.actors.system.count('crc32'),
      published: uploads.world.published.size,
      bugs: uploads.actors.bugs,
    },
    { faults: [], slots: [], checksumsInUse: 0, published, bugs: [] },
  );
}

t.test('upload: init, parts in any order, the last one answers with the file', async (t) => {
  const uploads = createUploadActors();
  const file = new SampleFile(1, 4);
  t.equal(await uploads.init(ADA, file), file.uploadId);
  t.same(uploads.world.calls, ['reserve', 'create', 'createPart']);
  for (const at of [3, 0, 2]) t.same(await uploads.part(ADA, file, at), { chunkNumber: at, fileId: null });
  t.same(await uploads.part(ADA, file, 0), { chunkNumber: 0, fileId: null }, 'again: the same answer');
  const last = await uploads.part(ADA, file, 1);
  t.match(last, { chunkNumber: 1, fileId: /^[0-9]+$/ });
  t.same(uploads.world.calls.slice(3), ['publish', 'complete'], 'bytes first, then the message');
  await isClean(t, uploads, 1);
});

t.test(
  'upload: one that is open ends when its owner is blocked, and no other upload is touched',
  async (t) => {
    const uploads = createUploadActors();
    const { actors, world } = uploads;
    const [file, other] = [new SampleFile(1, 4), new SampleFile(2, 4)];
    const drop = async (userId: string) => {
      await actors.system.tell(upload, userId, { type: 'dropUpload' });
      await actors.settle();
    };
    await drop(ADA);
    await uploads.init(ADA, file);
    await uploads.part(ADA, file, 0);
    await uploads.init(BOB, other);
    await drop(ADA);
    await actors.settle();
    t.same(
      (await uploads.slots()).map(({ userId }) => userId),
      [BOB],
    );
    t.same(
      [...world.parts.keys()].filter((name) => name.startsWith(`${ADA}/`)),
      [],
    );
    await rejectsWith(t, uploads.part(ADA, file, 1), 'InvalidID');
    await drop(ADA);
    await uploaded(uploads, BOB, other);
    await drop(BOB);
    await isClean(t, uploads, 1);
  },
);

t.test('upload: one of a single byte completes at once', async (t) => {
  const { uploads, file } = await opened(1, 1);
  t.match(await uploads.part(ADA, file, 0), { fileId: String });
  await isClean(t, uploads, 1);
});

// covers R29
t.test('upload: init refuses in the order 1309, 1301, 1302, 1303, 1304, 1310', async (t) => {
  const settings = new LiveSettings({ FileMaxSizeBytes: 2_000_000, FileBlockedExtensions: 'exe' });
  const uploads = createUploadActors({ settings });
  const file = new SampleFile(1, 2);
  const sized = (sizeBytes: number) => Object.assign(Object.create(file) as SampleFile, { sizeBytes });
  await uploads.init(ADA, file);
  await rejectsWith(t, uploads.init(ADA, sized(0), 'x.exe'), 'InvalidFileName');
  for (const sizeBytes of [0, -1]) await rejectsWith(t, uploads.init(ADA, sized(sizeBytes)), 'EmptyFile');
  await rejectsWith(t, uploads.init(ADA, sized(2_000_001)), 'MaxFileSize');
  await rejectsWith(t, uploads.init(ADA, file), 'AlreadyDownload');
  await rejectsWith(t, uploads.init(BOB, file), 'CRC32AlreadyUsed');
  for (let at = 0; at < 59; at += 1) await uploads.init(String(2000 + at), new SampleFile(100 + at, 1));
  await rejectsWith(t, uploads.init(BOB, file), 'TooManyDownloads');
  await rejectsWith(t, uploads.init(ADA, file), 'AlreadyDownload');
  await uploads.cancel('2000', new SampleFile(100, 1).uploadId);
  uploads.world.fault = (call) => (call === 'create' ? { error: 'Forbidden' } : undefined);
  await rejectsWith(t, uploads.init(BOB, file), 'CRC32AlreadyUsed');
  await rejectsWith(t, uploads.init(BOB, new SampleFile(2, 1)), 'Forbidden');
  uploads.world.fault = (call) => (call === 'create' ? { error: 'LinkedMessageNotFound' } : undefined);
  await rejectsWith(t, uploads.init(BOB, new SampleFile(2, 1)), 'LinkedMessageNotFound');
  t.equal((await uploads.slots()).length, 59, 'a refusal takes no slot');
});

// covers S56
t.test(
  'upload: a network has half of the slots, over a restart too; another one still gets in',
  async (t) => {
    const uploads = createUploadActors();
    const address = (last: number) => networksOf(`2001:db8:0:${last.toString(16)}::1`);
    for (let at = 0; at < 30; at += 1)
      await uploads.init(String(2000 + at), new SampleFile(100 + at, 1), 'a.bin', address(1));
    await rejectsWith(t, uploads.init(BOB, new SampleFile(2, 1), 'a.bin', address(1)), 'TooManyDownloads');
    await uploads.actors.restart();
    await rejectsWith(t, uploads.init(BOB, new SampleFile(2, 1), 'a.bin', address(1)), 'TooManyDownloads');
    for (let at = 30; at < 45; at += 1)
      await uploads.init(String(2000 + at), new SampleFile(100 + at, 1), 'a.bin', address(at * 256));
    await rejectsWith(t, uploads.init(BOB, new SampleFile(2, 1), 'a.bin', address(2)), 'TooManyDownloads');
    await uploads.init(BOB, new SampleFile(2, 1), 'a.bin', networksOf('192.0.2.1'));
    t.equal((await uploads.slots()).length, 46);
    await uploads.cancel('2000', new SampleFile(100, 1).uploadId);
    await uploads.init(ADA, new SampleFile(3, 1), 'a.bin', address(1));
  },
);

t.test('upload: two users race for one CRC-32, one wins', async (t) => {
  const uploads = createUploadActors();
  const file = new SampleFile(1, 1);
  for (let round = 0; round < 20; round += 1) {
    const results = await Promise.allSettled([ADA, BOB, '3', '4'].map((who) => uploads.init(who, file)));
    t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
    const winner = (await uploads.slots())[0]?.userId ?? '';
    await uploads.cancel(winner, file.uploadId);
  }
  await isClean(t, uploads);
});

t.test('upload: parts refuse 1305, 1306, 1308; a foreign id is like an unknown one', async (t) => {
  const uploads = createUploadActors();
  const file = new SampleFile(1, 3);
  await rejectsWith(t, uploads.part(ADA, file, 0), 'InvalidID');
  await uploads.init(ADA, file);
  await rejectsWith(t, uploads.part(BOB, file, 0), 'InvalidID');
  await rejectsWith(t, uploads.cancel(BOB, file.uploadId), 'InvalidID');
  for (const at of [-1, 3, 2 ** 53, 1.5, Number.NaN])
    await rejectsWith(t, uploads.part(ADA, file, at, 7), 'InvalidPart');
  t.notOk(uploads.actors.system.exists(upload, BOB), 'asking creates nothing');
});

/** Asks for a replacement, as the route does before it writes. */
const replacing = (uploads: UploadActors, { uploadId }: SampleFile, chunkNumber: number, uploadKey: string) =>
  uploads.actors.system.ask(upload, ADA, {
    type: 'replaceChunk',
    uploadKey,
    uploadId,
    chunkNumber,
    crc32: chunkNumber + 7,
  });

// covers R30
t.test(
  'upload: an announced chunk is missing until it is written; the announcement is refused 1305, 1306, 1308',
  async (t) => {
    const { uploads, file } = await opened(3);
    const { uploadKey } = await uploads.write(ADA, file, 0);
    await rejectsWith(t, replacing(uploads, file, 3, uploadKey), 'InvalidPart');
    await rejectsWith(t, replacing(uploads, file, 0, 'another'), 'InvalidID');
    await uploads.part(ADA, file, 0);
    await uploads.announce(ADA, file, 0, 7);
    t.same(await uploads.missing(ADA, file), [0, 1, 2]);
    await rejectsWith(t, uploads.store(ADA, uploadKey, file, 0), 'ChecksumError');
    await uploads.part(ADA, file, 0, 7);
    for (let times = 1; times < 400; times += 1) await uploads.announce(ADA, file, 0, 8 + times);
    await rejectsWith(t, uploads.announce(ADA, file, 0), 'ChecksumError');
    await uploads.cancel(ADA, file.uploadId);
    await rejectsWith(t, replacing(uploads, file, 0, uploadKey), 'InvalidID');
    await isClean(t, uploads);
  },
);

t.test('upload: while a file is being published its chunks are not replaced', async (t) => {
  const { uploads, file } = await opened(2);
  const { uploadKey } = await uploads.write(ADA, file, 0);
  await uploads.part(ADA, file, 0);
  let go: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  uploads.world.hold = (call) => (call === 'publish' ? held : undefined);
  const last = uploads.part(ADA, file, 1);
  await uploads.actors.settle();
  await rejectsWith(t, uploads.part(ADA, file, 0, 7), 'ChecksumError');
  await rejectsWith(t, replacing(uploads, file, 0, uploadKey), 'ChecksumError');
  go();
  t.match(await last, { fileId: String });
  await isClean(t, uploads, 1);
});

t.test('upload: a chunk that two nodes wrote is the one reported last, if the copy shows it', async (t) => {
  for (const isWrittenLast of [true, false]) {
    const { uploads, file } = await opened(2);
    const { uploadKey, fileId } = await uploads.write(ADA, file, 0);
    // The other node found the chunk missing too.
    await uploads.part(ADA, file, 0, 7);
    if (isWrittenLast) uploads.world.write(ADA, fileId, 0, file.crcOf(0));
    await uploads.store(ADA, uploadKey, file, 0);
    const last = uploads.part(ADA, file, 1);
    if (!isWrittenLast) {
      await rejectsWith(t, last, 'ChecksumError');
      t.same(await uploads.missing(ADA, file), [0]);
      t.match(await uploads.part(ADA, file, 0), { fileId: String });
    } else t.match(await last, { fileId: String });
    await isClean(t, uploads, 1);
  }
});

t.test('upload: a full-file mismatch is 1308 and ends it', async (t) => {
  const uploads = createUploadActors();
  const file = new SampleFile(1, 2);
  const lying = Object.assign(Object.create(file) as SampleFile, { uploadId: 5 });
  await uploads.init(ADA, lying);
  await uploads.part(ADA, lying, 0);
  await rejectsWith(t, uploads.part(ADA, lying, 1), 'ChecksumError');
  await rejectsWith(t, uploads.part(ADA, lying, 1), 'InvalidID');
  await isClean(t, uploads);
  t.equal(await uploads.init(ADA, file), file.uploadId, 'the next one opens at once');
});

t.test('upload: CRC-32 0 is a valid upload id', async (t) => {
  const uploads = createUploadActors();
  const file = new SampleFile(1, 2);
  const zero = Object.assign(Object.create(file) as SampleFile, { uploadId: 0 });
  t.equal(await uploads.init(ADA, zero), 0);
  t.same(await uploads.part(ADA, zero, 0), { chunkNumber: 0, fileId: null });
  await uploads.cancel(ADA, 0);
  await isClean(t, uploads);
});

// covers R30
t.test(
  'upload: the finishing part again within 10 minutes is the same answer, any other part 1305',
  async (t) => {
    const { uploads, file } = await opened(2);
    const done = await uploaded(uploads, ADA, file);
    t.same(await uploads.part(ADA, file, 1), done);
    await rejectsWith(t, uploads.part(ADA, file, 0), 'InvalidID');
    await rejectsWith(t, uploads.part(ADA, file, 1, 9), 'InvalidID');
    await rejectsWith(t, uploads.part(BOB, file, 1), 'InvalidID');
    await rejectsWith(t, uploads.cancel(ADA, file.uploadId), 'InvalidID');
    await uploads.actors.restart();
    await uploads.actors.advance(10 * MINUTE_MS - 1);
    t.same(await uploads.part(ADA, file, 1), done, 'and over a restart');
    await uploads.actors.advance(1);
    await rejectsWith(t, uploads.part(ADA, file, 1), 'InvalidID');
  },
);

t.test(
  'upload: a new one with the CRC-32 of a finished one opens at once and wins over the memory',
  async (t) => {
    const { uploads, file } = await opened(2);
    const first = await uploaded(uploads, ADA, file);
    t.equal(await uploads.init(ADA, file), file.uploadId);
    t.same(await uploads.part(ADA, file, 1), { chunkNumber: 1, fileId: null });
    const second = await uploads.part(ADA, file, 0);
    t.not(second.fileId, first.fileId);
    t.same(await uploads.part(ADA, file, 0), second);
    await rejectsWith(t, uploads.part(ADA, file, 1), 'InvalidID');
    await isClean(t, uploads, 2);
  },
);

t.test('upload: the finishing part sent twice at once: one completion, both get it', async (t) => {
  const { uploads, file } = await opened(1);
  const answers = await Promise.all([1, 2, 3].map(() => uploads.part(ADA, file, 0)));
  t.match(answers, [{ fileId: String }, answers[0], answers[0]]);
  t.equal(uploads.world.calls.filter((call) => call === 'publish').length, 1);
  await isClean(t, uploads, 1);
});

t.test('upload: cancelled, the slot is free before the answer, message and bytes go', async (t) => {
  const uploads = createUploadActors();
  const file = new SampleFile(1, 2);
  for (let round = 0; round < 5; round += 1) {
    await uploads.init(ADA, file);
    await uploads.part(ADA, file, 0);
    t.equal(await uploads.cancel(ADA, file.uploadId), null);
    t.same(await uploads.slots(), []);
    await rejectsWith(t, uploads.cancel(ADA, file.uploadId), 'InvalidID');
    await rejectsWith(t, uploads.part(ADA, file, 0), 'InvalidID');
  }
  await isClean(t, uploads);
});

// covers R106
t.test('upload: inactive ones expire; a stored chunk prolongs, a refused one does not', async (t) => {
  const { uploads, file } = await opened(3, undefined, {
    settings: new LiveSettings({ UploadInactivitySeconds: 60 }),
  });
  await uploads.actors.advance(59 * SECOND_MS);
  await uploads.part(ADA, file, 0);
  await uploads.actors.advance(30 * SECOND_MS);
  await uploads.part(ADA, file, 0);
  await rejectsWith(t, uploads.part(ADA, file, 7, 1), 'InvalidPart');
  const status = await uploads.actors.system.query(upload, ADA, {
    type: 'status',
    uploadId: file.uploadId,
  });
  t.equal(status.expiresMs, uploads.actors.clock.nowMs + 30 * SECOND_MS);
  t.same((status as unknown as { missing: number[] }).missing, [1, 2]);
  await uploads.actors.advance(30 * SECOND_MS - 1);
  t.equal((await uploads.slots()).length, 1);
  await uploads.actors.advance(1);
  await isClean(t, uploads);
  await rejectsWith(t, uploads.part(ADA, file, 1), 'InvalidID');
});

t.test('upload: past its time it is gone before its timer has run, and makes room when asked', async (t) => {
  const { uploads, file } = await opened(1, undefined, {
    settings: new LiveSettings({ UploadInactivitySeconds: 600 }),
  });
  const stale = () => uploads.actors.system.query(uploadSlots, UPLOAD_SLOTS_ID, { type: 'stale' });
  uploads.actors.clock.nowMs += 599 * SECOND_MS;
  t.same(await stale(), []);
  uploads.actors.settings.set('UploadInactivitySeconds', 599);
  await rejectsWith(t, uploads.part(ADA, file, 0), 'InvalidID');
  await rejectsWith(t, uploads.init(ADA, file), 'AlreadyDownload');
  for (const { userId, uploadKey } of await stale())
    await uploads.actors.system.ask(upload, userId, {
      type: 'expireUpload',
      uploadKey,
      waits: true,
    });
  t.same(await uploads.slots(), []);
  t.equal(await uploads.init(ADA, file), file.uploadId);
});

// covers R29
t.test('upload: a failing step of init gives everything back', async (t) => {
  const expected: [UploadCall, string][] = [
    ['reserve', 'StorageFull'],
    ['create', 'ChartApiFileError'],
    ['createPart', 'FileStorageFailed'],
  ];
  for (const [failing, row] of expected) {
    for (const happens of [false, true]) {
      const uploads = createUploadActors();
      const file = new SampleFile(1, 1);
      uploads.world.fault = (call) =>
        call === failing ? { error: row as 'StorageFull', happens } : undefined;
      await rejectsWith(t, uploads.init(ADA, file), row);
      await isClean(t, uploads);
      uploads.world.fault = () => undefined;
      t.equal(await uploads.init(ADA, file), file.uploadId);
    }
  }
});

t.test(
  'upload: a failing completion is 1013 or 1312 of the storage, 403 or 1310 of the module',
  async (t) => {
    const expected: [UploadCall, string, string][] = [
      ['publish', 'StorageFull', 'StorageFull'],
      ['publish', 'FileStorageFailed', 'FileStorageFailed'],
      ['complete', 'ChartApiFileError', 'ChartApiFileError'],
      ['complete', 'Forbidden', 'Forbidden'],
    ];
    for (const [failing, error, row] of expected) {
      for (const happens of [false, true]) {
        const { uploads, file } = await opened(2);
        uploads.world.fault = (call) =>
          call === failing ? { error: error as 'StorageFull', happens } : undefined;
        await rejectsWith(t, uploaded(uploads, ADA, file), row);
        await rejectsWith(t, uploads.part(ADA, file, 1), 'InvalidID');
        await isClean(t, uploads);
      }
    }
  },
);

t.test(
  'upload: a publish that is not done in time is no failure: 503, and the repeat gets the file',
  async (t) => {
    for (const happens of [false, true]) {
      const { uploads, file } = await opened(2);
      uploads.world.fault = (call) =>
        call === 'publish' ? { error: 'TaskTimedOut' as const, happens } : undefined;
      await rejectsWith(t, uploaded(uploads, ADA, file), 'TaskTimedOut');
      await rejectsWith(t, uploads.init(ADA, new SampleFile(2, 1)), 'AlreadyDownload');
      const repeat = rejectsWith(t, uploads.part(ADA, file, 1), 'TaskTimedOut');
      await uploads.actors.advance(10 * SECOND_MS);
      await repeat;
      // A crash in between forgets nothing.
      await uploads.actors.restart();
      await uploads.actors.settle();
      uploads.world.fault = () => undefined;
      const again = uploads.part(ADA, file, 1);
      await uploads.actors.advance(10 * SECOND_MS);
      t.match(await again, { chunkNumber: 1, fileId: /^[0-9]+$/ });
      await isClean(t, uploads, 1);
    }
  },
);

t.test('upload: bytes that a restart cannot read yet are neither emptied nor given up', async (t) => {
  const { uploads, file } = await opened(2);
  uploads.world.hold = (call) => (call === 'publish' ? new Promise<void>(() => {}) : undefined);
  uploaded(uploads, ADA, file).catch(() => t.fail('a caller of a crash gets no answer'));
  await uploads.actors.settle();
  uploads.world.hold = () => undefined;
  const { hashRanges } = uploads.world.files;
  const { files } = uploads.world.ports as { files: { hashRanges: typeof hashRanges } };
  files.hashRanges = async () => ({ ok: false, error: 'TaskTimedOut' });
  await uploads.actors.restart();
  await uploads.actors.settle();
  t.equal(uploads.world.published.size, 0);
  t.notOk(uploads.world.calls.includes('remove'));
  t.equal(uploads.world.calls.filter((call) => call === 'createPart').length, 1, 'at the opening alone');
  files.hashRanges = hashRanges;
  await uploads.actors.advance(10 * SECOND_MS);
  await isClean(t, uploads, 1);
});

t.test('upload: what cannot be cleaned up is tried until it can, and holds up no new upload', async (t) => {
  const { uploads, file } = await opened(1);
  uploads.world.fault = (call) =>
    call === 'cancel'
      ? { error: 'ChartApiFileError' }
      : call === 'remove'
        ? { error: 'FileStorageFailed' }
        : undefined;
  await uploads.cancel(ADA, file.uploadId);
  t.equal(await uploads.init(ADA, file), file.uploadId);
  await uploads.cancel(ADA, file.uploadId);
  await uploads.actors.advance(30 * MINUTE_MS);
  t.equal(uploads.world.messages.size, 2);
  await uploads.actors.restart();
  uploads.world.fault = () => undefined;
  await uploads.actors.advance(6 * MINUTE_MS);
  await isClean(t, uploads);
});

t.test('upload: a chat module that does not answer for long is 1310 before anything is tried', async (t) => {
  const uploads = createUploadActors();
  const file = new SampleFile(1, 1);
  uploads.world.fault = (call) =>
    call === 'create' || call === 'cancel' ? { error: 'ChartApiFileError', happens: true } : undefined;
  for (let round = 0; round < 20; round += 1)
    await rejectsWith(t, uploads.init(ADA, file), 'ChartApiFileError');
  t.equal(uploads.world.calls.filter((call) => call === 'create').length, 16);
  uploads.world.fault = () => undefined;
  await uploads.actors.advance(6 * MINUTE_MS);
  await isClean(t, uploads);
  t.equal(await uploads.init(ADA, file), file.uploadId);
});

// covers R26 R30 S150
t.test(
  'upload: a crash before every call, and after it: complete or absent, and the slot free',
  async (t) => {
    const steps: UploadCall[] = ['reserve', 'create', 'createPart', 'publish', 'complete'];
    for (const step of steps) {
      for (const done of [false, true]) {
        const uploads = createUploadActors();
        const file = new SampleFile(1, 2);
        let crashed = false;
        const crashes = (call: UploadCall) => {
          if (crashed || call !== step) return false;
          crashed = true;
          return true;
        };
        if (done) uploads.world.swallow = crashes;
        else uploads.world.hold = (call) => (crashes(call) ? new Promise<void>(() => {}) : undefined);
        const run = async () => {
          await uploads.init(ADA, file);
          await uploaded(uploads, ADA, file);
        };
        run().catch(() => t.fail('a caller of a crash gets no answer'));
        for (let turn = 0; turn < 400 && !crashed; turn += 1)
          await new Promise((resolve) => setImmediate(resolve));
        t.ok(crashed, step);
        uploads.world.hold = () => undefined;
        uploads.world.reserved.clear();
        await uploads.actors.restart();
        await uploads.actors.settle();
        await uploads.sweep();
        if (step === 'publish' || step === 'complete')
          t.match(await uploads.part(ADA, file, 1), { fileId: String }, `${step}: the client asks again`);
        else {
          t.same(await uploads.slots(), [], `${step}: no caller learned of it, its slot is free`);
          await uploads.init(ADA, file);
          t.match(await uploaded(uploads, ADA, file), { fileId: String });
        }
        await isClean(t, uploads, 1);
      }
    }
  },
);

t.test('upload: after an unclean start chunks that are not there are missing again', async (t) => {
  const { uploads, file } = await opened(4);
  for (const at of [0, 1, 2]) await uploads.part(ADA, file, at);
  await uploads.actors.advance(JOURNALED_MS);
  await uploads.actors.restart();
  uploads.world.reserved.clear();
  const part = uploads.world.parts.get(`${ADA}/1001`);
  part?.set(1, 99);
  part?.delete(2);
  const [slot] = await uploads.slots();
  const check = (rehash: boolean) =>
    uploads.actors.system.ask(upload, ADA, {
      type: 'checkUpload',
      uploadKey: slot?.uploadKey ?? '',
      rehash,
    });
  t.same(await check(false), { lost: 0, found: 0 }, 'a clean stop needs no look');
  t.equal(uploads.world.reserved.size, 1, 'its room is held again');
  t.same(await check(true), { lost: 2, found: 0 });
  t.same(await check(true), { lost: 0, found: 0 });
  t.same(await uploads.part(ADA, file, 3), { chunkNumber: 3, fileId: null });
  await uploads.part(ADA, file, 1);
  t.match(await uploads.part(ADA, file, 2), { fileId: String });
  await isClean(t, uploads, 1);
});

t.test('upload: a completion that a crash found with damaged bytes is open again', async (t) => {
  for (const lose of ['one', 'all', 'bytes of all'] as const) {
    const { uploads, file } = await opened(3);
    uploads.world.hold = (call) => (call === 'publish' ? new Promise<void>(() => {}) : undefined);
    uploaded(uploads, ADA, file).catch(() => t.fail('a caller of a crash gets no answer'));
    await uploads.actors.settle();
    await uploads.actors.settle();
    const name = `${ADA}/1001`;
    if (lose === 'all') uploads.world.parts.delete(name);
    else if (lose === 'bytes of all') for (const at of [0, 1, 2]) uploads.world.parts.get(name)?.set(at, 5);
    else uploads.world.parts.get(name)?.set(1, 5);
    uploads.world.hold = () => undefined;
    await uploads.actors.restart();
    await uploads.actors.settle();
    t.equal(uploads.world.published.size, 0);
    const missing = lose === 'one' ? [1] : [0, 1, 2];
    let last: unknown;
    for (const at of missing) last = await uploads.part(ADA, file, at);
    t.match(last, { fileId: String }, lose);
    await isClean(t, uploads, 1);
  }
});
