/**
 * The data folder: created at the start, locked for one process at a time. The kernel holds the lock on a file of the
 * folder, so it works across containers and network namespaces, and ends with the process.
 */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { makeFolders } from '../actors/runtime/journal/file.ts';
import { isRecord } from '../config/source.ts';
import { isMachineFault } from '../domain/disk-faults.ts';
import type { Fault } from '../domain/schema.ts';

/** The folder cannot be created or written: a fault of the configuration. */
export class FolderUnusable extends Error {
  /** The key of the configuration that names the folder. */
  readonly key: string;

  constructor(message: string, key = 'DataPath') {
    super(message);
    this.key = key;
  }
}
/** The content of the folder cannot be used: it is damaged or missing, or permissions or the disk fail. */
export class JournalUnusable extends Error {}
/** Another process serves this folder. */
export class FolderInUse extends Error {}

/** Holds the lock. Its text says whether the folder had a journal, and whether a gateway serves it. */
const HOLD_FILE = 'gatehouse.lock';
/** Lines of its text: the journal has its name, and a gateway serves the folder. */
const MARK = 'journal\n';
const SERVED = 'served\n';
/** Constants of <sys/file.h> and <errno.h>. */
const LOCK_EX = 2;
const LOCK_NB = 4;
const EWOULDBLOCK = 11;

export interface HeldFolder {
  /** A journal was here at an earlier start. */
  readonly hadJournal: boolean;
  /** The previous run did not stop cleanly: a signal, a power cut. */
  readonly wasCutOff: boolean;
  /** The reason why the kernel gave no lock. The journal itself still refuses a second writer. */
  readonly unlocked: string | undefined;
  /** From now on the next start detects an end that is not clean. Throws the error of the system. */
  markServed(): void;
  /** The journal has failed: this end counts as one that is not clean. */
  keepServed(): void;
  /** From now on a start without a journal fails. Throws the error of the system. */
  markJournal(): void;
  release(): void;
}

/**
 * Creates the folder, readable by its owner only. `key` names it in the configuration. Throws `FolderUnusable`, and
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

/**
 * Faults that a start would have with the folders of a file, found without making them: the folder, or the nearest one
 * above that exists, cannot be used by this user. `data`: of the flag, which wins over `DataPath`.
 */
export function folderFaults(file: unknown, data: string | undefined): Fault[] {
  const given = isRecord(file) ? file : {};
  const folders = {
    DataPath: data ?? given['DataPath'],
    LocalFileStoragePath: given['LocalFileStoragePath'],
    FileStagingPath: given['FileStagingPath'],
  };
  return Object.entries(folders).flatMap(([path, folder]) => {
    const message = typeof folder === 'string' ? hindranceOf(resolve(folder)) : undefined;
    return message === undefined ? [] : [{ path, message }];
  });
}

function hindranceOf(folder: string): string | undefined {
  let existing = folder;
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing);
  try {
    if (!statSync(existing).isDirectory()) return `${existing} is not a folder`;
    accessSync(existing, constants.R_OK | constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** A full or failing disk is not a fault of the configuration, which works again once the disk does. */
export function folderFault(error: unknown, path: string, key: string): FolderUnusable | JournalUnusable {
  const message = error instanceof Error ? error.message : String(error);
  return isMachineFault(error)
    ? new JournalUnusable(`${path} cannot be used: ${message}`)
    : new FolderUnusable(message, key);
}

/** Creates the folder and locks it until `release`. Throws `FolderUnusable`, `JournalUnusable`, `FolderInUse`. */
export async function holdFolder(path: string): Promise<HeldFolder> {
  makeFolder(path);
  const file = join(path, HOLD_FILE);
  const fd = openForLock(file);
  const unlocked = await lock(fd, path);
  const name = await holdName(path);
  const text = readFileSync(file, 'utf8');
  const lines = { journal: text.includes(MARK), served: false };
  // Overwrites in place, which needs no new block and so works on a full disk.
  const write = () => {
    const text = `${lines.journal ? MARK : ''}${lines.served ? SERVED : ''}`;
    writeSync(fd, text, 0);
    ftruncateSync(fd, text.length);
    fsyncSync(fd);
  };
  // Runs at every end except by a signal: also at process.exit and after a bug.
  const leave = () => {
    lines.served = false;
    try {
      write();
    } catch {
      // When the disk fails here, the next start checks the pages of the journal, and nothing else happens.
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
    keepServed: () => void process.off('exit', leave),
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

/** Locks the file. Returns the reason when there is no lock. Node has no flock, so koffi calls it. */
async function lock(fd: number, path: string): Promise<string | undefined> {
  try {
    const { load, errno } = (await import('koffi')).default;
    const flock = load(null).func('int flock(int, int)');
    if (flock(fd, LOCK_EX | LOCK_NB) === 0) return undefined;
    if (errno() === EWOULDBLOCK) throw new FolderInUse(`${path} is in use by another process`);
    return `flock: error ${errno()}`;
  } catch (error) {
    if (error instanceof FolderInUse) throw error;
    // koffi has no build for this machine.
    return error instanceof Error ? error.message : String(error);
  }
}

/** The abstract socket with which version 0.1.0 locked a folder; that version has no lock file. Linux only. */
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
