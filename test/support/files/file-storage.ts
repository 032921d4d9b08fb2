/** Bytes into and out of a file storage, the way uploads and downloads do it, and a folder to do it in. */
import { mkdtempSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { FileKey } from '../../../src/domain/files/files.ts';
import type { FileStorage } from '../../../src/io/files/storage/port.ts';

/** A folder that goes with the test. */
export function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'files-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export async function writePart(
  storage: FileStorage,
  key: FileKey,
  bytes: Uint8Array,
  position = 0,
): Promise<void> {
  const lease = await storage.lease(key);
  try {
    writeSync(lease.fd, bytes, 0, bytes.length, position);
  } finally {
    await lease.release();
  }
}

export async function storeFile(storage: FileStorage, key: FileKey, bytes: Uint8Array): Promise<void> {
  await storage.create(key);
  await writePart(storage, key, bytes);
  await storage.publish(key, bytes.length);
}

export async function readStored(storage: FileStorage, key: FileKey): Promise<Buffer | undefined> {
  const file = await storage.open(key);
  if (file === undefined) return undefined;
  try {
    const bytes = Buffer.alloc(file.sizeBytes);
    await file.read(bytes, 0);
    return bytes;
  } finally {
    file.close();
  }
}
