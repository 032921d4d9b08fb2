/** The program with its files in a bucket: both transports, redirects, and starts with a storage that cannot be used. */
import { randomBytes } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { signUp } from '../../../kit/agent.ts';
import { launchFor, NO_LIMITS, runToEnd } from '../../../kit/launch.ts';
import { KEY_PAIR, REGION, startS3 } from '../../support/files/s3-oracle.ts';
import { CHUNK_BYTES, fetchFile, uploadChunks, uploadStream } from '../../support/files/transfers.ts';

t.setTimeout(120_000);

const MIB = 1024 * 1024;

function bucketKeys(url: string) {
  const { accessKeyId, secretAccessKey } = KEY_PAIR;
  return {
    ...{ Endpoint: url, Region: REGION, Bucket: 'files', Prefix: 'a/b/', PathStyle: true },
    ...{ AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey },
  };
}

// covers R126
t.test('bucket: files are stored there and read back by both transports; a failure is 1312', async (t) => {
  const server = await startS3(t);
  const S3 = { ...bucketKeys(server.url), SecretAccessKey: 'env:S3_SECRET' };
  const gateway = await launchFor(t, {
    args: ['--sandbox'],
    configuration: { FileServers: { 0: { S3 } }, Settings: NO_LIMITS },
    environment: { S3_SECRET: KEY_PAIR.secretAccessKey },
  });
  t.equal(server.objects.size, 0, 'the probe left nothing');
  const person = await signUp(gateway.url);
  const small = randomBytes(3 * CHUNK_BYTES + 17);
  const large = randomBytes(17 * MIB + 3);

  const code = await uploadChunks(gateway, person, small);
  const streamed = await uploadStream(gateway, person, large);
  t.equal(streamed.status, 200, streamed.text);
  t.equal(server.partsMost, 2, 'a large file goes in parts');
  for (const key of server.objects.keys()) t.match(key, new RegExp(`^a/b/${person.userId}/\\d+$`));
  t.equal(server.objects.size, 2);
  t.same(readdirSync(join(gateway.dataPath, 'uploads', person.userId)), [], 'no part is left');

  t.ok((await fetchFile(gateway, code)).bytes.equals(small));
  t.ok((await fetchFile(gateway, streamed.code)).bytes.equals(large));
  const range = await fetchFile(gateway, streamed.code, 'bytes=1000-2099999');
  t.equal(range.status, 206);
  t.ok(range.bytes.equals(large.subarray(1_000, 2_100_000)));

  server.faultOf = () => 'full';
  const full = await uploadStream(gateway, person, small);
  t.equal(full.status, 503);
  t.match(full.text, /"code":1013/);
  server.faultOf = ({ method }) => (method === 'PUT' ? 'late error' : undefined);
  server.objects.clear();
  const lost = await fetchFile(gateway, code);
  t.equal(lost.status, 404, 'an object that is gone');
  t.match(gateway.output().stderr, /PUT at files at http:[^"]*answered 507 XMinioStorageFull/);
  t.notMatch(gateway.output().stderr, new RegExp(KEY_PAIR.secretAccessKey.replace('+', '\\+')));
});

// covers R126
t.test('bucket: whole attachments of v2 are redirected to a link, and nothing else is', async (t) => {
  const server = await startS3(t);
  const S3 = { ...bucketKeys(server.url), RedirectDownloads: true };
  const gateway = await launchFor(t, {
    args: ['--sandbox'],
    configuration: {
      FileServers: { 0: { S3 } },
      Settings: { ...NO_LIMITS, FileDownloadBytesPerSecond: 0 },
    },
  });
  const person = await signUp(gateway.url);
  const bytes = randomBytes(100_000);
  const attachment = (await uploadStream(gateway, person, bytes, 'b.zip')).code ?? '';
  const shown = (await uploadStream(gateway, person, bytes, 'b.png')).code ?? '';
  const get = (code: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${gateway.url}/auth/v2/file/${code}`, { method, headers, redirect: 'manual' });

  const answer = await get(attachment);
  t.equal(answer.status, 307);
  t.equal(answer.headers.get('cache-control'), 'no-store');
  t.equal(answer.headers.get('etag'), null);
  t.equal((await answer.arrayBuffer()).byteLength, 0);
  const link = await fetch(answer.headers.get('location') ?? '');
  t.ok(Buffer.from(await link.arrayBuffer()).equals(bytes));
  const query = new URL(answer.headers.get('location') ?? '').searchParams;
  t.equal(query.get('response-content-disposition'), 'attachment; filename="b.zip"');
  t.equal(query.get('response-content-type'), 'application/octet-stream');
  t.equal(query.get('response-cache-control'), 'private, no-cache');

  const others: [what: string, answer: Response, status: number][] = [
    ['a file that browsers show', await get(shown), 200],
    ['a range', await get(attachment, { Range: 'bytes=0-9' }), 206],
    ['a malformed range', await get(attachment, { Range: 'bytes=x' }), 200],
    ['a condition', await get(attachment, { 'If-None-Match': '"other"' }), 200],
    ['HEAD', await get(attachment, {}, 'HEAD'), 200],
    ['no such file', await get('f7Qm2Kx9Zt4Lw8Vbf7Qm2A'), 404],
  ];
  for (const [what, { status, headers }, expected] of others)
    t.same([status, headers.get('location')], [expected, null], what);
  const metrics = await (await fetch(`${gateway.internal}/metrics`)).text();
  t.match(metrics, /gatehouse_downloads_total\{[^}]*outcome="redirected"[^}]*\} 1\n/);
});

t.test(
  'bucket: a start with one that cannot be used ends with 78, and with 70 while none answers',
  async (t) => {
    const server = await startS3(t);
    const start = async (S3: object) => {
      const folder = t.testdir();
      const config = join(folder, 'gatehouse.json');
      writeFileSync(config, JSON.stringify({ FileServers: { 0: { S3 } } }));
      const ports = ['--port', '0', '--internal-port', '0'];
      return await runToEnd(['--config', config, '--data', join(folder, 'data'), ...ports]);
    };
    const keys = bucketKeys(server.url);
    const wrong = await start({ ...keys, SecretAccessKey: 'wrong' });
    t.equal(wrong.code, 78);
    t.match(wrong.stderr, /FileServers: PUT at files at http:.*: answered 403 SignatureDoesNotMatch/);
    const absent = await start({ ...keys, Endpoint: 'http://127.0.0.1:1' });
    t.equal(absent.code, 70);
    t.match(
      absent.stderr,
      /FileServers cannot be used: PUT at files at http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/,
    );
  },
);
