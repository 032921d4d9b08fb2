/**
 * `publisher.js FOLDER FILES [early | unsynced]`: stores so many files, four at a time, and prints `published OWNER/ID` after each.
 * The tests trace its system calls. `early`: prints before it publishes, which the tests must detect. `unsynced`: the folder of the
 * first owner is there, made by a task that has not synced.
 */
import { fsyncSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FileKey } from '../../../src/domain/files/files.ts';
import { LocalStorage } from '../../../src/io/files/storage/local.ts';
import { createWorkerPool } from '../../../src/workers/pool.ts';
import { keyOf, partBytesMaxOf, partOf, publishedBytes } from './published-files.ts';

const AT_ONCE = 4;

const [root = '', files = '', fault] = process.argv.slice(2);
mkdirSync(root);
fsyncSync(openSync(dirname(root), 'r'));
if (fault === 'unsynced') mkdirSync(join(root, keyOf(0).owner));
const complain = (message: string) => process.stderr.write(`${message}\n`);
const workers = createWorkerPool({ threads: 1, queueMax: 100, onFault: complain });
const storage = new LocalStorage({ root, workers, onFault: complain });
let next = 0;

async function storeFile(key: FileKey, file: number): Promise<void> {
  await storage.create(key);
  const lease = await storage.lease(key);
  const bytes = partOf(file);
  const sharedBuffer = new SharedArrayBuffer(bytes.length);
  new Uint8Array(sharedBuffer).set(bytes);
  const written = { sharedBuffer, length: bytes.length, fd: lease.fd, position: 0 };
  await workers.run('writeBuffer', written);
  await lease.release();
  if (fault === 'early') writeSync(1, `published ${key.owner}/${key.fileId}\n`);
  await storage.publish(key, publishedBytes(file).length, partBytesMaxOf(file));
  writeSync(1, `published ${key.owner}/${key.fileId}\n`);
}

async function storeFiles(): Promise<void> {
  for (let file = next++; file < Number(files); file = next++) await storeFile(keyOf(file), file);
}

await Promise.all(Array.from({ length: AT_ONCE }, storeFiles));
await storage.close();
await workers.close();
