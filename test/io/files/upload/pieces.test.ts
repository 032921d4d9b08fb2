/**
 * Uploads whose bytes go into a bucket as they arrive: pieces of streams and chunks, what is kept when either side fails,
 * what joins them, and what is left. Across nodes: test/e2e/cluster/files.test.ts.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { MemoryS3, MemoryS3Options, S3Request } from '../../../../kit/storage/memory-s3.ts';
import type { WorkerPort } from '../../../../src/actors/runtime/ports.ts';
import type { BucketConfiguration } from '../../../../src/domain/config/file-servers.ts';
import { COMPLETION_RETRY_MS } from '../../../../src/domain/files/files.ts';
import { DAY_MS } from '../../../../src/domain/time.ts';
import { crc32 } from '../../../../src/workers/crc32.ts';
import { inlineWorkers } from '../../../support/account.ts';
import { type DraftFixture, OWNER_ID, PERSON_HEADERS, startDrafts } from '../../../support/files/drafts.ts';
import { readStored } from '../../../support/files/file-storage.ts';
import { bucketAt, startS3 } from '../../../support/files/s3-oracle.ts';
import { remoteStorage } from '../../../support/files/storages.ts';
import { S3_SERVERS } from '../../../support/programs/s3-servers.ts';

t.setTimeout(300_000);

const MIB = 1024 * 1024;
const CHUNK = 256 * 1024;
const UPLOADS = 'one/uploads/log-1/';
const BYTES = randomBytes(17 * MIB + 7);
const NONE = new Set<string>();

function openDirect(t: Test, server: MemoryS3, faults: string[] = [], { workers } = inlineWorkers()) {
  return openAt(t, bucketAt(server.url), faults, { workers });
}

function openAt(t: Test, bucket: BucketConfiguration, faults: string[] = [], { workers } = inlineWorkers()) {
  const opened = remoteStorage(t, {
    workers,
    servers: { 0: { S3: bucket } },
    isShared: true,
    directLogId: 'log-1',
    onFault: (message) => faults.push(message),
    retryMs: 1,
  });
  return { ...opened, faults };
}

interface Setting extends DraftFixture {
  readonly server: MemoryS3;
  readonly staging: string;
  /** Names of the objects of uploads under way, without the file. */
  left(): string[];
  stored(fileId: string): Buffer | undefined;
}

async function setUp(t: Test, options: MemoryS3Options = {}): Promise<Setting> {
  const server = await startS3(t, { signatureFault: async () => undefined, ...options });
  const { storage, staging } = openDirect(t, server);
  const fixture = await startDrafts(t, {
    storage: () => storage,
    settings: { FileMaxSizeBytes: 100 * MIB },
  });
  return {
    ...fixture,
    server,
    staging,
    left: () => leftIn(server),
    stored: (fileId) => server.objects.get(`one/${OWNER_ID}/${fileId}`)?.bytes,
  };
}

function leftIn({ objects }: MemoryS3): string[] {
  const names = [...objects.keys()].filter((key) => key.startsWith(UPLOADS));
  return names.map((name) => name.slice(name.indexOf('.') + 1)).sort();
}

function isPiece({ method, key }: S3Request): boolean {
  return method === 'PUT' && key.startsWith(UPLOADS);
}

/** A piece of the file, by offset. */
function append(
  { stream }: DraftFixture,
  fileId: string,
  [from, to]: readonly [number, number],
  headers: Record<string, string> = {},
): Promise<Response> {
  const complete = to === BYTES.length ? '?1' : '?0';
  const fields = { 'Upload-Offset': String(from), 'Upload-Complete': complete, ...headers };
  return stream(fileId, { method: 'PATCH', headers: fields, body: BYTES.subarray(from, to) });
}

async function offsetOf({ http }: DraftFixture, fileId: string): Promise<number> {
  const url = `${http.url}/auth/v2/file/stream_upload/${fileId}`;
  const answer = await fetch(url, { method: 'HEAD', headers: PERSON_HEADERS });
  return Number(answer.headers.get('Upload-Offset'));
}

t.test(
  'pieces: a whole body is sent while it arrives, two pieces at once, and joined by copies',
  async (t) => {
    const setting = await setUp(t);
    const { server, stored, left, staging } = setting;
    let [now, most] = [0, 0];
    const sizes: number[] = [];
    server.faultOf = (request) => {
      if (isPiece(request)) sizes.push(request.body.length);
      return undefined;
    };
    server.delay = async (request) => {
      if (!isPiece(request)) return;
      now += 1;
      most = Math.max(most, now);
      await wait(50);
      now -= 1;
    };
    const fileId = await setting.create({ fileSize: String(BYTES.length) });
    t.equal((await setting.stream(fileId, { body: BYTES })).status, 200);
    t.ok(stored(fileId)?.equals(BYTES));
    t.same(
      sizes.sort((a, b) => a - b),
      [MIB + 7, 8 * MIB, 8 * MIB],
    );
    t.ok(most <= 2);
    const sent = server.requests.filter((line) => line.includes('partNumber='));
    t.equal(sent.length, 3, 'a part for each piece');
    t.ok(server.bodyBytes < BYTES.length + MIB, 'the bytes were sent once');
    t.same(left(), []);
    t.equal(server.transfers.size, 0);
    t.same(readdirSync(`${staging}/${OWNER_ID}`), [], 'nothing stays on this machine');
  },
);

t.test('pieces: a small file is one piece and one copy', async (t) => {
  const setting = await setUp(t);
  const fileId = await setting.create();
  t.equal((await setting.stream(fileId, { body: BYTES.subarray(0, 1_000) })).status, 200);
  t.ok(setting.stored(fileId)?.equals(BYTES.subarray(0, 1_000)));
  t.same(setting.left(), []);
  t.notOk(
    setting.server.requests.some((line) => line.includes('uploads=')),
    'no transfer',
  );
});

t.test('pieces: a storage without copies gets the bytes again', async (t) => {
  const setting = await setUp(t, { copies: false });
  for (const sizeBytes of [1_000, 9 * MIB, BYTES.length]) {
    const fileId = await setting.create();
    const bytes = BYTES.subarray(0, sizeBytes);
    t.equal((await setting.stream(fileId, { body: bytes })).status, 200);
    t.ok(setting.stored(fileId)?.equals(bytes), String(sizeBytes));
  }
  t.same(setting.left(), []);
  t.equal(setting.server.transfers.size, 0);
});

t.test(
  'pieces: streams continue in the middle of a piece, at its end, and before what is kept',
  async (t) => {
    const setting = await setUp(t);
    const { server, left } = setting;
    const fileId = await setting.create();
    t.equal((await append(setting, fileId, [0, 3 * MIB])).status, 200);
    t.same(left(), ['tail.1']);
    t.equal((await append(setting, fileId, [3 * MIB, 3 * MIB + 1])).status, 200);
    t.equal((await append(setting, fileId, [3 * MIB + 1, 8 * MIB])).status, 200);
    t.equal((await append(setting, fileId, [8 * MIB, 17 * MIB])).status, 200);
    t.same(left(), ['piece.3.0', 'piece.4.1', 'tail.4'], 'what is listed no more is gone');
    t.equal(await offsetOf(setting, fileId), 17 * MIB);
    t.equal((await append(setting, fileId, [16 * MIB, 17 * MIB])).status, 409, 'an offset that was passed');
    const again = { Range: `bytes=${12 * MIB + 5}-${14 * MIB - 1}` };
    const body = BYTES.subarray(12 * MIB + 5, 14 * MIB);
    t.equal(
      (await setting.stream(fileId, { headers: again, body })).status,
      200,
      'by Range it is written anew',
    );
    t.equal(await offsetOf(setting, fileId), 14 * MIB);
    const digest = createHash('sha256').update(BYTES).digest('base64');
    const fields = { 'Repr-Digest': `sha-256=:${digest}:` };
    t.equal((await append(setting, fileId, [14 * MIB, BYTES.length], fields)).status, 200);
    t.ok(setting.stored(fileId)?.equals(BYTES));
    t.same(left(), []);
    t.equal(server.transfers.size, 0);
  },
);

t.test('pieces: a file that ends in a piece that was cut is sent, not copied', async (t) => {
  const setting = await setUp(t);
  const fileId = await setting.create();
  t.equal((await append(setting, fileId, [0, 9 * MIB])).status, 200);
  const range = `bytes=${5 * MIB}-${5 * MIB + 9}/${5 * MIB + 10}`;
  const body = BYTES.subarray(5 * MIB, 5 * MIB + 10);
  t.equal((await setting.stream(fileId, { headers: { Range: range }, body })).status, 200);
  t.ok(setting.stored(fileId)?.equals(BYTES.subarray(0, 5 * MIB + 10)));
  const empty = await setting.create();
  t.equal((await append(setting, empty, [0, 9 * MIB])).status, 200);
  const ended = { Range: `bytes=${8 * MIB - 1}-${8 * MIB - 1}/${8 * MIB}` };
  t.equal(
    (await setting.stream(empty, { headers: ended, body: BYTES.subarray(8 * MIB - 1, 8 * MIB) })).status,
    200,
  );
  t.ok(setting.stored(empty)?.equals(BYTES.subarray(0, 8 * MIB)));
  t.same(setting.left(), []);
});

t.test(
  'pieces: what the bucket did not take is not kept, and what it took is never given back',
  async (t) => {
    const setting = await setUp(t);
    const { server } = setting;
    const fileId = await setting.create();
    t.equal((await append(setting, fileId, [0, 3 * MIB])).status, 200);
    let pieces = 0;
    server.faultOf = (request) => {
      if (!isPiece(request)) return undefined;
      pieces += 1;
      return pieces > 1 ? 'internal' : undefined;
    };
    const failed = await append(setting, fileId, [3 * MIB, BYTES.length]);
    t.equal(failed.status, 503);
    server.faultOf = () => undefined;
    const offset = await offsetOf(setting, fileId);
    t.equal(offset % (8 * MIB), 0);
    t.ok(offset >= 8 * MIB, `the first piece is kept: ${offset}`);
    t.equal((await append(setting, fileId, [offset, BYTES.length])).status, 200);
    t.ok(setting.stored(fileId)?.equals(BYTES));
    t.same(setting.left(), []);
  },
);

t.test('pieces: a body that is none of the file leaves what was kept before', async (t) => {
  const setting = await setUp(t);
  const fileId = await setting.create();
  t.equal((await append(setting, fileId, [0, 9 * MIB])).status, 200);
  const wrong = { 'Content-Digest': `crc32=:${Buffer.alloc(4).toString('base64')}:` };
  t.equal((await append(setting, fileId, [9 * MIB, 16 * MIB], wrong)).status, 422);
  t.equal(await offsetOf(setting, fileId), 9 * MIB);
  t.same(setting.left(), ['piece.1.0', 'tail.1']);
  t.equal((await append(setting, fileId, [9 * MIB, BYTES.length])).status, 200);
  t.ok(setting.stored(fileId)?.equals(BYTES));
});

t.test('pieces: bytes that a bucket has changed or lost are asked for again, whole pieces too', async (t) => {
  const setting = await setUp(t);
  const { server, stream } = setting;
  const spoil = (fileId: string, name: string, isGone: boolean) => {
    const key = `${UPLOADS}${OWNER_ID}/${fileId}.${name}`;
    const bytes = server.objects.get(key)?.bytes ?? Buffer.alloc(0);
    bytes[5] = (bytes[5] ?? 0) ^ 1;
    if (isGone) server.objects.delete(key);
  };
  for (const isGone of [false, true]) {
    const fileId = await setting.create();
    // The server keeps the bytes that it got, so the test may change them.
    t.equal((await append(setting, fileId, [0, 9 * MIB])).status, 200);
    spoil(fileId, 'tail.1', isGone);
    const refused = await append(setting, fileId, [9 * MIB, 10 * MIB]);
    t.equal(refused.status, 409);
    t.equal(refused.headers.get('Upload-Offset'), String(8 * MIB));
    t.equal(await offsetOf(setting, fileId), 8 * MIB);
    t.equal((await append(setting, fileId, [8 * MIB, 10 * MIB])).status, 200);
    spoil(fileId, 'piece.1.0', isGone);
    const headers = { Range: `bytes=${5 * MIB}-${6 * MIB - 1}` };
    const again = await stream(fileId, { headers, body: BYTES.subarray(5 * MIB, 6 * MIB) });
    t.equal(again.status, 409, 'a checksum of its beginning would vouch for it');
    t.equal(await offsetOf(setting, fileId), 0);
    t.equal((await append(setting, fileId, [0, BYTES.length])).status, 200);
    t.ok(setting.stored(fileId)?.equals(BYTES));
    t.same(setting.left(), []);
  }
});

t.test('pieces: appends of one byte, and bodies that begin anew, store no more than the file', async (t) => {
  const setting = await setUp(t);
  const fileId = await setting.create();
  for (let end = 1; end <= 5; end += 1) t.equal((await append(setting, fileId, [end - 1, end])).status, 200);
  t.same(setting.left(), ['tail.5']);
  for (let times = 0; times < 3; times += 1) {
    const range = { Range: `bytes=0-${9 * MIB - 1}` };
    const body = BYTES.subarray(0, 9 * MIB);
    t.equal((await setting.stream(fileId, { headers: range, body })).status, 200);
  }
  t.same(setting.left(), ['piece.8.0', 'tail.8']);
});

t.test('pieces: a lost answer of any request leaves one whole file, and a sweep nothing else', async (t) => {
  const setting = await setUp(t);
  const { server } = setting;
  const seen = new Set<string>();
  // Each kind of request loses its first answer.
  server.faultOf = ({ method, query, headers }) => {
    const kind = [method, ...query.keys(), headers['x-amz-copy-source'] === undefined ? '' : 'copy'].join(
      ' ',
    );
    if (seen.has(kind)) return undefined;
    seen.add(kind);
    return 'lost';
  };
  const fileId = await setting.create();
  t.equal((await setting.stream(fileId, { body: BYTES })).status, 200);
  t.ok(setting.stored(fileId)?.equals(BYTES));
  t.same(setting.left(), []);
  await setting.storage.sweepServers?.(NONE, Date.now() + DAY_MS);
  t.equal(server.transfers.size, 0, 'one was begun whose id got lost');
  t.equal(server.objects.size, 1);
});

t.test('pieces: a draft that is dropped, and one whose body broke off, leave nothing', async (t) => {
  const setting = await setUp(t);
  const { http, chat, actors, left, server } = setting;
  const dropped = await setting.create();
  t.equal((await append(setting, dropped, [0, 9 * MIB])).status, 200);
  const url = `${http.url}/auth/v2/file/stream_upload/${dropped}`;
  t.equal((await fetch(url, { method: 'DELETE', headers: PERSON_HEADERS })).status, 204);
  const broken = await setting.create({ fileSize: String(BYTES.length) });
  const gone = new AbortController();
  const pull = (controller: ReadableStreamDefaultController) => {
    if (left().includes('piece.1.0')) gone.abort();
    else controller.enqueue(BYTES.subarray(0, MIB / 4));
    return wait(1);
  };
  const init = { body: new ReadableStream({ pull }), duplex: 'half', signal: gone.signal } as RequestInit;
  await t.rejects(setting.stream(broken, init));
  const isOver = () => [dropped, broken].every((fileId) => chat.byFile(fileId)?.state === 'cancelled');
  while (!isOver() || left().length > 0) await actors.settle();
  t.equal(server.objects.size, 0);
});

t.test(
  'chunks: they are joined in their order; one that is gone is named, and a late one is swept',
  async (t) => {
    const server = await startS3(t, { pageRows: 2 });
    const { storage, faults } = openDirect(t, server);
    const { direct } = storage;
    if (direct === undefined) throw new Error('the storage keeps parts');
    const key = { owner: '7', fileId: '1001' };
    const file = BYTES.subarray(0, 17 * MIB + 5);
    const chunks = Array.from({ length: Math.ceil(file.length / CHUNK) }, (_, at) => {
      const bytes = file.subarray(at * CHUNK, (at + 1) * CHUNK);
      return { bytes, sizeBytes: bytes.length, crc32: crc32(bytes) };
    });
    const put = (at: number) => direct.putChunk(key, at, chunks[at]?.crc32 ?? 0, chunks[at]?.bytes ?? file);
    await storage.create(key);
    for (const at of chunks.keys()) if (at !== 3 && at !== 40) await put(at);
    await direct.putChunk(key, 3, crc32(file.subarray(0, 5)), file.subarray(0, 5));
    t.same(await storage.publishCopy(key, chunks), [3, 40]);
    t.equal(await storage.open(key), undefined);
    await Promise.all([put(3), put(40)]);
    t.same(await storage.publishCopy(key, chunks), []);
    t.ok((await readStored(storage, key))?.equals(file));
    t.same(leftIn(server), []);
    t.same(await storage.publishCopy(key, chunks), [], 'a repeat finds the file');
    await put(0);
    server.clock = () => Date.now() - 2 * DAY_MS;
    await put(1);
    await direct.putChunk({ owner: '7', fileId: '1002' }, 1, chunks[1]?.crc32 ?? 0, chunks[1]?.bytes ?? file);
    server.objects.set('one/uploads/log-2/7/1001.chunk.1.1', [...server.objects.values()].at(-1) as never);
    t.equal(
      (await storage.sweepServers(new Set(['1002']))).ended,
      1,
      'old, of this log, and of no open upload',
    );
    t.equal((await storage.sweepServers(NONE)).ended, 1);
    t.same(leftIn(server), [`chunk.0.${chunks[0]?.crc32}`]);
    t.ok(server.objects.has('one/uploads/log-2/7/1001.chunk.1.1'), 'another log');
    await storage.remove(key);
    t.same(leftIn(server), []);
    t.same(faults, []);
  },
);

for (const [name, startServer] of Object.entries(S3_SERVERS))
  t.test(
    `${name}: a piece is copied, chunks are joined, a missing one is named, others are swept`,
    async (t) => {
      const { storage, faults } = openAt(t, await startServer(t));
      const { direct } = storage;
      if (direct === undefined) throw new Error('the storage keeps parts');
      const [key, other] = [
        { owner: '7', fileId: '1001' },
        { owner: '7', fileId: '1002' },
      ];
      const bytes = BYTES.subarray(0, 2 * CHUNK + 5);
      const part = { ...key, segment: 1 };
      await storage.create(part);
      const lease = await storage.lease(part);
      await lease.write(bytes, 0);
      const piece = { number: 1, endBytes: bytes.length, crc32: crc32(bytes), isTail: true as const };
      await direct.putPiece(key, { ...piece, beginBytes: 0 }, piece.crc32, lease);
      await lease.release();
      t.equal(await storage.publishSegments(key, [piece]), true);
      t.ok((await readStored(storage, key))?.equals(bytes));
      await storage.removeSegments(key, [1]);
      const chunks = [0, 1, 2].map((at) => {
        const each = bytes.subarray(at * CHUNK, (at + 1) * CHUNK);
        return { bytes: each, sizeBytes: each.length, crc32: crc32(each) };
      });
      const put = (at: number) =>
        direct.putChunk(other, at, chunks[at]?.crc32 ?? 0, chunks[at]?.bytes ?? bytes);
      // The third, because s3rver blocks a key whose body was aborted before its first byte.
      await Promise.all([put(0), put(1)]);
      t.same(await storage.publishCopy(other, chunks), [2]);
      await put(2);
      t.same(await storage.publishCopy(other, chunks), []);
      t.ok((await readStored(storage, other))?.equals(bytes));
      await put(0);
      const later = Date.now() + DAY_MS;
      t.same(await storage.sweepServers(NONE, later), { ended: 1, hasMore: false }, 'nothing else was left');
      t.same(faults, []);
    },
  );

t.test(
  'sweep: of what has more rows than one looks at, the next continues, and one that fails, too',
  async (t) => {
    const server = await startS3(t, { pageRows: 1, signatureFault: async () => undefined });
    const { storage } = openDirect(t, server);
    const written = { bytes: Buffer.alloc(1), sizeBytes: 1, etag: '"1"', fields: {}, writtenMs: 0 };
    const fill = (from: number, to: number) => {
      for (let fileId = from; fileId < to; fileId += 1) {
        server.objects.set(`${UPLOADS}7/${fileId}.tail.1`, written);
        server.transfers.set(String(fileId), { key: `one/7/${fileId}`, begunMs: 0, parts: new Map() });
      }
    };
    fill(1_000, 1_100);
    // These stay: an open upload, which every sweep passes.
    const wanted = { has: (fileId: string) => Number(fileId) < 1_100 };
    fill(1_100, 1_150);
    t.same(await storage.sweepServers(wanted), { ended: 100, hasMore: true }, '100 pages of each list');
    t.equal(leftIn(server).length, 150);
    let asked = 0;
    server.faultOf = ({ query }) => {
      if (!query.has('list-type')) return undefined;
      asked += 1;
      return asked > 10 ? 'slow' : undefined;
    };
    await t.rejects(storage.sweepServers(wanted));
    t.equal(leftIn(server).length, 140, 'ten pages more');
    t.equal(server.transfers.size, 0, 'the other list is swept all the same');
    server.faultOf = () => undefined;
    t.same(await storage.sweepServers(wanted), { ended: 40, hasMore: false });
    t.equal(leftIn(server).length, 100);
    t.same(await storage.sweepServers(NONE), { ended: 100, hasMore: false }, 'from the beginning again');
    t.same(leftIn(server), []);
  },
);

t.test('pieces: a bucket that is away at the end takes nothing that was acknowledged', async (t) => {
  const setting = await setUp(t);
  const { server, actors, stored, left } = setting;
  const fileId = await setting.create({ fileSize: String(BYTES.length) });
  t.ok((await append(setting, fileId, [0, 16 * MIB])).ok);
  server.faultOf = (request) => (isPiece(request) ? undefined : 'slow');
  const answer = await append(setting, fileId, [16 * MIB, BYTES.length]);
  t.match(await answer.json(), { error: { code: 1033 } });
  t.same(left(), ['piece.1.0', 'piece.1.1', 'tail.2']);
  server.faultOf = () => undefined;
  await actors.advance(COMPLETION_RETRY_MS);
  while (left().length > 0) await actors.settle();
  t.ok(stored(fileId)?.equals(BYTES));
  t.equal((await append(setting, fileId, [16 * MIB, BYTES.length])).status, 200, 'the first answer');
});

t.test('pieces: a node whose sources go because another one has joined them finds the file', async (t) => {
  const server = await startS3(t, { signatureFault: async () => undefined });
  const [{ storage: former }, { storage: owner }] = [openDirect(t, server), openDirect(t, server)];
  const bytes = BYTES.subarray(0, CHUNK);
  const key = { owner: OWNER_ID, fileId: '1001' };
  const chunks = [{ sizeBytes: CHUNK, crc32: crc32(bytes) }];
  await former.direct?.putChunk(key, 0, crc32(bytes), bytes);
  server.delay = async ({ method, key: name }) => {
    if (method !== 'GET' || !name.startsWith(UPLOADS)) return;
    server.delay = async () => undefined;
    t.same(await former.publishCopy(key, chunks), []);
    t.same(leftIn(server), []);
  };
  t.same(await owner.publishCopy(key, chunks), []);
  t.ok((await readStored(owner, key))?.equals(bytes));
});

t.test('pieces: hashes of pieces use the same shared memory again and again', async (t) => {
  const server = await startS3(t, { signatureFault: async () => undefined });
  const buffers = new Set<SharedArrayBuffer>();
  const { workers: inline } = inlineWorkers();
  const workers: WorkerPort = {
    run(name, input, late) {
      if ('sharedBuffer' in input) buffers.add(input.sharedBuffer);
      return inline.run(name, input, late);
    },
  };
  const { storage } = openDirect(t, server, [], { workers });
  const { direct } = storage;
  const key = { owner: '1', fileId: '2' };
  const bytes = BYTES.subarray(0, 1_000);
  const piece = { number: 1, beginBytes: 0, endBytes: bytes.length, crc32: crc32(bytes) };
  await storage.create({ ...key, segment: 1 });
  const lease = await storage.lease({ ...key, segment: 1 });
  await lease.write(bytes, 0);
  await direct?.putPiece(key, piece, piece.crc32, lease);
  await lease.release();
  const gone = await direct?.hashPiece(key, { ...piece, number: 2 }, 1);
  t.equal(gone, undefined);
  const found = Array.from({ length: 40 }, () => direct?.hashPiece(key, piece, 999));
  t.same(new Set(await Promise.all(found)), new Set([crc32(bytes.subarray(0, 999))]));
  t.ok(buffers.size <= 8, `${buffers.size} buffers`);
  await storage.close();
});
