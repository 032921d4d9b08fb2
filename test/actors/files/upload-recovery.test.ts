/**
 * v1 chunks that are acknowledged before the journal knows them: what a restart finds in the table of the part, what it
 * does not believe, and how a full upload without a completion completes.
 */
import t from 'tap';
import { upload } from '../../../src/actors/files/v1/upload.ts';
import { createUploadActors, SampleFile, type UploadActors } from '../../support/files/upload-world.ts';
import { rejectsWith } from '../../support/rejections.ts';

const ADA = '1001';
const PART = `${ADA}/1001`;

async function restart(uploads: UploadActors): Promise<unknown> {
  uploads.world.reserved.clear();
  await uploads.actors.restart();
  const [slot] = await uploads.slots();
  return await uploads.check(ADA, slot?.uploadKey ?? '');
}

async function opened(chunks: number) {
  const uploads = createUploadActors();
  const file = new SampleFile(1, chunks);
  await uploads.init(ADA, file);
  return { uploads, file };
}

t.test('upload: a chunk is acknowledged before its row is written; a question about it writes', async (t) => {
  const { uploads, file } = await opened(3);
  const groups = () => uploads.actors.system.counters().groups;
  await uploads.actors.settle();
  const before = groups();
  t.same(await uploads.part(ADA, file, 1), { chunkNumber: 1, fileId: null });
  t.same(await uploads.part(ADA, file, 1), { chunkNumber: 1, fileId: null }, 'again: the same answer');
  t.equal(groups(), before);
  t.same(await uploads.missing(ADA, file), [0, 2]);
  t.equal(groups(), before + 1);
  await uploads.actors.restart();
  t.same(await uploads.missing(ADA, file), [0, 2], 'what was answered is in the journal');
});

// covers R26 S150
t.test(
  'upload: a kill takes no acknowledged chunk, nor does a second kill right after the restart',
  async (t) => {
    const { uploads, file } = await opened(5);
    await uploads.part(ADA, file, 0);
    await uploads.missing(ADA, file);
    for (const at of [2, 3]) await uploads.part(ADA, file, at);
    t.same(await restart(uploads), { lost: 0, found: 2 });
    t.same(await uploads.missing(ADA, file), [1, 4]);
    t.same(await restart(uploads), { lost: 0, found: 0 });
    t.same(await uploads.missing(ADA, file), [1, 4]);
    await uploads.part(ADA, file, 1);
    t.match(await uploads.part(ADA, file, 4), { fileId: String });
    t.same(uploads.world.faults(), []);
  },
);

t.test('upload: without the table a kill takes acknowledged chunks', async (t) => {
  const { uploads, file } = await opened(3);
  await uploads.part(ADA, file, 0);
  uploads.world.tables.get(PART)?.clear();
  t.same(await restart(uploads), { lost: 0, found: 0 });
  t.same(await uploads.missing(ADA, file), [0, 1, 2], 'the control');
});

t.test('upload: an entry of the table whose bytes are not there, or differ, gives no chunk', async (t) => {
  const { uploads, file } = await opened(4);
  for (const at of [0, 1, 2]) await uploads.part(ADA, file, at);
  uploads.world.parts.get(PART)?.delete(0);
  uploads.world.parts.get(PART)?.set(1, 5);
  t.same(await restart(uploads), { lost: 0, found: 1 });
  t.same(await uploads.missing(ADA, file), [0, 1, 3]);
});

t.test('upload: a chunk that was lost and sent with other bytes is found as it was sent', async (t) => {
  const { uploads, file } = await opened(3);
  await uploads.part(ADA, file, 0);
  await uploads.missing(ADA, file);
  uploads.world.parts.get(PART)?.set(0, 99);
  t.same(await restart(uploads), { lost: 1, found: 0 });
  await uploads.part(ADA, file, 0, 42);
  t.same(await restart(uploads), { lost: 0, found: 1 });
  t.equal((await uploads.announce(ADA, file, 0, 42)).known, true);
});

t.test(
  'upload: a kill before announced bytes are written leaves the chunk missing, and later it is found',
  async (t) => {
    const { uploads, file } = await opened(3);
    await uploads.part(ADA, file, 0, 42);
    await uploads.announce(ADA, file, 0);
    t.same(await restart(uploads), { lost: 0, found: 0 }, 'the part has the former bytes, with their entry');
    t.same(await uploads.missing(ADA, file), [0, 1, 2]);
    await uploads.write(ADA, file, 0);
    t.same(await restart(uploads), { lost: 0, found: 1 });
    await uploads.part(ADA, file, 0, 42);
    t.same(await restart(uploads), { lost: 0, found: 1 }, 'acknowledged once more with the first bytes');
    await uploads.part(ADA, file, 0);
    for (const at of [1, 2]) await uploads.part(ADA, file, at);
    await uploads.actors.settle();
    t.same(uploads.world.faults(), []);
    t.equal(uploads.world.published.size, 1);
  },
);

t.test('upload: after a clean stop the table is not read', async (t) => {
  const { uploads, file } = await opened(2);
  await uploads.write(ADA, file, 0);
  const [slot] = await uploads.slots();
  const command = { type: 'checkUpload' as const, uploadKey: slot?.uploadKey ?? '', rehash: false };
  t.same(await uploads.actors.system.ask(upload, ADA, command), { lost: 0, found: 0 });
  t.same(await uploads.missing(ADA, file), [0, 1]);
});

t.test('upload: one that a kill left full completes when any of its chunks is repeated', async (t) => {
  for (const repeated of [0, 1, 2]) {
    const { uploads, file } = await opened(3);
    for (const at of [0, 1]) await uploads.part(ADA, file, at);
    await uploads.write(ADA, file, 2);
    t.same(await restart(uploads), { lost: 0, found: 3 });
    t.same(await uploads.missing(ADA, file), [], 'its last chunk was written and not answered');
    t.match(await uploads.part(ADA, file, repeated), { chunkNumber: repeated, fileId: '1001' });
    t.match(await uploads.part(ADA, file, repeated), { fileId: '1001' }, 'again: the same file');
    await uploads.actors.settle();
    t.same(uploads.world.faults(), []);
    t.same(await uploads.slots(), []);
  }
});

t.test('upload: one that a kill left full with another checksum ends at the repeat', async (t) => {
  const { uploads, file } = await opened(2);
  await uploads.part(ADA, file, 0);
  await uploads.write(ADA, file, 1, 77);
  t.same(await restart(uploads), { lost: 0, found: 2 });
  await rejectsWith(t, uploads.part(ADA, file, 0), 'ChecksumError');
  await uploads.actors.settle();
  t.same(uploads.world.faults(), []);
  t.same(await uploads.slots(), []);
});

t.test('upload: a chunk of a cancelled upload is none of the next one with the same checksum', async (t) => {
  const { uploads, file } = await opened(2);
  const { uploadKey } = await uploads.write(ADA, file, 0);
  await uploads.cancel(ADA, file.uploadId);
  await uploads.init(ADA, file);
  await rejectsWith(t, uploads.store(ADA, uploadKey, file, 0), 'InvalidID');
  t.same(await uploads.missing(ADA, file), [0, 1]);
  t.same(uploads.world.tables.get(`${ADA}/1002`), new Map(), 'the new part begins with an empty table');
});
