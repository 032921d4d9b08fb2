/**
 * Copies of the journal on disk. A copy is readable by its owner alone and on disk when it is done. It does not
 * continue the log of events, because the original gives the next sequence numbers to other events.
 */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { DATA_FILE, ENGINE, LOCK_FILE, syncToDisk } from './file.ts';
import { EVENT_EPOCH_KEY, MESSAGES_OF_ROW_MAX, REPLICA_KEY } from './port.ts';
import { createPackr, packRow } from './row-checksum.ts';
import { openTables } from './tables.ts';

/** Copies the journal of `directory`, which a running gateway may be writing, as one consistent state. */
export async function copyJournal(directory: string, target: string): Promise<void> {
  await copyFile(directory, target);
  await finishCopy(target);
}

/**
 * Copies the journal as the state with which the log of a cluster begins, and returns that position: at least `from`, and
 * above the numbers of messages that wait. The log of events continues, as the original is given up.
 */
export async function copyAsReplica(directory: string, target: string, from: number): Promise<number> {
  await copyFile(directory, target);
  let position = from;
  await finish(target, async (root) => {
    const packr = createPackr();
    const { tables } = openTables(root, packr, () => undefined);
    for (const key of tables.mailbox.getKeys({}))
      position = Math.max(
        position,
        Math.floor(Number((key as readonly unknown[])[2]) / MESSAGES_OF_ROW_MAX) + 1,
      );
    const row = packRow(packr, [position, new Uint8Array(32), []]);
    await root.batch(() => tables.meta.put(REPLICA_KEY, row));
  });
  return position;
}

/** What the metadata of a journal says of the log of a cluster; undefined where it was never of one. */
export async function replicaPosition(directory: string): Promise<number | undefined> {
  const root = open({ ...ENGINE, path: directory, readOnly: true });
  try {
    const { tables } = openTables(root, createPackr(), () => undefined);
    const stored = tables.meta.get(REPLICA_KEY);
    return Array.isArray(stored) ? Number(stored[0]) : undefined;
  } finally {
    await root.close();
  }
}

async function copyFile(directory: string, target: string): Promise<void> {
  const root = open({ ...ENGINE, path: directory, readOnly: true });
  try {
    await root.backup(target, true);
  } finally {
    await root.close();
  }
}

/** To be called once on a fresh copy, before it is opened as a journal. */
export async function finishCopy(target: string): Promise<void> {
  await finish(target, async (root) => {
    const meta = root.openDB('meta', {});
    for (const key of [EVENT_EPOCH_KEY, REPLICA_KEY]) await meta.remove(key);
  });
}

async function finish(target: string, change: (root: RootDatabase) => Promise<void>): Promise<void> {
  chmodSync(join(target, DATA_FILE), 0o600);
  const root = open({ ...ENGINE, path: target });
  try {
    await change(root);
  } finally {
    await root.close();
  }
  chmodSync(join(target, LOCK_FILE), 0o600);
  // The engine syncs what it commits, and no file that it copies.
  for (const path of [join(target, DATA_FILE), target]) syncToDisk(path);
}
