/** Where bytes lie according to the configuration, and what makes the start fail. */
import { existsSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { closeAfter } from '../../kit/close-after.ts';
import { MemoryStorageServer } from '../../kit/storage/memory-server.ts';
import { FolderUnusable } from '../../src/bootstrap/data-directory.ts';
import { type FileTransport, openFileTransport } from '../../src/bootstrap/files.ts';
import { fileServersOf } from '../../src/bootstrap/storage/file-servers.ts';
import { loadConfiguration } from '../../src/config/load.ts';
import { GatewayError } from '../../src/domain/errors.ts';
import { packChunkEntry } from '../../src/domain/files/chunk-entry.ts';
import { chunkEntry, chunkedPartBytesMax } from '../../src/domain/files/chunk-table.ts';
import { LiveSettings } from '../../src/domain/settings/settings.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import type { WantedFiles } from '../../src/io/files/storage/port.ts';
import { createModuleClient } from '../../src/io/modules/client.ts';
import { createLog } from '../../src/io/observability/log.ts';
import { freshBounds } from '../support/actors/bounds.ts';
import { storeFile, temporaryFolder } from '../support/files/file-storage.ts';

const KEY = { owner: '7', fileId: '1001' };

function open(t: Test, dataPath: string, keys: object): FileTransport {
  const file = join(temporaryFolder(t), 'configuration.json');
  writeFileSync(file, JSON.stringify({ DataPath: dataPath, ...keys }));
  const loaded = loadConfiguration({ config: file, sandbox: true, newJournal: false }, {});
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));
  const settings = new LiveSettings();
  const modules = closeAfter(t, createModuleClient({ clock: Date.now, bounds: freshBounds() }));
  const { configuration } = loaded;
  return openFileTransport({
    configuration,
    settings,
    modules,
    actors: () => {
      throw new Error('this test has no actors');
    },
    chatUrl: undefined,
    log: createLog(),
  });
}

// covers R74
t.test(
  'file transport: the folder wins over the servers, the servers over the folder beside the journal',
  async (t) => {
    const server = await MemoryStorageServer.start(t);
    const servers = { FileServers: { 0: { Host: server.url } } };
    const named = join(temporaryFolder(t), 'made', 'at start');
    const both = temporaryFolder(t);
    const staged = join(temporaryFolder(t), 'staged');
    const places: [keys: object, file: string | undefined][] = [
      [{ ...servers, LocalFileStoragePath: named }, join(named, '7/1001')],
      [servers, undefined],
      [{ ...servers, FileStagingPath: staged }, undefined],
      [{}, join(both, 'files/7/1001')],
    ];
    for (const [keys, file] of places) {
      server.files.clear();
      const transport = open(t, both, keys);
      await storeFile(transport.storage, KEY, Buffer.from('abc'));
      t.equal(server.files.has('/7/1001'), file === undefined);
      if (file !== undefined) t.ok(existsSync(file), file);
      t.match(transport.counters(), {
        storage: { published: 1 },
        bandwidth: { streams: 0 },
        uploads: { active: 0 },
      });
      await transport.close();
    }
    t.ok(existsSync(join(staged, '7')), 'the part was there');
  },
);

// covers R75 S159
t.test('file transport: a folder that cannot be made or written names its key', async (t) => {
  const data = temporaryFolder(t);
  writeFileSync(join(data, 'a-file'), '');
  const keyOf = (keys: object): string => {
    try {
      open(t, data, keys);
      return 'opened';
    } catch (error) {
      return error instanceof FolderUnusable ? error.key : String(error);
    }
  };
  for (const path of ['/proc/nowhere', join(data, 'a-file'), join(data, 'a-file/below'), '/sys/kernel'])
    t.equal(keyOf({ LocalFileStoragePath: path }), 'LocalFileStoragePath', path);
  const FileServers = { 0: { Host: 'http://127.0.0.1:1' } };
  t.equal(keyOf({ FileServers, FileStagingPath: '/proc/nowhere' }), 'FileStagingPath');
  writeFileSync(join(data, 'files'), '');
  t.equal(keyOf({}), 'DataPath');
});

t.test('file transport: actors hash what lies on the disk, and get values for what fails', async (t) => {
  const { ports, storage, close } = open(t, temporaryFolder(t), {});
  const port = ports.files;
  if (port === undefined) throw new Error('there is a storage');
  t.same(await port.create(KEY), { ok: true, value: null });
  const lease = await storage.lease(KEY);
  writeFileSync(lease.fd, '123456789');
  await lease.release();
  const ranges = [
    { positionBytes: 0, lengthBytes: 9 },
    { positionBytes: 5, lengthBytes: 5 },
  ];
  t.same(await port.hashRanges(KEY, ranges), { ok: true, value: [0xcbf43926, undefined] });
  t.same(await port.readTable(KEY, 9), { ok: true, value: [null] }, 'the part ends before its table');
  const table = await storage.lease(KEY);
  const entry = chunkEntry(0, 9);
  writeSync(table.fd, packChunkEntry(entry, 0xcbf43926), 0, 8, entry.position);
  await table.release();
  t.same(await port.readTable(KEY, 9), { ok: true, value: [0xcbf43926] });
  t.same(await port.publish(KEY, 9), { ok: false, error: 'FileStorageFailed' }, 'its table is behind it');
  t.same(await port.publish(KEY, 10, chunkedPartBytesMax(9) - 1), { ok: false, error: 'FileStorageFailed' });
  t.same(await port.publish(KEY, 9, chunkedPartBytesMax(9)), { ok: true, value: null });
  t.same(await port.hashRanges(KEY, ranges), { ok: true, value: [undefined, undefined] }, 'the part is gone');
  t.same(await port.readTable(KEY, 9), { ok: true, value: [null] });
  t.same(await port.reserve('x', Number.MAX_SAFE_INTEGER), { ok: false, error: 'StorageFull' });
  t.same(await port.reserve('x', 1), { ok: true, value: null });
  port.release('x');
  t.same(await port.remove(KEY), { ok: true, value: null });
  await close();
});

t.test(
  'file servers: they are swept at the start and each day by the owner, what is left an hour later',
  async (t) => {
    let isOwner = true;
    const [swept, waits]: [WantedFiles[], { delayMs: number; run: () => void; isOver: boolean }[]] = [[], []];
    const timer = (delayMs: number, run: () => void) => {
      const wait = { delayMs, run, isOver: false };
      waits.push(wait);
      return () => {
        wait.isOver = true;
      };
    };
    const storage = {
      async sweepServers(wanted: WantedFiles) {
        swept.push(wanted);
        if (swept.length === 2) throw new GatewayError('FileStorageFailed');
        return { ended: 1, hasMore: swept.length === 3 };
      },
    };
    const servers = fileServersOf(storage, createLog(), { timer });
    await servers.enter();
    t.same(waits, [], 'nothing before the uploads are known');
    const wanted = new Set<string>();
    servers.sweepDaily({ isOwner: () => isOwner, wanted: async () => wanted });
    const pass = async (delayMs: number) => {
      await setImmediate();
      const wait = waits.at(-1);
      t.equal(wait?.delayMs, delayMs);
      wait?.run();
      await setImmediate();
    };
    await pass(DAY_MS);
    t.equal(swept.length, 2);
    await pass(HOUR_MS);
    t.equal(swept.length, 3, 'again after a failure');
    isOwner = false;
    await pass(HOUR_MS);
    t.equal(swept.length, 3, 'another node sweeps');
    isOwner = true;
    await pass(DAY_MS);
    t.same(swept, [wanted, wanted, wanted, wanted]);
    servers.leave();
    t.equal(waits.at(-1)?.isOver, true);
  },
);
