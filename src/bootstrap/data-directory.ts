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
import { makeFolders } from '../actors/runtime/journal/file.ts';
import { isMachineFault } from '../domain/disk-faults.ts';

/** The folder cannot be made or written: a fault of the configuration. */
export class FolderUnusable extends Error {
  /** The key of the configuration that names the folder. */
  readonly key: string;

  constructor(message: string, key = 'DataPath') {
    super(message);
    this.key = key;
  }
}
/** What is in the folder cannot be read or written as it must be: damaged, missing, no permission, or a disk that fails. */
export class JournalUnusable extends Error {}
/** Another process serves this folder. */
export class FolderInUse extends Error {}

/** Holds the lock; its text says whether the folder has had a journal, and whether a gateway serves it. */
const HOLD_FILE = 'gatehouse.lock';
/** Lines of its text: the journal has its name, and a gateway serves the folder. */
const MARK = 'journal\n';
const SERVED = 'served\n';
/** Of <sys/file.h> and <errno.h>. */
const LOCK_EX = 2;
const LOCK_NB = 4;
const EWOULDBLOCK = 11;

export interface HeldFolder {
  /** A journal was here at an earlier start. */
  readonly hadJournal: boolean;
  /** The gateway before did not end by itself: a signal, a power cut. */
  readonly wasCutOff: boolean;
  /** Why no lock of the kernel was had: the journal itself still refuses a second writer. */
  readonly unlocked: string | undefined;
  /** From now on an end that is not by itself is seen at the next start. Throws the error of the system. */
  markServed(): void;
  /** From now on a start without a journal is a fault. Throws the error of the system. */
  markJournal(): void;
  release(): void;
}

/**
 * Makes the folder, readable by its owner alone. `key` names it in the configuration. Throws `FolderUnusable`, and
 * `JournalUnusable` when the machine fails.
 */
export function makeFolder(path: string, key = 'DataPath'): void {
  try {
    makeFolders(resolve(path));
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw folderFault(error, path, key);
  }
}

/** A full or failing disk is no fault of the configuration: the same file serves once the disk does. */
export function folderFault(error: unknown, path: string, key: string): FolderUnusable | JournalUnusable {
  const message = error instanceof Error ? error.message : String(error);
  return isMachineFault(error)
    ? new JournalUnusable(`${path} cannot be used: ${message}`)
    : new FolderUnusable(message, key);
}

/** Makes the folder and holds it until `release`. Throws `FolderUnusable`, `JournalUnusable`, `FolderInUse`. */
export async function holdFolder(path: string): Promise<HeldFolder> {
  makeFolder(path);
  const file = join(path, HOLD_FILE);
  const fd = openForLock(file);
  const unlocked = await lock(fd, path);
  const name = await holdName(path);
  const text = readFileSync(file, 'utf8');
  const lines = { journal: text.includes(MARK), served: false };
  // Over the old text: a full disk has room for that, and would have none for a new block.
  const write = () => {
    const text = `${lines.journal ? MARK : ''}${lines.served ? SERVED : ''}`;
    writeSync(fd, text, 0);
    ftruncateSync(fd, text.length);
    fsyncSync(fd);
  };
  // Every end but one by a signal comes by here, process.exit and a bug too.
  const leave = () => {
    lines.served = false;
    try {
      write();
    } catch {
      // A disk that fails at the end costs the next start a look at the pages, and nothing else.
    }
  };
  return {
    hadJournal: lines.journal,
    wasCutOff: text.includes(SERVED),
    unlocked,
    markServed() {
      lines.served = true;
      write();
      process.once('exit', leave);
    },
    markJournal() {
      if (lines.journal) return;
      lines.journal = true;
      write();
    },
    release() {
      process.off('exit', leave);
      leave();
      name?.close();
      closeSync(fd);
    },
  };
}

function openForLock(file: string): number {
  try {
    return openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
  } catch (error) {
    throw folderFault(error, file, 'DataPath');
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
