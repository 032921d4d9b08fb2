/**
 * Downloads over raw sockets: the whole table of ranges and conditions by both versions and both methods, who may fetch
 * what, and what a file says of itself. How bodies leave is test/io/files/download/sender.test.ts.
 */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { toHttpDate } from '../../../src/domain/files/http-dates.ts';
import { judgeDownload } from '../../../src/domain/files/preconditions.ts';
import { etagOf } from '../../../src/io/files/download/headers.ts';
import { runs } from '../../support/depth.ts';
import { DOWNLOAD_TABLE, fieldsOf, type TableRow, TEN_BYTES } from '../../support/files/download-table.ts';
import {
  APP_BEARER,
  BASIC_BEARER,
  BEARER,
  type DownloadFixture,
  type DownloadFixtureOptions,
  MODIFIED_MS,
  READER_ID,
  SID,
  SIGNED_APP_BEARER,
  startDownloads,
} from '../../support/files/downloads.ts';
import { connectRaw, promiseOf, type RawAnswer, requestText, sendRaw } from '../../support/http.ts';

const COOKIE = { Cookie: `sid=${SID}` };
const AGENT = { Authorization: `Bearer ${BEARER}` };
const VALIDATORS = ['etag', 'last-modified'];

/** With the file 7 of ten bytes, and its address by code. */
async function startOne(t: Test, options: DownloadFixtureOptions = {}) {
  const fixture = await startDownloads(t, options);
  const file = await fixture.put('7', TEN_BYTES);
  return { ...fixture, file, byCode: `/auth/v2/file/${fixture.codes.encode('7')}` };
}

function codeOf({ body }: RawAnswer): number {
  return (JSON.parse(body) as { error: { code: number } }).error.code;
}

function refusal(answer: RawAnswer): [status: number, code: number] {
  return [answer.status, codeOf(answer)];
}

/** `[range, bytes]` of every part of a multipart body, which has to be framed exactly. */
function partsOf({ headers, body }: RawAnswer): [range: string, bytes: string][] {
  const boundary = /^multipart\/byteranges; boundary=([0-9a-f-]+)$/.exec(headers['content-type'] ?? '')?.[1];
  const sections = body.split(`--${boundary}`);
  if (sections.at(-1) !== '--\r\n' || sections[0] !== '') throw new Error(`not framed: ${body}`);
  return sections.slice(1, -1).map((section) => {
    const form =
      /^\r\nContent-Type: text\/plain; charset=utf-8\r\nContent-Range: (bytes [^\r]+)\r\n\r\n(.*)\r\n$/s;
    const [, range = '', bytes = ''] = form.exec(section) ?? [];
    return [range, bytes];
  });
}

function expectedParts(ranges: readonly string[]): [string, string][] {
  return ranges.map((range) => {
    const [first = 0, last = 0] = range.split('-').map(Number);
    return [`bytes ${range}/10`, TEN_BYTES.slice(first, last + 1)];
  });
}

/** Compares a GET with its row of the table: pairs of the answer's value and the wanted one. */
function pairsOf(row: TableRow, answer: RawAnswer): [got: unknown, wanted: unknown][] {
  const { status, headers, body } = answer;
  const ranges = row.ranges ?? [];
  const pairs: [unknown, unknown][] = [[status, row.status]];
  if (status === 200) pairs.push([body, row.empty === true ? '' : TEN_BYTES]);
  if (status === 206 && ranges.length === 1)
    pairs.push([[[headers['content-range'], body]], expectedParts(ranges)]);
  if (status === 206 && ranges.length > 1) {
    pairs.push([partsOf(answer), expectedParts(ranges)]);
    // Each part has its own.
    pairs.push([headers['content-range'], undefined]);
  }
  if (status === 416)
    pairs.push([
      [headers['content-range'], codeOf(answer)],
      ['bytes */10', 1314],
    ]);
  if (status === 412) pairs.push([codeOf(answer), 1313]);
  pairs.push([headers['content-length'], status === 304 ? undefined : String(body.length)]);
  for (const name of VALIDATORS)
    pairs.push([`${name} ${headers[name] !== undefined}`, `${name} ${status !== 412}`]);
  pairs.push([headers['accept-ranges'] === 'bytes', [200, 206, 416].includes(status)]);
  const isCached = [200, 206, 304].includes(status);
  pairs.push([headers['cache-control']?.startsWith(isCached ? 'private, ' : 'no-store'), true]);
  return pairs;
}

for (const version of ['v1', 'v2'] as const) {
  // covers R72
  t.test(`table, ${version}: every row, by GET and by HEAD`, async (t) => {
    const { http, codes, put } = await startDownloads(t);
    const files = { ten: await put('7', TEN_BYTES), empty: await put('8', '') };
    const connection = connectRaw(http.port);
    const differing: unknown[] = [];
    for (const row of DOWNLOAD_TABLE) {
      const file = row.empty === true ? files.empty : files.ten;
      const path =
        version === 'v1' ? `/auth/v1/file/${file.fileId}` : `/auth/v2/file/${codes.encode(file.fileId)}`;
      const fields = { ...COOKIE, ...fieldsOf(row, etagOf(file), MODIFIED_MS, toHttpDate) };
      const got = await connection.ask(requestText('GET', path, fields));
      connection.send(requestText('HEAD', path, fields));
      const head = await connection.answer(true);
      const withoutBody = ({ status, headers }: RawAnswer) => {
        const { 'x-request-id': _id, date: _date, 'content-type': type, ...same } = headers;
        return { status, same, type: type?.replace(/boundary=.*/, '') };
      };
      const pairs = [...pairsOf(row, got), [withoutBody(head), withoutBody(got)]];
      for (const [value, wanted] of pairs)
        if (!isDeepStrictEqual(value, wanted)) differing.push({ row: row.name, value, wanted });
    }
    t.same(differing, []);
    connection.close();
    t.same(http.bugs, []);
  });
}

t.test('any fields: the front answers what the pure rules say, byte for byte', async (t) => {
  const { http, file, byCode } = await startOne(t);
  const facts = { etag: etagOf(file), modifiedMs: MODIFIED_MS, sizeBytes: 10 };
  const part = fc.constantFrom('bytes=', '0', '-', '5', ',', '12', ' ', '*', '"x"', 'W/', facts.etag, 'x');
  const near = fc.array(part, { maxLength: 9 }).map((parts) => parts.join('').trim());
  const ranges = fc
    .array(fc.tuple(fc.nat(12), fc.option(fc.nat(12), { nil: '' })), { maxLength: 4 })
    .map((specs) => `bytes=${specs.map(([first, last]) => `${first}-${last}`).join(', ')}`);
  const date = fc.integer({ min: -2, max: 2 }).map((seconds) => toHttpDate(MODIFIED_MS + seconds * 1_000));
  const some = (value: fc.Arbitrary<string>) => fc.option(value, { nil: undefined, freq: 2 });
  const fields = fc.record({
    ifMatch: some(near),
    ifNoneMatch: some(near),
    ifModifiedSince: some(date),
    ifUnmodifiedSince: some(date),
    ifRange: some(fc.oneof(near, date)),
    range: some(fc.oneof(near, ranges, ranges)),
  });
  const connection = connectRaw(http.port);
  await fc.assert(
    fc.asyncProperty(fields, async (sent) => {
      const named: Record<string, string> = {};
      for (const [name, value] of Object.entries(sent))
        if (value !== undefined) named[name.replace(/[A-Z]/g, (letter) => `-${letter}`)] = value;
      const { status, headers, body } = await connection.ask(requestText('GET', byCode, named));
      const verdict = judgeDownload(sent, facts, http.time.nowMs);
      if (status !== verdict.status) return false;
      if (verdict.status === 200) return body === TEN_BYTES;
      if (verdict.status !== 206) return true;
      if (verdict.ranges.length > 1)
        return verdict.ranges.every(({ first, last }) =>
          body.includes(`\r\n\r\n${TEN_BYTES.slice(first, last + 1)}\r\n`),
        );
      const [{ first, last } = { first: 0, last: -1 }] = verdict.ranges;
      return (
        body === TEN_BYTES.slice(first, last + 1) && headers['content-range'] === `bytes ${first}-${last}/10`
      );
    }),
    runs(3_000),
  );
  connection.close();
  t.same(http.bugs, []);
});

// covers S11
t.test('bodies: answers that wait for the chat module at once never hold each other’s bytes', async (t) => {
  let asked = 0;
  let gate = promiseOf();
  // The module answers all of a round in the same moment.
  const held = async () => {
    asked += 1;
    if (asked % 40 === 0) {
      gate.resolve();
      gate = promiseOf();
    } else await gate.promise;
  };
  const { http, codes, put } = await startDownloads(t, { held });
  const ids = Array.from({ length: 40 }, (_, index) => String(100 + index));
  for (const id of ids) await put(id, `file ${id}`);
  const round = () => Promise.all(ids.map((id) => http.ask('GET', `/auth/v2/file/${codes.encode(id)}`)));
  for (let rounds = 0; rounds < 5; rounds += 1) {
    const answers = await round();
    t.same(
      answers.map(({ body }) => body),
      ids.map((id) => `file ${id}`),
    );
    // Forgotten by the file cache, kept open by the storage.
    http.time.nowMs += 2_000;
  }
});

t.test('404: comes before conditions and ranges', async (t) => {
  const { http, codes } = await startDownloads(t);
  for (const fields of [{ 'If-Match': '"x"' }, { 'If-None-Match': '*' }, { Range: 'bytes=0-4' }]) {
    for (const path of ['/auth/v1/file/9', `/auth/v2/file/${codes.encode('9')}`]) {
      const answer = await http.ask('GET', path, { ...COOKIE, ...fields });
      t.same(refusal(answer), [404, 1311], path);
      const absent = [...VALIDATORS, 'content-range', 'content-disposition'];
      t.same(
        absent.filter((name) => name in answer.headers),
        [],
      );
      t.equal(answer.headers['cache-control'], 'no-store');
    }
  }
});

t.test('conditions: fields that come twice are one list, anything else twice is void', async (t) => {
  const { http, file, byCode: path } = await startOne(t);
  const twice = (...lines: string[]) =>
    sendRaw(http.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${lines.join('\r\n')}\r\n\r\n`);
  const matched = await twice('If-None-Match: "x"', `If-None-Match: ${etagOf(file)}`);
  t.equal(matched.status, 304);
  t.equal((await twice('If-Match: "x"', `If-Match: ${etagOf(file)}`)).status, 200);
  t.equal((await twice('Range: bytes=0-1', 'Range: bytes=3-4')).status, 200);
  const since = `If-Modified-Since: ${toHttpDate(MODIFIED_MS)}`;
  t.equal((await twice(since, since)).status, 200);
  t.equal((await twice('Range: bytes=0-1', 'If-Range: "x"', `If-Range: ${etagOf(file)}`)).status, 200);
});

t.test('validators: Last-Modified of a file that was just sent is not later than Date', async (t) => {
  const { http, chat, fileCache, file, byCode } = await startOne(t);
  for (let round = 0; round < 50; round += 1) {
    chat.set('7', { ...file, sentMs: Date.now() });
    fileCache.forget(new Set(['7']));
    const { headers } = await http.ask('GET', byCode);
    const [date, modified] = [headers['date'], headers['last-modified']].map((text) =>
      Date.parse(text ?? ''),
    );
    if (!((modified ?? Number.NaN) <= (date ?? Number.NaN)))
      t.fail(`${headers['last-modified']} is later than ${headers['date']}`);
  }
});

// covers R66
t.test('v1: needs the cookie of a session; a bearer or nothing is 401', async (t) => {
  const { http, codes, asked, ended } = await startOne(t);
  for (const headers of [{}, AGENT, { Cookie: 'sid=unknown' }])
    t.same(refusal(await http.ask('GET', '/auth/v1/file/7', headers)), [401, 1101]);
  t.same(asked, [], 'the chat module receives nothing');
  const get = () => http.ask('GET', '/auth/v1/file/7', COOKIE);
  t.equal((await get()).body, TEN_BYTES);
  ended.add(SID);
  t.same(refusal(await get()), [401, 1101], 'blocked, logged out');
  ended.clear();
  const byCode = await http.ask('GET', `/auth/v1/file/${codes.encode('7')}`, COOKIE);
  t.same(refusal(byCode), [404, 1311], 'codes are for v2');
});

t.test('v1: whole file, parts, and parts that are none', async (t) => {
  const { http, put } = await startDownloads(t);
  const bytes = Buffer.alloc(600_000, 'abcdefg');
  const file = await put('7', bytes);
  const { crc32 } = file;
  const get = async (query: string, headers = {}) => {
    const answer = await http.ask('GET', `/auth/v1/file/7${query}`, { ...COOKIE, ...headers });
    const { 'x-file-part': part, 'x-chunk-crc32': crc, 'cache-control': cache } = answer.headers;
    return { ...answer, told: [part, crc, cache] };
  };
  const cache = 'private, max-age=31536000, immutable';
  const whole = await get('');
  t.same(whole.told, ['whole-file', String(crc32), cache]);
  t.ok(Buffer.from(whole.body, 'latin1').equals(bytes));
  const slices = [bytes.subarray(0, 262_144), bytes.subarray(262_144, 524_288), bytes.subarray(524_288)];
  for (const [number, slice] of slices.entries()) {
    const part = await get(`?part_number=${number}`, { Range: 'bytes=0-4', 'If-None-Match': '"x"' });
    t.same([part.status, part.told], [200, [`part-${number}/3`, String(crc32), cache]], 'Range is ignored');
    t.equal(part.headers['content-length'], String(slice.length));
    t.notOk(part.headers['content-range']);
    t.ok(Buffer.from(part.body, 'latin1').equals(slice), `part ${number}`);
  }
  const head = await http.ask('HEAD', '/auth/v1/file/7?part_number=2', COOKIE);
  t.match(head, { status: 200, headers: { 'content-length': '75712', 'x-file-part': 'part-2/3' } });
  for (const wrong of ['-1', '3', '1.5', '', '9007199254740992', '9'.repeat(40), '0x1', '1e0', '%20', '+1'])
    t.same(refusal(await get(`?part_number=${wrong}`)), [400, 1306], wrong);
  t.same(refusal(await get('?part_number=0&part_number=1')), [400, 1001]);
  t.equal((await get('?part_number=0', { 'If-None-Match': etagOf(file) })).status, 304);
});

// covers R66 R67 S104
t.test(
  'access: a file of others answers as one that is not there, to the byte, by both versions',
  async (t) => {
    const { http, codes, put, closed, asked } = await startDownloads(t);
    await put('7', TEN_BYTES);
    closed.add('7');
    const get = (path: string, headers: Record<string, string>) => http.ask('GET', path, headers);
    const told = ({ status, headers, body }: RawAnswer) => {
      const { 'x-request-id': _id, date: _date, ...same } = headers;
      return { status, headers: same, body };
    };
    for (const [at, headers] of [
      ['/auth/v1/file', COOKIE],
      ['/auth/v2/file', COOKIE],
      ['/auth/v2/file', AGENT],
    ] as const) {
      asked.length = 0;
      const forbidden = await get(`${at}/7`, headers);
      t.same(refusal(forbidden), [404, 1311], at);
      t.same(told(forbidden), told(await get(`${at}/8`, headers)), 'GET');
      const heads = ['7', '8'].map((id) => http.ask('HEAD', `${at}/${id}`, headers));
      const [one, other] = await Promise.all(heads);
      t.same(one && told(one), other && told(other), 'HEAD');
      // The work is the same too: one question each time, and no answer is remembered.
      const questions = ['7', '8', '7', '8'].map((id) => [id, READER_ID]);
      t.same(asked.toSorted(), questions.toSorted(), 'asked with the caller’s user id');
      const ranged = { ...headers, Range: 'bytes=0-4', 'If-Match': '"x"' };
      t.same(told(await get(`${at}/7`, ranged)), told(await get(`${at}/8`, ranged)), 'conditions');
    }
    t.equal(
      (await get(`/auth/v2/file/${codes.encode('7')}`, AGENT)).body,
      TEN_BYTES,
      'a code is never checked',
    );
    t.same(asked.at(-1), ['7', null]);
  },
);

// covers R67
t.test('access: one that is taken away, and a file that is deleted, hold two seconds later', async (t) => {
  const { http, closed, chat, asked, file, byCode: path } = await startOne(t);
  const byId = () => http.ask('GET', '/auth/v2/file/7', COOKIE);
  const byCode = () => http.ask('GET', path);
  const both = async () => [(await byId()).status, (await byCode()).status];
  t.same(await both(), [200, 200]);
  t.same(await both(), [200, 200]);
  t.equal(asked.length, 2, 'remembered meanwhile');
  closed.add('7');
  http.time.nowMs += 2_000;
  t.same(await both(), [404, 200]);
  chat.delete('7');
  http.time.nowMs += 2_000;
  t.same(await both(), [404, 404]);
  chat.set('7', file);
  closed.clear();
  t.same(await both(), [200, 200], 'refusals are not remembered');
  http.time.nowMs -= 60_000;
  chat.delete('7');
  t.same(await both(), [404, 404], 'nor is anything over a clock that was set back');
});

// covers R73
t.test('v2: raw ids are for users, and for others by the setting alone', async (t) => {
  const { http, asked } = await startOne(t);
  const get = (headers: Record<string, string> = {}) => http.ask('GET', '/auth/v2/file/7', headers);
  t.same(refusal(await get()), [401, 1101]);
  t.same(refusal(await get({ Cookie: 'sid=stale' })), [401, 1101]);
  t.same(asked, []);
  for (const headers of [COOKIE, AGENT]) {
    const answer = await get(headers);
    t.match(answer, { status: 200, body: TEN_BYTES });
    t.equal(answer.headers['cache-control'], 'private, max-age=31536000, immutable');
  }
  http.settings.set('FileDownloadByIdEnabled', 1);
  const open = await get();
  t.match(open, { status: 200, body: TEN_BYTES });
  t.equal(open.headers['cache-control'], 'private, no-cache');
  t.same(asked.at(-1), ['7', null]);
  t.equal((await get({ Authorization: 'Bearer unknown' })).status, 401, 'a bearer was meant');
  http.settings.set('FileDownloadByIdEnabled', 0);
  t.equal((await get()).status, 401, 'the setting counts at once');
});

// covers R73
t.test('v2: a stale bearer does no harm to a download by code', async (t) => {
  const { http, asked, byCode: path } = await startOne(t);
  const answerOf = async (headers: Record<string, string>, at = path) => {
    const { status, body, headers: got } = await http.ask('GET', at, headers);
    return { status, body: status === 200 ? body : undefined, caching: got['cache-control'] };
  };
  const anonymous = await answerOf({});
  t.match(anonymous, { status: 200, body: TEN_BYTES, caching: 'private, no-cache' });
  const stale = ['Bearer unknown', 'bearer unknown', 'Bearer', 'Bearer a b', 'Bearer '.padEnd(400, 'x')];
  for (const Authorization of stale) {
    t.same(await answerOf({ Authorization }), anonymous, Authorization);
    t.same(await answerOf({ Authorization, ...COOKIE }), anonymous, `${Authorization} beside a cookie`);
    t.equal((await answerOf({ Authorization }, '/auth/v2/file/junk')).status, 404);
    t.equal((await answerOf({ Authorization }, '/auth/v2/file/7')).status, 401, 'a raw id needs the session');
  }
  t.ok(asked.every(([, reader]) => reader === null));
  const encoded = `/auth/v2/file/%${path.charCodeAt(14).toString(16)}${path.slice(15)}`;
  t.same(await answerOf({ Authorization: 'Bearer unknown' }, encoded), anonymous, 'an encoded path too');
  http.settings.set('FileDownloadAuthRequired', 1);
  for (const Authorization of stale)
    t.equal((await answerOf({ Authorization })).status, 401, 'where every download needs a session');
  t.equal((await answerOf(AGENT)).status, 200);
});

// covers R73 R106
t.test('v2: with FileDownloadAuthRequired every download needs a session, codes too', async (t) => {
  const { http, byCode: path } = await startOne(t);
  const get = (at: string, headers: Record<string, string> = {}) => http.ask('GET', at, headers);
  t.equal((await get(path)).status, 200);
  http.settings.set('FileDownloadAuthRequired', 1);
  http.settings.set('FileDownloadByIdEnabled', 1);
  t.same(refusal(await get(path)), [401, 1101]);
  t.same(refusal(await get('/auth/v2/file/7')), [401, 1101]);
  t.same(refusal(await get('/auth/v2/file/junk')), [401, 1101], 'before anything is said of codes');
  for (const headers of [COOKIE, AGENT, { Authorization: `Bearer ${BASIC_BEARER}` }])
    t.equal((await get(path, headers)).status, 200);
});

// covers P8 R73 S103
t.test('v2: a session without proof and McpBasicPersonalReads false: raw ids are 403, not 401', async (t) => {
  const { http, closed, asked, byCode: codePath } = await startOne(t);
  // Access of the account is not looked at for them.
  closed.add('7');
  const get = (path: string, headers: Record<string, string> = {}) => http.ask('GET', path, headers);
  const settings = [0, 1].flatMap((byId) => [0, 1].map((authRequired) => [byId, authRequired] as const));
  for (const [byId, authRequired] of settings) {
    http.settings.set('FileDownloadByIdEnabled', byId);
    http.settings.set('FileDownloadAuthRequired', authRequired);
    const isOpen = byId === 1 && authRequired === 0;
    for (const [path, found] of [
      ['/auth/v2/file/7', 200],
      ['/auth/v2/file/8', 404],
    ] as const) {
      const anonymous = await get(path);
      t.equal(anonymous.status, isOpen ? found : 401);
      for (const token of [BASIC_BEARER, APP_BEARER]) {
        const answer = await get(path, { Authorization: `Bearer ${token}` });
        if (isOpen) t.equal(answer.status, found, 'as without a session');
        else {
          t.same(refusal(answer), [403, 1103], `${token} ${path} ${byId} ${authRequired}`);
          t.match(answer.body, /McpVerified/, 'names the login that would do');
        }
      }
    }
    for (const token of [BASIC_BEARER, APP_BEARER]) {
      const byCode = await get(codePath, { Authorization: `Bearer ${token}` });
      t.equal(byCode.status, 200, 'it is a session for all that');
    }
  }
  t.ok(asked.length > 0 && asked.every(([, readerId]) => readerId === null));
});

// covers P8 R73
t.test('v2: with McpBasicPersonalReads a session without proof reads raw ids of its account', async (t) => {
  const { http, put, closed, asked } = await startOne(t, { personalReads: true });
  await put('8', TEN_BYTES);
  closed.add('8');
  for (const byId of [0, 1])
    for (const authRequired of [0, 1])
      for (const token of [BASIC_BEARER, APP_BEARER]) {
        http.settings.set('FileDownloadByIdEnabled', byId);
        http.settings.set('FileDownloadAuthRequired', authRequired);
        const get = (id: string) =>
          http.ask('GET', `/auth/v2/file/${id}`, { Authorization: `Bearer ${token}` });
        t.equal((await get('7')).body, TEN_BYTES, token);
        t.same(refusal(await get('8')), [404, 1311], 'the chat module refuses');
      }
  t.ok(asked.every(([, readerId]) => readerId === READER_ID));
  http.settings.set('FileDownloadByIdEnabled', 0);
  http.settings.set('FileDownloadAuthRequired', 0);
  t.same(refusal(await http.ask('GET', '/auth/v2/file/7')), [401, 1101]);
});

// covers P14 R71
t.test('digests: CRC-32 and a known SHA-256 of the whole file, as the client wants them', async (t) => {
  const { http, put, chat } = await startDownloads(t);
  const plain = await put('7', TEN_BYTES);
  const sha256 = createHash('sha256').update(TEN_BYTES).digest();
  const known = await put('8', TEN_BYTES);
  chat.set('8', { ...known, sha256 });
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(plain.crc32);
  const [crcMember, shaMember] = [
    `crc32=:${crc.toString('base64')}:`,
    `sha-256=:${sha256.toString('base64')}:`,
  ];
  const digestOf = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const answer = await http.ask(method, path, { ...COOKIE, ...headers });
    return [answer.status, answer.headers['repr-digest']];
  };
  for (const version of ['v1', 'v2']) {
    const path = `/auth/${version}/file`;
    t.same(await digestOf(`${path}/7`), [200, crcMember]);
    t.same(await digestOf(`${path}/8`), [200, `${shaMember}, ${crcMember}`]);
    t.same(await digestOf(`${path}/8`, {}, 'HEAD'), [200, `${shaMember}, ${crcMember}`]);
    t.same(
      await digestOf(`${path}/8`, { Range: 'bytes=2-3' }),
      [206, `${shaMember}, ${crcMember}`],
      'of all',
    );
    t.same(await digestOf(`${path}/8`, { 'Want-Repr-Digest': 'crc32=3' }), [200, crcMember]);
    t.same(await digestOf(`${path}/8`, { 'Want-Repr-Digest': 'sha-512=3' }), [200, undefined]);
    t.same(await digestOf(`${path}/8`, { 'If-None-Match': '*' }), [304, undefined]);
    t.same(await digestOf(`${path}/8`, { Range: 'bytes=99-' }), [416, undefined]);
  }
  t.same(
    await digestOf('/auth/v1/file/8?part_number=0'),
    [200, undefined],
    'a part is a resource of its own',
  );
});

// covers R73
t.test('v2: a signed McpApp session proved its key: raw ids with the access of its account', async (t) => {
  const { http, put, closed, asked } = await startOne(t);
  await put('8', TEN_BYTES);
  closed.add('8');
  const headers = { Authorization: `Bearer ${SIGNED_APP_BEARER}` };
  const get = (id: string) => http.ask('GET', `/auth/v2/file/${id}`, headers);
  t.equal((await get('7')).body, TEN_BYTES);
  t.same(refusal(await get('8')), [404, 1311]);
  t.same(asked, [
    ['7', READER_ID],
    ['8', READER_ID],
  ]);
});

// covers R67
t.test('codes: unknown, tampered with, and raw ids that are none are all 404', async (t) => {
  const { http, codes } = await startOne(t);
  const code = codes.encode('7');
  const tampered = (code.startsWith('A') ? 'B' : 'A') + code.slice(1);
  const none = [
    tampered,
    `${code}A`,
    code.slice(1),
    codes.encode('8'),
    'junk',
    '-1',
    '07',
    '1'.repeat(20),
    '%20',
    'é',
  ];
  for (const text of [...none, '99999999999999999999', '9223372036854775808', '8'])
    t.same(refusal(await http.ask('GET', `/auth/v2/file/${encodeURI(text)}`, COOKIE)), [404, 1311], text);
  for (const path of ['/auth/v2/file/..%2f7', '/auth/v1/file/%00', '/auth/v2/file/%'])
    t.equal((await http.ask('GET', path, COOKIE)).status, 400, path);
  for (const path of ['/auth/v1/file/x', '/auth/v1/file/-1', '/auth/v1/file/9223372036854775808'])
    t.same(refusal(await http.ask('GET', path, COOKIE)), [404, 1311], path);
});

t.test('a file says what it is: type, name, and nothing that may run', async (t) => {
  const { http, codes, put, chat } = await startDownloads(t);
  const rows: [name: string, type: string, disposition: string][] = [
    ['a.txt', 'text/plain; charset=utf-8', 'inline; filename="a.txt"'],
    ['A.PNG', 'image/png', 'inline; filename="A.PNG"'],
    ['x.svg', 'image/svg+xml', 'attachment; filename="x.svg"'],
    ['x.html', 'application/octet-stream', 'attachment; filename="x.html"'],
    ['x.pdf', 'application/pdf', 'inline; filename="x.pdf"'],
    ['noextension', 'application/octet-stream', 'attachment; filename="noextension"'],
    ['constructor.constructor', 'application/octet-stream', 'attachment; filename="constructor.constructor"'],
    [
      'a"b%c.bin',
      'application/octet-stream',
      `attachment; filename="a_b_c.bin"; filename*=UTF-8''a%22b%25c.bin`,
    ],
    ["b'(1)*.bin", 'application/octet-stream', `attachment; filename="b'(1)*.bin"`],
    [
      'б é.bin',
      'application/octet-stream',
      `attachment; filename="_ _.bin"; filename*=UTF-8''%D0%B1%20%C3%A9.bin`,
    ],
    ['😀.gif', 'image/gif', `inline; filename="_.gif"; filename*=UTF-8''%F0%9F%98%80.gif`],
    ['a\r\nX: y.txt', 'text/plain; charset=utf-8', 'inline; filename="a__X: y.txt"'],
    ['../../etc/passwd', 'application/octet-stream', 'attachment; filename=".._.._etc_passwd"'],
    ['gpj.\u202etxt', 'application/octet-stream', 'attachment; filename="gpj._txt"'],
    ['\ud800.txt', 'text/plain; charset=utf-8', 'inline; filename="_.txt"'],
    ['', 'application/octet-stream', 'attachment'],
  ];
  const told = async (fileId: string) => {
    const { headers } = await http.ask('GET', `/auth/v2/file/${codes.encode(fileId)}`);
    if (headers['x-content-type-options'] !== 'nosniff' || headers['content-security-policy'] !== 'sandbox')
      throw new Error(JSON.stringify(headers));
    return [headers['content-type'], headers['content-disposition']];
  };
  const answers: unknown[] = [];
  for (const [index, [name]] of rows.entries()) {
    await put(String(100 + index), 'x', name);
    answers.push([name, ...(await told(String(100 + index)))]);
  }
  t.same(answers, rows);
  const file = await put('99', 'x', 'picture');
  chat.set('99', { ...file, contentType: 'image/png' });
  t.same(await told('99'), ['image/png', 'inline; filename="picture"'], 'the module knows better');
  await put('98', 'x', `${'n'.repeat(5_000)}.txt`);
  t.ok(((await told('98'))[1] ?? '').length < 300);
  t.same(http.bugs, []);
});

t.test('modules: a failing chat module is reported as such, and a wrong size is a bug', async (t) => {
  const failing = await startDownloads(t, { describe: async () => ({ ok: false, error: 'ModuleTimedOut' }) });
  t.same(refusal(await failing.http.ask('GET', '/auth/v1/file/7', COOKIE)), [504, 1009]);
  const { http, codes, put, chat } = await startDownloads(t);
  const file = await put('7', TEN_BYTES);
  chat.set('7', { ...file, sizeBytes: 11 });
  const path = `/auth/v2/file/${codes.encode('7')}`;
  t.same(refusal(await http.ask('GET', path)), [500, 1000]);
  t.match(String(http.bugs), /file 7 has 10 bytes, the chat module says 11/);
  chat.set('8', { ...file, fileId: '8' });
  t.same(refusal(await http.ask('GET', `/auth/v2/file/${codes.encode('8')}`)), [404, 1311]);
  chat.set('9', file);
  const other = await http.ask('GET', `/auth/v2/file/${codes.encode('9')}`);
  t.same(refusal(other), [502, 1008], 'an answer about another file');
});

t.test('file cache: questions at the same time are one, and what is remembered is bounded', async (t) => {
  const { promise: held, resolve: answer } = promiseOf();
  const fixture: DownloadFixture = await startDownloads(t, {
    describe: (fileId) => {
      const file = fixture.chat.get('7');
      if (fileId !== '7' && file !== undefined)
        return Promise.resolve({ ok: true as const, value: { ...file, fileId } });
      return file === undefined ? undefined : held.then(() => ({ ok: true as const, value: file }));
    },
  });
  const { fileCache, asked, put } = fixture;
  await put('7', TEN_BYTES);
  const both = Promise.all([fileCache.find('7', null, 1), fileCache.find('7', null, 1)]);
  answer();
  await both;
  t.equal(asked.length, 1);
  for (let id = 1_000; id < 6_000; id += 1) await fileCache.find(String(id), null, 1);
  t.equal(fileCache.counters().entries, 4_096);
});
