/**
 * Downloads behind nginx with the blocks of docs/deployment.md: the bytes and headers that a client receives when nginx
 * sends a file are those that it receives when the gateway does.
 */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { pickPort } from '../../../../kit/free-port.ts';
import { MemoryStorageServer } from '../../../../kit/storage/memory-server.ts';
import { RemoteStorage } from '../../../../src/io/files/storage/remote.ts';
import { defineRoute, Reply } from '../../../../src/io/http/table/route.ts';
import { inlineWorkers } from '../../../support/account.ts';
import {
  type DownloadFixture,
  type DownloadFixtureOptions,
  OWNER_ID,
  SENT_MS,
  SID,
  startDownloads,
} from '../../../support/files/downloads.ts';
import { temporaryFolder } from '../../../support/files/file-storage.ts';
import { requestText, sendRaw, startHttp } from '../../../support/http.ts';
import { startNginxWith } from '../../../support/programs/nginx.ts';
import { lacking } from '../../../support/programs/tools.ts';

t.setTimeout(60_000);

const FILE_ID = '1870000000000000001';
const SMALL_ID = '1870000000000000002';
const BYTES = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7 + (index >> 8)) & 0xff));
const V1 = `/auth/v1/file/${FILE_ID}`;
const COOKIE = { Cookie: `sid=${SID}` };
/** Differ from answer to answer, or name the server's own connection. */
const OWN_FIELDS = new Set(['date', 'x-request-id', 'connection', 'keep-alive', 'server', 'uwebsockets']);

/** The nginx blocks of the page, for a gateway and a folder of this test. */
function documentedBlocks(ports: { gateway: number; nginx: number }, root: string): string {
  const page = readFileSync('docs/deployment.md', 'utf8');
  const block = /## Files sent by nginx[\s\S]*?```nginx\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  return block
    .replace('127.0.0.1:8080', `127.0.0.1:${ports.gateway}`)
    .replace('listen 80;', `listen 127.0.0.1:${ports.nginx};`)
    .replaceAll('/srv/gatehouse/files/', `${root}/`);
}

interface Behind extends DownloadFixture {
  /** nginx that sends files, and nginx without the header. */
  readonly sending: string;
  readonly plain: string;
}

async function startBehindNginx(
  t: Test,
  options: Pick<DownloadFixtureOptions, 'quotaResult'> = {},
): Promise<Behind> {
  const fixture = await startDownloads(t, {
    proxies: ['127.0.0.1'],
    settings: { FileDownloadBytesPerSecond: 0 },
    ...options,
  });
  const [nginx, other] = [await pickPort(), await pickPort()];
  const gateway = fixture.http.port;
  const blocks = documentedBlocks({ gateway, nginx }, fixture.root);
  const plain = `server { listen 127.0.0.1:${other}; location / { proxy_pass http://127.0.0.1:${gateway}; proxy_http_version 1.1; proxy_set_header X-Accel ""; } }`;
  await startNginxWith(t, nginx, `${blocks}\n${plain}`);
  await fixture.put(FILE_ID, BYTES, 'größe 1.png');
  await fixture.put(SMALL_ID, BYTES.subarray(0, 65_535));
  return { ...fixture, sending: `http://127.0.0.1:${nginx}`, plain: `http://127.0.0.1:${other}` };
}

async function get(base: string, path: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(`${base}${path}`, { method, headers: { ...COOKIE, ...headers } });
  const bytes = Buffer.from(await response.arrayBuffer());
  const fields = [...response.headers].filter(([name]) => !OWN_FIELDS.has(name));
  return { status: response.status, fields: Object.fromEntries(fields), bytes };
}

const behind = { skip: lacking('nginx') };

t.test(
  'handed over: nginx answers with the bytes and fields that the gateway would send',
  behind,
  async (t) => {
    const { sending, plain, downloads, http, codes } = await startBehindNginx(t);
    const cors = { Origin: http.url };
    const cases: [what: string, path: string, headers: Record<string, string>, handedOver: boolean][] = [
      ['a whole file', V1, {}, true],
      ['a whole file by code', `/auth/v2/file/${codes.encode(FILE_ID)}`, {}, true],
      ['a whole file for another origin', V1, cors, true],
      ['a range', V1, { Range: 'bytes=1000-99999' }, true],
      ['a range without an end', V1, { Range: 'bytes=100000-' }, true],
      ['a last range', V1, { Range: 'bytes=-70000' }, true],
      ['a range beyond the end', V1, { Range: 'bytes=100000-999999' }, true],
      ['a last range above the size', V1, { Range: 'bytes=-999999' }, true],
      ['a range of 64 KiB', V1, { Range: 'bytes=0-65535' }, true],
      ['a range below 64 KiB', V1, { Range: 'bytes=0-65534' }, false],
      ['a small file', `/auth/v1/file/${SMALL_ID}`, {}, false],
      ['a malformed range', V1, { Range: 'bytes=--6' }, false],
      ['another unit', V1, { Range: 'items=0-99999' }, false],
      ['If-Range', V1, { Range: 'bytes=0-99999', 'If-Range': '"another"' }, false],
      ['If-None-Match', V1, { 'If-None-Match': '"another"' }, false],
      ['If-Match', V1, { 'If-Match': '*' }, false],
      ['If-Modified-Since', V1, { 'If-Modified-Since': new Date(0).toUTCString() }, false],
      ['If-Unmodified-Since', V1, { 'If-Unmodified-Since': new Date(SENT_MS).toUTCString() }, false],
      ['a condition that fails', V1, { 'If-Match': '"another"' }, false],
      ['a range outside the file', V1, { Range: 'bytes=300000-' }, false],
      ['a chunk of v1', `${V1}?part_number=0`, {}, false],
      ['no such file', '/auth/v1/file/1870000000000000009', {}, false],
    ];
    for (const [what, path, headers, handedOver] of cases) {
      const before = downloads.counters().handedOver;
      const answer = await get(sending, path, headers);
      t.equal(downloads.counters().handedOver - before, handedOver ? 1 : 0, `${what}: who sends`);
      const wanted = await get(plain, path, headers);
      t.ok(answer.bytes.equals(wanted.bytes), `${what}: bytes`);
      t.same({ ...answer, bytes: null }, { ...wanted, bytes: null }, what);
    }
  },
);

t.test("handed over: several ranges, 304 and HEAD are the gateway's", behind, async (t) => {
  const { sending, plain, downloads } = await startBehindNginx(t);
  const several = await get(sending, V1, { Range: 'bytes=0-69999,100000-199999' });
  t.match(several.fields['content-type'], /^multipart\/byteranges/);
  const { fields } = await get(plain, V1);
  const known = await get(sending, V1, { 'If-None-Match': String(fields['etag']) });
  t.same([known.status, known.bytes.length], [304, 0]);
  const head = await get(sending, V1, {}, 'HEAD');
  t.same(head, await get(plain, V1, {}, 'HEAD'));
  t.equal(head.fields['content-length'], String(BYTES.length));
  t.equal(downloads.counters().handedOver, 0);
});

// covers S124
t.test(
  'handed over: the internal location is 404 for clients, also with dots in the path',
  behind,
  async (t) => {
    const { sending } = await startBehindNginx(t);
    const { port } = new URL(sending);
    for (const path of [
      `/_files/${OWNER_ID}/${FILE_ID}`,
      '/_files/../_files/x',
      '/_files/%2e%2e/%2e%2e/etc/passwd',
      `/auth/../_files/${OWNER_ID}/${FILE_ID}`,
      `//_files/${OWNER_ID}/${FILE_ID}`,
    ]) {
      const { status } = await sendRaw(Number(port), requestText('GET', path, COOKIE));
      t.ok(status === 400 || status === 404, `${path}: ${status}`);
    }
  },
);

t.test('handed over: an id with dots or separators names no file outside the folder', behind, async (t) => {
  const { sending, downloads } = await startBehindNginx(t);
  for (const id of [
    '..%2f..%2fetc%2fpasswd',
    '%2e%2e',
    `..%5c${FILE_ID}`,
    `${FILE_ID}%00`,
    `${FILE_ID}%2f..`,
  ]) {
    const { status } = await get(sending, `/auth/v1/file/${id}`);
    t.ok(status === 400 || status === 404, `${id}: ${status}`);
  }
  t.equal(downloads.counters().handedOver, 0);
});

t.test(
  'handed over: the log record has the status and length of the answer that nginx sends',
  behind,
  async (t) => {
    const { sending, http } = await startBehindNginx(t);
    await get(sending, V1);
    await get(sending, V1, { Range: 'bytes=0-99999' });
    t.same(
      http.finished
        .filter(({ route }) => route !== '')
        .map(({ status, responseBytes, route }) => [status, responseBytes, route]),
      [
        [200, BYTES.length, '/auth/v1/file/:fileId'],
        [206, 100_000, '/auth/v1/file/:fileId'],
      ],
    );
  },
);

t.test('handed over: a quota above 0 has the gateway send, from the next download on', behind, async (t) => {
  const { sending, downloads, http } = await startBehindNginx(t);
  http.settings.set('FileDownloadBytesPerSecond', 100_000_000);
  t.ok((await get(sending, V1)).bytes.equals(BYTES));
  t.equal(downloads.counters().handedOver, 0);
  http.settings.set('FileDownloadBytesPerSecond', 0);
  t.ok((await get(sending, V1)).bytes.equals(BYTES));
  t.equal(downloads.counters().handedOver, 1);
});

t.test('handed over: nginx passes the fields of the rate limiter on', behind, async (t) => {
  const quotaResult = { allowed: true, scope: 's', quota: 500, remaining: 499, resetSeconds: 3 } as const;
  const { sending, plain, downloads } = await startBehindNginx(t, { quotaResult });
  const { fields } = await get(sending, V1);
  t.equal(fields['x-ratelimit'], 's=s;l=500;r=499;t=3');
  t.same(fields, (await get(plain, V1)).fields);
  t.equal(downloads.counters().handedOver, 1);
});

// covers S124
t.test('handed over: no route and no module sees the field of the proxy', async (t) => {
  for (const trustedProxies of [['127.0.0.1'], []]) {
    const seen: (readonly [string, string])[] = [];
    const route = defineRoute({
      method: 'GET',
      path: '/seen',
      summary: 'Fields as a proxied call forwards them',
      group: 'info',
      auth: 'none',
      errors: [],
      handle(context) {
        seen.push(...context.allHeaders());
        return Reply.empty();
      },
    });
    const http = startHttp({ routes: [route], pipeline: { trustedProxies, sendfileHeader: 'x-accel' } });
    t.teardown(() => http.close());
    const request = 'GET /seen HTTP/1.1\r\nHost: localhost\r\nX-Accel: 1\r\nX-Other: 2\r\nX-ACCEL: 3\r\n\r\n';
    await sendRaw(http.port, request);
    t.same(seen, [
      ['host', 'localhost'],
      ['x-other', '2'],
    ]);
  }
});

// covers S124
t.test('handed over: the field counts from a trusted proxy alone, once and not empty', async (t) => {
  const settings = { FileDownloadBytesPerSecond: 0 };
  const trusting = await startDownloads(t, { proxies: ['127.0.0.1'], settings });
  const wary = await startDownloads(t, { proxies: ['192.0.2.0/24'], settings });
  const open = await startDownloads(t, { settings });
  for (const fixture of [trusting, wary, open]) await fixture.put(FILE_ID, BYTES);
  const cases: [
    what: string,
    fixture: DownloadFixture,
    headers: Record<string, string>,
    path: string | null,
  ][] = [
    ['trusted', trusting, { 'X-Accel': '1' }, `/_files/${OWNER_ID}/${FILE_ID}`],
    ['empty', trusting, { 'X-Accel': '' }, null],
    ['absent', trusting, {}, null],
    ['another field', trusting, { 'X-Accel-Redirect': '/x' }, null],
    ['untrusted', wary, { 'X-Accel': '1' }, null],
    [
      'untrusted, and it claims to be forwarded',
      wary,
      { 'X-Accel': '1', 'X-Forwarded-For': '192.0.2.1' },
      null,
    ],
    ['no proxies', open, { 'X-Accel': '1' }, null],
  ];
  for (const [what, fixture, headers, path] of cases) {
    const response = await fetch(`${fixture.http.url}${V1}`, { headers: { ...COOKIE, ...headers } });
    const bytes = Buffer.from(await response.arrayBuffer());
    t.equal(response.headers.get('x-accel-redirect'), path, what);
    t.equal(bytes.length, path === null ? BYTES.length : 0, what);
  }
});

t.test("handed over: files of storage servers, which have no path here, are the gateway's", async (t) => {
  const settings = { FileDownloadBytesPerSecond: 0 };
  const server = await MemoryStorageServer.start(t);
  server.files.set(`/${OWNER_ID}/${FILE_ID}`, BYTES);
  const servers = { 0: { Host: server.url } };
  const { http, put, downloads } = await startDownloads(t, {
    proxies: ['127.0.0.1'],
    settings,
    storage: () =>
      new RemoteStorage({
        workers: inlineWorkers().workers,
        servers,
        staging: temporaryFolder(t),
        onFault: t.fail,
      }),
  });
  await put(FILE_ID, BYTES);
  const answer = await get(http.url, V1, { 'X-Accel': '1' });
  t.ok(answer.bytes.equals(BYTES));
  t.equal(downloads.counters().handedOver, 0);
});

t.test('handed over: a missing file is 404, and one of another length 500, without a path', async (t) => {
  const fixture = await startDownloads(t, {
    proxies: ['127.0.0.1'],
    settings: { FileDownloadBytesPerSecond: 0 },
  });
  const { http, put, chat, storage } = fixture;
  const file = await put(FILE_ID, BYTES);
  chat.set(FILE_ID, { ...file, sizeBytes: BYTES.length + 1 });
  const other = await get(http.url, V1, { 'X-Accel': '1' });
  t.same([other.status, other.fields['x-accel-redirect']], [500, undefined]);
  await put(SMALL_ID, BYTES);
  await storage.remove({ owner: OWNER_ID, fileId: SMALL_ID });
  const gone = await get(http.url, `/auth/v1/file/${SMALL_ID}`, { 'X-Accel': '1' });
  t.same([gone.status, gone.fields['x-accel-redirect']], [404, undefined]);
});
