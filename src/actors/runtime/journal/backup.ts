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

/** Of the digest of a log that begins: SHA-256. */
const DIGEST_BYTES = 32;

/** Copies the journal of `directory`, which a running gateway may be writing, as one consistent state. */
export async function copyJournal(directory: string, target: string): Promise<void> {
  await copyFile(directory, target);
  await finishCopy(target);
}

/**
 * Copies the journal as the state with which the log of a cluster begins, and returns that position: at least `from`, and
 * above the numbers of messages that wait. The log of events continues, as the original is given up.
 */
export async function copyAsReplica(
  directory: string,
  target: string,
  { from, logId }: { readonly from: number; readonly logId: string },
): Promise<number> {
  await copyFile(directory, target);
  let position = from;
  await finish(target, async (root) => {
    for (const key of openTables(root, createPackr(), () => undefined).tables.mailbox.getKeys({})) {
      const seq = Number((key as readonly unknown[])[2]);
      position = Math.max(position, Math.floor(seq / MESSAGES_OF_ROW_MAX) + 1);
    }
    await putReplica(root, [position, new Uint8Array(DIGEST_BYTES), [], logId]);
  });
  return position;
}

/** Position in the log of a cluster that a journal has applied, 0 for an empty one; undefined where it is not of one. */
export async function replicaPosition(directory: string): Promise<number | undefined> {
  const root = open({ ...ENGINE, path: directory, readOnly: true });
  try {
    const applied = replicaOf(root)?.[0];
    return applied ?? (isEmpty(root) ? 0 : undefined);
  } finally {
    await root.close();
  }
}

/** Makes a replica that was fetched follow the log under its present id, which a restore of the database changes. */
export async function adoptReplica(directory: string, logId: string): Promise<number | undefined> {
  let position: number | undefined;
  await finish(directory, async (root) => {
    const stored = replicaOf(root);
    if (stored === undefined) return;
    position = stored[0];
    await putReplica(root, [stored[0], stored[1], stored[2], logId]);
  });
  return position;
}

/** As `log/replica.ts` writes it. */
type StoredReplica = readonly [position: number, digest: Uint8Array, members: unknown, logId: string];

/** No actor has a row. */
function isEmpty(root: RootDatabase): boolean {
  const { journal, snapshot } = openTables(root, createPackr(), () => undefined).tables;
  return journal.count() + snapshot.count() === 0;
}

function replicaOf(root: RootDatabase): StoredReplica | undefined {
  return openTables(root, createPackr(), () => undefined).tables.meta.get(REPLICA_KEY) as
    | StoredReplica
    | undefined;
}

async function putReplica(root: RootDatabase, replica: StoredReplica): Promise<void> {
  const packr = createPackr();
  const { tables } = openTables(root, packr, () => undefined);
  await root.batch(() => tables.meta.put(REPLICA_KEY, packRow(packr, replica)));
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

/** The same for a copy that continues as a replica of the same log, with its log of events. */
export async function finishReplica(target: string): Promise<void> {
  await finish(target, async () => undefined);
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
