/**
 * The data folder: made at start, held by one process at a time. The lock is the kernel's, on a file of the folder, so that
 * it holds across containers and network namespaces and ends with the process, however that ends.
 */
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join, resolve } from 'node:path';
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

/** Holds the lock; its text says whether the folder has had a journal. */
export const HOLD_FILE = 'gatehouse.lock';
/** The text of a folder whose journal has its name. */
const MARK = 'journal\n';
/** Of <sys/file.h> and <errno.h>. */
const LOCK_EX = 2;
const LOCK_NB = 4;
const EWOULDBLOCK = 11;

export interface HeldFolder {
  /** A journal was here at an earlier start. */
  readonly hadJournal: boolean;
  /** Why no lock of the kernel was had: the journal itself still refuses a second writer. */
  readonly unlocked: string | undefined;
  /** From now on a start without a journal is a fault. */
  markJournal(): void;
  release(): void;
}

/** Makes the folder, readable by its owner alone. `key` names it in the configuration. Throws `FolderUnusable`. */
export function makeFolder(path: string, key = 'DataPath'): void {
  try {
    makeFolders(resolve(path));
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new FolderUnusable(error instanceof Error ? error.message : String(error), key);
  }
}

/** Makes the folder and holds it until `release`. Throws `FolderUnusable`, `FolderInUse`. */
export async function holdFolder(path: string): Promise<HeldFolder> {
  makeFolder(path);
  const file = join(path, HOLD_FILE);
  const fd = openForLock(file);
  const unlocked = await lock(fd, path);
  const name = await holdName(path);
  return {
    hadJournal: readFileSync(file, 'utf8') === MARK,
    unlocked,
    markJournal() {
      if (readFileSync(file, 'utf8') === MARK) return;
      ftruncateSync(fd);
      writeSync(fd, MARK, 0);
      fsyncSync(fd);
    },
    release() {
      name?.close();
      closeSync(fd);
    },
  };
}

function openForLock(file: string): number {
  try {
    return openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
  } catch (error) {
    throw new FolderUnusable(error instanceof Error ? error.message : String(error));
  }
}

/** The reason why there is no lock; undefined when it is held. Node has no call for it, so koffi makes it. */
async function lock(fd: number, path: string): Promise<string | undefined> {
  try {
    const { load, errno } = (await import('koffi')).default;
    const flock = load(null).func('int flock(int, int)');
    if (flock(fd, LOCK_EX | LOCK_NB) === 0) return undefined;
    if (errno() === EWOULDBLOCK) throw new FolderInUse(`${path} is in use by another process`);
    return `flock: error ${errno()}`;
  } catch (error) {
    if (error instanceof FolderInUse) throw error;
    // No build of koffi for this machine.
    return error instanceof Error ? error.message : String(error);
  }
}

/** The name by which version 0.1.0 held a folder: that one knows no lock file. Linux only. */
async function holdName(path: string): Promise<Server | undefined> {
  if (process.platform !== 'linux') return undefined;
  const { dev, ino } = statSync(path, { bigint: true });
  const server: Server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', () => reject(new FolderInUse(`${path} is in use by another process`)));
    server.listen(`\0gatehouse-${dev}-${ino}`, resolve);
  });
  return server.unref();
}
