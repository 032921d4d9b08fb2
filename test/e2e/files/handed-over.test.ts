/**
 * `SendfileBehind` in the program: the path that a trusted proxy receives, the log line and the metric of the download,
 * permissions of the file, and the quota that switches it. nginx itself: test/io/files/download/handed-over.test.ts.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { newKey, request, signUp } from '../../../kit/agent.ts';
import { launchFor, type RunningGateway } from '../../../kit/launch.ts';
import { MemoryStorageServer } from '../../../kit/storage/memory-server.ts';
import { type PartAnswer, uploadAll } from '../../../kit/upload-client.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';

t.setTimeout(120_000);

const BYTES = randomBytes(200_000);
const ASKING = { 'X-Accel': '1' };
const admin = newKey();

function configurationOf(more: object, settings: object) {
  return {
    TrustedProxies: ['127.0.0.1'],
    SendfileBehind: { header: 'X-Accel', prefix: '/_files/' },
    Admin: { publicKeys: [admin.publicKey] },
    Settings: { FileUploadBytesPerSecond: 0, ...settings },
    ...more,
  };
}

async function startGateway(t: Test, more: object, settings: object): Promise<RunningGateway> {
  const gateway = await launchFor(t, { args: ['--sandbox'], configuration: configurationOf(more, settings) });
  return gateway;
}

async function upload(gateway: RunningGateway): Promise<string> {
  const { cookie } = await signUp(gateway.url);
  const { fileCode }: PartAnswer = await uploadAll({ url: gateway.url, cookie }, BYTES, {});
  return `/auth/v2/file/${fileCode}`;
}

async function get(gateway: RunningGateway, path: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${gateway.url}${path}`, { headers });
  const bytes = Buffer.from(await response.arrayBuffer());
  return { location: response.headers.get('x-accel-redirect'), bytes };
}

t.test('handed over: the proxy receives the path of the file, and the download is counted', async (t) => {
  const folder = temporaryFolder(t);
  const more = { LocalFileStoragePath: folder };
  const gateway = await startGateway(t, more, { FileDownloadBytesPerSecond: 0 });
  const path = await upload(gateway);
  const { location, bytes } = await get(gateway, path, ASKING);
  t.match(location, /^\/_files\/[0-9]+\/[0-9]+$/);
  t.equal(bytes.length, 0);
  const stored = join(folder, String(location).slice('/_files/'.length));
  t.ok(readFileSync(stored).equals(BYTES));
  t.equal(statSync(stored).mode & 0o040, 0o040, 'the group of the gateway may read it');
  t.same(await get(gateway, path), { location: null, bytes: BYTES }, 'without the field');
  await gateway.said(new RegExp(`"route":"/auth/v2/file/:idOrCode".*"responseBytes":${BYTES.length},`));
  const { text } = await request(`${gateway.internal}/metrics`);
  t.match(text, /^gatehouse_downloads_total\{version="v2",outcome="handed_over"\} 1$/m);
  t.notMatch(gateway.output().stderr, 'sendfile unused');
});

t.test('handed over: with storage servers a start says that the gateway sends all files', async (t) => {
  const server = await MemoryStorageServer.start(t);
  const more = { FileServers: { 0: { Host: server.url } } };
  const gateway = await startGateway(t, more, { FileDownloadBytesPerSecond: 0 });
  await gateway.said(/"msg":"sendfile unused".*FileServers|FileServers.*"msg":"sendfile unused"/);
  t.same(await get(gateway, await upload(gateway), ASKING), { location: null, bytes: BYTES });
});
