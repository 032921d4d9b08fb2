/**
 * @tus/server with its file store, as its documentation shows it. `node tus-server.js FOLDER [sync]`; with `sync` a finished
 * file, its record and their folder are on disk before the answer.
 */
import { open } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { FileStore } from '@tus/file-store';
import { Server } from '@tus/server';

const [directory, sync] = process.argv.slice(2);

async function syncPath(path) {
  const handle = await open(path);
  await handle.sync().finally(() => handle.close());
}

async function onUploadFinish(_request, { id }) {
  await Promise.all([syncPath(join(directory, id)), syncPath(join(directory, `${id}.json`))]);
  await syncPath(directory);
  return {};
}

const datastore = new FileStore({ directory });
const tus = new Server({ path: '/files', datastore, ...(sync === undefined ? {} : { onUploadFinish }) });
const server = createServer((request, response) => void tus.handle(request, response));
server.listen(0, '127.0.0.1', () => process.send?.({ url: `http://127.0.0.1:${server.address().port}` }));
process.on('disconnect', () => process.exit(0));
