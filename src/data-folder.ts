/**
 * The data folder: made at start, held by one process at a time. The hold is an abstract socket named after the
 * folder's device and inode: the kernel lets go of it when the process ends, however it ends. Linux only; elsewhere
 * the operator sees to it.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { resolve } from 'node:path';
import { makeFolders } from './actors/runtime/journal-file.ts';

/** The folder cannot be made or written: a fault of the configuration. */
export class FolderUnusable extends Error {
  /** The key of the configuration that names the folder. */
  readonly key: string;

  constructor(message: string, key = 'DataPath') {
    super(message);
    this.key = key;
  }
}
/** What is in the folder cannot be read or written as it must be: damaged, missing, or no permission. */
export class JournalUnusable extends Error {}
/** Another process serves this folder. */
export class FolderInUse extends Error {}

/** Makes the folder, readable by its owner alone. `key` names it in the configuration. Throws `FolderUnusable`. */
export function makeFolder(path: string, key = 'DataPath'): void {
  try {
    makeFolders(resolve(path));
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new FolderUnusable(error instanceof Error ? error.message : String(error), key);
  }
}

/** Makes the folder and holds it until the returned function is called. Throws `FolderUnusable`, `FolderInUse`. */
export async function holdFolder(path: string): Promise<() => void> {
  makeFolder(path);
  if (process.platform !== 'linux') return () => {};
  const { dev, ino } = statSync(path, { bigint: true });
  const server: Server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', () => reject(new FolderInUse(`${path} is in use by another process`)));
    server.listen(`\0gatehouse-${dev}-${ino}`, resolve);
  });
  server.unref();
  return () => server.close();
}
