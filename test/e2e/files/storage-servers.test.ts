/** The program with its files on a storage server: both transports, ranges, and a server that fails. */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import CRC32 from 'crc-32';
import t from 'tap';
import { expectOk, type Person, request, signUp } from '../../../kit/agent.ts';
import { launch, NO_LIMITS, type RunningGateway } from '../../../kit/launch.ts';
import { MemoryStorageServer } from '../../support/files/storage-server.ts';

const CHUNK_BYTES = 256 * 1024;
const OCTETS = 'application/octet-stream';
const crcOf = (bytes: Uint8Array) => CRC32.buf(bytes) >>> 0;

async function send(
  url: string,
  person: Person,
  body: Uint8Array,
): Promise<{ status: number; text: string }> {
  const headers = { Cookie: person.cookie, 'Content-Type': OCTETS };
  const response = await fetch(url, { method: 'POST', headers, body: Uint8Array.from(body) });
  return { status: response.status, text: await response.text() };
}

/** Uploads by v1; returns the code of the file. */
async function uploadChunks({ url }: RunningGateway, person: Person, bytes: Buffer): Promise<string> {
  const crc32 = crcOf(bytes);
  const body = { FileName: 'a.bin', FileSize: bytes.length, CRC32: crc32 };
  const headers = { Cookie: person.cookie };
  expectOk('init_upload', await request(`${url}/auth/v1/file/init_upload`, { headers, body }));
  let code: unknown = null;
  for (let chunk = 0; chunk * CHUNK_BYTES < bytes.length; chunk++) {
    const piece = bytes.subarray(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES);
    const query = `uploadId=${crc32}&chunkNumber=${chunk}&chunkCrc32=${crcOf(piece)}`;
    const { status, text } = await send(`${url}/auth/v1/file/upload_part?${query}`, person, piece);
    if (status !== 200) throw new Error(`upload_part: ${status} ${text}`);
    code = (JSON.parse(text) as { result: { fileCode: unknown } }).result.fileCode;
  }
  return String(code);
}

/** Uploads by v2; returns the answer to the stream and the code of the file. */
async function uploadStream({ url }: RunningGateway, person: Person, bytes: Buffer) {
  const address = `${url}/auth/v2/file/create_draft?fileName=b.bin&fileSize=${bytes.length}`;
  const headers = { Cookie: person.cookie };
  const draft = expectOk('create_draft', await request(address, { method: 'POST', headers }));
  const [fileId, code] = String(draft.json['result']).split(':');
  return { ...(await send(`${url}/auth/v2/file/stream_upload/${fileId}`, person, bytes)), code };
}

async function fetchFile({ url }: RunningGateway, code: string | undefined, range?: string) {
  const headers = range === undefined ? {} : { Range: range };
  const response = await fetch(`${url}/auth/v2/file/${code}`, { headers });
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
}

// covers R74
t.test('storage server: files are stored there and read back, and its failures are reported', async (t) => {
  const server = await MemoryStorageServer.start(t);
  const gateway = await launch({
    args: ['--sandbox'],
    configuration: {
      FileServers: { 0: { Host: `${server.url}/files/` } },
      Settings: NO_LIMITS,
    },
  });
  t.teardown(() => gateway.stop());
  const person = await signUp(gateway.url);
  const bytes = randomBytes(3 * CHUNK_BYTES + 17);

  const code = await uploadChunks(gateway, person, bytes);
  const streamed = await uploadStream(gateway, person, bytes);
  t.equal(streamed.status, 200, streamed.text);
  t.equal(server.files.size, 2);
  for (const path of server.files.keys()) t.match(path, new RegExp(`^/files/${person.userId}/\\d+$`));
  t.same(readdirSync(join(gateway.dataPath, 'uploads', person.userId)), [], 'no part is left');

  for (const each of [code, streamed.code]) t.ok((await fetchFile(gateway, each)).bytes.equals(bytes));
  const large = await fetchFile(gateway, code, 'bytes=1000-599999');
  t.equal(large.status, 206);
  t.ok(large.bytes.equals(bytes.subarray(1_000, 600_000)));
  t.ok((await fetchFile(gateway, code, 'bytes=5-9')).bytes.equals(bytes.subarray(5, 10)));

  server.fault = 'error';
  const refused = await fetchFile(gateway, code);
  t.equal(refused.status, 503);
  t.match(refused.bytes.toString(), /"code":1312/);
  const lost = await uploadStream(gateway, person, bytes);
  t.equal(lost.status, 503);
  t.match(lost.text, /"code":1312/);
  await gateway.said(/PUT at http:[^"]*answered 500/);
  server.fault = 'none';
  t.equal((await uploadStream(gateway, person, bytes)).status, 200, 'uploads work again after the fault');
});
