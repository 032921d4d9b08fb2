/** The program with its files on a storage server: both transports, ranges, and a server that fails. */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { signUp } from '../../../kit/agent.ts';
import { launchFor, NO_LIMITS } from '../../../kit/launch.ts';
import { MemoryStorageServer } from '../../../kit/storage/memory-server.ts';
import { CHUNK_BYTES, fetchFile, uploadChunks, uploadStream } from '../../support/files/transfers.ts';

// covers R74
t.test('storage server: files are stored there and read back, and its failures are reported', async (t) => {
  const server = await MemoryStorageServer.start(t);
  const gateway = await launchFor(t, {
    args: ['--sandbox'],
    configuration: {
      FileServers: { 0: { Host: `${server.url}/files/` } },
      Settings: NO_LIMITS,
    },
  });
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
