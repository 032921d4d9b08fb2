/** Buffered uploads (v1) of the program with the sandbox: every refusal with status and code, and the data it leaves. */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { type Answer, type Person, request, signUp } from '../../../kit/agent.ts';
import { HIGH_LIMITS, launchFor } from '../../../kit/launch.ts';
import {
  cancelUpload,
  chunksOf,
  crc32,
  initUpload,
  queryOf,
  sendPart,
  type Uploader,
  uploadPart,
  uploadStatus,
} from '../../../kit/upload-client.ts';

const CHUNK = 256 * 1024;
const SETTINGS = {
  ...HIGH_LIMITS,
  FileUploadBytesPerSecond: 0,
  FileBlockedExtensions: 'exe;.bat',
};
const gateway = await launchFor(t, { args: ['--sandbox'], configuration: { Settings: SETTINGS } });

interface Someone extends Person, Uploader {}

async function someone(): Promise<Someone> {
  const person = await signUp(gateway.url);
  return { ...person, url: gateway.url };
}

const refusalOf = ({ status, json }: Answer): [number, unknown] => [status, json['error']?.['code']];

async function chat(userId: string, path: string, body?: object) {
  const headers = { 'X-Crm': userId };
  const answer = await request(`${gateway.sandbox}/chat/v1/${path}`, { headers, body });
  return answer.json['result'] as unknown as Record<string, unknown>;
}

function stored({ userId }: Person): string[] {
  const folder = join(gateway.dataPath, 'files', userId);
  return existsSync(folder) ? readdirSync(folder) : [];
}

// covers R29 R30 R65
t.test(
  'upload: parts arrive in any order and in parallel; the file, its message and its code exist',
  async (t) => {
    const ada = await someone();
    const bytes = randomBytes(20 * CHUNK + 77);
    const opened = await initUpload(ada, bytes, {
      FileName: 'größe 😀.txt',
      Message: 'look',
      CRC32: crc32(bytes) | 0,
    });
    t.same(opened.json, { result: crc32(bytes) }, 'a negative CRC-32 is read as unsigned');
    t.match(opened.headers.get('x-ratelimit'), /^s=s;/);
    const order = [...chunksOf(bytes).keys()].reverse();
    const first = await uploadPart(ada, bytes, order[0] ?? 0);
    t.same(first.json, { result: { chunkNumber: 20, fileId: null, fileCode: null } });
    t.equal(first.headers.get('x-ratelimit'), null, 'parts do not count as requests');
    t.same((await uploadPart(ada, bytes, 20)).json, first.json, 'again: the same answer');
    const status = await uploadStatus(ada, crc32(bytes));
    const missing = Array.from({ length: 20 }, (_, at) => at);
    const expected = { uploadId: crc32(bytes), chunkCount: 21, missing, expiresUtc: /^20.*Z$/ };
    t.match(status.json, { result: expected });
    t.equal(stored(ada).length, 1);
    const answers = await Promise.all(order.slice(1).map((at) => uploadPart(ada, bytes, at)));
    t.ok(answers.every(({ status }) => status === 200));
    const last = answers.find(({ json }) => json['result']?.['fileId'] !== null);
    const result = last?.json['result'] ?? {};
    const { fileId, fileCode, chunkNumber } = result as Record<string, unknown>;
    t.match(fileCode, /^[A-Za-z0-9_-]{22}$/);
    t.same(stored(ada), [fileId]);
    t.ok(readFileSync(join(gateway.dataPath, 'files', ada.userId, String(fileId))).equals(bytes));
    const info = await chat(ada.userId, `files/info?fileId=${fileId}`);
    t.match(info, { name: 'größe 😀.txt', sizeBytes: bytes.length, crc32: crc32(bytes), text: 'look' });
    t.match(await chat(ada.userId, `chats/info?chatId=${info['chatId']}`), { kind: 'personal' });
    const again = await uploadPart(ada, bytes, Number(chunkNumber));
    t.same(again.json, last?.json, 'the last part repeated');
    const other = (Number(chunkNumber) + 1) % 21;
    t.same(refusalOf(await uploadPart(ada, bytes, other)), [404, 1305]);
    t.same(refusalOf(await uploadStatus(ada, crc32(bytes))), [404, 1305]);
  },
);

// covers R29 S14
t.test('init: values of another type and out of range are 400', async (t) => {
  const ada = await someone();
  const bytes = randomBytes(10);
  const bad = [
    { FileSize: 1.5 },
    { FileSize: '10' },
    { CRC32: 2 ** 32 },
    { CRC32: -(2 ** 31) - 1 },
    { CRC32: '7' },
    { FileName: 7 },
    { ChatId: 'x' },
    { ChatId: '9223372036854775808' },
    { ChatId: 2 ** 53 },
    { Message: 'x'.repeat(4097) },
    { FileName: undefined },
  ];
  for (const fields of bad)
    t.same(refusalOf(await initUpload(ada, bytes, fields)), [400, 1001], JSON.stringify(fields));
  t.same(stored(ada), []);
});

// covers S14
t.test('part: 1305 for an unknown or foreign upload, 1306 for a chunk number outside of it', async (t) => {
  const [ada, bob] = [await someone(), await someone()];
  const bytes = randomBytes(2 * CHUNK);
  const uploadId = crc32(bytes);
  const chunk = bytes.subarray(0, CHUNK);
  const good = { uploadId, chunkNumber: 0, chunkCrc32: crc32(chunk) };
  t.same(refusalOf(await sendPart(ada, good, chunk)), [404, 1305]);
  await initUpload(ada, bytes);
  t.same(refusalOf(await sendPart(bob, good, chunk)), [404, 1305], 'another’s');
  t.same(refusalOf(await uploadStatus(bob, uploadId)), [404, 1305]);
  t.same(refusalOf(await cancelUpload(bob, uploadId)), [404, 1305]);
  for (const junk of ['', 'x', '1.5', '99999999999', '-1', '1e3', '0x10'])
    t.same(refusalOf(await sendPart(ada, { ...good, uploadId: junk }, chunk)), [404, 1305], junk);
  for (const chunkNumber of ['-1', '2', String(2 ** 53), '1.5', '', ' 0', '0x0', '99999999999999999999'])
    t.same(refusalOf(await sendPart(ada, { ...good, chunkNumber }, chunk)), [400, 1306], chunkNumber);
  t.same(refusalOf(await sendPart(ada, { uploadId, chunkCrc32: 1 }, chunk)), [400, 1306]);
  t.same(refusalOf(await sendPart(ada, { uploadId, chunkNumber: 0 }, chunk)), [400, 1001]);
  t.equal(
    (await sendPart(ada, { ...good, uploadId: uploadId | 0, chunkCrc32: crc32(chunk) | 0 }, chunk)).status,
    200,
  );
  t.equal((await uploadPart(ada, bytes, 1)).status, 200);
});

// covers R30 R68
t.test(
  'part: 1307 for a chunk of wrong length, 1308 for a wrong CRC-32, after which it may be sent again',
  async (t) => {
    const ada = await someone();
    const bytes = randomBytes(2 * CHUNK + 5);
    await initUpload(ada, bytes);
    const uploadId = crc32(bytes);
    const [first = bytes, , last = bytes] = chunksOf(bytes);
    const long = Buffer.concat([first, Buffer.from('!')]);
    const as = (chunkNumber: number, sent: Uint8Array) => ({
      uploadId,
      chunkNumber,
      chunkCrc32: crc32(sent),
    });
    t.same(refusalOf(await sendPart(ada, as(0, long), long)), [413, 1307], '256 KB and one byte');
    t.same(refusalOf(await sendPart(ada, as(2, first), first)), [413, 1307], 'longer than the last chunk');
    const short = first.subarray(1);
    t.same(refusalOf(await sendPart(ada, as(0, short), short)), [400, 1307]);
    t.same(refusalOf(await sendPart(ada, as(0, first), new Uint8Array(0))), [400, 1307], 'no body');
    t.same(refusalOf(await sendPart(ada, { ...as(0, first), chunkCrc32: 7 }, first)), [422, 1308]);
    const head = `POST /auth/v1/file/upload_part?${queryOf(as(0, first))} HTTP/1.1\r\nHost: localhost\r\nCookie: ${ada.cookie}\r\n`;
    const chunked = Buffer.concat([
      Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n${long.length.toString(16)}\r\n`),
      long,
      Buffer.from('\r\n0\r\n\r\n'),
    ]);
    t.match(await raw(chunked), /^HTTP\/1\.1 413[\s\S]*"code":1307/, 'chunked, without a declared length');
    t.equal((await uploadPart(ada, bytes, 0)).status, 200);
    t.same(refusalOf(await sendPart(ada, { ...as(0, first), chunkCrc32: 7 }, first)), [422, 1308], 'stored');
    const other = randomBytes(CHUNK);
    t.equal((await sendPart(ada, as(0, other), other)).status, 200, 'it replaces the former');
    t.equal((await uploadPart(ada, bytes, 0)).status, 200, 'and is replaced');
    t.equal((await uploadPart(ada, bytes, 1)).status, 200);
    t.equal((await uploadPart(ada, bytes, 2)).status, 200);
    t.equal(last.length, 5);
    const [fileId = ''] = stored(ada);
    t.ok(readFileSync(join(gateway.dataPath, 'files', ada.userId, fileId)).equals(bytes));
  },
);

// covers R66
t.test('part: a form and an encoded body are 415; nothing is stored, and the upload continues', async (t) => {
  const ada = await someone();
  const bytes = randomBytes(CHUNK + 5);
  await initUpload(ada, bytes);
  const [first = bytes] = chunksOf(bytes);
  const query = queryOf({ uploadId: crc32(bytes), chunkNumber: 0, chunkCrc32: crc32(first) });
  const before = (await uploadStatus(ada, crc32(bytes))).json['result'];
  const lines = [
    'Content-Type: multipart/form-data; boundary=x',
    'Content-Encoding: gzip',
    'Content-Type: a/b\r\nContent-Type: a/b',
  ];
  for (const line of lines) {
    const head = `POST /auth/v1/file/upload_part?${query} HTTP/1.1\r\nHost: localhost\r\nCookie: ${ada.cookie}\r\n`;
    const sent = Buffer.from(`${head}${line}\r\nContent-Length: ${first.length}\r\n\r\n`);
    t.match(await raw(Buffer.concat([sent, first])), /^HTTP\/1\.1 415[\s\S]*"code":1007/, line);
  }
  t.same((await uploadStatus(ada, crc32(bytes))).json['result'], before);
  t.equal((await uploadPart(ada, bytes, 0)).status, 200);
  t.match((await uploadPart(ada, bytes, 1)).json['result'], { fileId: /^\d+$/ });
});

/** Sends bytes on a new socket; resolves with the received text at a complete answer or at the end of the connection. */
function raw(bytes: Uint8Array, then: (socket: Socket) => void = () => undefined): Promise<string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(gateway.url);
    const socket = connect(Number(port), hostname);
    let text = '';
    const done = () => {
      socket.destroy();
      resolve(text);
    };
    socket.on('data', (data) => {
      text += data;
      if (/\r\n\r\n\{.*\}$/s.test(text)) done();
    });
    socket.on('close', done);
    socket.on('error', done);
    socket.write(bytes, () => then(socket));
  });
}

t.test('a page of another origin cannot upload with a user’s cookie', async (t) => {
  const ada = await someone();
  const headers = { Cookie: ada.cookie, Origin: 'https://evil.example' };
  for (const path of ['upload_part?uploadId=1&chunkNumber=0&chunkCrc32=0', 'cancel_upload?uploadId=1'])
    t.same(
      refusalOf(await request(`${gateway.url}/auth/v1/file/${path}`, { method: 'POST', headers })),
      [403, 1103],
    );
  const body = { FileName: 'a', FileSize: 1, CRC32: 1 };
  t.same(refusalOf(await request(`${gateway.url}/auth/v1/file/init_upload`, { headers, body })), [403, 1103]);
});

t.test('part: FIN and RST in mid-body store nothing, and the chunk may be sent again', async (t) => {
  const ada = await someone();
  const bytes = randomBytes(CHUNK + 100);
  await initUpload(ada, bytes);
  const [first = bytes] = chunksOf(bytes);
  const query = `uploadId=${crc32(bytes)}&chunkNumber=0&chunkCrc32=${crc32(first)}`;
  const head = `POST /auth/v1/file/upload_part?${query} HTTP/1.1\r\nHost: localhost\r\nCookie: ${ada.cookie}\r\nContent-Length: ${CHUNK}\r\n\r\n`;
  const half = Buffer.concat([Buffer.from(head), first.subarray(0, CHUNK / 2)]);
  for (let round = 0; round < 5; round += 1) {
    await raw(half, (socket) => socket.end());
    await raw(half, (socket) => socket.resetAndDestroy());
  }
  t.match((await uploadStatus(ada, crc32(bytes))).json, { result: { missing: [0, 1] } });
  // Longer than its Content-Length: the rest is parsed as another, malformed request.
  t.match(await raw(Buffer.concat([Buffer.from(head), first, Buffer.from('more')])), /^HTTP\/1\.1 200/);
  t.match((await uploadStatus(ada, crc32(bytes))).json, { result: { missing: [1] } });
  t.match((await uploadPart(ada, bytes, 1)).json, { result: { fileId: String } });
});
