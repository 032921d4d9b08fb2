/** v2 uploads over HTTP: fields and refusals of create_draft, streams, pieces, digests, and who may do what. */
import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import t, { type Test } from 'tap';
import { draft } from '../../../src/actors/files/v2/draft.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import type { FileStorage } from '../../../src/io/files/storage/port.ts';
import { findUpload, openDraft, SlotRotation } from '../../../src/io/files/upload/draft-access.ts';
import { createDraftWorld } from '../../support/files/draft-world.ts';
import {
  type DraftFixture,
  OTHER_HEADERS,
  OWNER_ID,
  PERSON_HEADERS,
  startDrafts,
} from '../../support/files/drafts.ts';
import { SlowWorkers } from '../../support/files/slow-workers.ts';

const CAP = 1_000_000;
const BYTES = Buffer.from('0123456789abcdefghij');

const VERSION = { 'Upload-Draft-Interop-Version': '8' };
const chunked = (bytes: Buffer) => ({ body: new Blob([bytes]).stream(), duplex: 'half' }) as RequestInit;
const progressOf = ({ status, headers }: Response) => [
  status,
  headers.get('Upload-Complete'),
  headers.get('Upload-Offset'),
];

interface Envelope {
  readonly result?: string;
  readonly error?: { readonly code: number };
}

async function createAnswer(
  { http }: DraftFixture,
  query: Readonly<Record<string, string>>,
  init: RequestInit = {},
): Promise<{ status: number; code: number | undefined; result: string | undefined }> {
  const url = `${http.url}/auth/v2/file/create_draft?${new URLSearchParams(query)}`;
  const answer = await fetch(url, { method: 'POST', headers: PERSON_HEADERS, ...init });
  const { result, error } = (await answer.json()) as Envelope;
  return { status: answer.status, code: error?.code, result };
}

async function codeOf(answer: Response): Promise<string> {
  const text = await answer.text();
  return `${answer.status}/${text === '' ? '' : ((JSON.parse(text) as Envelope).error?.code ?? '')}`;
}

/** Neither message nor bytes are left, once what was decided has been done. */
async function isGone({ actors, chat, names }: DraftFixture, fileId: string): Promise<boolean> {
  const left = () => names().filter((name) => name.startsWith(fileId));
  // Threads close the descriptor and remove the part, which may take long.
  while (chat.byFile(fileId)?.state !== 'cancelled' || left().length > 0) await actors.settle();
  return true;
}

// covers R69
t.test('v2 draft: query and body carry the same fields, the answer is fileId and fileCode', async (t) => {
  const fixture = await startDrafts(t);
  const fields = { fileName: 'ä b.txt', fileSize: '20', chatId: '77', message: 'hi', crc32: 'CAFE no sum' };
  const { status, result = '' } = await createAnswer(fixture, { ...fields, linkedMessageId: '12' });
  t.equal(status, 200);
  const [fileId = '', code = ''] = result.split(':');
  t.match(code, /^[A-Za-z0-9_-]{22}$/);
  t.equal(fixture.codes.decode(code), fileId);
  const expected = {
    userId: OWNER_ID,
    chatId: '77',
    name: 'ä b.txt',
    sizeBytes: 20,
    message: 'hi',
    linkedMessageId: '12',
    declaredCrc32: 'CAFE no sum',
  };
  t.match(fixture.chat.byFile(fileId), { state: 'pending', file: expected });
  const json = { headers: { ...PERSON_HEADERS, 'Content-Type': 'application/json' } };
  const body = JSON.stringify({ ...fields, fileSize: 20, chatId: 77, linkedMessageId: 12 });
  const second = await createAnswer(fixture, {}, { ...json, body });
  t.match(fixture.chat.byFile(second.result?.split(':')[0] ?? '')?.file, expected);
  const both = await createAnswer(fixture, { fileSize: '20' }, { ...json, body });
  t.equal(both.status, 200, 'the same in both');
  t.match(await createAnswer(fixture, { fileSize: '21' }, { ...json, body }), { status: 400, code: 1001 });
});

t.test('v2 draft: a chat id of 0, less or none is the personal storage', async (t) => {
  const fixture = await startDrafts(t);
  for (const chatId of [undefined, '', '0', '-1', '-9223372036854775808']) {
    const fileId = await fixture.create(chatId === undefined ? {} : { chatId });
    t.equal(fixture.chat.byFile(fileId)?.file.chatId, null, chatId ?? 'none');
  }
  for (const chatId of ['x', '1.5', '9223372036854775808', '1e3']) {
    t.match(await createAnswer(fixture, { fileName: 'a', chatId }), { status: 400, code: 1001 }, chatId);
  }
});

// covers S14
t.test('v2 draft: refusals name, size, module, in this order, and a checksum never refuses', async (t) => {
  const fixture = await startDrafts(t, {
    settings: { FileMaxSizeBytes: CAP, FileBlockedExtensions: '.exe' },
  });
  const rows: [Record<string, string>, number, number][] = [
    [{ fileSize: '0' }, 400, 1309],
    [{ fileName: 'a.exe', fileSize: '0' }, 400, 1309],
    [{ fileName: 'a\r\nb', fileSize: '1' }, 400, 1309],
    [{ fileName: '\u202egpj.exe' }, 400, 1309],
    [{ fileName: 'a.exe\u200b' }, 400, 1309],
    [{ fileName: '../../etc/passwd' }, 400, 1309],
    [{ fileName: '..' }, 400, 1309],
    [{ fileName: 'a\\b' }, 400, 1309],
    [{ fileName: 'x'.repeat(256) }, 400, 1309],
    [{ fileName: 'a', fileSize: '0' }, 400, 1301],
    [{ fileName: 'a', fileSize: '-5' }, 400, 1301],
    [{ fileName: 'a', fileSize: String(CAP + 1) }, 413, 1301],
    [{ fileName: 'a', fileSize: '5368709120' }, 413, 1301],
    [{ fileName: 'a', fileSize: '9'.repeat(30) }, 413, 1301],
    [{ fileName: 'a', fileSize: '1.5' }, 400, 1001],
    [{ fileName: 'a', linkedMessageId: '-1' }, 400, 1001],
  ];
  for (const [query, status, code] of rows) {
    t.match(await createAnswer(fixture, query), { status, code }, JSON.stringify(query).slice(0, 60));
  }
  t.same(fixture.chat.calls, [], 'the module was not asked');
  fixture.chat.outsiders.add(OWNER_ID);
  t.match(await createAnswer(fixture, { fileName: 'a' }), { status: 403, code: 1103 });
  fixture.chat.outsiders.clear();
  fixture.chat.mode = 'down';
  t.match(await createAnswer(fixture, { fileName: 'a' }), { status: 502, code: 1310 });
  fixture.chat.mode = 'ok';
  for (const sum of ['', 'x', '-1', '99999999999', 'a'.repeat(2_000)]) {
    t.match(await createAnswer(fixture, { fileName: 'a', crc32: sum }), { status: 200 });
  }
});

t.test('v2 draft: a cookie or a bearer, the bearer first, and none of the lesser sessions', async (t) => {
  const fixture = await startDrafts(t);
  const create = (headers: Record<string, string>) => createAnswer(fixture, { fileName: 'a' }, { headers });
  t.match(await create({}), { status: 401, code: 1101 });
  t.match(await create({ Authorization: 'Bearer agent' }), { status: 200 });
  t.match(await create({ Authorization: 'Bearer unknown', ...PERSON_HEADERS }), { status: 401, code: 1101 });
  t.match(await create({ Authorization: 'Bearer basic' }), { status: 403, code: 1103 });
  t.match(await create({ Authorization: 'Bearer app' }), { status: 403, code: 1103 });
  const fileId = await fixture.create();
  const url = `${fixture.http.url}/auth/v2/file/stream_upload/${fileId}`;
  const send = (headers: Record<string, string>) => fetch(url, { method: 'POST', headers, body: BYTES });
  t.equal(await codeOf(await send({})), '401/1101');
  t.equal(await codeOf(await send(OTHER_HEADERS)), '404/1305', 'a foreign draft looks unknown');
  t.equal(await codeOf(await send({ Authorization: 'Bearer basic' })), '403/1103');
  t.equal(
    await codeOf(await send({ Authorization: 'Bearer agent' })),
    '200/',
    'the same user by another way',
  );
});

// covers R69
t.test(
  'v2 draft: as many at once as DraftsPerUser, and the same Idempotency-Key is the same draft',
  async (t) => {
    const fixture = await startDrafts(t, { settings: { DraftsPerUser: 2 } });
    const headers = { ...PERSON_HEADERS, 'Idempotency-Key': 'k1' };
    const first = await createAnswer(fixture, { fileName: 'a' }, { headers });
    t.equal((await createAnswer(fixture, { fileName: 'a' }, { headers })).result, first.result);
    t.match(await createAnswer(fixture, { fileName: 'b' }, { headers }), { status: 422, code: 1016 });
    const second = await fixture.create();
    t.match(await createAnswer(fixture, { fileName: 'a' }), { status: 409, code: 1316 });
    t.equal((await createAnswer(fixture, { fileName: 'a' }, { headers })).result, first.result);
    t.equal(await codeOf(await fixture.stream(second, { body: BYTES })), '200/');
    t.match(
      await createAnswer(fixture, { fileName: 'a' }),
      { status: 200 },
      'a finished one gives its place back',
    );
    const at = await Promise.all(
      Array.from({ length: 6 }, () => createAnswer(fixture, { fileName: 'a' }, { headers: OTHER_HEADERS })),
    );
    t.same(at.map(({ status }) => status).sort(), [200, 200, 409, 409, 409, 409], 'asked at once');
  },
);

/** Header fields of bodies that are not the bytes of a file. */
const FORMS: Record<string, string>[] = [
  { 'Content-Type': 'multipart/form-data; boundary=x' },
  { 'Content-Type': ' Multipart/Form-Data' },
  { 'Content-Encoding': 'gzip' },
  { 'Content-Encoding': 'identity, br' },
  { 'Content-Type': 'application/octet-stream', 'Content-Encoding': 'zstd' },
];

// covers R66
t.test('v2 stream: a form and a coded body are 415, nothing is stored and the draft waits on', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create({ fileSize: '20' });
  const before = fixture.names();
  for (const headers of FORMS) {
    for (const method of ['POST', 'PATCH']) {
      const answer = await fixture.stream(fileId, { method, body: BYTES, headers });
      t.equal(await codeOf(answer), '415/1007', `${method} ${JSON.stringify(headers)}`);
    }
  }
  const form = { ...chunked(BYTES), headers: FORMS[0] ?? {} };
  t.equal(await codeOf(await fixture.stream(fileId, form)), '415/1007', 'chunked');
  t.same(fixture.names(), before);
  t.match(fixture.chat.byFile(fileId), { state: 'pending' });
  const head = await fixture.stream(fileId, { method: 'HEAD' });
  t.equal(head.headers.get('upload-offset'), '0');
  const headers = { 'Content-Encoding': 'identity', 'Content-Type': 'multipart/related' };
  t.equal(await codeOf(await fixture.stream(fileId, { body: BYTES, headers })), '200/');
  t.ok(fixture.file(fileId)?.equals(BYTES));
});

// covers R68
t.test('v2 stream: declared and chunked bodies of any type become the file, with the own CRC', async (t) => {
  const fixture = await startDrafts(t);
  const bytes = randomBytes(3 * 1024 * 1024 + 17);
  const bodies: [string, RequestInit][] = [
    ['declared', { body: bytes }],
    ['chunked', chunked(bytes)],
    ['typed', { body: bytes, headers: { 'Content-Type': 'application/octet-stream' } }],
    ['another type', { body: bytes, headers: { 'Content-Type': 'text/html' } }],
  ];
  for (const [how, init] of bodies) {
    const fileId = await fixture.create({ fileSize: String(bytes.length), crc32: 'wrong' });
    const answer = await fixture.stream(fileId, init);
    t.equal(answer.status, 200, how);
    t.equal(await answer.text(), '', 'an empty body');
    t.ok(fixture.file(fileId)?.equals(bytes), how);
    t.match(fixture.chat.byFile(fileId), { state: 'complete', sizeBytes: bytes.length, crc32: crc32(bytes) });
    const other = randomBytes(bytes.length);
    t.equal(await codeOf(await fixture.stream(fileId, { body: other })), '404/1305', 'a finished draft');
  }
  t.same(fixture.http.bugs, []);
  t.match(fixture.storage.counters(), { leases: 0, reservedBytes: 0 });
});

// covers R27
t.test('v2 stream: a size that was not declared, none at all, too much: refused and removed', async (t) => {
  const fixture = await startDrafts(t, { settings: { FileMaxSizeBytes: CAP } });
  const rows: [string, string | undefined, RequestInit, string][] = [
    ['shorter', '21', { body: BYTES }, '400/1307'],
    ['shorter, chunked', '21', chunked(BYTES), '400/1307'],
    ['longer', '19', { body: BYTES }, '413/1307'],
    ['longer, chunked', '19', chunked(BYTES), '413/1307'],
    ['none', undefined, {}, '400/1301'],
    ['none of some', '5', {}, '400/1307'],
    ['over the cap', undefined, { body: Buffer.alloc(CAP + 1) }, '413/1301'],
    ['over the cap, chunked', undefined, chunked(Buffer.alloc(CAP + 1)), '413/1301'],
    ['far over the cap, declared small', '5', { body: Buffer.alloc(CAP + 1) }, '413/1301'],
  ];
  for (const [name, fileSize, init, expected] of rows) {
    const fileId = await fixture.create(fileSize === undefined ? {} : { fileSize });
    const answer = await fixture.stream(fileId, init);
    const limit = answer.headers.get('Upload-Limit');
    t.equal(await codeOf(answer), expected, name);
    if (expected === '413/1301') t.equal(limit, `max-size=${CAP}, max-age=3600`);
    t.ok(await isGone(fixture, fileId), name);
  }
  const exact = await fixture.create();
  t.equal((await fixture.stream(exact, { body: Buffer.alloc(CAP, 1) })).status, 200, 'the cap itself');
  t.match(fixture.storage.counters(), { leases: 0, reservedBytes: 0 });
});

// covers R30 R68
t.test('v2 stream: digests of body and file are checked, a wrong one is 1308 and removes', async (t) => {
  const fixture = await startDrafts(t);
  const sha256 = createHash('sha256').update(BYTES).digest('base64');
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(BYTES));
  const right = `sha-256=:${sha256}:, crc32=:${sum.toString('base64')}:`;
  const wrong = [
    `sha-256=:${Buffer.alloc(32).toString('base64')}:`,
    `crc32=:${Buffer.alloc(4).toString('base64')}:`,
  ];
  for (const name of ['Repr-Digest', 'Content-Digest']) {
    const good = await fixture.create();
    t.equal(await codeOf(await fixture.stream(good, { body: BYTES, headers: { [name]: right } })), '200/');
    for (const value of wrong) {
      const bad = await fixture.create();
      const answer = await fixture.stream(bad, { body: BYTES, headers: { [name]: value } });
      t.equal(await codeOf(answer), '422/1308', `${name} ${value}`);
      t.equal(fixture.chat.byFile(bad)?.state !== 'complete', true);
    }
    const unread = await fixture.create();
    const answer = await fixture.stream(unread, { body: BYTES, headers: { [name]: 'sha-256=x' } });
    t.equal(await codeOf(answer), '400/1001');
    t.equal(fixture.chat.byFile(unread)?.state, 'pending', 'a field that cannot be read ends nothing');
  }
});

// covers R68
t.test('v2 stream: a write that is late is 503, the draft stays, a repeat stores the file', async (t) => {
  const workers = new SlowWorkers('writeBuffer');
  const fixture = await startDrafts(t, { workers });
  const fileId = await fixture.create();
  const first = fixture.stream(fileId, { body: BYTES });
  const write = await workers.next();
  write.late();
  const answer = await first;
  t.equal(await codeOf(answer), '503/1033');
  t.equal(answer.headers.get('Retry-After'), '5');
  t.match(fixture.chat.byFile(fileId), { state: 'pending' });
  t.equal(await codeOf(await fixture.stream(fileId, { body: BYTES })), '503/1033', 'it may still be written');
  t.equal(fixture.receiver.counters().sharedBuffers.lent, 1, 'the buffer of the late write is taken');
  await write.settle();
  t.equal(fixture.receiver.counters().sharedBuffers.lent, 0);
  const repeat = fixture.stream(fileId, { body: BYTES });
  await (await workers.next()).settle();
  t.equal(await codeOf(await repeat), '200/');
  t.same(fixture.file(fileId), BYTES);
});

t.test(
  'v2 stream: Range writes pieces, completes at the declared size or at the end of the total',
  async (t) => {
    const fixture = await startDrafts(t);
    const piece = (fileId: string, range: string, body: Buffer) =>
      fixture.stream(fileId, { body, headers: { Range: range } });
    const declared = await fixture.create({ fileSize: '20' });
    t.equal(await codeOf(await piece(declared, 'bytes=0-', BYTES.subarray(0, 7))), '200/');
    const gap = await piece(declared, 'bytes=9-', BYTES.subarray(9));
    t.equal(gap.headers.get('Upload-Offset'), '7');
    t.equal(await codeOf(gap), '409/1315', 'no gap');
    t.equal(await codeOf(await piece(declared, 'bytes=5-9', BYTES.subarray(5, 10))), '200/', 'written anew');
    t.equal(fixture.chat.byFile(declared)?.state, 'pending');
    t.equal(await codeOf(await piece(declared, 'bytes=10-19', BYTES.subarray(10))), '200/');
    t.same(fixture.file(declared), BYTES);
    t.match(fixture.chat.byFile(declared), { state: 'complete', crc32: crc32(BYTES), sizeBytes: 20 });
    const open = await fixture.create();
    t.equal(await codeOf(await piece(open, 'bytes=0-9', BYTES.subarray(0, 10))), '200/');
    t.equal(await codeOf(await piece(open, 'bytes=10-18', BYTES.subarray(10, 19))), '200/');
    t.equal(fixture.chat.byFile(open)?.state, 'pending', 'no length was declared');
    t.equal(await codeOf(await piece(open, 'bytes=10-19/20', BYTES.subarray(10))), '200/');
    t.same(fixture.file(open), BYTES);
    const refusals: [string, Buffer, string][] = [
      ['bytes=0-9', BYTES.subarray(0, 9), '400/1307'],
      ['bytes=0-9', BYTES.subarray(0, 11), '413/1307'],
      ['bytes=0-9/21', BYTES.subarray(0, 10), '400/1001'],
      ['bytes=20-29', BYTES.subarray(0, 10), '413/1307'],
      ['bytes=99999999-', BYTES, '413/1301'],
      ['bytes=x', BYTES, '400/1001'],
    ];
    const kept = await fixture.create({ fileSize: '20' });
    for (const [range, body, expected] of refusals) {
      t.equal(await codeOf(await piece(kept, range, body)), expected, `${range} with ${body.length}`);
      t.equal(fixture.chat.byFile(kept)?.state, 'pending', 'a refused piece leaves the draft');
    }
    t.equal(await codeOf(await fixture.stream(kept, { body: BYTES })), '200/', 'and then all of it');
  },
);

// covers R68
t.test('v2 stream: resumable uploads: pieces, HEAD, 409 with the right offset, DELETE', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create({ fileSize: '20' });
  const begun = await fixture.stream(fileId, {
    body: BYTES.subarray(0, 12),
    headers: { ...VERSION, 'Upload-Complete': '?0' },
  });
  t.same(progressOf(begun), [200, '?0', '12']);
  const head = await fixture.stream(fileId, { method: 'HEAD' });
  t.same(progressOf(head), [204, '?0', '12']);
  t.equal(head.headers.get('Upload-Length'), '20');
  t.match(head.headers.get('Upload-Limit') ?? '', /^max-size=20971520, max-age=3[56][0-9]{2}$/);
  t.equal(head.headers.get('Cache-Control'), 'no-store');
  const append = (offset: string, body: Buffer, complete: string) =>
    fixture.stream(fileId, {
      method: 'PATCH',
      body,
      headers: {
        ...VERSION,
        'Upload-Complete': complete,
        'Upload-Offset': offset,
        'Content-Type': 'application/partial-upload',
      },
    });
  for (const offset of ['0', '11', '13', '20']) {
    const answer = await append(offset, BYTES.subarray(Number(offset)), '?1');
    t.equal(answer.headers.get('Upload-Offset'), '12', offset);
    t.equal(await codeOf(answer), '409/1315');
  }
  t.equal(
    await codeOf(await append('12', BYTES.subarray(12, 19), '?1')),
    '400/1307',
    'not the declared size',
  );
  t.equal((await fixture.stream(fileId, { method: 'HEAD' })).headers.get('Upload-Offset'), '12');
  const done = await append('12', BYTES.subarray(12), '?1');
  t.same(progressOf(done), [200, '?1', '20']);
  t.same(fixture.file(fileId), BYTES);
  const given = await fixture.create();
  const kept = { body: BYTES, headers: { ...VERSION, 'Upload-Complete': '?0' } };
  t.equal((await fixture.stream(given, kept)).status, 200);
  const last = { headers: { ...VERSION, 'Upload-Complete': '?1', 'Upload-Offset': '20' } };
  t.equal((await fixture.stream(given, last)).status, 200, 'an empty last piece');
  t.same(fixture.file(given), BYTES);
  const dropped = await fixture.create();
  t.equal((await fixture.stream(dropped, kept)).status, 200);
  t.equal(
    await codeOf(await fixture.stream(dropped, { method: 'DELETE', headers: OTHER_HEADERS })),
    '404/1305',
  );
  t.equal((await fixture.stream(dropped, { method: 'DELETE' })).status, 204);
  t.ok(await isGone(fixture, dropped));
  t.same(fixture.names().sort(), [fileId, given].sort());
});

// covers P2 P3
t.test('v2 stream: the end of a complete upload again gets the first answer for ten minutes', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create({ fileSize: '20' });
  const send = (headers: Record<string, string>, body?: Buffer) =>
    fixture.stream(fileId, { headers: { ...VERSION, ...headers }, ...(body === undefined ? {} : { body }) });
  const more = { 'Upload-Complete': '?0' };
  const at = (offset: number) => ({ 'Upload-Complete': '?1', 'Upload-Offset': String(offset) });
  t.equal((await send(more, BYTES.subarray(0, 12))).status, 200);
  t.equal((await send(at(12), BYTES.subarray(12))).status, 200);
  const repeats: readonly (readonly [string, Record<string, string>, Buffer?])[] = [
    ['the last piece', at(12), BYTES.subarray(12)],
    ['an empty append', at(20)],
  ];
  for (const [what, headers, body] of repeats) {
    const answer = await send(headers, body);
    t.same(progressOf(answer), [200, '?1', '20'], what);
  }
  const head = await fixture.stream(fileId, { method: 'HEAD' });
  t.same(progressOf(head), [204, '?1', '20']);
  const changed = Buffer.from(BYTES.subarray(12)).fill('x', 0, 1);
  const refusals: readonly (readonly [string, Record<string, string>, Buffer?])[] = [
    ['other bytes', at(12), changed],
    ['a shorter piece', at(12), BYTES.subarray(13)],
    ['a longer piece', at(12), BYTES],
    ['a piece before the last', at(0), BYTES.subarray(0, 12)],
    ['the last piece, with more to come', { ...more, 'Upload-Offset': '12' }, BYTES.subarray(12)],
    ['an empty append elsewhere', at(19)],
    ['a piece by Range', { Range: 'bytes=0-9' }, BYTES.subarray(0, 10)],
  ];
  for (const [what, headers, body] of refusals)
    t.equal(await codeOf(await send(headers, body)), '404/1305', what);
  const asOther = { method: 'HEAD', headers: OTHER_HEADERS };
  t.equal((await fixture.stream(fileId, asOther)).status, 404, 'another account');
  t.same(fixture.file(fileId), BYTES, 'the file is as it was');
  fixture.actors.clock.nowMs += 10 * 60_000;
  t.equal((await fixture.stream(fileId, { method: 'HEAD' })).status, 404, 'ten minutes later');
  t.equal(await codeOf(await send(at(12), BYTES.subarray(12))), '404/1305');
  t.same(fixture.http.bugs, []);
});

// covers P3
t.test('v2 stream: the last piece by Range again gets the first answer', async (t) => {
  const fixture = await startDrafts(t);
  const fileId = await fixture.create({ fileSize: '20' });
  const piece = (first: number, last: number) =>
    fixture.stream(fileId, {
      body: BYTES.subarray(first, last + 1),
      headers: { Range: `bytes=${first}-${last}` },
    });
  t.equal(await codeOf(await piece(0, 9)), '200/');
  t.equal(await codeOf(await piece(10, 19)), '200/');
  t.equal(await codeOf(await piece(10, 19)), '200/', 'again');
  t.equal(await codeOf(await piece(0, 9)), '404/1305', 'a piece before it');
});

t.test('v2 stream: a repeat under way while the file becomes complete gets the first answer', async (t) => {
  let beforeReserve = async () => {};
  const storage = (inner: FileStorage): FileStorage => {
    const reserve = inner.reserve.bind(inner);
    const reserveLater: FileStorage['reserve'] = async (...given) => {
      await beforeReserve();
      await reserve(...given);
    };
    return Object.assign(inner, { reserve: reserveLater });
  };
  const fixture = await startDrafts(t, { storage });
  const fileId = await fixture.create();
  const send = (method: string, offset: number, complete: boolean, body?: Buffer) => {
    const headers = {
      ...VERSION,
      'Upload-Offset': String(offset),
      'Upload-Complete': complete ? '?1' : '?0',
    };
    return fixture.stream(fileId, { method, headers, ...(body === undefined ? {} : { body }) });
  };
  t.equal((await send('POST', 0, false, BYTES)).status, 200);
  const { system } = fixture.actors;
  const slot = system.lookup('draft', fileId) ?? '';
  beforeReserve = async () => {
    beforeReserve = async () => {};
    const at = { ownerId: OWNER_ID, fileId, offsetBytes: 20, appends: true, keeps: true };
    const begun = await system.ask(draft, slot, { type: 'beginStream', ...at });
    if (!begun.begun) throw new Error('not begun');
    const end = { fileId, stream: begun.stream, sizeBytes: 20, crc32: crc32(BYTES) };
    await system.ask(draft, slot, { type: 'finishBody', ...end });
  };
  const complete = async (answer: Response, what: string) =>
    t.match([answer.status, answer.headers.get('upload-complete')], [200, '?1'], what);
  await complete(await send('PATCH', 20, true), 'after the draft was read');
  // Found as a draft, and complete before it is read.
  system.lookup = () => slot;
  await complete(await send('PATCH', 20, true), 'after the draft was found');
  t.equal((await send('PATCH', 19, true)).status, 404, 'no repeat of the end');
  const head = await fixture.stream(fileId, { method: 'HEAD' });
  t.match([head.status, head.headers.get('upload-complete')], [204, '?1']);
});

t.test(
  'v2 stream: what a complete upload leaves takes no place of a draft and is dropped for one',
  async (t) => {
    const fixture = await startDrafts(t, { settings: { DraftsPerUser: 2 } });
    const { complete, known } = uploadsOf(t, fixture);
    const [first, second] = [await complete(), await complete()];
    t.ok((await known(first)) && (await known(second)), 'a new draft takes an empty place first');
    await fixture.create();
    await fixture.create();
    t.notOk((await known(first)) || (await known(second)), 'as many drafts as ever');
  },
);

t.test('v2 stream: a new draft takes the place of the upload that is complete for longest', async (t) => {
  const fixture = await startDrafts(t, { settings: { DraftsPerUser: 3 } });
  const { complete, known } = uploadsOf(t, fixture);
  const uploads = [await complete(), await complete(), await complete(), await complete(), await complete()];
  t.same(await Promise.all(uploads.map(known)), [false, false, true, true, true]);
});

t.test(
  'v2 stream: nodes that use the slots of one owner in turn forget no upload while a slot is free',
  async (t) => {
    const { actors, disk } = createDraftWorld();
    const session = { loginType: null, userId: OWNER_ID };
    const call = { session, actors: actors.system, settings: new LiveSettings() };
    const [one, two] = [new SlotRotation(), new SlotRotation()];
    const known: string[] = [];
    for (const rotation of [one, two, one, two]) {
      const create = { ...call, query: { fileName: 'a.bin' }, body: {}, idempotencyKey: undefined };
      const { fileId } = await openDraft(create, rotation);
      const at = { ownerId: OWNER_ID, fileId };
      const slot = actors.system.lookup('draft', fileId) ?? '';
      const begin = { type: 'beginStream' as const, ...at, offsetBytes: 0, appends: true, keeps: true };
      const begun = await actors.system.ask(draft, slot, begin);
      if (!begun.begun) throw new Error('no stream begins');
      disk.write(fileId, 0, BYTES);
      const end = { type: 'finishBody' as const, fileId, sizeBytes: BYTES.length, crc32: crc32(BYTES) };
      await actors.system.ask(draft, slot, { ...end, stream: begun.stream });
      known.push(fileId);
    }
    const { nowMs } = actors.clock;
    const found = await Promise.all(known.map((fileId) => findUpload({ ...call, nowMs }, fileId)));
    t.same(
      found.map(({ fileId }) => fileId),
      known,
    );
  },
);

t.test('v2 draft: a repeat with an Idempotency-Key beside the first gets the draft of that', async (t) => {
  const { actors, chat } = createDraftWorld();
  let answer = () => {};
  const create = chat.create.bind(chat);
  const isAsked = new Promise<void>((resolve) => {
    chat.create = async (file) => {
      resolve();
      await new Promise<void>((mayAnswer) => {
        answer = mayAnswer;
      });
      return await create(file);
    };
  });
  const session = { loginType: null, userId: OWNER_ID };
  const call = { session, actors: actors.system, settings: new LiveSettings(), idempotencyKey: 'key-1' };
  const rotation = new SlotRotation();
  const open = () => openDraft({ ...call, query: { fileName: 'a.bin' }, body: {} }, rotation);
  const first = open();
  await isAsked;
  const second = open();
  answer();
  t.same(await second, await first);
});

function uploadsOf(t: Test, fixture: DraftFixture) {
  return {
    async complete() {
      const fileId = await fixture.create({ fileSize: '20' });
      t.equal((await fixture.stream(fileId, { body: BYTES })).status, 200);
      return fileId;
    },
    known: async (fileId: string) => (await fixture.stream(fileId, { method: 'HEAD' })).status === 204,
  };
}

t.test('v2 stream: a file in pieces with a digest of the whole is read once more', async (t) => {
  const fixture = await startDrafts(t);
  const sha256 = createHash('sha256').update(BYTES).digest('base64');
  for (const [value, expected] of [
    [sha256, '200/'],
    [Buffer.alloc(32).toString('base64'), '422/1308'],
  ] as const) {
    const fileId = await fixture.create({ fileSize: '20' });
    await fixture.stream(fileId, { body: BYTES.subarray(0, 9), headers: { Range: 'bytes=0-8' } });
    const headers = { Range: 'bytes=9-19', 'Repr-Digest': `sha-256=:${value}:` };
    t.equal(await codeOf(await fixture.stream(fileId, { body: BYTES.subarray(9), headers })), expected);
  }
});

t.test('v2 stream: OPTIONS tells the limit, and a preflight is a preflight', async (t) => {
  const { http } = await startDrafts(t);
  const url = `${http.url}/auth/v2/file/stream_upload/5`;
  const plain = await fetch(url, { method: 'OPTIONS' });
  t.equal(plain.status, 204);
  t.equal(plain.headers.get('Upload-Limit'), 'max-size=20971520, max-age=3600');
  t.equal(plain.headers.get('Allow'), 'POST, PATCH, HEAD, DELETE');
  const asking = { Origin: `http://localhost:${http.port}`, 'Access-Control-Request-Method': 'PATCH' };
  const preflight = await fetch(url, { method: 'OPTIONS', headers: asking });
  t.equal(preflight.headers.get('Access-Control-Allow-Methods'), 'POST, PATCH, HEAD, DELETE');
  t.match(preflight.headers.get('Access-Control-Allow-Headers'), /Range.*Upload-Complete, Upload-Offset/);
  t.match(preflight.headers.get('Access-Control-Expose-Headers'), /Upload-Offset/);
  t.equal(preflight.headers.get('Upload-Limit'), 'max-size=20971520, max-age=3600');
  const foreign = await fetch(url, {
    method: 'OPTIONS',
    headers: { ...asking, Origin: 'http://evil.example' },
  });
  t.equal(foreign.status, 403);
});

// covers S14
t.test('v2 stream: unknown and malformed file ids are 1305', async (t) => {
  const fixture = await startDrafts(t);
  for (const id of ['5', '-1', 'x', '99999999999999999999', '1.5', '05']) {
    t.equal(await codeOf(await fixture.stream(id, { body: BYTES })), '404/1305', id);
    t.equal((await fixture.stream(id, { method: 'HEAD' })).status, 404, id);
  }
});
