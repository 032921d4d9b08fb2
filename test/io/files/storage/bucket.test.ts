/** Files in a bucket: signatures, parts, failures of the storage, the probe and the sweep. The contract: storage.test.ts. */
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { listenFor } from '../../../../kit/http.ts';
import type { MemoryS3, MemoryS3Options, S3Fault, S3Request } from '../../../../kit/storage/memory-s3.ts';
import type { BucketConfiguration } from '../../../../src/domain/config/file-servers.ts';
import { HOUR_MS } from '../../../../src/domain/time.ts';
import { FileServerUnusable } from '../../../../src/io/files/storage/file-server.ts';
import { Signer } from '../../../../src/io/files/storage/s3/signature.ts';
import { elementsOf, textOf } from '../../../../src/io/files/storage/s3/xml.ts';
import { depth } from '../../../support/depth.ts';
import { readStored, storeFile, writePart } from '../../../support/files/file-storage.ts';
import { bucketAt, KEY_PAIR, REGION, signatureFault, startS3 } from '../../../support/files/s3-oracle.ts';
import { remoteStorage } from '../../../support/files/storages.ts';
import { rejectsWith } from '../../../support/rejections.ts';

t.setTimeout(120_000);

const KEY = { owner: '7', fileId: '1001' };
const OBJECT = 'one/7/1001';
const MIB = 1024 * 1024;
/** Three parts, the last one short. */
const LARGE = Buffer.alloc(17 * MIB + 5, 'abcdefghijklm');
const NONE = new Set<string>();
const text = (value: string) => Buffer.from(value);

/** Nothing stands still there: a busy machine sends large files slowly. */
const UNHURRIED_MS = 60_000;

function open(
  t: Test,
  server: Pick<MemoryS3, 'url'>,
  more: Partial<BucketConfiguration> = {},
  stalledMs = 2_000,
) {
  const servers = { 0: { S3: bucketAt(server.url, more) } };
  const opened = remoteStorage(t, { servers, stalledMs, retryMs: 1 });
  return { ...opened, part: join(opened.staging, '7/1001.part') };
}

async function setUp(t: Test, options: MemoryS3Options = {}, stalledMs?: number) {
  const server = await startS3(t, options);
  return { server, ...open(t, server, {}, stalledMs) };
}

/** One fault for the first `times` requests that match. */
function failing(server: MemoryS3, times: number, fault: S3Fault, matches: (request: S3Request) => boolean) {
  let left = times;
  server.faultOf = (request) => {
    if (left === 0 || !matches(request)) return undefined;
    left -= 1;
    return fault;
  };
}

const isPart = ({ query }: S3Request) => query.has('partNumber');
const isCompletion = ({ method, query }: S3Request) => method === 'POST' && query.has('uploadId');
const isPut = ({ method }: S3Request) => method === 'PUT';

t.test('bucket: signatures of any request and link are those of the AWS signer', async (t) => {
  const signer = new Signer({ region: REGION, ...KEY_PAIR });
  const value = fc.string({ unit: 'grapheme-ascii', maxLength: 20 });
  const name = fc.stringMatching(/^[a-z][a-z-]{0,12}$/);
  // The oracle copies queries into plain objects, which cannot hold this name.
  const parameter = fc.string({ minLength: 1, maxLength: 12 }).filter((each) => each !== '__proto__');
  const cases = fc.record({
    method: fc.constantFrom('GET', 'PUT', 'POST', 'DELETE'),
    pathname: fc.stringMatching(/^\/[A-Za-z0-9._~-]{1,12}(?:\/[A-Za-z0-9._~-]{1,12}){0,3}$/),
    query: fc.dictionary(parameter, fc.string({ maxLength: 20 })),
    headers: fc.dictionary(
      name.map((each) => `x-amz-meta-${each}`),
      value.map((each) => each.trim()),
    ),
    nowMs: fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2040, 0) }),
  });
  const property = fc.asyncProperty(cases, async ({ nowMs, ...rest }) => {
    const request = { ...rest, host: '127.0.0.1:9000' };
    const headers = signer.signed(request, 'UNSIGNED-PAYLOAD', nowMs);
    const sent = { ...request, key: '', target: request.pathname, body: Buffer.alloc(0) };
    const query = new URLSearchParams(request.query);
    const fault = await signatureFault({ ...sent, query, headers: { ...headers, host: request.host } });
    if (fault !== undefined) throw new Error(fault);
    const link = signer.linkQuery({ ...request, method: 'GET', headers: {} }, 60, nowMs);
    const asked = {
      ...sent,
      method: 'GET',
      query: new URLSearchParams(link),
      headers: { host: request.host },
    };
    const linkFault = await signatureFault(asked);
    if (linkFault !== undefined) throw new Error(linkFault);
  });
  await fc.assert(property, depth.runs(1_000));
  t.pass('all alike');
});

t.test('bucket: a large file is sent in parts of 8 MiB with their checksums, two at once', async (t) => {
  const { server, storage } = await setUp(t, {}, UNHURRIED_MS);
  const numbers: string[] = [];
  server.faultOf = (request) => {
    if (!isPart(request)) return undefined;
    numbers.push(request.query.get('partNumber') ?? '');
    t.match(request.headers['x-amz-checksum-crc32'], /^[A-Za-z0-9+/]{6}==$/);
    return undefined;
  };
  const bytes = Buffer.alloc(25 * MIB + 5, 'abcdefghijklm');
  await storeFile(storage, KEY, bytes);
  t.same(numbers.sort(), ['1', '2', '3', '4'], 'each number once');
  t.equal(server.partsMost, 2);
  t.ok(server.objects.get(OBJECT)?.bytes.equals(bytes));
  t.equal(server.transfers.size, 0);
  t.ok((await readStored(storage, KEY))?.equals(bytes));
  await storeFile(storage, { owner: '7', fileId: '1002' }, bytes.subarray(0, 16 * MIB));
  t.match(
    server.requests.filter((each) => each.includes('1002')),
    [/^PUT/, /^GET/],
    'up to 16 MiB: one PUT',
  );
});

t.test('bucket: parts of five files at once are eight at most', async (t) => {
  const { server, storage } = await setUp(t, { forgets: true }, UNHURRIED_MS);
  // Five files, of each two parts at once: more than may be under way.
  const keys = Array.from({ length: 5 }, (_, at) => ({ owner: '7', fileId: String(2_000 + at) }));
  for (const key of keys) {
    await storage.create(key);
    await writePart(storage, key, LARGE.subarray(0, 17 * MIB));
  }
  await Promise.all(keys.map((key) => storage.publish(key, 17 * MIB)));
  t.equal(server.partsMost, 8);
  t.equal(server.objects.size, 5);
});

t.test('bucket: what passes by itself is tried again, four times', async (t) => {
  const { server, storage, faults, part } = await setUp(t);
  for (const [at, fault] of (['slow', 'internal', 'lost'] as const).entries()) {
    failing(server, 4, fault, isPut);
    await storeFile(storage, { owner: '7', fileId: String(3_000 + at) }, text(fault));
  }
  t.same(faults, []);
  await storage.create(KEY);
  await writePart(storage, KEY, text('abc'));
  failing(server, 5, 'slow', isPut);
  await rejectsWith(t, storage.publish(KEY, 3), 'FileStorageFailed');
  t.match(faults, [/publishing 7\/1001: PUT at files at http:.*: answered 503 SlowDown: Please reduce/]);
  t.ok(existsSync(part), 'the part is kept');
  await storage.publish(KEY, 3);
  t.same(await readStored(storage, KEY), text('abc'));
  const file = await storage.open(KEY);
  failing(server, 5, 'cut', ({ method }) => method === 'GET');
  await rejectsWith(t, file?.read(Buffer.alloc(3), 0) ?? Promise.resolve(), 'FileStorageFailed');
  file?.close();
});

t.test('bucket: a lost answer of a write leaves one whole file, with and without conditions', async (t) => {
  for (const conditions of [true, false]) {
    const { server, storage, faults } = await setUp(t, { conditions });
    await storage.probe();
    failing(server, 1, 'lost', isPut);
    await storeFile(storage, KEY, text('abc'));
    const large = { owner: '7', fileId: '1002' };
    failing(server, 1, 'lost', isCompletion);
    await storeFile(storage, large, LARGE);
    t.ok((await readStored(storage, large))?.equals(LARGE));
    failing(server, 2, 'lost', isPart);
    await storeFile(storage, { owner: '7', fileId: '1003' }, LARGE);
    t.same([...server.objects.keys()].sort(), ['one/7/1001', 'one/7/1002', 'one/7/1003']);
    t.equal(server.transfers.size, 0);
    t.same(faults, []);
  }
});

t.test('bucket: a completion whose every answer is lost is found by its size', async (t) => {
  const { server, storage, faults } = await setUp(t);
  failing(server, 5, 'lost', isCompletion);
  await storeFile(storage, KEY, LARGE);
  t.ok((await readStored(storage, KEY))?.equals(LARGE));
  t.same(faults, []);
});

// covers S206
t.test(
  'bucket: a transfer that fails is ended after its parts, and leaves the part for a repeat',
  async (t) => {
    const { server, storage, faults, part } = await setUp(t);
    await storage.create(KEY);
    await writePart(storage, KEY, LARGE);
    const second = ({ query }: S3Request) => query.get('partNumber') === '2';
    const failures: [S3Fault, (request: S3Request) => boolean, string, RegExp][] = [
      ['slow', second, 'FileStorageFailed', /PUT at .*answered 503 SlowDown/],
      ['full', second, 'StorageFull', /PUT at .*answered 507 XMinioStorageFull/],
      ['late error', isCompletion, 'FileStorageFailed', /POST at .*answered 200 InternalError/],
      ['slow', ({ query }) => query.has('uploads'), 'FileStorageFailed', /POST at .*answered 503/],
    ];
    for (const [fault, matches, row, reason] of failures) {
      failing(server, 5, fault, matches);
      await rejectsWith(t, storage.publish(KEY, LARGE.length), row);
      t.match(faults.at(-1), reason);
      t.equal(server.transfers.size, 0, `${fault}: no transfer is left`);
      t.ok(existsSync(part));
      t.equal(await storage.open(KEY), undefined);
    }
    server.faultOf = () => undefined;
    await storage.publish(KEY, LARGE.length);
    t.ok((await readStored(storage, KEY))?.equals(LARGE));
  },
);

// covers S206
t.test('bucket: endless text and other ranges are cut off, and fail the call', async (t) => {
  let answer = { status: 200, headers: {} as Record<string, string>, body: Buffer.alloc(0) };
  const server = createServer((_, response) => {
    response.writeHead(answer.status, answer.headers);
    response.end(answer.body);
  });
  const { port } = await listenFor(t, server);
  const { storage, faults } = open(t, { url: `http://127.0.0.1:${port}` });
  answer = { ...answer, body: Buffer.alloc(MIB, '<Upload>') };
  await rejectsWith(t, storage.sweepServers(NONE), 'FileStorageFailed');
  t.match(faults.at(-1), /more bytes came than were asked for/);
  answer = { status: 206, headers: { 'content-range': 'bytes 0-0/10' }, body: Buffer.from('x') };
  const file = await storage.open(KEY);
  t.equal(file?.sizeBytes, 10);
  for (const [range, body] of [
    ['bytes 1-3/10', 'abc'],
    ['bytes 0-2/10', 'abcd'],
  ] as const) {
    answer = { status: 206, headers: { 'content-range': range }, body: Buffer.from(body) };
    await rejectsWith(t, file?.read(Buffer.alloc(3), 0) ?? Promise.resolve(), 'FileStorageFailed');
  }
  t.match(faults.slice(-2), [/answered 206 with Content-Range bytes 1-3\/10/, /more bytes came/]);
  file?.close();
});

t.test('bucket: an existing object is never overwritten where the storage refuses to', async (t) => {
  const { server, storage } = await setUp(t);
  await storage.probe();
  for (const bytes of [text('abc'), LARGE]) {
    server.objects.clear();
    await storeFile(storage, KEY, bytes);
    const before = server.objects.get(OBJECT);
    await storeFile(storage, KEY, bytes);
    t.equal(server.objects.get(OBJECT), before);
    const other = Buffer.concat([bytes, text('x')]);
    await rejectsWith(t, storeFile(storage, KEY, other), 'FileStorageFailed');
    t.equal(server.objects.get(OBJECT), before, 'another size is a failure');
    t.equal(server.transfers.size, 0);
  }
});

t.test('bucket: the probe writes, writes again, reads a range and removes', async (t) => {
  const { server, storage } = await setUp(t);
  await storage.probe();
  t.match(
    server.requests,
    [/^PUT \/files\/one\/gatehouse-probe-/, /^PUT/, /^GET/, /^DELETE/, /^GET/],
    'nothing else',
  );
  t.equal(server.objects.size, 0);
  t.notOk(server.requests.some((each) => each.includes(KEY_PAIR.secretAccessKey)));
});

t.test(
  'bucket: the probe names what a storage lacks; one that does not answer may answer later',
  async (t) => {
    const server = await startS3(t);
    const probe = async (more: Partial<BucketConfiguration>, fault?: S3Fault) => {
      server.faultOf = () => fault;
      try {
        await open(t, server, more).storage.probe();
      } catch (error) {
        if (error instanceof FileServerUnusable)
          return { answered: error.isAnswered, message: error.message };
        throw error;
      }
      return { answered: undefined, message: '' };
    };
    t.match(await probe({ secretAccessKey: 'other' }), {
      answered: true,
      message: /403 SignatureDoesNotMatch/,
    });
    t.match(await probe({ region: 'other' }), { answered: true, message: /403 SignatureDoesNotMatch/ });
    t.match(await probe({ bucket: 'none' }), {
      answered: true,
      message: /PUT at none at .*404 NoSuchBucket/,
    });
    t.match(await probe({}, 'plain'), {
      answered: true,
      message: /GET at .*answered 200 with Content-Range/,
    });
    t.match(await probe({}, 'slow'), { answered: false, message: /PUT at .*503 SlowDown/ });
    t.match(await probe({ endpoint: 'http://127.0.0.1:1' }), { answered: false, message: /ECONNREFUSED/ });
    t.match(await probe({}), { answered: undefined });
  },
);

t.test('bucket: a sweep ends old transfers of files below its prefix, page by page', async (t) => {
  const { server, storage, faults } = await setUp(t, { pageRows: 2 });
  const names = ['one/7/1', 'one/7/2', 'one/8/3', 'one/8/4', 'one/9/5'];
  const begin = (key: string, begunMs: number) =>
    server.transfers.set(`id of ${key}&${begunMs}`, { key, begunMs, parts: new Map() });
  const nowMs = Date.now();
  for (const name of names) begin(name, nowMs - 25 * HOUR_MS);
  const kept = ['one/7/6', 'one/x/7', 'one/7/8/9', 'two/7/1', 'onetwo/7/1', 'one/7/'];
  begin('one/7/6', nowMs - 23 * HOUR_MS);
  for (const name of kept.slice(1)) begin(name, 0);
  t.same(await storage.sweepServers(NONE), { ended: names.length, hasMore: false });
  t.same([...server.transfers.values()].map(({ key }) => key).sort(), [...kept].sort());
  t.equal((await storage.sweepServers(NONE)).ended, 0);
  server.faultOf = () => 'slow';
  await rejectsWith(t, storage.sweepServers(NONE), 'FileStorageFailed');
  t.match(faults, [/sweeping the file servers: GET at .*503/]);
});

// covers S205
t.test('bucket: a link opens its file for all, until it is changed', async (t) => {
  const server = await startS3(t);
  const { storage } = open(t, server, { redirectDownloads: true });
  await storeFile(storage, KEY, text('abc'));
  const form = {
    contentType: 'application/zip',
    contentDisposition: 'attachment; filename="a b.zip"; filename*=UTF-8\'\'%C3%A4.zip',
    cacheControl: 'private, no-cache',
  };
  const link = storage.linkTo(KEY, form) ?? '';
  const response = await fetch(link);
  t.equal(response.status, 200);
  t.equal(await response.text(), 'abc');
  t.equal(new URL(link).searchParams.get('response-content-disposition'), form.contentDisposition);
  t.equal(new URL(link).searchParams.get('X-Amz-Expires'), '60');
  t.equal((await fetch(link.replace('7/1001', '7/1002'))).status, 403);
  t.equal(open(t, server).storage.linkTo(KEY, form), undefined, 'only where clients may');
});

t.test('bucket: paths and host names of buckets', async (t) => {
  const server = await startS3(t);
  const form = { contentType: 'a/b', contentDisposition: 'attachment', cacheControl: 'no-store' };
  const named = open(t, server, {
    redirectDownloads: true,
    pathStyle: false,
    endpoint: 'https://s3.example.org/base/',
    prefix: '',
  });
  t.match(named.storage.linkTo(KEY, form), /^https:\/\/files\.s3\.example\.org\/base\/7\/1001\?/);
  const below = open(t, server, { redirectDownloads: true, endpoint: 'https://s3.example.org/base/' });
  t.match(below.storage.linkTo(KEY, form), /^https:\/\/s3\.example\.org\/base\/files\/one\/7\/1001\?/);
});

t.test('bucket: XML is read by name, entities decoded, anything else ignored', async (t) => {
  t.equal(textOf('<a><B>x&amp;y&#43;&#x2F;&lt;&nope;</B></a>', 'B'), 'x&y+/<&nope;');
  t.equal(textOf('<B>open', 'B'), undefined);
  t.equal(textOf('<C>1</C>', 'B'), undefined);
  t.same(elementsOf('<U>1</U> <U>2</U><U>open', 'U'), ['1', '2']);
  t.equal(textOf('<B>&#9999999;</B>', 'B'), '&#9999999;');
});
