/** Contract, section 4.8: storage of file bytes. Each check starts a gateway with its own configuration. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeAfter } from '../../../kit/close-after.ts';
import { runToEnd } from '../../../kit/launch.ts';
import { MemoryStorageServer } from '../../../kit/storage/memory-server.ts';
import { checksOf } from '../check.ts';
import { smallFile, uploadV1 } from '../uploads.ts';
import { World } from '../world.ts';

export const CHECKS = checksOf('4.8', {
  'the bytes are in the file {owner}/{fileId} of the folder, and no server received any': {
    sentence:
      'LocalFileStoragePath: a folder, where bytes are at {LocalFileStoragePath}/{owner}/{fileId}. … LocalFileStoragePath wins over HTTP file servers.',
    apart: true,
    async run(t) {
      const folder = mkdtempSync(join(tmpdir(), 'gatehouse-contract-'));
      const server = await MemoryStorageServer.start(t);
      const FileServers = { 0: { Host: server.url } };
      const world = await World.start({
        configuration: () => ({ LocalFileStoragePath: folder, FileServers }),
      });
      t.teardown(async () => {
        await world.close();
        rmSync(folder, { recursive: true, force: true });
      });
      const person = await world.person();
      const { fileId, bytes } = await uploadV1(world, person, smallFile());
      t.ok(readFileSync(join(folder, person.userId, fileId)).equals(bytes));
      t.same(server.requests, []);
    },
  },
  'a start with a path that cannot be a directory ends with an error that names the setting': {
    sentence: 'It must be possible to write there.',
    apart: true,
    async run(t) {
      const folder = mkdtempSync(join(tmpdir(), 'gatehouse-contract-'));
      t.teardown(() => rmSync(folder, { recursive: true, force: true }));
      const path = join(process.execPath, 'files');
      const args = ['--data', join(folder, 'data'), '--port', '0', '--internal-port', '0'];
      const ended = await runToEnd(args, { GATEHOUSE_LOCAL_FILE_STORAGE_PATH: path });
      t.not(ended.code, 0);
      t.match(ended.stderr + ended.stdout, /LocalFileStoragePath/);
      t.notOk(existsSync(path));
    },
  },
  'a file is stored on the server whose threshold is below its id, not on one whose threshold is above': {
    sentence:
      'FileServers: an object from thresholds (numbers as keys) to { Host }. A new file id uses the first server whose threshold is below the id.',
    apart: true,
    async run(t) {
      const [low, high] = [await MemoryStorageServer.start(t), await MemoryStorageServer.start(t)];
      const FileServers = { 0: { Host: low.url }, '9000000000000000000': { Host: high.url } };
      const world = closeAfter(t, await World.start({ configuration: () => ({ FileServers }) }));
      const person = await world.person();
      const { fileId, fileCode, bytes } = await uploadV1(world, person, smallFile());
      t.same([...low.files.keys()], [`/${person.userId}/${fileId}`]);
      t.same(high.requests, []);
      t.ok((await world.get(`/auth/v2/file/${fileCode}`)).bytes.equals(bytes));
    },
  },
});
