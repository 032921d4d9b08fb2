/**
 * Copies of the journal on disk. A copy is readable by its owner alone and on disk when it is done. It does not
 * continue the log of events, because the original gives the next sequence numbers to other events.
 */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { DATA_FILE, ENGINE, LOCK_FILE, syncToDisk } from './file.ts';
import { EVENT_EPOCH_KEY } from './port.ts';

/** Copies the journal of `directory`, which a running gateway may be writing, as one consistent state. */
export async function copyJournal(directory: string, target: string): Promise<void> {
  const root = open({ ...ENGINE, path: directory, readOnly: true });
  try {
    await root.backup(target, true);
  } finally {
    await root.close();
  }
  await finishCopy(target);
}

/** To be called once on a fresh copy, before it is opened as a journal. */
export async function finishCopy(target: string): Promise<void> {
  chmodSync(join(target, DATA_FILE), 0o600);
  const root = open({ ...ENGINE, path: target });
  try {
    await root.openDB('meta', {}).remove(EVENT_EPOCH_KEY);
  } finally {
    await root.close();
  }
  chmodSync(join(target, LOCK_FILE), 0o600);
  // The engine syncs what it commits, and no file that it copies.
  for (const path of [join(target, DATA_FILE), target]) syncToDisk(path);
}
