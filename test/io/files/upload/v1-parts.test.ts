/**
 * Chunks of v1 uploads with fake bodies, real files and actors: exclusive writing, broken bodies, full disks, and the
 * charges of the bandwidth limiter.
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { MemoryS3 } from '../../../../kit/storage/memory-s3.ts';
import { GatewayError } from '../../../../src/domain/errors.ts';
import { CHUNK_BYTES } from '../../../../src/domain/files/files.ts';
import { LiveSettings } from '../../../../src/domain/settings/settings.ts';
import { filePort } from '../../../../src/io/files/storage/actor-port.ts';
import { LocalStorage } from '../../../../src/io/files/storage/local.ts';
import type { FileStorage } from '../../../../src/io/files/storage/port.ts';
import { RemoteStorage } from '../../../../src/io/files/storage/remote.ts';
import { Throttle } from '../../../../src/io/files/throttle.ts';
import { SharedBuffers } from '../../../../src/io/files/upload/buffers.ts';
import { BodyReceiver } from '../../../../src/io/files/upload/receiver.ts';
import { PartUploads } from '../../../../src/io/files/upload/v1-parts.ts';
import { crc32 } from '../../../../src/workers/crc32.ts';
import { inlineWorkers } from '../../../support/account.ts';
import { ManualClock } from '../../../support/actors/actors.ts';
import { temporaryFolder } from '../../../support/files/file-storage.ts';
import { FakeBody, wholeBody } from '../../../support/files/incoming-body.ts';
import { bucketAt, startS3 } from '../../../support/files/s3-oracle.ts';
import { localStorage } from '../../../support/files/storages.ts';
import { createUploadActors, SampleFile, UploadWorld } from '../../../support/files/upload-world.ts';
import { rejectsWith } from '../../../support/rejections.ts';

const ADA = '1001';

interface SetUpOptions {
  readonly quota?: number;
  readonly lease?: FileStorage['lease'];
  readonly buffersMax?: number;
  /** Other nodes write into the same folder. */
  readonly isShared?: boolean;
  /** Its bytes go there as they arrive. */
  readonly bucket?: MemoryS3;
}

async function setUp(
  t: Test,
  file: SampleFile,
  { quota = 0, lease, buffersMax = 8, isShared = false, bucket }: SetUpOptions = {},
) {
  const folder = temporaryFolder(t);
  const common = { workers: inlineWorkers().workers, isShared, onFault: () => undefined };
  const storage =
    bucket === undefined
      ? new LocalStorage({ ...common, root: folder })
      : new RemoteStorage({
          ...{ ...common, staging: folder, directLogId: 'log-1', retryMs: 1 },
          servers: { 0: { S3: bucketAt(bucket.url) } },
        });
  t.teardown(() => storage.close());
  const { workers } = inlineWorkers();
  const { chatFiles } = new UploadWorld();
  const ports = { workers, files: filePort(storage, workers), chatFiles };
  const settings = new LiveSettings({ FileV1UploadBytesPerSecond: quota });
  const uploads = createUploadActors({ ports, settings });
  const time = new ManualClock();
  const throttle = new Throttle({ settings, elapsed: time.read, timer: time.timer });
  const sharedBuffers = new SharedBuffers(buffersMax);
  const receiver = new BodyReceiver(workers, { folder: temporaryFolder(t), sharedBuffers });
  const parts = new PartUploads({
    storage: lease === undefined ? storage : { lease, isShared },
    receiver,
    throttle,
  });
  await uploads.init(ADA, file);
  const store = (chunkNumber: number, body: FakeBody | undefined, crc32 = file.crcOf(chunkNumber)) =>
    parts.store({
      actors: uploads.actors.system,
      userId: ADA,
      address: '127.0.0.1',
      uploadId: file.uploadId,
      chunkNumber,
      crc32,
      body,
    });
  const names = () => readdirSync(join(folder, ADA));
  const { settle } = uploads.actors;
  /** Waits until so many bodies go into parts: the disk takes its time to open them. */
  const receiving = async (count: number) => {
    while (receiver.counters().active !== count) await new Promise((resolve) => setImmediate(resolve));
  };
  return { uploads, store, names, settle, time, throttle, folder, receiver, receiving };
}

const bytesOf = (file: SampleFile, at: number): Buffer => file.chunks[at] ?? Buffer.alloc(0);

const sent = (file: SampleFile, at: number): FakeBody => wholeBody(bytesOf(file, at));

t.test(
  'part uploads: one request at a time writes a chunk; the next one writes after its failure',
  async (t) => {
    const file = new SampleFile(1, 2);
    const { store, settle, names, folder, receiver, receiving } = await setUp(t, file);
    const [first, second] = [new FakeBody(CHUNK_BYTES), new FakeBody(CHUNK_BYTES)];
    const broken = store(0, first);
    const whole = store(0, second);
    await receiving(1);
    await settle();
    t.equal(receiver.counters().active, 1, 'the second waits');
    first.send(randomBytes(1000));
    first.lose();
    await rejectsWith(t, broken, 'InvalidInput');
    await receiving(1);
    second.send(bytesOf(file, 0));
    second.end();
    t.same(await whole, { chunkNumber: 0, fileId: null });
    const [one, two] = await Promise.all([store(1, sent(file, 1)), store(1, sent(file, 1))]);
    t.same(one, two, 'both get the file');
    const [name = ''] = names();
    t.ok(readFileSync(join(folder, ADA, name)).equals(Buffer.concat(file.chunks)));
  },
);

t.test('part uploads: eight chunks of one upload are received at once, the ninth waits', async (t) => {
  const file = new SampleFile(1, 12);
  const { store, settle, receiver, receiving } = await setUp(t, file);
  const bodies = file.chunks.map((chunk) => new FakeBody(chunk.length));
  const answers = bodies.map((body, at) => store(at, body));
  await receiving(8);
  await settle();
  t.equal(receiver.counters().active, 8);
  for (const [at, body] of bodies.entries()) {
    body.send(bytesOf(file, at));
    body.end();
  }
  t.equal((await Promise.all(answers)).filter(({ fileId }) => fileId !== null).length, 1);
});

t.test(
  'part uploads: a body that is too long, too short, missing or wrong leaves the chunk missing',
  async (t) => {
    const file = new SampleFile(1, 2);
    const { store } = await setUp(t, file);
    await rejectsWith(t, store(0, new FakeBody(CHUNK_BYTES + 1)), 'WrongPart');
    await rejectsWith(t, store(0, new FakeBody(CHUNK_BYTES - 1)), 'ShortPart');
    await rejectsWith(t, store(0, undefined), 'ShortPart');
    const [refused, wanted] = [new FakeBody(CHUNK_BYTES), sent(file, 0)];
    await rejectsWith(t, store(2, refused, 0), 'InvalidPart');
    await rejectsWith(t, store(0, wanted, 8), 'ChecksumError');
    t.same([refused.invited, wanted.invited], [false, true], 'a refused body is not asked for');
    await rejectsWith(t, store(0, sent(file, 0), -1), 'InvalidInput');
    await rejectsWith(t, store(0, sent(file, 0), 7), 'ChecksumError');
    for (const [sizeBytes, row] of [
      [CHUNK_BYTES + 1, 'WrongPart'],
      [CHUNK_BYTES - 1, 'ShortPart'],
    ] as const) {
      const chunked = new FakeBody();
      const answer = store(0, chunked);
      chunked.send(randomBytes(sizeBytes));
      chunked.end();
      await rejectsWith(t, answer, row);
    }
    await store(0, sent(file, 0));
    t.match(await store(1, sent(file, 1)), { fileId: String });
  },
);

t.test('part uploads: a full disk is StorageFull, the chunk may be sent again', async (t) => {
  const file = new SampleFile(1, 2);
  let full = true;
  const { storage: real } = localStorage(t);
  const { store } = await setUp(t, file, {
    async lease(key) {
      if (!full) return await real.lease(key);
      await real.create(key);
      const lease = await real.lease(key);
      const fd = openSync('/dev/full', 'w');
      return {
        ...lease,
        fd,
        async release() {
          closeSync(fd);
          await lease.release();
        },
      };
    },
  });
  await rejectsWith(t, store(0, sent(file, 0)), 'StorageFull');
  full = false;
  t.same(await store(0, sent(file, 0)), { chunkNumber: 0, fileId: null });
});

t.test(
  'part uploads: after a kill a real part gives back what was acknowledged; the file has no table',
  async (t) => {
    const file = new SampleFile(1, 4);
    const { uploads, store, names, folder } = await setUp(t, file);
    for (const at of [0, 2]) await store(at, sent(file, at));
    await uploads.actors.restart();
    const [slot] = await uploads.slots();
    t.same(await uploads.check(ADA, slot?.uploadKey ?? ''), { lost: 0, found: 2 });
    await store(3, sent(file, 3));
    t.match(await store(1, sent(file, 1)), { fileId: String });
    const [name = ''] = names();
    t.ok(readFileSync(join(folder, ADA, name)).equals(Buffer.concat(file.chunks)));
  },
);

t.test('part uploads: a part of 0.1.0, which has no table, completes', async (t) => {
  const file = new SampleFile(1, 3);
  const { uploads, store, names, folder } = await setUp(t, file);
  for (const at of [0, 1]) await store(at, sent(file, at));
  await uploads.actors.advance(50);
  const [part = ''] = names();
  truncateSync(join(folder, ADA, part), 2 * CHUNK_BYTES);
  await uploads.actors.restart();
  const [slot] = await uploads.slots();
  t.same(await uploads.check(ADA, slot?.uploadKey ?? ''), { lost: 0, found: 0 });
  t.match(await store(2, sent(file, 2)), { fileId: String });
  t.ok(readFileSync(join(folder, ADA, names()[0] ?? '')).equals(Buffer.concat(file.chunks)));
});

const OTHER = randomBytes(CHUNK_BYTES);
const OTHER_CRC = crc32(OTHER);

// covers P11 R30 S151
t.test(
  'part uploads: a chunk again with other bytes replaces the former; no late write is published',
  async (t) => {
    const file = new SampleFile(1, 2);
    const { store, names, folder, uploads } = await setUp(t, file);
    await store(0, wholeBody(OTHER), OTHER_CRC);
    const [part = ''] = names();
    const late = openSync(join(folder, ADA, part), 'r+');
    t.same(await store(0, sent(file, 0)), { chunkNumber: 0, fileId: null });
    writeSync(late, OTHER, 0, CHUNK_BYTES, 0);
    await rejectsWith(t, store(1, sent(file, 1)), 'ChecksumError');
    t.same(await uploads.missing(ADA, file), [0], 'a late write before the end is found by the copy');
    t.same(names(), [part], 'no copy is left');
    const { fileId } = await store(0, sent(file, 0));
    writeSync(late, OTHER, 0, CHUNK_BYTES, 0);
    closeSync(late);
    t.same(names(), [fileId]);
    t.ok(readFileSync(join(folder, ADA, fileId ?? '')).equals(Buffer.concat(file.chunks)));
  },
);

t.test(
  'part uploads: other bytes that are cut off, short, long, wrong or without a buffer leave the former',
  async (t) => {
    const file = new SampleFile(1, 2);
    const { store, names, folder, uploads, receiving } = await setUp(t, file);
    await store(0, sent(file, 0));
    const cut = new FakeBody();
    const answer = store(0, cut, OTHER_CRC);
    await receiving(1);
    cut.send(OTHER.subarray(0, 1000));
    cut.lose();
    await rejectsWith(t, answer, 'InvalidInput');
    const short = OTHER.subarray(0, 1000);
    const undeclared = new FakeBody();
    const shortAnswer = store(0, undeclared, crc32(short));
    await receiving(1);
    undeclared.send(short);
    undeclared.end();
    await rejectsWith(t, shortAnswer, 'ShortPart');
    await rejectsWith(t, store(0, new FakeBody(CHUNK_BYTES + 1), OTHER_CRC), 'WrongPart');
    await rejectsWith(t, store(0, sent(file, 0), OTHER_CRC), 'ChecksumError');
    t.same(await uploads.missing(ADA, file), [1]);
    const { fileId } = await store(1, sent(file, 1));
    t.ok(readFileSync(join(folder, ADA, fileId ?? '')).equals(Buffer.concat(file.chunks)));
    t.same(names(), [fileId]);

    const none = await setUp(t, file, { buffersMax: 0 });
    await none.store(0, sent(file, 0));
    await rejectsWith(t, none.store(0, wholeBody(OTHER), OTHER_CRC), 'Overloaded');
    t.same(await none.uploads.missing(ADA, file), [1]);
    t.match(await none.store(1, sent(file, 1)), { fileId: String });
  },
);

t.test(
  'part uploads: a second write of a chunk waits for the one that replaces it; the last one counts',
  async (t) => {
    const file = new SampleFile(1, 2);
    const { store, names, folder, settle, receiver, receiving } = await setUp(t, file);
    await store(0, sent(file, 0));
    const [first, second] = [new FakeBody(CHUNK_BYTES), new FakeBody(CHUNK_BYTES)];
    const other = store(0, first, OTHER_CRC);
    await receiving(1);
    const third = store(0, second, crc32(randomBytes(8)));
    const again = store(0, sent(file, 0));
    t.same(await again, { chunkNumber: 0, fileId: null }, 'what is stored still is answered at once');
    await settle();
    t.equal(receiver.counters().active, 1, 'the second waits');
    first.send(OTHER);
    first.end();
    await other;
    await receiving(1);
    second.send(OTHER);
    second.end();
    await rejectsWith(t, third, 'ChecksumError');
    await store(0, sent(file, 0));
    const { fileId } = await store(1, sent(file, 1));
    t.ok(readFileSync(join(folder, ADA, fileId ?? '')).equals(Buffer.concat(file.chunks)));
    t.same(names(), [fileId]);
  },
);

t.test(
  'part uploads: a kill before announced bytes are written: a real part gives no former chunk',
  async (t) => {
    const file = new SampleFile(1, 2);
    const { uploads, store, names, folder } = await setUp(t, file);
    await store(0, wholeBody(OTHER), OTHER_CRC);
    await uploads.announce(ADA, file, 0);
    await uploads.actors.restart();
    const [slot] = await uploads.slots();
    t.same(await uploads.check(ADA, slot?.uploadKey ?? ''), { lost: 0, found: 0 });
    t.same(await uploads.missing(ADA, file), [0, 1]);
    for (const at of [1, 0]) await store(at, sent(file, at));
    t.ok(readFileSync(join(folder, ADA, names()[0] ?? '')).equals(Buffer.concat(file.chunks)));
  },
);

t.test('part uploads: cancelled while a body arrives: 1305, and no part stays', async (t) => {
  const file = new SampleFile(1, 2);
  const { uploads, store, settle, names, receiving } = await setUp(t, file);
  const body = new FakeBody(CHUNK_BYTES);
  const answer = store(0, body);
  await receiving(1);
  body.send(bytesOf(file, 0).subarray(0, 1000));
  t.equal(await uploads.cancel(ADA, file.uploadId), null);
  t.equal(names().length, 1, 'the part is kept until its last writer has finished');
  body.send(bytesOf(file, 0).subarray(1000));
  body.end();
  await rejectsWith(t, answer, 'InvalidID');
  while (names().length > 0) await settle();
  t.same(names(), []);
});

t.test(
  'part uploads: all bytes are charged to the bandwidth limiter, repeats too; the answer waits',
  async (t) => {
    const file = new SampleFile(1, 3);
    const { store, settle, time, throttle } = await setUp(t, file, { quota: CHUNK_BYTES });
    const answered: number[] = [];
    const startMs = time.nowMs;
    const passed = async (answer: Promise<unknown>) => {
      let done = false;
      const noted = answer.then(() => {
        done = true;
        answered.push(Math.round((time.nowMs - startMs) / 1000));
      });
      for (;;) {
        await settle();
        if (done) break;
        time.fireNext(Number.POSITIVE_INFINITY);
      }
      await noted;
    };
    for (const at of [0, 1, 1, 0, 1]) await passed(store(at, sent(file, at)));
    t.ok((answered.at(-1) ?? 0) >= 3, `${answered.join(' ')} s`);
    t.same(
      answered,
      answered.toSorted((a, b) => a - b),
    );
    t.match(throttle.counters(), { streams: 0, waiting: 0, chargedBytes: 5 * CHUNK_BYTES });
  },
);

// covers C2
t.test(
  'part uploads: the last chunk that another node stores meanwhile is answered with the file',
  async (t) => {
    const file = new SampleFile(1, 1);
    const atOtherNode = async () => {
      const [name = ''] = names();
      writeFileSync(join(folder, ADA, name), bytesOf(file, 0));
      const { uploadKey } = await uploads.announce(ADA, file, 0);
      await uploads.store(ADA, uploadKey, file, 0, file.crcOf(0));
      throw new GatewayError('InvalidID', 'its part is gone');
    };
    const { uploads, store, names, folder } = await setUp(t, file, { isShared: true, lease: atOtherNode });
    const stored = await store(0, sent(file, 0));
    t.same(names(), [stored.fileId], 'the file alone is left');
  },
);

// covers C2
t.test(
  'part uploads: beside other nodes a body that is cut off or wrong leaves the bytes alone',
  async (t) => {
    const file = new SampleFile(1, 2);
    const { store, names, folder, receiving } = await setUp(t, file, { isShared: true });
    t.same(await store(0, sent(file, 0)), { chunkNumber: 0, fileId: null });
    const [name = ''] = names();
    const before = readFileSync(join(folder, ADA, name));
    const cut = new FakeBody(bytesOf(file, 1).length);
    const lost = store(1, cut);
    await receiving(1);
    cut.send(randomBytes(1000));
    cut.lose();
    await rejectsWith(t, lost, 'InvalidInput');
    await rejectsWith(t, store(1, wholeBody(randomBytes(bytesOf(file, 1).length))), 'ChecksumError');
    t.ok(readFileSync(join(folder, ADA, name)).equals(before));
    const { fileId } = await store(1, sent(file, 1));
    t.ok(readFileSync(join(folder, ADA, String(fileId))).equals(Buffer.concat(file.chunks)));
  },
);

// covers C2
t.test(
  'part uploads: a bucket gets chunks that are whole and right, and the newest bytes of each',
  async (t) => {
    const file = new SampleFile(1, 3);
    const bucket = await startS3(t);
    const { store, receiving } = await setUp(t, file, { isShared: true, bucket });
    const names = () => [...bucket.objects.keys()].map((key) => key.replace(/^.*\/\d+\./, '')).sort();
    const other = randomBytes(CHUNK_BYTES);
    t.same(await store(0, sent(file, 0)), { chunkNumber: 0, fileId: null });
    t.same(await store(1, wholeBody(other), crc32(other)), { chunkNumber: 1, fileId: null });
    const cut = new FakeBody(bytesOf(file, 2).length);
    const lost = store(2, cut);
    await receiving(1);
    cut.send(randomBytes(1000));
    cut.lose();
    await rejectsWith(t, lost, 'InvalidInput');
    await rejectsWith(t, store(2, wholeBody(randomBytes(bytesOf(file, 2).length))), 'ChecksumError');
    bucket.faultOf = () => 'internal';
    await rejectsWith(t, store(2, sent(file, 2)), 'FileStorageFailed');
    bucket.faultOf = () => undefined;
    t.same(names(), [`chunk.0.${file.crcOf(0)}`, `chunk.1.${crc32(other)}`]);
    t.same(await store(1, sent(file, 1)), { chunkNumber: 1, fileId: null }, 'other bytes replace the former');
    const { fileId } = await store(2, sent(file, 2));
    t.same([...bucket.objects.keys()], [`one/${ADA}/${fileId}`]);
    t.ok(bucket.objects.get(`one/${ADA}/${fileId}`)?.bytes.equals(Buffer.concat(file.chunks)));
  },
);
